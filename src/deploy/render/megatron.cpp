// megatron: arguments of Megatron-LM's pretrain_gpt.py. Degrees, batch, recompute and precision are the plan's, the
// shape is the model's; data, tokenizer and learning rate are the owner's and come behind as "$@".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deploy/render/recipes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

constexpr std::string_view kSource = "NVIDIA/Megatron-LM d98e8a6, training/arguments.py";

class MegatronArguments {
public:
    explicit MegatronArguments(const Deployment& d) : d_(d), work_(*d.training), layout_(work_.layout) {}

    std::string text() {
        parallel();
        batch();
        shape();
        checkpoints();
        return out_;
    }

private:
    void flag(std::string_view name) { out_ += fmt::format("    --{}\n", name); }
    void set(std::string_view name, std::string_view value) { out_ += fmt::format("    --{} {}\n", name, value); }
    void set(std::string_view name, std::int64_t value) { set(name, std::to_string(value)); }
    void say(const std::string& comment) { out_ += indented(comment, "    "); }

    void parallel() {
        say(reason_of(d_, "training.layout.tensor"));
        set("tensor-model-parallel-size", layout_.tensor);
        if (layout_.sequence_parallel && layout_.tensor > 1) flag("sequence-parallel");
        say(reason_of(d_, "training.layout.pipeline"));
        set("pipeline-model-parallel-size", layout_.pipeline);
        if (layout_.virtual_stages > 1) set("num-virtual-stages-per-pipeline-rank", layout_.virtual_stages);
        set("context-parallel-size", layout_.context);
        if (layout_.expert > 1) set("expert-model-parallel-size", layout_.expert);
        if (layout_.tensor > 1 && layout_.whole_experts()) {
            say(why("experts stay whole: tensor ranks are among those that share them", kSource));
            set("expert-tensor-parallel-size", 1);
        }
        say(reason_of(d_, "training.layout.zero"));
        if (layout_.zero >= 1) {
            flag("use-distributed-optimizer");
            flag("overlap-grad-reduce");
            flag("overlap-param-gather");
        }
        if (layout_.zero >= 2) {
            say(why("gradients, and with ZeRO-3 weights, are divided by Megatron's FSDP only", kSource));
            flag("use-megatron-fsdp");
            set("data-parallel-sharding-strategy", layout_.zero == 3 ? "optim_grads_params" : "optim_grads");
            say(why("what FSDP needs: no fused accumulation of gradients, checkpoints by DTensor", kSource));
            flag("no-gradient-accumulation-fusion");
        }
        if (layout_.offload) flag("optimizer-cpu-offload");
        say(reason_of(d_, "training.layout.recompute"));
        if (layout_.recompute == Recompute::full) {
            set("recompute-granularity", "full");
            // Uniform divides all layers into pieces of so many; block takes the first so many of each chunk.
            set("recompute-method", layout_.recompute_layers > 0 ? "block" : "uniform");
            set("recompute-num-layers", std::max(1, layout_.recompute_layers));
        } else if (layout_.recompute == Recompute::selective) {
            set("recompute-granularity", "selective");
        }
    }

    void batch() {
        say(reason_of(d_, "training.layout.micro_batches"));
        set("micro-batch-size", layout_.micro_batch);
        set("global-batch-size", static_cast<std::int64_t>(work_.global_batch));
        set("seq-length", static_cast<std::int64_t>(work_.sequence));
        if (work_.steps > 0) set("train-iters", static_cast<std::int64_t>(std::ceil(work_.steps)));
        if (d_.precision == Precision::bf16 || d_.precision == Precision::fp8) flag("bf16");
        if (d_.precision == Precision::fp16) flag("fp16");
        if (d_.precision == Precision::fp8) set("fp8-format", "hybrid");
        if (work_.flash_attention) set("attention-backend", "flash");
    }

    // With another base than it was trained with a model reads positions that it has never seen.
    void rotary(const ModelSpec& model) {
        const auto known = rotary_of(model.name);
        if (!known) {
            say(why("its rope_theta is not known here: 10000 counts unless --rotary-base is given", kSource));
            return;
        }
        say(why("what the model was trained with", known->source));
        set("rotary-base", known->base);
        if (known->scaling.empty()) return;
        flag("use-rope-scaling");
        set("rope-scaling-factor", known->scaling);
    }

    void shape() {
        const ModelSpec& model = d_.model;
        set("num-layers", model.layers);
        set("hidden-size", model.hidden);
        set("ffn-hidden-size", model.ffn);
        set("num-attention-heads", model.heads);
        if (model.kv_lora_rank > 0) {
            flag("multi-latent-attention");
            if (model.q_lora_rank > 0) set("q-lora-rank", model.q_lora_rank);
            set("kv-lora-rank", model.kv_lora_rank);
            set("qk-head-dim", model.nope_head_dim);
            set("qk-pos-emb-head-dim", model.rope_head_dim);
            set("v-head-dim", model.v_head_dim);
        } else {
            if (model.head_dim > 0) set("kv-channels", model.head_dim);
            if (model.kv_heads > 0 && model.kv_heads < model.heads) {
                flag("group-query-attention");
                set("num-query-groups", model.kv_heads);
            }
        }
        set("max-position-embeddings",
            std::max<std::int64_t>(model.max_sequence, static_cast<std::int64_t>(work_.sequence)));
        set("position-embedding-type", model.learned_positions > 0 ? "learned_absolute" : "rope");
        if (model.learned_positions <= 0) rotary(model);
        set("normalization", model.layer_norm ? "LayerNorm" : "RMSNorm");
        if (model.gated) flag("swiglu");
        if (!model.biases) flag("disable-bias-linear");
        if (!model.tied_embeddings) flag("untie-embeddings-and-output-weights");
        if (model.experts > 1) {
            set("num-experts", model.experts);
            set("moe-router-topk", model.active_experts);
            set("moe-ffn-hidden-size", model.expert_ffn > 0 ? model.expert_ffn : model.ffn);
            if (model.shared_expert_ffn > 0) set("moe-shared-expert-intermediate-size", model.shared_expert_ffn);
            if (model.dense_layers > 0)
                set("moe-layer-freq",
                    fmt::format("'([0]*{}+[1]*{})'", model.dense_layers, model.layers - model.dense_layers));
            set("moe-token-dispatcher-type", "alltoall");
        }
    }

    void checkpoints() {
        if (d_.kind == WorkloadKind::fine_tuning) {
            say(why(
                "the base model counts while there is no checkpoint of this run; without it the weights are made up",
                kSource));
            set("pretrained-checkpoint", "\"$PRETRAINED\"");
        }
        if (d_.checkpoint.folder.empty()) return;
        set("save", "\"$STOKER_CHECKPOINT_DIR\"");
        set("load", "\"$STOKER_CHECKPOINT_DIR\"");
        if (d_.checkpoint.interval_s > 0 && d_.prediction.step_s > 0) {
            const double steps =
                std::max(1.0, std::floor(static_cast<double>(d_.checkpoint.interval_s) / d_.prediction.step_s));
            say(why(fmt::format("{} s at {:.3g} s a step", d_.checkpoint.interval_s, d_.prediction.step_s), "plan"));
            set("save-interval", static_cast<std::int64_t>(steps));
        }
        if (layout_.zero >= 2) set("ckpt-format", "fsdp_dtensor");
        say(why("on TERM a checkpoint is written, and the job ends", kSource));
        flag("exit-signal-handler");
    }

    const Deployment& d_;
    const TrainingWork& work_;
    const ParallelLayout& layout_;
    std::string out_;
};

}  // namespace

std::string megatron_refusal(const Deployment& d) {
    if (!d.training) return fmt::format("Megatron-LM trains, and this is {}", to_string(d.kind));
    if (!d.model.transformer() || d.model.kind != ModelKind::decoder)
        return "pretrain_gpt.py trains decoders, and the model is none";
    if (d.training->method != Method::full)
        return fmt::format("the method is {}, and pretrain_gpt.py trains all weights; accelerate says it",
                           to_string(d.training->method));
    if (d.nodes.gpus <= 0) return "Megatron-LM runs on GPUs, and the plan has none";
    return "";
}

std::vector<FileToWrite> megatron_files(const Deployment& d) {
    std::string out = "#!/bin/bash\n" + head_comment(d);
    if (d.framework != "megatron")
        out += fmt::format("# The plan counts on {}; framework: megatron in the file plans for Megatron-LM.\n",
                           d.framework);
    out += started_by_hand(d, "MEGATRON=/path/to/Megatron-LM ", "--data-path ... --tokenizer-type ... --lr ...",
                           "converted to checkpoints of Megatron-LM");
    out += preamble(d);
    if (d.training->layout.zero < 2 && (d.training->layout.tensor > 1 || d.training->layout.context > 1))
        out += why("tensor and context parallelism overlap with computation only in this order of launches",
                   "NVIDIA/Megatron-LM, training/arguments.py") +
               "export CUDA_DEVICE_MAX_CONNECTIONS=1\n\n";
    out += "arguments=(\n" + MegatronArguments(d).text() + ")\n\n";
    std::string launch = torchrun_words(d, d.name, "\"${MASTER_ADDR:?name of the first node}:${MASTER_PORT:-29500}\"");
    if (!d.command.empty()) launch = launch.substr(0, launch.rfind("--no_python "));
    out += "exec " + launch + "\"${MEGATRON:?the folder of Megatron-LM}/pretrain_gpt.py\" \"${arguments[@]}\" \"$@\"\n";
    return {{d.name + ".sh", out, 0755}};
}

}  // namespace stoker
