// ray: a training as a driver for Ray Train, a service as an application of Ray Serve. Ray places the workers; the
// degrees are the program's, or the engine's.
#include <fmt/format.h>

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string python_environment(const Deployment& d) {
    std::string out = "{\n";
    for (const auto& [key, value] : work_environment(d))
        out += fmt::format("    {}: {},\n", json_text(key), json_text(value));
    return out + "}";
}

std::string command_list(const Deployment& d) {
    std::string out = "[";
    for (const std::string& word : d.command) out += (out.size() > 1 ? ", " : "") + json_text(word);
    return out + "]";
}

std::string driver(const Deployment& d) {
    const bool gpu = d.nodes.gpus > 0;
    std::string out = head_comment(d);
    out += fmt::format("#   ray job submit --working-dir . -- python {}.py{}\n", d.name,
                       d.command.empty() ? " PROGRAM ARGUMENTS" : "");
    out +=
        "import os\nimport subprocess\nimport sys\n\nimport ray.train\nfrom ray.train import FailureConfig, RunConfig, "
        "ScalingConfig\nfrom ray.train.torch import TorchConfig, TorchTrainer\n\n";
    out += fmt::format("# The layout: {}.\n", describe(d.training->layout));
    out += fmt::format("ENVIRONMENT = {}\n", python_environment(d));
    out += d.command.empty() ? "COMMAND = sys.argv[1:]\n" : fmt::format("COMMAND = {}\n", command_list(d));
    out +=
        "\n\ndef worker():\n"
        "    # Ray has set RANK, WORLD_SIZE, LOCAL_RANK and MASTER_ADDR as torchrun does. Its own process group is "
        "not\n"
        "    # the program's: that one is made by the program, behind another port.\n"
        "    context = ray.train.get_context()\n"
        "    ranks = {\"RANK\": context.get_world_rank(), \"WORLD_SIZE\": context.get_world_size(),\n"
        "             \"LOCAL_RANK\": context.get_local_rank(), \"LOCAL_WORLD_SIZE\": context.get_local_world_size()}\n"
        "    port = int(os.environ.get(\"MASTER_PORT\", \"29500\")) + 1\n"
        "    # What the cluster sets counts: where a pod has its checkpoints is known there.\n"
        "    environment = {**ENVIRONMENT, **os.environ, **{key: str(value) for key, value in ranks.items()},\n"
        "                   \"MASTER_PORT\": str(port)}\n"
        "    subprocess.run(COMMAND, env=environment, check=True)\n\n\n";
    out +=
        "if __name__ == \"__main__\":\n    TorchTrainer(\n        worker,\n"
        "        # gloo: Ray's own group, which only starts the ranks, takes no memory of the devices.\n"
        "        torch_config=TorchConfig(backend=\"gloo\"),\n        scaling_config=ScalingConfig(\n";
    out += fmt::format("            num_workers={},\n            use_gpu={},\n", d.ranks.count, gpu ? "True" : "False");
    out += fmt::format("            # Of each worker: {} a node fill it, and PACK puts neighbours together.\n",
                       d.ranks.per_node);
    out += fmt::format("            resources_per_worker={{\"CPU\": {}{}}},\n", whole_cpus(d.ranks.each),
                       gpu ? fmt::format(", \"GPU\": {}", std::max(1, d.ranks.each.gpus)) : "");
    out += "            placement_strategy=\"PACK\",\n        ),\n";
    out += fmt::format("        run_config=RunConfig(name={}, failure_config=FailureConfig(max_failures={})),\n",
                       json_text(d.name), d.policy.restarts > 0 ? d.policy.restarts : d.policy.attempts - 1);
    return out + "    ).fit()\n";
}

std::string application(const Deployment& d) {
    const ServingWork& work = *d.serving;
    std::string out = head_comment(d) + fmt::format("#   serve run {}.yaml\n", d.name);
    out += "applications:\n";
    out +=
        fmt::format("  - name: {}\n    route_prefix: /\n    import_path: ray.serve.llm:build_openai_app\n    args:\n",
                    dns_label(d.name));
    out += "      llm_configs:\n        - model_loading_config:\n";
    out += fmt::format("            model_id: {}\n            model_source: {}\n", yaml_word(d.model.name),
                       yaml_word(weights_of(d)));
    out += "          engine_kwargs:\n";
    out += fmt::format("            tensor_parallel_size: {}\n            pipeline_parallel_size: {}\n",
                       work.shape.tensor, work.shape.pipeline);
    if (work.context_tokens > 0)
        out += indented(reason_of(d, "serving.context_tokens"), "            ") +
               fmt::format("            max_model_len: {:.0f}\n", work.context_tokens);
    if (work.max_sequences > 0) out += fmt::format("            max_num_seqs: {:.0f}\n", work.max_sequences);
    if (work.token_budget > 0) out += fmt::format("            max_num_batched_tokens: {:.0f}\n", work.token_budget);
    if (work.memory_fraction > 0)
        out += fmt::format("            gpu_memory_utilization: {:g}\n", work.memory_fraction);
    if (work.kv_precision == Precision::fp8) out += "            kv_cache_dtype: fp8\n";
    out += "          deployment_config:\n            autoscaling_config:\n";
    out +=
        fmt::format("              min_replicas: {}\n              max_replicas: {}\n", work.replicas, work.replicas);
    if (work.max_sequences > 0) out += fmt::format("            max_ongoing_requests: {:.0f}\n", work.max_sequences);
    return out;
}

}  // namespace

std::string ray_refusal(const Deployment& d) {
    if (d.training) return "";
    if (!d.serving || d.kind != WorkloadKind::inference)
        return fmt::format("Ray Train and Ray Serve are rendered, and this is {}", to_string(d.kind));
    if (d.framework != "vllm") return fmt::format("Ray Serve runs vLLM, and the plan counts on {}", d.framework);
    if (d.serving->shape.data > 1)
        return "the replicas attend in data parallel groups, which is said to vLLM itself: vllm says it";
    return "";
}

std::vector<FileToWrite> ray_files(const Deployment& d) {
    if (d.training) return {{d.name + ".py", driver(d)}};
    return {{d.name + ".yaml", application(d)}};
}

}  // namespace stoker
