#include "lint/rules/common_megatron.h"

namespace stoker::lint {

void check_run009(const File& file, Report& report) {
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (!launch.trains()) return;
        const ParallelSizes sizes = parallel_sizes(launch);
        if (!sizes.known || sizes.tensor < 2) return;
        const auto nodes = launch_nodes(file, launch);
        if (!nodes || nodes->count < 2) return;
        std::optional<std::int64_t> devices = launch.per_node.as_int();
        if (!devices)
            if (const auto given = devices_for(file, part)) devices = given->count;
        if (!devices || *devices < 1 || sizes.tensor <= *devices) return;
        for (const std::string_view rack : {"GB200", "GB300", "NVL72", "NVL36"})
            if (mentions(file, rack)) return;
        Finding* finding =
            report.add(sizes.tensor_option->value, address + "#tensor",
                       "tensor parallelism over " + std::to_string(sizes.tensor) + " GPUs crosses nodes of " +
                           std::to_string(*devices) + ": its all-reduces of every layer leave NVLink");
        if (finding) finding->advice = "keep tensor parallelism within a node and add pipeline stages for the rest";
    });
}

}  // namespace stoker::lint
