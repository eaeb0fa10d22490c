// Any bytes at all as a workload file: an answer or an error with a message, and never a crash. What reads well has
// sane figures.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/document.h"
#include "catalog/catalog.h"
#include "workload/workload.h"

namespace {

const stoker::Catalog& catalog() {
    static const stoker::Catalog all = [] {
        auto read = stoker::Catalog::embedded();
        if (!read) std::abort();
        return std::move(read).value();
    }();
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto document = stoker::Document::parse(text, "workload.yaml");
    if (!document) return 0;
    // Every file that the workload names holds what the workload holds: configs get fuzzed as well.
    const stoker::FileLoader load = [&](const std::string& path) { return stoker::Document::parse(text, path); };
    const auto workload = stoker::read_workload(*document, catalog(), load);
    if (!workload) {
        for (const stoker::Problem& problem : workload.error().problems()) {
            if (problem.message.empty() || !problem.pos.known()) std::abort();
        }
        if (workload.error().text([&](stoker::FileName) { return text; }).empty()) std::abort();
        return 0;
    }
    if (!std::isfinite(workload->total_tokens()) || workload->total_tokens() < 0 || workload->sequence() < 1)
        std::abort();
    if (workload->title().empty()) std::abort();
    return 0;
}
