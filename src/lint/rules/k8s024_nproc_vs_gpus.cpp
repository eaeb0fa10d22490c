#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s024(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        const Quantity* device = accelerator_of(container);
        const auto devices = accelerators_of(container);
        if (!device || !devices || device->resource.starts_with("nvidia.com/mig-")) return;
        for (const WordList& command : commands_of(container)) {
            const std::vector<Value>& words = *command.words;
            if (!has_word(words, "torchrun") && !has_word(words, "torch.distributed")) continue;
            const Value count = option_of(words, {"--nproc-per-node", "--nproc_per_node"});
            const auto processes = count.as_int();
            if (!processes || *processes == *devices) continue;
            Finding* finding =
                report.add(count, container.address,
                           fmt::format("{} processes on {} {} of the container: {}", *processes, *devices,
                                       *devices == 1 ? "device" : "devices",
                                       *processes > *devices ? "the launcher fails with an invalid device ordinal"
                                                             : "the others are paid and unused"));
            report.relate(finding, *device->amount.source, device->key_span, "the devices");
            if (finding) finding->advice = "use --nproc-per-node=gpu, or the same number";
        }
    });
}

}  // namespace stoker::lint
