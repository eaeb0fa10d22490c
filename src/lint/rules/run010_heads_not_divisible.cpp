#include "lint/rules/common_megatron.h"

namespace stoker::lint {

void check_run010(const File& file, Report& report) {
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (!launch.trains()) return;
        const ParallelSizes sizes = parallel_sizes(launch);
        if (!sizes.tensor_option || sizes.tensor < 2 || !sizes.tensor_option->value.known()) return;
        const LaunchOption* heads = launch.option("num-attention-heads");
        const auto count = option_int(launch, "num-attention-heads");
        if (count && *count > 0 && *count % sizes.tensor != 0) {
            Finding* finding = report.add(heads->value, address + "#heads",
                                          std::to_string(*count) + " attention heads cannot be split over " +
                                              std::to_string(sizes.tensor) + " tensor-parallel ranks");
            if (finding) finding->advice = "choose a tensor-parallel size that divides the heads";
            return;
        }
        // Groups of keys and values: fewer than the ranks are replicated, when the ranks are a multiple of them.
        const LaunchOption* groups = launch.option("num-query-groups");
        const auto shared = option_int(launch, "num-query-groups");
        if (shared && *shared > 0 && *shared % sizes.tensor != 0 && sizes.tensor % *shared != 0) {
            Finding* finding = report.add(groups->value, address + "#heads",
                                          std::to_string(*shared) +
                                              " key-value groups can neither be split over nor "
                                              "replicated on " +
                                              std::to_string(sizes.tensor) + " tensor-parallel ranks");
            if (finding)
                finding->advice = "choose a tensor-parallel size that divides the groups, or a multiple of them";
        }
    });
}

}  // namespace stoker::lint
