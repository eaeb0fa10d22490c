// A release of an engine, as it is printed: which ones are told apart, sizing/engine_era.h knows.
#include <fmt/format.h>

#include "workload/workload_form.h"

namespace stoker {

void check_framework_version(const WorkloadForm& w, Problems& problems) {
    const std::string& version = w.framework_version;
    if (version.empty()) return;
    const SourcePos pos = place_of(w.at, "framework_version", w.pos);
    const bool counted =
        version.find('.') != std::string::npos && version.find_first_not_of("v0123456789.") == std::string::npos;
    if (w.kind != WorkloadKind::inference && w.kind != WorkloadKind::batch_inference)
        problems.push_back({fmt::format("framework_version: releases are told apart of engines that serve, not for {}",
                                        to_string(w.kind)),
                            "take framework_version out", pos});
    else if (!counted)
        problems.push_back({fmt::format("framework_version: '{}' is no release", version),
                            "write the major and the minor number, such as 0.6 or 0.6.3", pos});
    else if (w.framework.empty())
        problems.push_back(
            {fmt::format("framework_version: {} of which engine?", version), "name it: framework: vllm", pos});
}

}  // namespace stoker
