// vllm, sglang, tgi, tensorrt-llm, triton, llama-cpp: an inference engine with the plan's shape and bounds.
#include <fmt/format.h>

#include "base/json.h"
#include "deploy/render/engine_flags.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::vector<FileToWrite> script_of(std::string_view engine, const Deployment& d) {
    return {{d.name + ".sh", engine_script(engine, d), 0755}};
}

// What trtllm-serve takes from a file only.
std::string tensorrt_options(const Deployment& d) {
    std::string out = head_comment(d);
    if (d.serving->shape.data > 1) out += "enable_attention_dp: true\n";
    out += "kv_cache_config:\n";
    out += fmt::format("  dtype: {}\n", d.serving->kv_precision == Precision::fp8 ? "fp8" : "auto");
    return out + "  enable_block_reuse: true\n";
}

Json triton_engine(const Deployment& d) {
    const ServingWork& work = *d.serving;
    Json out = Json::object().set("model", weights_of(d)).set("tensor_parallel_size", work.shape.tensor);
    if (work.shape.pipeline > 1) out.set("pipeline_parallel_size", work.shape.pipeline);
    const auto number = [&](const char* key, double value) {
        if (value > 0) out.set(key, static_cast<std::int64_t>(value));
    };
    number("max_model_len", work.context_tokens);
    number("max_num_seqs", work.max_sequences);
    number("max_num_batched_tokens", work.token_budget);
    if (work.memory_fraction > 0) out.set("gpu_memory_utilization", work.memory_fraction);
    if (work.kv_precision == Precision::fp8) out.set("kv_cache_dtype", "fp8");
    if (d.precision == Precision::fp8 && d.model.published_precision != Precision::fp8) out.set("quantization", "fp8");
    return out;
}

}  // namespace

std::string vllm_refusal(const Deployment& d) {
    return engine_refusal("vllm", d);
}
std::vector<FileToWrite> vllm_files(const Deployment& d) {
    return script_of("vllm", d);
}
std::string sglang_refusal(const Deployment& d) {
    return engine_refusal("sglang", d);
}
std::vector<FileToWrite> sglang_files(const Deployment& d) {
    return script_of("sglang", d);
}
std::string tgi_refusal(const Deployment& d) {
    return engine_refusal("tgi", d);
}
std::vector<FileToWrite> tgi_files(const Deployment& d) {
    return script_of("tgi", d);
}
std::string llama_cpp_refusal(const Deployment& d) {
    return engine_refusal("llama.cpp", d);
}
std::vector<FileToWrite> llama_cpp_files(const Deployment& d) {
    return script_of("llama.cpp", d);
}

std::string tensorrt_llm_refusal(const Deployment& d) {
    if (d.nodes.gpus > 0 && d.nodes.gpu_vendor != "NVIDIA")
        return fmt::format("TensorRT-LLM runs on NVIDIA's GPUs, and the plan has {}; vllm says it", d.nodes.gpu);
    return engine_refusal("tensorrt-llm", d);
}
std::vector<FileToWrite> tensorrt_llm_files(const Deployment& d) {
    std::string script = engine_script("tensorrt-llm", d);
    const std::string options =
        fmt::format("\"${{arguments[@]}}\" --extra_llm_api_options \"$here/{}-options.yaml\"", d.name);
    script.replace(script.find("set -eu\n"), 8, "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)");
    const std::size_t at = script.rfind("\"${arguments[@]}\"");
    script.replace(at, std::string_view("\"${arguments[@]}\"").size(), options);
    return {{d.name + "-options.yaml", tensorrt_options(d)}, {d.name + ".sh", script, 0755}};
}

std::string triton_refusal(const Deployment& d) {
    if (d.serving && d.model_known && hears(d)) return fmt::format("{} writes down speech; vllm says it", d.model.name);
    if (std::string why = engine_refusal("vllm", d); !why.empty()) return why;
    if (d.serving->shape.data > 1 || d.serving->nodes_per_replica > 1)
        return "Triton's vLLM backend keeps a replica on one node and in one attention group; vllm says it";
    if (d.kind != WorkloadKind::inference) return "it answers requests, and this is a pile of them; vllm says it";
    return "";
}
std::vector<FileToWrite> triton_files(const Deployment& d) {
    const std::string folder = fmt::format("models/{}", d.name);
    std::string config = head_comment(d);
    config += "backend: \"vllm\"\n# vLLM places itself on the devices that it sees.\n";
    config += "instance_group [ { count: 1 kind: KIND_MODEL } ]\n";
    config += "# Tokens are sent as they come.\nmodel_transaction_policy { decoupled: true }\n";
    std::string script = "#!/bin/sh\n" + head_comment(d) + fmt::format("#   ./{}.sh\n", d.name);
    script += "set -eu\n\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n";
    if (d.ranks.per_node > 1)
        script += fmt::format(
            "# {} replicas a node: start it for each, with its devices in CUDA_VISIBLE_DEVICES and its own ports.\n",
            d.ranks.per_node);
    script +=
        "# Of its three doors each listens everywhere unless it is told; metrics go by the address of HTTP.\n"
        "exec tritonserver --model-repository \"$here/models\" --model-control-mode none \\\n"
        "    --http-address \"${HOST:-127.0.0.1}\" --http-port \"${PORT:-8000}\" \\\n"
        "    --grpc-address \"${HOST:-127.0.0.1}\" --grpc-port \"${GRPC_PORT:-8001}\" \"$@\"\n";
    return {{folder + "/1/model.json", triton_engine(d).dump(2) + "\n"},
            {folder + "/config.pbtxt", config},
            {d.name + ".sh", script, 0755}};
}

}  // namespace stoker
