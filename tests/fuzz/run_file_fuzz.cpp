// Any bytes at all as a file to run, as a script and as YAML of each tool: a run or an error with its place, and never
// a crash. What reads well is a spec that is kept.
#include <cstdint>
#include <cstdlib>

#include "base/document.h"
#include "run/spec/compile.h"
#include "workload/import/import_report.h"

namespace {

void check(const stoker::Result<stoker::ImportedRun>& run) {
    if (!run) {
        for (const stoker::Problem& problem : run.error().problems())
            if (problem.message.empty() || !problem.pos.known()) std::abort();
        return;
    }
    for (const auto* items : {&run->report.taken, &run->report.dropped})
        for (const stoker::ImportItem& item : *items)
            if (item.what.size() > 1000 || item.reason.empty()) std::abort();
    const auto spec = stoker::compile_run(run->run, {.name = "run", .folder = "/work"});
    if (spec && !stoker::check_run_spec(*spec)) std::abort();
    if (spec && !stoker::parse_run_spec(stoker::canonical_json(*spec))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check(stoker::import_sbatch(text, "job.sh"));
    const auto document = stoker::Document::parse(text, "run.yaml");
    if (!document) return 0;
    (void)stoker::tool_of_document(document->root());
    if (document->root().is_mapping()) {
        check(stoker::import_skypilot(*document));
        check(stoker::import_dstack(*document));
    }
    const auto file = stoker::read_run_file_form(*document);
    if (!file) return 0;
    const auto spec = stoker::compile_run(file->run, {.name = "run", .folder = "/work"});
    if (spec && !stoker::parse_run_spec(stoker::canonical_json(*spec))) std::abort();
    return 0;
}
