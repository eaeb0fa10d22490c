#include "deploy/render/engine_flags.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

class Flags {
public:
    explicit Flags(const Deployment& d) : d_(d), work_(*d.serving), shape_(work_.shape) {}

    EngineCall vllm() {
        call_.program = {"vllm", "serve", weights_of(d_)};
        call_.health = "/health", call_.key_variable = "VLLM_API_KEY";
        set("--served-model-name", d_.model.name);
        number("--tensor-parallel-size", shape_.tensor);
        if (shape_.pipeline > 1) number("--pipeline-parallel-size", shape_.pipeline);
        if (shape_.data > 1) number("--data-parallel-size", shape_.data);
        if (d_.model.moe() && (shape_.expert > 1 || (shape_.data > 1 && shape_.expert == 0)))
            set("--enable-expert-parallel", "",
                why("whole experts are divided over the ranks, not each expert", "plan"));
        number("--max-model-len", work_.context_tokens, reason_of(d_, "serving.context_tokens"));
        number("--max-num-seqs", work_.max_sequences);
        // Of each attention group, where the plan counts all of them; SGLang divides by itself.
        number("--max-num-batched-tokens", work_.token_budget / shape_.data, reason_of(d_, "serving.token_budget"));
        fraction("--gpu-memory-utilization");
        set("--dtype", torch_type());
        quantised("--quantization", "fp8");
        if (work_.kv_precision == Precision::fp8) set("--kv-cache-dtype", "fp8");
        if (d_.kind == WorkloadKind::embedding) set("--runner", "pooling");
        return std::move(call_);
    }

    EngineCall sglang() {
        call_.program = {"python3", "-m", "sglang.launch_server"};
        call_.health = "/health";
        set("--model-path", weights_of(d_));
        set("--served-model-name", d_.model.name);
        number("--tp-size", shape_.tensor * shape_.data,
               shape_.data > 1
                   ? why(fmt::format("of SGLang all ranks of a replica; attention divides them into {} groups",
                                     shape_.data),
                         "sgl-project/sglang, DP attention")
                   : "");
        if (shape_.pipeline > 1) number("--pp-size", shape_.pipeline);
        if (shape_.data > 1) number("--dp-size", shape_.data), set("--enable-dp-attention", "");
        if (d_.model.moe() && (shape_.expert > 1 || shape_.data > 1))
            number("--ep-size", shape_.expert > 0 ? shape_.expert : shape_.tensor * shape_.data);
        number("--context-length", work_.context_tokens, reason_of(d_, "serving.context_tokens"));
        number("--max-running-requests", work_.max_sequences * shape_.data);
        number("--chunked-prefill-size", work_.token_budget, reason_of(d_, "serving.token_budget"));
        set("--dtype", torch_type());
        quantised("--quantization", "fp8");
        if (work_.kv_precision == Precision::fp8) set("--kv-cache-dtype", "fp8_e4m3");
        if (d_.kind == WorkloadKind::embedding) set("--is-embedding", "");
        set("--enable-metrics", "");
        call_.key_variable = "";
        return std::move(call_);
    }

    EngineCall tgi() {
        call_.program = {"text-generation-launcher"};
        call_.health = "/health", call_.key_variable = "API_KEY";
        set("--model-id", weights_of(d_));
        number("--num-shard", shape_.tensor);
        number("--max-total-tokens", work_.context_tokens, reason_of(d_, "serving.context_tokens"));
        number("--max-batch-prefill-tokens", work_.token_budget, reason_of(d_, "serving.token_budget"));
        number("--max-batch-total-tokens", work_.kv_tokens,
               why("the tokens whose keys and values fit a replica", "plan"));
        number("--max-concurrent-requests", work_.max_sequences,
               why("callers beyond it are sent away, and the default is 128", "text-generation-inference, launcher"));
        fraction("--cuda-memory-fraction");
        if (d_.precision == Precision::fp8 && !published_in(Precision::fp8))
            set("--quantize", "fp8");
        else
            set("--dtype", torch_type());
        if (work_.kv_precision == Precision::fp8) set("--kv-cache-dtype", "fp8_e4m3fn");
        return std::move(call_);
    }

    EngineCall tensorrt() {
        call_.program = {"trtllm-serve", weights_of(d_)};
        call_.health = "/health";
        number("--tp_size", shape_.tensor * shape_.data,
               shape_.data > 1 ? why("all ranks of a replica; attention is divided by enable_attention_dp in the YAML",
                                     "TensorRT-LLM 1.2, trtllm-serve")
                               : "");
        if (shape_.pipeline > 1) number("--pp_size", shape_.pipeline);
        if (shape_.expert > 1) number("--ep_size", shape_.expert);
        number("--max_seq_len", work_.context_tokens, reason_of(d_, "serving.context_tokens"));
        number("--max_batch_size", work_.max_sequences);
        number("--max_num_tokens", work_.token_budget / shape_.data, reason_of(d_, "serving.token_budget"));
        if (work_.memory_fraction > 0)
            set("--kv_cache_free_gpu_memory_fraction", fmt::format("{:g}", work_.memory_fraction),
                why("of what is free once the weights are loaded, where other engines count the whole device",
                    "TensorRT-LLM 1.2, trtllm-serve"));
        return std::move(call_);
    }

    EngineCall llama_cpp() {
        call_.program = {"llama-server"};
        call_.health = "/health", call_.key_variable = "LLAMA_API_KEY";
        set("--alias", d_.model.name);
        // Each slot has a context of its own, so that there are only as many as the memory holds.
        double slots = work_.max_sequences;
        if (slots > 0 && work_.kv_tokens > 0 && work_.context_tokens > 0)
            slots = std::clamp(std::floor(work_.kv_tokens / work_.context_tokens), 1.0, slots);
        number("--parallel", slots);
        number("--ctx-size", work_.context_tokens * slots,
               why(fmt::format("{:.0f} tokens for each of {:.0f} slots, which is what the memory holds",
                               work_.context_tokens, slots),
                   "plan"));
        number("--batch-size", work_.token_budget, reason_of(d_, "serving.token_budget"));
        if (d_.nodes.gpus > 0) {
            set("--n-gpu-layers", "999", why("every layer lies on the GPU", "plan"));
            set("--split-mode", shape_.tensor > 1 ? "row" : shape_.pipeline > 1 ? "layer" : "none");
        } else {
            number("--threads", static_cast<double>(whole_cpus(d_.ranks.each)));
        }
        if (work_.kv_precision == Precision::fp8 || work_.kv_precision == Precision::int8) {
            set("--cache-type-k", "q8_0");
            set("--cache-type-v", "q8_0");
        }
        if (d_.kind == WorkloadKind::embedding) set("--embeddings", "");
        set("--metrics", "");
        return std::move(call_);
    }

private:
    void set(std::string name, std::string value, std::string comment = "") {
        call_.flags.push_back({std::move(name), std::move(value), std::move(comment)});
    }
    // 0 is what the plan does not say.
    void number(std::string name, double value, std::string comment = "") {
        if (value > 0) set(std::move(name), fmt::format("{:.0f}", std::floor(value)), std::move(comment));
    }
    void fraction(std::string name) {
        if (work_.memory_fraction > 0) set(std::move(name), fmt::format("{:g}", work_.memory_fraction));
    }
    bool published_in(Precision precision) const { return d_.model.published_precision == precision; }
    std::string torch_type() const {
        if (d_.precision == Precision::fp32 || d_.precision == Precision::tf32) return "float32";
        return d_.precision == Precision::fp16 ? "float16" : "bfloat16";
    }
    // 8-bit floats are made while loading; fewer bits need weights that were made with them.
    void quantised(std::string name, std::string value) {
        if (d_.precision == Precision::fp8 && !published_in(Precision::fp8))
            set(std::move(name), std::move(value),
                why("the weights are published in 16 bits and made smaller on loading", "plan"));
    }

    const Deployment& d_;
    const ServingWork& work_;
    const ReplicaShape& shape_;
    EngineCall call_;
};

// Where the plan stores weights in fewer bits than an engine makes by itself.
std::string weights_note(const Deployment& d) {
    const bool small =
        d.precision == Precision::int4 || d.precision == Precision::fp4 || d.precision == Precision::int8;
    if (!small || d.model.published_precision == d.precision) return "";
    return fmt::format("# The plan counts on weights in {}: name such a checkpoint of {} in MODEL.\n",
                       to_string(d.precision), d.model.name);
}

std::string spelled(const EngineFlag& flag) {
    return flag.value.empty() ? flag.name : flag.name + " " + shell_word(flag.value);
}

// What differs from node to node, where a replica needs several.
std::string node_flags(std::string_view engine, const Deployment& d) {
    const int nodes = d.serving->nodes_per_replica;
    if (nodes < 2) return "";
    if (engine == "sglang")
        return fmt::format(
            "    --nnodes {} --node-rank \"${{NODE_RANK:?number of this node, from 0}}\"\n"
            "    --dist-init-addr \"${{MASTER_ADDR:?name of the first node of the "
            "replica}}:${{MASTER_PORT:-29500}}\"\n",
            nodes);
    if (d.serving->shape.data > 1) {
        const int local = std::max(1, d.serving->shape.data / nodes);
        return fmt::format(
            "    --data-parallel-size-local {}\n"
            "    --data-parallel-address \"${{MASTER_ADDR:?name of the first node of the replica}}\"\n"
            "    --data-parallel-rpc-port \"${{MASTER_PORT:-29500}}\"\n",
            local);
    }
    return fmt::format(
        "    --nnodes {} --node-rank \"${{NODE_RANK:?number of this node, from 0}}\"\n"
        "    --master-addr \"${{MASTER_ADDR:?name of the first node of the replica}}\"\n"
        "    --master-port \"${{MASTER_PORT:-29500}}\"\n",
        nodes);
}

}  // namespace

std::string engine_of(const Deployment& d) {
    const std::string name = lower(d.framework);
    if (name.find("vllm") != std::string::npos) return "vllm";
    if (name.find("sglang") != std::string::npos) return "sglang";
    if (name.find("tensorrt") != std::string::npos) return "tensorrt-llm";
    if (name.find("tgi") != std::string::npos || name.find("text-generation") != std::string::npos) return "tgi";
    if (name.find("llama.cpp") != std::string::npos) return "llama.cpp";
    return "";
}

EngineCall engine_call(std::string_view engine, const Deployment& d) {
    Flags flags(d);
    if (engine == "sglang") return flags.sglang();
    if (engine == "tgi") return flags.tgi();
    if (engine == "tensorrt-llm") return flags.tensorrt();
    if (engine == "llama.cpp") return flags.llama_cpp();
    return flags.vllm();
}

bool hears(const Deployment& d) {
    return d.model.family == "whisper";
}

std::string engine_refusal_of_kind(const Deployment& d) {
    if (!d.serving) return fmt::format("it serves a model, and this is {}", to_string(d.kind));
    if (!d.model_known) return "the file names no model";
    const bool text =
        d.model.kind == ModelKind::decoder || (d.kind == WorkloadKind::embedding && d.model.kind == ModelKind::encoder);
    if (!text && !hears(d)) return fmt::format("it serves language models, and {} is none", d.model.name);
    return "";
}

std::string engine_refusal(std::string_view engine, const Deployment& d) {
    if (std::string why = engine_refusal_of_kind(d); !why.empty()) return why;
    if (hears(d) && engine != "vllm") return fmt::format("{} writes down speech; vllm says it", d.model.name);
    const ReplicaShape& shape = d.serving->shape;
    if (engine != "llama.cpp" && d.nodes.gpus <= 0) return "it runs on GPUs, and the plan has none; llama-cpp says it";
    if (engine != "llama.cpp" && d.nodes.gpus < 1)
        return fmt::format("the plan gives each replica {:g} of a {}, which this engine does not divide", d.nodes.gpus,
                           d.nodes.gpu);
    if (engine == "tgi" && (shape.pipeline > 1 || shape.data > 1))
        return fmt::format("the replica is {}, and TGI divides by tensor only; vllm says it", shape.text());
    if (engine == "llama.cpp" && (shape.data > 1 || d.serving->nodes_per_replica > 1))
        return fmt::format(
            "the replica is {}{}, and llama.cpp keeps a replica on one node and in one attention group; "
            "vllm says it",
            shape.text(),
            d.serving->nodes_per_replica > 1 ? fmt::format(" on {} nodes", d.serving->nodes_per_replica) : "");
    if ((engine == "tgi" || engine == "tensorrt-llm") && d.serving->nodes_per_replica > 1)
        return fmt::format("a replica takes {} nodes, which is said to MPI, not to this engine; vllm and sglang say it",
                           d.serving->nodes_per_replica);
    if (d.kind != WorkloadKind::inference && engine != "vllm" && engine != "sglang" && engine != "llama.cpp")
        return fmt::format("it answers requests, and this is {}; vllm says it", to_string(d.kind));
    if (engine == "vllm" && d.kind == WorkloadKind::batch_inference) return "";
    return "";
}

std::string engine_script(std::string_view engine, const Deployment& d) {
    const ServingWork& work = *d.serving;
    EngineCall call = engine_call(engine, d);
    const int gpus = d.nodes.gpus > 0 ? std::max(1, d.ranks.each.gpus) : 0;
    const bool several = d.ranks.per_node > 1;
    std::string out = "#!/bin/bash\n" + head_comment(d) + weights_note(d);
    if (work.nodes_per_replica > 1)
        out += fmt::format(
            "# A replica takes {} nodes: start it on each, with the name of the replica's first and its number.\n"
            "#   MASTER_ADDR=NODE-0 NODE_RANK=0 ./{}.sh\n",
            work.nodes_per_replica, d.name);
    else if (several)
        out += fmt::format(
            "# {} replicas a node: start it for each.\n#   for n in $(seq 0 {}); do REPLICA=$n ./{}.sh & done\n",
            d.ranks.per_node, d.ranks.per_node - 1, d.name);
    else
        out += fmt::format("#   ./{}.sh\n", d.name);
    out += "set -eu\n\n";
    if (const std::string environment = environment_exports(d); !environment.empty()) out += environment + "\n";
    if (!call.key_variable.empty())
        out +=
            fmt::format("# With {} in the environment only callers with that key are answered.\n", call.key_variable);
    const bool batch = engine == "vllm" && d.kind == WorkloadKind::batch_inference;
    if (!batch) out += "host=${HOST:-127.0.0.1}\n";
    if (several) {
        out += "replica=${REPLICA:-0}\n";
        if (!batch) out += "port=$((${PORT:-8000} + replica))\n";
        if (gpus == 1)
            out += "# The replica's own device.\nexport CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-$replica}\n";
        if (gpus > 1)
            out += fmt::format(
                "# The replica's own devices.\n"
                "export CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES:-$(seq -s, $((replica * {0})) $((replica * {0} + "
                "{1})))}}\n",
                gpus, gpus - 1);
    } else if (!batch) {
        out += "port=${PORT:-8000}\n";
    }
    std::string model = weights_of(d);
    out += fmt::format("model=${{MODEL:-{}}}\n", engine == "llama.cpp" ? d.model.name + ".gguf" : model);
    out += "\narguments=(\n";
    for (const EngineFlag& flag : call.flags) {
        if (flag.name == "--model-path" || flag.name == "--model-id") continue;
        out += indented(flag.comment, "    ") + "    " + spelled(flag) + "\n";
    }
    if (engine == "sglang" || engine == "vllm") out += node_flags(engine, d);
    if (engine == "sglang")
        out +=
            "    # mem-fraction-static stays SGLang's own choice: it leaves room for activations, which the plan's\n"
            "    # share of the device has in it.\n";
    out += ")\n";
    if (engine == "vllm" && work.nodes_per_replica > 1) {
        out += "# Only the first node answers requests.\n";
        std::string behind = "arguments+=(--headless";
        if (work.shape.data > 1)
            behind += fmt::format(" --data-parallel-start-rank $((NODE_RANK * {}))",
                                  std::max(1, work.shape.data / work.nodes_per_replica));
        out += "if [ \"${NODE_RANK:?number of this node, from 0}\" -gt 0 ]; then " + behind + "); fi\n";
    }
    out += "\n";
    if (batch)
        return out +
               "# Requests in OpenAI's batch format, one a line; each replica takes its own file.\n"
               "exec vllm run-batch -i \"${INPUT:?file of requests}\" -o \"${OUTPUT:?file of answers}\" --model "
               "\"$model\" \\\n"
               "    \"${arguments[@]}\" \"$@\"\n";
    std::string program;
    if (engine == "vllm") program = "vllm serve \"$model\"";
    if (engine == "sglang") program = "python3 -m sglang.launch_server --model-path \"$model\"";
    if (engine == "tgi") program = "text-generation-launcher --model-id \"$model\"";
    if (engine == "tensorrt-llm") program = "trtllm-serve \"$model\"";
    if (engine == "llama.cpp") program = "llama-server --model \"$model\"";
    const char* address = engine == "tgi" ? "--hostname" : "--host";
    return out + fmt::format("exec {} {} \"$host\" --port \"$port\" \\\n    \"${{arguments[@]}}\" \"$@\"\n", program,
                             address);
}

}  // namespace stoker
