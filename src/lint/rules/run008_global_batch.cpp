#include "lint/rules/common_megatron.h"

namespace stoker::lint {

void check_run008(const File& file, Report& report) {
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (!launch.trains() || launch.open || launch.option("rampup-batch-size")) return;
        const LaunchOption* global = launch.option("global-batch-size");
        const auto batch = option_int(launch, "global-batch-size"), micro = option_int(launch, "micro-batch-size");
        const auto world = launch_world(file, launch);
        if (!batch || !micro || !world || *batch < 1 || *micro < 1) return;
        const ParallelSizes sizes = parallel_sizes(launch);
        const std::int64_t model = sizes.tensor * sizes.pipeline * sizes.context;
        if ((launch.option("tensor-model-parallel-size") || launch.option("pipeline-model-parallel-size")) &&
            !sizes.known)
            return;
        if (*world % model != 0) return;  // RUN007 tells that
        const std::int64_t copies = *world / model;
        if (*batch % (*micro * copies) == 0) return;
        Finding* finding = report.add(global->value, address + "#batch",
                                      "global batch " + std::to_string(*batch) + " is not a multiple of micro batch " +
                                          std::to_string(*micro) + " x " + std::to_string(copies) +
                                          " data-parallel copies: the program stops at its first check");
        if (finding) finding->advice = "take the next multiple of " + std::to_string(*micro * copies);
    });
}

}  // namespace stoker::lint
