#include <algorithm>
#include <array>

#include "lint/check.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::array<std::string_view, 24> kServerImages = {"vllm/vllm-openai",
                                                            "vllm-openai",
                                                            "lmcache/vllm-openai",
                                                            "tritonserver",
                                                            "text-generation-inference",
                                                            "lmsysorg/sglang",
                                                            "ollama/ollama",
                                                            "nvcr.io/nim/",
                                                            "tensorrt-llm",
                                                            "trtllm",
                                                            "tensorflow/serving",
                                                            "torchserve",
                                                            "text-embeddings-inference",
                                                            "kserve/",
                                                            "llama.cpp:server",
                                                            "xinference",
                                                            "localai",
                                                            "open-webui:cuda",
                                                            "comfyui",
                                                            "stable-diffusion-webui",
                                                            "lmdeploy",
                                                            "aphrodite-engine",
                                                            "ray-llm",
                                                            "infinity:"};
constexpr std::array<std::string_view, 12> kGpuImages = {"nvidia/cuda",
                                                         "nvcr.io/nvidia/",
                                                         "nvcr.io/nim/",
                                                         "-cuda",
                                                         ":cuda",
                                                         "rocm/",
                                                         "-gpu",
                                                         ":gpu",
                                                         "deepspeed",
                                                         "pytorch/pytorch",
                                                         "horovod/horovod",
                                                         "huggingface/transformers-pytorch-gpu"};
constexpr std::array<std::string_view, 16> kAgents = {"device-plugin",
                                                      "dcgm",
                                                      "node-feature-discovery",
                                                      "gpu-feature-discovery",
                                                      "gpu-operator",
                                                      "nvidia-driver",
                                                      "container-toolkit",
                                                      "mig-manager",
                                                      "mofed",
                                                      "rdma-shared-device",
                                                      "network-operator",
                                                      "node-exporter",
                                                      "nvidia-validator",
                                                      "driver-installer",
                                                      "gpu-installer",
                                                      "nccl-fastsocket"};

bool names_any(std::string_view text, std::span<const std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains_nocase(text, part); });
}

struct Gatherer {
    Work work;
    const Knowledge& knowledge;

    static void set(std::optional<Evidence>& slot, const Source* source, Span span, std::string what) {
        if (!slot && source) slot = Evidence{source, span, std::move(what)};
    }
    void gpu(const Source* source, Span span, std::string what) { set(work.gpu, source, span, std::move(what)); }

    void resource(const Resource& resource) {
        const Value& size = resource.get(Attr::size);
        if (!size.known() || resource.type == ResourceType::size_list) return;
        const KnownSize* known = knowledge.size(size.text);
        if ((known && known->gpu()) ||
            (!known && knowledge.retirement(size.text) &&
             (starts_with_ignore_case(size.text, "Standard_N") || starts_with_ignore_case(size.text, "N"))))
            gpu(size.source, size.span, "size " + std::string(size.text));
    }
    void container(const Container& container) {
        for (const Quantity& quantity : container.resources)
            if (is_accelerator_resource(quantity.resource) && container.node)
                gpu(container.node->source, quantity.key_span, std::string(quantity.resource));
        if (!container.image.known()) return;
        const std::string what = "image " + std::string(container.image.text);
        if (is_gpu_image(container.image.text)) gpu(container.image.source, container.image.span, what);
        if (is_server_image(container.image.text))
            set(work.inference, container.image.source, container.image.span, what);
    }
    void launch(const Launch& launch) {
        const std::string word(launch.source->text(launch.word));
        gpu(launch.source, launch.word, word);
        if (!launch.trains()) {
            set(work.inference, launch.source, launch.word, word);
            return;
        }
        set(work.training, launch.source, launch.word, word);
        for (const Value* nodes : {&launch.nodes, &launch.srun_nodes})
            if (nodes->as_int().value_or(1) > 1) set(work.multi_node, nodes->source, nodes->span, word);
    }
    // A training in a container whose object starts it in several pods.
    void replicated(const File& file) {
        const auto trains = [](const Launch& each) { return each.trains(); };
        for (const Workload& workload : file.workloads) {
            const bool many = is_multi_node_kind(workload.kind) && workload.replicas.as_int().value_or(1) > 1;
            const Value& count = many ? workload.replicas : workload.group_size;
            if (!many && count.as_int().value_or(1) < 2) continue;
            for (const Container& each : workload.containers) {
                bool training = false;
                for (const int launch : each.launches)
                    training = training || (static_cast<std::size_t>(launch) < file.launches.size() &&
                                            file.launches[static_cast<std::size_t>(launch)].trains());
                for (const File* script : each.scripts)
                    training = training || std::any_of(script->launches.begin(), script->launches.end(), trains);
                if (training) set(work.multi_node, count.source, count.span, std::string(workload.kind));
            }
        }
    }
    void part(const File& file) {
        for (const Resource& each : file.resources) resource(each);
        for (const Workload& workload : file.workloads)
            for (const Container& each : workload.containers) container(each);
        for (const Container& each : file.services) container(each);
        for (const Launch& each : file.launches) launch(each);
        replicated(file);
        if (file.kinds.has(Kind::deepspeed)) {
            gpu(&file.source(), {0, 0}, "a DeepSpeed configuration");
            set(work.training, &file.source(), {0, 0}, "a DeepSpeed configuration");
        }
        for (const Command& command : file.script.commands) {
            if (command.name() != "docker" && command.name() != "podman" && command.name() != "nerdctl") continue;
            for (const Value& word : command.words)
                if (word.text == "--gpus" || word.text.starts_with("--gpus=")) gpu(word.source, word.span, "--gpus");
        }
        for (const Directive& directive : file.script.directives) {
            const bool device = directive.option == "gres" || directive.option.starts_with("gpus") ||
                                (directive.option == "constraint" && contains_nocase(directive.value.text, "gpu"));
            if (device && (directive.option != "gres" || contains_nocase(directive.value.text, "gpu")))
                gpu(&file.source(), directive.span, std::string(directive.option));
            if (directive.option == "nodes" && directive.value.as_int().value_or(1) > 1 && !file.launches.empty())
                set(work.multi_node, &file.source(), directive.span, "--nodes");
        }
    }
};

}  // namespace

bool is_gpu_image(std::string_view image) {
    return names_any(image, kGpuImages) || is_server_image(image);
}
bool is_server_image(std::string_view image) {
    return names_any(image, kServerImages);
}

bool is_multi_node_kind(std::string_view kind) {
    for (const std::string_view each : {"MPIJob", "PyTorchJob", "LeaderWorkerSet", "TrainJob", "TFJob", "PaddleJob"})
        if (kind == each) return true;
    return false;
}

bool is_node_agent(const Workload& workload) {
    if (workload.kind == "DaemonSet") return true;
    if (names_any(workload.name, kAgents)) return true;
    return std::any_of(workload.containers.begin(), workload.containers.end(), [](const Container& container) {
        // nsenter --target 1: it does its work in the node's own namespaces.
        for (const Value& word : container.command)
            if (word.known() && base_name_of(word.text) == "nsenter") return true;
        return container.image.present() && names_any(container.image.text, kAgents);
    });
}

Work work_of(const File& file, const Knowledge& knowledge) {
    Gatherer gatherer{{}, knowledge};
    for_each_part(file, [&](const File& part) { gatherer.part(part); });
    return std::move(gatherer.work);
}

Work work_of(const Bundle& bundle, const Knowledge& knowledge) {
    Gatherer gatherer{{}, knowledge};
    for (const File* file : bundle.files) for_each_part(*file, [&](const File& part) { gatherer.part(part); });
    return std::move(gatherer.work);
}

}  // namespace stoker::lint
