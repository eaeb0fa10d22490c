#include "lint/rules/common_megatron.h"

namespace stoker::lint {

void check_run007(const File& file, Report& report) {
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        const ParallelSizes sizes = parallel_sizes(launch);
        if (!sizes.known) return;
        const auto world = launch_world(file, launch);
        const std::int64_t model = sizes.tensor * sizes.pipeline * sizes.context;
        if (!world || model < 2 || *world % model == 0) return;
        Finding* finding =
            report.add(*launch.source, launch.word, address + "#world",
                       std::to_string(*world) + " ranks are not a multiple of the " + std::to_string(model) +
                           " that one copy of the model takes (tensor " + std::to_string(sizes.tensor) +
                           " x pipeline " + std::to_string(sizes.pipeline) + " x context " +
                           std::to_string(sizes.context) + "): the program stops at its first check");
        if (!finding) return;
        if (sizes.tensor_option && sizes.tensor_option->value.source)
            report.relate(finding, *sizes.tensor_option->value.source, sizes.tensor_option->value.span,
                          "tensor parallel");
        finding->advice = "choose nodes, processes per node and parallel sizes that divide";
    });
}

}  // namespace stoker::lint
