// What was made of another tool's file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/result.h"
#include "workload/run_section.h"

namespace stoker {

struct ImportItem {
    SourcePos pos;
    std::string what;    // as written: "--qos=high", "file_mounts"
    std::string reason;  // taken: what it became; dropped: why
};
struct ImportReport {
    std::string tool;  // "Slurm", "SkyPilot", "dstack"; empty: the file is our own
    std::vector<ImportItem> taken, dropped;

    void take(SourcePos pos, std::string what, std::string became) {
        taken.push_back({pos, std::move(what), std::move(became)});
    }
    void drop(SourcePos pos, std::string what, std::string why) {
        dropped.push_back({pos, std::move(what), std::move(why)});
    }
};

struct ImportedRun {
    std::string name;  // empty: the file's own
    RunSection run;
    // Folders of the file are relative to where the tool is started, as with sbatch, not to the file.
    bool from_current_folder = false;
    ImportReport report;
};

// An sbatch script, or any script with an interpreter line. `file` is for the places.
Result<ImportedRun> import_sbatch(std::string_view text, const std::string& file);
Result<ImportedRun> import_skypilot(const Document& document);
// type: task or dev-environment.
Result<ImportedRun> import_dstack(const Document& document);

enum class RunFileTool : std::uint8_t { stoker, slurm, skypilot, dstack };
// By the content. A manifest of Kubernetes and the like is refused by name.
Result<RunFileTool> tool_of_script(std::string_view text);  // slurm or stoker (any YAML or JSON)
Result<RunFileTool> tool_of_document(const Node& root);

// What the readers of YAML files share.
namespace import_detail {
// "H100:8", {H100: 8} or [H100:8, A100:8], of which the first is taken.
struct GpuWish {
    std::string model;
    double count = 0;
};
void read_accelerators(const Node& node, const std::string& key, ImportedRun& run);
// "4", "4+", "4..8", 4: the least that is asked for.
std::string least_of(const Node& node);
std::string shown(const Node& node);  // as written, short
// Names -> texts, from a mapping or from a list of "A=1".
void read_variables(const Node& node, const std::string& key, ImportedRun& run);
}  // namespace import_detail

}  // namespace stoker
