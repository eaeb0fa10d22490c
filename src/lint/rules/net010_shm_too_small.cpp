// NCCL and data loaders share memory through /dev/shm, of which a container has 64 MiB unless the pod says otherwise.
#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// Their operators or serving runtimes mount a memory volume at /dev/shm themselves
// (ray-operator/controllers/ray/common/pod.go), or the runtime that a TrainJob names has the volumes.
bool net010_has_shm_by_operator(const Workload& workload) {
    return workload.kind.starts_with("Ray") || workload.kind.starts_with("Dynamo") ||
           workload.kind == "InferenceService" || workload.kind == "TrainJob";
}

bool net010_has_shm(const Workload& workload, const Container& container) {
    if (const Node* ipc = workload.pod->find("hostIPC"); ipc && (ipc->text == "true" || !ipc->known)) return true;
    for (const Node& mount : children(container.node->find("volumeMounts"))) {
        const Node* path = mount.find("mountPath");
        if (!path || (path->known && path->text != "/dev/shm" && path->text != "/dev/shm/" && path->text != "/dev"))
            continue;
        // An emptyDir on the node's disk is no shared memory; anything else that is mounted there may be.
        const Node* name = mount.find("name");
        bool disk = false;
        for (const Node& volume : children(workload.pod->find("volumes"))) {
            const Node *its = volume.find("name"), *empty = volume.find("emptyDir");
            if (!its || !name || its->text != name->text || !empty) continue;
            const Node* medium = empty->find("medium");
            disk = !medium || (medium->known && medium->text != "Memory");
        }
        if (!disk) return true;
    }
    return false;
}

// Only looks at devices, and shares no memory between processes.
bool net010_is_smoke_test(const Container& container) {
    bool smoke = false;
    for (const WordList& command : commands_of(container)) {
        if (command.words->empty()) continue;
        const Value& first = command.words->front();
        const std::string_view program = first.known() ? program_name(first.text) : std::string_view();
        if (program == "nvidia-smi" || program == "rocm-smi")
            smoke = true;
        else if (program != "sleep" && program != "echo" && program != "set" && program != "date" &&
                 program != "watch" && program != "true" && program != "exit" && program != "hostname")
            return false;
    }
    return smoke;
}

bool net010_counts(std::string_view resource) {
    return resource != "google.com/tpu" && !resource.starts_with("cloud-tpus") &&
           !resource.starts_with("aws.amazon.com") && !resource.starts_with("nvidia.com/mig-");
}

// Whole devices: slices of one do not talk to one another. Nothing: a number is not known.
std::optional<std::int64_t> net010_devices(const Container& container) {
    std::int64_t sum = 0;
    for (const Quantity& each : container.resources) {
        if (!is_accelerator_resource(each.resource) || !net010_counts(each.resource)) continue;
        if (!each.limit && container.limit(each.resource)) continue;
        const auto amount = each.amount.as_int();
        if (!amount || *amount < 0 || *amount > 1'000'000) return std::nullopt;
        sum += *amount;
    }
    return sum;
}

std::optional<std::int64_t> net010_processes(const Container& container) {
    for (const WordList& command : commands_of(container)) {
        const Value count = option_of(*command.words, {"--nproc-per-node", "--num-gpus", "--num-processes"});
        if (const auto number = count.as_int()) return number;
    }
    return std::nullopt;
}

void net010_fix(const Workload& workload, const Container& container, Finding* finding, Report& report) {
    const Node* mounts = container.node->find("volumeMounts");
    const Node* volumes = workload.pod->find("volumes");
    const Node* list = workload.pod->find("containers");
    const Node* name = container.node->find("name");
    if (!list || !name || !name->source->text(name->span).size()) return;
    const Source& source = *name->source;
    const std::string end(source.line_end());
    std::vector<Edit> edits;
    // An item in front of the first of a block list: indentation and dash as that one has.
    const auto item = [&](const Node& first, std::string_view one, std::string_view two) {
        const std::uint32_t at = first.span.begin;
        const Span line = source.line_at(at);
        const std::string before(source.text({line.begin, at}));
        if (before.find_first_not_of(" -") != std::string::npos || before.find('-') == std::string::npos) return false;
        const std::string blanks(before.size(), ' ');
        edits.push_back({{line.begin, line.begin}, before + std::string(one) + end + blanks + std::string(two) + end});
        return true;
    };
    constexpr std::string_view kVolume = "name: dshm", kMemory = "emptyDir: {medium: Memory, sizeLimit: 16Gi}";
    for (const Node& mount : children(mounts))
        if (const Node* path = mount.find("mountPath"); path && path->text.starts_with("/dev/shm")) return;
    for (const Node& each : children(volumes))
        if (const Node* its = each.find("name"); its && its->text == "dshm") return;
    if (mounts) {
        if (!mounts->first || mounts->merged || !item(*mounts->first, kVolume, "mountPath: /dev/shm")) return;
    } else {
        auto edit = line_before(*name, "volumeMounts:\n- name: dshm\n  mountPath: /dev/shm");
        if (!edit) return;
        edits.push_back(std::move(*edit));
    }
    if (volumes) {
        if (!volumes->first || !item(*volumes->first, kVolume, kMemory)) return;
    } else {
        auto edit = line_before(*list, fmt::format("volumes:\n- {}\n  {}", kVolume, kMemory));
        if (!edit) return;
        edits.push_back(std::move(*edit));
    }
    report.fix(finding, source, FixClass::safe, "mount a memory volume at /dev/shm", std::move(edits));
}

}  // namespace

void check_net010(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        if (container.init || !workload.pod || !container.node) return;
        if (container.image.absent()) return;  // a patch: the rest stands elsewhere
        const Quantity* device = accelerator_of(container);
        if (!device || !net010_counts(device->resource)) return;
        const auto count = net010_devices(container);
        const auto processes = net010_processes(container);
        if (count.value_or(1) < 2 && processes.value_or(1) < 2) return;
        if (is_node_agent(workload) || net010_has_shm_by_operator(workload) || net010_has_shm(workload, container) ||
            net010_is_smoke_test(container))
            return;
        const std::string what =
            count.value_or(1) >= 2 ? fmt::format("{} GPUs", *count) : fmt::format("{} processes", *processes);
        Finding* finding =
            report.add(*container.node->source, container.anchor, container.address,
                       fmt::format("a container with {} has no memory volume at /dev/shm: 64 MiB are too "
                                   "little for NCCL and data loaders",
                                   what));
        if (!finding) return;
        finding->advice = "mount an emptyDir with medium: Memory and a sizeLimit at /dev/shm";
        net010_fix(workload, container, finding, report);
    });
}

}  // namespace stoker::lint
