// Session: what one invocation of the binary knows: its catalogue, its terminal, the day.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/args.h"
#include "base/style.h"
#include "catalog/catalog.h"
#include "plan/plan.h"
#include "workload/stages.h"
#include "workload/workload.h"

namespace stoker {

enum class Format : std::uint8_t { text, json, yaml };

struct Session {
    Style style;  // of stdout
    Format format = Format::text;
    bool quiet = false;
    bool interactive = false;  // stdin and stdout are a terminal
    std::string today;         // YYYY-MM-DD
    std::string catalog_dir;
    std::string stage;  // of a file with several: the one that is meant; empty: none was named
    std::map<std::string, std::string, std::less<>> sources;  // what was read, by name: messages show the line
    // Where there are some, these texts stand for files of their paths, and no other file is read.
    std::map<std::string, std::string, std::less<>> given;

    // Reads a file ("-": stdin) into a Document, and keeps its text for the messages.
    Result<Document> read_document(const std::string& path, std::size_t max_bytes = ReadLimits{}.max_bytes);

    // The file's text alone, kept for the messages as well.
    Result<std::string> read_source(const std::string& path);

    // The catalogue is read when first needed.
    Result<Catalog*> catalog();

private:
    std::optional<Catalog> catalog_;
};

// Reads a workload file ("-": stdin), with the config.json and node files it names relative to it.
Result<Workload> load_workload(Session& session, const std::string& path);
// The same of a file that has been read.
Result<Workload> load_workload(Session& session, const Document& document, const std::string& path);
// One workload a stage, in the order of the file (workload/stages.h); all that is wrong in any of them together.
struct LoadedStage {
    Stage stage;
    Workload workload;
};
Result<std::vector<LoadedStage>> load_stages(Session& session, const Document& document, const std::string& path);
// What `stoker plan` would refuse in the text of a workload file, for checks; may be called from several threads. What
// it names beside it is read from the folder of `path`. Lives no longer than the session.
std::function<std::vector<Problem>(const std::string& path, std::string_view text)> workload_judge(Session& session);
// Adds what --skus, --usage, --prices, --nodes name to the options and the catalogue.
Result<PlanOptions> plan_options(Session& session, const Args& args);
const std::vector<OptionSpec>& planning_options();  // the options of the above

// The same answer as JSON or YAML.
std::string dump(const Session& session, const Json& json);

}  // namespace stoker
