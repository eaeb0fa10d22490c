#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_net013(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        if (!asks_accelerator(workload)) return;
        double memory = 0;
        for (const Container& container : workload.containers) {
            if (container.init) continue;
            const Quantity* limit = container.limit("memory");
            const auto bytes = limit && limit->amount.known() ? quantity_of(limit->amount.text) : std::nullopt;
            if (!bytes) return;  // one without a limit: the node's memory is the bound
            memory += *bytes;
        }
        if (memory == 0) return;
        for (const Node& volume : children(workload.pod->find("volumes"))) {
            const Node* empty = volume.find("emptyDir");
            const Node* medium = empty ? empty->find("medium") : nullptr;
            const Node* size = empty ? empty->find("sizeLimit") : nullptr;
            if (!medium || medium->text != "Memory" || !size || !size->known) continue;
            const auto bytes = quantity_of(size->text);
            if (!bytes || *bytes <= memory) continue;
            report.add(
                *size->source, size->span, workload.address,
                fmt::format("the memory volume may hold {}, but the memory limits of the pod sum up to {:.1f} GiB: "
                            "what is written there counts against them, and the pod is killed first",
                            size->text, memory / (1024.0 * 1024 * 1024)));
        }
    });
}

}  // namespace stoker::lint
