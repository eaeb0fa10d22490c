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
struct RestForm : RestChoice {
    std::map<std::string, SourcePos> at;
};
struct EngineForm : EngineChoice, KubernetesChoice {
    std::vector<GpuNameForm> gpu_names;
    std::vector<std::string> node_labels;
    std::optional<Seconds> notice, gang_wait;
    std::optional<RestForm> rest_form;
    std::string region;  // where it stands, for rules of admission; empty: nobody said
    std::map<std::string, SourcePos> at;
};

RecordTable<EngineForm> engine_form_table();
RecordTable<EngineForm> engine_beside_table();  // one of `engines`, which has a name
// Everything that is wrong with it, with its place; `choice` without that.
EngineChoice engine_choice(const EngineForm& form, Problems& problems);
// Those beside the first: what is wrong with each, and with them together.
std::vector<EngineChoice> engine_choices(const EngineChoice& first, const std::vector<EngineForm>& forms,
                                         Problems& problems);
// In a line, for `stoker config`.
std::string in_words(const EngineChoice& choice);
// All of it, for telling whether it has changed.
std::string exact_words(const KubernetesChoice& choice);

}  // namespace stoker
