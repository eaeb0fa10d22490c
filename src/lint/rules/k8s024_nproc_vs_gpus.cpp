#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// What the training operator tells torchrun where its own words do not.
Value k8s024_of_job(const Workload& workload) {
    const Node* count = nullptr;
    if (workload.kind == "PyTorchJob" && workload.object) count = workload.object->at({"spec", "nprocPerNode"});
    if (workload.kind == "TrainJob" && workload.pod) count = workload.pod->find("numProcPerNode");
    return count && count->is_scalar() ? Value::of(count) : Value{};
}

void k8s024_judge(const Container& container, const Value& of_job, Report& report) {
    const Quantity* device = accelerator_of(container);
    const auto devices = accelerators_of(container);
    if (!device || !devices || device->resource.starts_with("nvidia.com/mig-")) return;
    // A Neuron device has several cores, and a process takes one of them (two on Inf2 and Trn1).
    if (device->resource.starts_with("aws.amazon.com/neuron") && device->resource != "aws.amazon.com/neuroncore")
        return;
    for (const WordList& command : commands_of(container)) {
        const std::vector<Value>& words = *command.words;
        if (!has_word(words, "torchrun") && !has_word(words, "torch.distributed")) continue;
        Value count = option_of(words, {"--nproc-per-node", "--nproc_per_node"});
        if (count.absent()) count = of_job;
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
}

}  // namespace

void check_k8s024(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        k8s024_judge(container, k8s024_of_job(workload), report);
    });
    each_service(file, [&](const Container& task) { k8s024_judge(task, Value(), report); });
}

}  // namespace stoker::lint
