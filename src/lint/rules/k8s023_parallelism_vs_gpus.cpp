// A model server is told to split its model over another number of devices than it gets.
#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

struct K8s023Split {
    Value tensor, pipeline, data, nodes;
    bool sglang = false, attention = false;
};

// Empty: no server, or its words do not say.
std::optional<K8s023Split> k8s023_split(const Container& container) {
    for (const WordList& command : commands_of(container)) {
        const std::vector<Value>& words = *command.words;
        const std::string_view image = container.image.present() ? container.image.text : std::string_view();
        const bool sglang = has_word(words, "sglang") || image.find("sglang") != std::string_view::npos;
        const bool server = sglang || has_word(words, "vllm") || has_word(words, "text-generation-launcher") ||
                            has_word(words, "trtllm-serve") || is_server_image(image);
        if (!server) continue;
        K8s023Split split;
        split.sglang = sglang;
        split.tensor = option_of(words, {"--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--num-shard"});
        split.pipeline = option_of(words, {"--pipeline-parallel-size", "-pp", "--pp", "--pp-size"});
        split.data = option_of(words, {"--data-parallel-size", "-dp", "--dp", "--dp-size"});
        split.nodes = option_of(words, {"--nnodes"});
        if (!split.tensor.known()) continue;
        // Ranks that other pods start are not counted here.
        for (const std::string_view word : {"--data-parallel-size-local", "--data-parallel-rank", "--headless",
                                            "--data-parallel-address", "--data-parallel-hybrid-lb"})
            if (has_word(words, word)) return std::nullopt;
        split.attention = has_word(words, "--enable-dp-attention");
        return split;
    }
    return std::nullopt;
}

bool k8s023_joins_a_cluster(const Container& container) {
    for (const WordList& command : commands_of(container))
        for (const std::string_view word : {"ray", "multi-node-serving", "multihost", "leader"})
            if (has_word(*command.words, word)) return true;
    return false;
}

void k8s023_judge(const Container& container, const Value& group, bool may_span, Report& report) {
    const Quantity* device = accelerator_of(container);
    const auto devices = accelerators_of(container);
    if (!device || !devices || device->resource.starts_with("nvidia.com/mig-") ||
        device->resource == "nvidia.com/gpu.shared")
        return;
    const auto split = k8s023_split(container);
    if (!split) return;
    const auto tensor = split->tensor.as_int();
    const auto pipeline = split->pipeline.absent() ? std::optional<std::int64_t>(1) : split->pipeline.as_int();
    auto data = split->data.absent() ? std::optional<std::int64_t>(1) : split->data.as_int();
    if (split->sglang && split->attention) data = 1;  // attention is split inside the tensor group
    if (!tensor || !pipeline || !data || *tensor < 1 || *pipeline < 1 || *data < 1 || *tensor > 4096 ||
        *pipeline > 4096 || *data > 4096)
        return;
    std::int64_t pods = 1;
    const bool of_group =  // what the operator sets is the size of the group
        split->nodes.present() && split->nodes.text.find("LWS_GROUP_SIZE") != std::string_view::npos && group.present();
    if (split->nodes.present() && !of_group) {
        const auto nodes = split->nodes.as_int();
        if (!nodes || *nodes < 1 || *nodes > 4096) return;
        pods = *nodes;
    } else if (group.present()) {
        const auto size = group.as_int();
        if (!size || *size < 1 || *size > 4096) return;
        pods = *size;
    }
    const std::int64_t wanted = *tensor * *pipeline * *data, there = *devices * pods;
    if (wanted == there) return;
    // More than one pod has: the rest may be in other pods that join by Ray.
    if (wanted > there && pods == 1 && may_span && k8s023_joins_a_cluster(container)) return;
    std::string sum = fmt::format("{} tensor", *tensor);
    if (*pipeline > 1) sum += fmt::format(" x {} pipeline", *pipeline);
    if (*data > 1) sum += fmt::format(" x {} data", *data);
    Finding* finding =
        report.add(split->tensor, container.address,
                   fmt::format("the server splits its model over {} devices ({} parallel), but it has {}{}: {}", wanted,
                               sum, there, pods > 1 ? fmt::format(" ({} pods x {})", pods, *devices) : std::string(),
                               wanted > there ? "it does not start" : "the others are paid and unused"));
    report.relate(finding, *device->amount.source, device->key_span, "the devices");
}

}  // namespace

void check_k8s023(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        k8s023_judge(container, workload.group_size, true, report);
    });
    each_service(file, [&](const Container& service) { k8s023_judge(service, Value(), false, report); });
}

}  // namespace stoker::lint
