// The key `engine` of server.yaml.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "deploy/engines/engine_choice.h"

namespace stoker {

struct GpuNameForm {
    std::string name, model;
};
struct EngineForm : EngineChoice {
    std::vector<GpuNameForm> gpu_names;
    std::optional<Seconds> notice;
    std::map<std::string, SourcePos> at;
};

RecordTable<EngineForm> engine_form_table();
// Everything that is wrong with it, with its place; `choice` without that.
EngineChoice engine_choice(const EngineForm& form, Problems& problems);
// In a line, for `stoker config`.
std::string in_words(const EngineChoice& choice);

}  // namespace stoker
