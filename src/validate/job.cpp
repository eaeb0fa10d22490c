#include "validate/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "catalog/model_count.h"
#include "plan/layout_search.h"
#include "sizing/framework.h"
#include "sizing/training_memory.h"
#include "sizing/training_setup.h"
#include "validate/predict.h"
#include "validate/stated.h"

namespace stoker::validate {
namespace {

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// Adapters that the cost model knows; "" for full training. "peft VERA" and "Adapter" are methods of their own.
std::string method_of(const Row& row, std::string_view framework, Method& method) {
    method = Method::full;
    const std::string_view printed = row.text("framework");
    if (stated(row, "adapter_lora")) {
        method = stated(row, "four_bit_base") ? Method::qlora : Method::lora;
        return "";
    }
    const std::size_t peft = framework.find("peft ");
    if (peft != std::string_view::npos) {
        const std::string_view word = split_words(printed.substr(peft + 5)).empty()
                                          ? std::string_view()
                                          : split_words(printed.substr(peft + 5)).front();
        if (!starts_with_ignore_case(word, "full")) return fmt::format("method:{}", printable(word, 40));
    }
    if (has(framework, "with adapter")) return "method:Adapter";
    return "";
}

std::int32_t degree(std::optional<double> value) {
    return static_cast<std::int32_t>(std::clamp(value.value_or(1), 1.0, 1e6));
}

bool fits_whole(double a, double b) {
    return b > 0 && std::fmod(a, b) == 0;
}

}  // namespace

std::shared_ptr<const TrainingSetup> Jobs::setup(const std::string& key, const Workload& workload, const Device& device,
                                                 bool table, std::string& refused) {
    if (const auto known = setups_.find(key); known != setups_.end()) return known->second;
    auto made = make_training_setup(workload, hardware_->catalog(), device, table);
    if (!made) {
        refused = "unsupported:" + made.error().message();
        return nullptr;
    }
    auto setup = std::make_shared<TrainingSetup>(std::move(made).value());
    setup->model = nullptr;  // the workload goes, and nothing here asks for it
    setups_.emplace(key, setup);
    return setup;
}

Job Jobs::of(const Row& row, bool memory) {
    Job job;
    const auto refuse = [&job](std::string why) {
        if (job.refused.empty()) job.refused = std::move(why);
        return job;
    };
    std::string framework = lower(row.text("framework"));
    const std::string_view name = row.text("model_name");
    const std::string arch = lower(row.text("arch"));
    Method method = Method::full;
    if (std::string why = method_of(row, framework, method); !why.empty()) return refuse(why);

    std::int32_t tp = degree(row.whole("tp")), pp = degree(row.whole("pp")), cp = degree(row.whole("cp"));
    if (!row.given("cp"))
        if (const auto flag = stated_number(row, "context_degree")) cp = degree(flag);
    Shape shape = shapes_->of(row, name, tp);
    if (!shape.refused.empty()) {
        // An architecture without a shape that anyone could count is no unknown name, but a network of another kind.
        if (shape.refused.starts_with("unknown_model") &&
            (arch == "detection" || arch == "segmentation" || arch == "rnn"))
            return refuse(fmt::format("unsupported:{} {}", arch, printable(name, 40)));
        return refuse(shape.refused);
    }
    job.assumed = shape.assumed;
    const ModelSpec& model = shape.model;

    // Devices
    const double divided = static_cast<double>(tp) * pp * cp;
    auto gpus = row.whole("gpus");
    if (!gpus) {
        const auto per_node = stated_number(row, "node_gpus");
        if (per_node && stated(row, "default_node")) {
            // A recipe that needs more than its default node is run on more: as many as its degrees multiply to.
            const double experts = stated_number(row, "expert_degree").value_or(1);
            gpus = std::max({*per_node, static_cast<double>(tp) * pp * cp, pp * experts});
            gpus = std::ceil(*gpus / divided) * divided;
        } else if (row.whole("dp")) {
            gpus = static_cast<double>(tp) * pp * cp * *row.whole("dp");
        } else if (memory && (row.given("tp") || row.given("pp"))) {
            gpus = static_cast<double>(tp) * pp * cp;
        } else if (memory) {
            gpus = 1;
        } else {
            return refuse("missing:gpus");
        }
        job.assumed.push_back(fmt::format("gpus: {:g}", *gpus));
    }
    if (*gpus > 1e7) return refuse("invalid:gpus");
    job.gpus = *gpus;
    std::string_view device_name = row.text("gpu_model");
    if (device_name.empty()) {
        if (!memory) return refuse("missing:gpu_model");
        device_name = "A100-80GB";  // the peak hardly depends on it
        job.device_known = false;
        job.assumed.push_back("gpu_model: any");
    }
    const Cluster cluster = hardware_->cluster({.gpu_model = device_name,
                                                .intra_link = row.text("intra_node_link"),
                                                .inter_link = row.text("inter_node_link"),
                                                .source = row.text("source_group"),
                                                .gpu_mem_gb = row.number("gpu_mem_gb").value_or(0),
                                                .gpus_per_node = row.number("gpus_per_node").value_or(0),
                                                .gpus = job.gpus});
    if (!cluster.refused.empty()) return refuse(cluster.refused);
    if (job.device_known) job.assumed.insert(job.assumed.end(), cluster.assumed.begin(), cluster.assumed.end());
    job.nodes = cluster.nodes;
    job.accelerator = cluster.accelerator;
    job.most_memory = job.device_known ? cluster.most_memory : hardware_->most_memory();

    // Degrees
    ParallelLayout& layout = job.layout;
    layout.tensor = tp;
    layout.pipeline = pp;
    layout.context = cp;
    if (const auto dp = row.whole("dp")) {
        if (divided * *dp != job.gpus) return refuse("contradiction:tp*pp*dp*cp!=gpus");
        layout.data = degree(dp);
    } else {
        if (!fits_whole(job.gpus, divided)) return refuse("contradiction:tp*pp*cp does not divide gpus");
        layout.data = static_cast<std::int32_t>(job.gpus / divided);
    }
    const bool free_layout = !row.given("tp") && !row.given("pp") && !row.given("cp") && !row.given("dp");
    const bool image = is_image(model.kind);
    if (image && divided > 1) return refuse("contradiction:tp*pp*cp>1 on an image network");

    // Lengths and batch
    const Script* script = shapes_->script(row, model);
    const bool by_token = image && model.sample_unit == "token";  // a network whose samples are tokens
    auto global = row.whole("global_batch"), micro = row.whole("micro_batch");
    if (image && !by_token) {
        job.sequence = 1;
    } else if (const auto length = row.whole("seq_len")) {
        job.sequence = *length;
    } else if (const auto longest = stated_number(row, "longest_example")) {
        job.sequence = *longest;
    } else if (const auto most = stated_number(row, "longest_sequence"); memory && most && *most >= 1) {
        job.sequence = *most;  // the longest example decides the peak
        job.assumed.push_back(fmt::format("seq_len: {:g}, the longest", *most));
    } else if (script != nullptr) {
        job.sequence = script->tokens;
        job.assumed.push_back(fmt::format("seq_len: {:g}, as the scripts have it", script->tokens));
        if (script->batch_in_tokens) {
            for (auto* batch : {&global, &micro})
                if (*batch) *batch = std::max(1.0, std::round(**batch / script->tokens));
        }
    } else {
        return refuse("missing:seq_len");
    }
    const double unit = by_token ? job.sequence : 1;  // samples of the network in one of the row
    if (by_token) {
        for (auto* batch : {&global, &micro})
            if (*batch) *batch = **batch * job.sequence;
        job.sequence = 1;
    }
    // A rate hardly depends on the batch once the device is busy: one step without accumulation, as large as fits.
    const std::string metric = memory ? std::string() : training_metric(row);
    const bool any_batch = !global && !micro && (metric == "tokens_per_s_per_gpu" || metric == "samples_per_s");
    if (!global && !micro && !any_batch) return refuse("missing:global_batch");
    if (job.sequence > 1e8) return refuse("invalid:seq_len");
    double dp = layout.data;
    if (free_layout && !image && global && *global < dp) {
        // Fewer sequences than ranks: nothing is stated of the layout, and ranks must share sequences.
        while (*global < layout.data && layout.tensor < 8 && layout.data % 2 == 0 &&
               model.heads % (2 * layout.tensor) == 0) {
            layout.tensor *= 2;
            layout.data /= 2;
        }
        while (*global < layout.data && layout.data % 2 == 0) {
            layout.context *= 2;
            layout.data /= 2;
        }
        tp = layout.tensor;
        dp = layout.data;
        job.assumed.push_back(
            fmt::format("tp, cp: {}, {}, fewer sequences than devices", layout.tensor, layout.context));
    }
    if (const auto passes = stated_number(row, "accumulation_steps");
        passes && global && micro && *passes * dp * *micro != *global)
        return refuse("contradiction:grad_acc*dp*micro_batch!=global_batch");
    if (stated(row, "activation_offload")) return refuse("unsupported:activation offload");

    // The setup
    Workload w;
    w.kind = method == Method::full ? WorkloadKind::training : WorkloadKind::fine_tuning;
    w.model = model;
    w.model_known = true;
    w.data.sequence = job.sequence;
    const bool tuned = stated(row, "vendor_tuned");
    if (tuned && model.kind == ModelKind::encoder) {
        const double share = hardware_->catalog().constant_or_die("unpadded_share_encoder");
        w.data.sequence = std::max(1.0, std::round(job.sequence * share));
        job.assumed.push_back(fmt::format("seq_len: {:g} tokens on average without padding", *w.data.sequence));
    }
    w.method = method;
    w.lora.rank = stated_number(row, "lora_rank").value_or(16);
    if (w.lora.rank < 1) w.lora.rank = 16;
    if (stated(row, "adapters_on_attention")) w.lora.targets = "attention";
    const auto& accelerators = hardware_->catalog().accelerators();
    const NamedDevice& named = hardware_->find(device_name, row.number("gpu_mem_gb").value_or(0));
    const Accelerator& gpu = accelerators[static_cast<std::size_t>(named.accelerator)];
    // No run is older than its device, nor than gated networks with rotary positions (February 2023).
    const bool dated = has(framework, "2019") || has(framework, "2020") || has(framework, "2021");
    const bool young = !dated && (gpu.year >= 2022 || (model.kind == ModelKind::decoder && model.gated));
    if (young && framework_family(framework).name == "megatron") {
        framework += " (core)";
        job.assumed.push_back("framework: Megatron of 2023 and later, as old as its device and network");
    }
    w.framework = framework;
    std::string why;
    w.precision = training_precision(row, *cluster.device, job.assumed, why);
    if (!why.empty()) return refuse(why);
    // In 16 bit their kernels join normalisation, addition and activation: --fuse-bn-add-relu of MXNet's ResNet-50 by
    // NVIDIA, fuse_bn_add_act_ops of PaddlePaddle's.
    const bool joined = model.kind == ModelKind::cnn && (has(framework, "mxnet") || has(framework, "paddle")) &&
                        w.precision != Precision::fp32 && w.precision != Precision::tf32;
    w.compiled = tuned || joined || stated(row, "compiled") || has(framework, "jax") || has(framework, "maxtext");
    const FrameworkFamily& base = framework_family(framework);
    w.flash_attention = base.attention != AttentionKernel::unfused || w.compiled;
    // Encoders had their own attention, operator by operator, until 2024; gated ones are younger. Those of transformers
    // are of today, unless their source is of before (unfused_era).
    if (model.kind == ModelKind::encoder && !model.gated && !w.compiled && gpu.vendor == "NVIDIA" &&
        base.name != "hugging_face")
        w.flash_attention = false;
    const bool vendor_attention = stated(row, "vendor_attention");
    if (stated(row, "flash_attention") || vendor_attention) w.flash_attention = true;
    // NVIDIA's DeepLearningExamples are of 2019 to 2021; relative positions never had a fused kernel.
    if (stated(row, "unfused_era") || model.family == "transformer-xl") w.flash_attention = false;
    if (const auto backend = stated_word(row, "attention_backend"))
        w.flash_attention = *backend == "flash" || *backend == "fused" || *backend == "auto";
    if (gpu.vendor == "NVIDIA" && gpu.year < 2020) w.flash_attention = false;  // needs Ampere (arXiv 2205.14135)
    const std::string optimizer = lower(row.text("optimizer"));
    w.optimizer = has(optimizer, "sgd") || (optimizer.empty() && model.kind == ModelKind::cnn) ? "sgd"
                  : has(optimizer, "adafactor")                                                ? "adafactor"
                  : has(optimizer, "8bit")                                                     ? "adam8bit"
                  : has(optimizer, "muon")                                                     ? "muon"
                                                                                               : "adamw";
    const bool balanced = model.moe() && stated(row, "balanced_routing");
    const auto trainable = stated_number(row, "trainable");
    const bool pure = stated(row, "reduce_in_16_bit"), mixed_reduce = stated(row, "reduce_in_32_bit");
    // A checkpoint that is loaded in the type it was saved in, and heads that predict no words, are of fine-tuning.
    if (base.name == "hugging_face" &&
        ((model.kind != ModelKind::encoder && !image && trained_in_own_type(row)) || stated(row, "classifies")))
        w.kind = WorkloadKind::fine_tuning;
    std::string key =
        fmt::format("{}|{}|{}|{}|{}|{}|{:g}|{}{}{}{}{}{}{}{}|{:g}{}|{:g}", cluster.key, shape.key,
                    to_string(w.precision), to_string(method), framework, w.optimizer, w.sequence(), w.compiled,
                    w.flash_attention, vendor_attention, stated(row, "without_xla"), balanced, pure, mixed_reduce,
                    static_cast<int>(w.kind), w.lora.rank, w.lora.targets, trainable.value_or(0));
    job.measured = measured_case(memory ? MeasuredWork::memory : MeasuredWork::training, *cluster.device, framework,
                                 model, method != Method::full);
    const bool cached = setups_.contains(key);
    job.setup = setup(key, w, *cluster.device, free_layout && (tuned || base.divides), why);
    if (!job.setup) return refuse(why);
    const bool vendor_kernel = vendor_attention && cluster.device->hopper;
    const double wait = cluster.network != nullptr ? cluster.network->stage_wait(cluster.nodes) : 0;
    // TensorFlow's rewrite of a graph leaves all but products in FP32, and without XLA nothing joins what is left.
    const bool apart = stated(row, "without_xla") && w.precision == Precision::fp16 && !is_image(model.kind);
    if (!cached && (balanced || pure || mixed_reduce || vendor_kernel || apart || wait > 0 ||
                    (trainable && method != Method::full))) {
        auto changed = std::make_shared<TrainingSetup>(*job.setup);
        if (apart) changed->vector_bytes = 4;
        if (wait > 0) changed->pipeline_host_s += wait / (1 + cluster.nodes / changed->pipeline_host_nodes);
        if (vendor_kernel)
            changed->attention_efficiency = hardware_->catalog().constant_or_die("attention_efficiency_vendor");
        if (balanced) changed->moe_imbalance = 1;
        if (pure || mixed_reduce) changed->reduce_bytes = mixed_reduce ? 4 : 2;  // reductions in fp32, or all in bf16
        if (trainable && method != Method::full) changed->trainable_params = *trainable;
        if (changed->gemm.filled) fill_gemm_table(*changed);
        setups_[key] = changed;
        job.setup = changed;
    }
    const TrainingSetup& s = *job.setup;
    // What the row states is pinned; the rest is taken as `plan` and `estimate` take it.
    LayoutSpec& pin = w.layout;
    if (!memory && s.device.gpu && has(framework, "offload") && stated(row, "states_offload"))
        pin.offload = layout.offload = true;  // of a peak its reader says what else goes to the host
    const auto zero = row.number("zero_stage");
    layout.zero = static_cast<std::uint8_t>(zero && *zero <= 3 ? *zero : base.zero_usual);
    if (image && !zero) layout.zero = 0;
    if (!zero && stated(row, "distributed_optimizer")) layout.zero = 1;
    if (!zero && tuned && free_layout && !image) layout.zero = std::max<std::uint8_t>(layout.zero, 1);
    if (!zero && dp > 1)
        job.assumed.push_back(layout.zero == 0 ? std::string("zero_stage: 0")
                                               : fmt::format("zero_stage: {}, as this code base has it", layout.zero));
    pin.zero = layout.zero;
    if (const auto group = stated_number(row, "shard_group"); group && *group >= 1 && fits_whole(dp * cp, *group)) {
        layout.shard_group = static_cast<std::int32_t>(*group);
        pin.shard_group = *group;
    }
    auto ep = row.whole("ep");
    if (!ep) ep = stated_number(row, "expert_degree");
    if (ep && *ep > 1) {
        const double ranks = dp * cp * (s.whole_experts && fits_whole(*ep, tp) ? tp : 1);
        double experts = std::min({*ep, ranks, static_cast<double>(model.experts)});
        if (!model.moe()) return refuse("contradiction:ep without experts");
        if (experts < *ep || !fits_whole(ranks, experts)) {
            while (experts > 1 && !(fits_whole(ranks, experts) && fits_whole(model.experts, experts))) --experts;
            job.assumed.push_back(
                fmt::format("ep: {:g} instead of {:g}, which its data-parallel ranks cannot share", experts, *ep));
        }
        layout.expert = static_cast<std::int32_t>(experts);
    }
    pin.expert = layout.expert;
    const std::string recompute = lower(row.text("recompute"));
    if (tp > 1) {
        layout.sequence_parallel =
            base.sequence_parallel || has(recompute, "seqpar") || stated(row, "sequence_parallel");
        if (base.sequence_parallel && !has(recompute, "seqpar"))
            job.assumed.push_back("sequence parallel: as this code base has it");
    }
    if (tp > 1 || !tuned) pin.sequence_parallel = layout.sequence_parallel;
    auto vpp = row.whole("vpp");
    if (const auto per_stage = stated_number(row, "layers_of_virtual_stage");
        !vpp && per_stage && *per_stage >= 1 && pp > 1)
        vpp = std::max(1.0, std::floor(model.layers / (*per_stage * pp)));
    layout.virtual_stages = pp > 1 ? degree(vpp) : 1;
    const std::int32_t stated = layout.virtual_stages;
    while (layout.virtual_stages > 1 && !shares_layers(model.layers, std::int64_t{pp} * layout.virtual_stages))
        --layout.virtual_stages;
    if (layout.virtual_stages != stated)
        job.assumed.push_back(
            fmt::format("vpp: {} instead of {}, which divides the layers unevenly", layout.virtual_stages, stated));
    if (vpp) pin.virtual_stages = layout.virtual_stages;
    if (has(recompute, "full")) {
        pin.recompute = "full";
    } else if (has(recompute, "selective")) {
        pin.recompute = "selective";
    } else if (has(recompute, "none") || image) {
        pin.recompute = "none";
    } else if (const auto flag = stated_word(row, "recompute_granularity")) {
        pin.recompute = *flag == "full" ? "full" : "selective";
    } else if (layout.offload) {
        pin.recompute = "full";
        job.assumed.push_back("recompute: full, which comes before states on the host");
    } else if (!base.recompute_usual.empty()) {
        pin.recompute = base.recompute_usual;
        job.assumed.push_back(fmt::format("recompute: {}, as this code base has it", base.recompute_usual));
    }
    if (micro && *micro > 1024 && !image) return refuse("unsupported:micro_batch in tokens");
    job.global_batch = global.value_or(micro.value_or(1) * dp);
    if (micro && pp > 1 && job.global_batch <= *micro * dp) {
        // Nobody runs a pipeline on one micro-batch: some code bases print a rank's whole batch, which they cut.
        job.assumed.push_back(fmt::format("micro_batch: a part of {:g}, which is all that a rank gets", *micro));
        micro.reset();
    }
    if (image && !micro && !any_batch) micro = std::max(1.0, std::ceil(*global / dp));
    if (micro) pin.micro_batch = *micro;
    w.batch.global_examples = job.global_batch;
    LayoutSpace space = layout_space(w, s, static_cast<int>(std::lround(s.device.ranks_per_node())));
    const bool open = free_layout && !image && (tuned || base.divides);
    if (tuned) {
        space.divides = space.interleaves = true;
        space.adapters_only = false;  // Llama 2 70B with LoRA is run with tensor parallelism
    }
    const auto pin_degrees = [&](bool all) {
        const auto set = [all](std::optional<double>& to, double value) {
            to = all ? std::optional<double>(value) : std::nullopt;
        };
        set(space.pinned.tensor, layout.tensor);
        set(space.pinned.pipeline, layout.pipeline);
        set(space.pinned.context, layout.context);
    };
    pin_degrees(!open || layout.context > 1);

    bool found = false;
    const double sure = 0.5;  // it ran: as likely as not is enough
    const auto place = [&] {
        const LayoutResult result = place_training(s, space, job.nodes, sure);
        found = result.found;
        if (!found && !result.nearly) return false;
        layout = result.layout;
        job.estimate = result.estimate;
        return true;
    };
    // As it stands, where the ranks cannot share the batch evenly: the last pass has less to do.
    const auto as_stated = [&] {
        if (pin.recompute)
            layout.recompute = *pin.recompute == "full"   ? Recompute::full
                               : *pin.recompute == "none" ? Recompute::none
                                                          : Recompute::selective;
        layout.micro_batch = degree(micro);
        layout.micro_batches = static_cast<std::int32_t>(std::max(
            1.0, std::ceil(job.global_batch / (layout.data * static_cast<double>(layout.micro_batch)) - 1e-9)));
        evaluate(s, layout, job.nodes, job.estimate);
        found = job.estimate.refused == Reason::none;
    };
    if (any_batch) {
        // A rate hardly depends on the batch: the largest that surely fits, without accumulation.
        constexpr int kMostImages = 256, kMostSequences = 8;
        for (int size = image ? kMostImages : kMostSequences; size >= 1 && !found; size /= 2) {
            space.pinned.micro_batch = size * unit;
            job.global_batch = space.global_batch = dp * size * unit;
            if (!place()) break;
        }
    } else if (!place()) {
        as_stated();
    }
    if (!found && free_layout && !open && !image && !memory && job.estimate.refused == Reason::memory) {
        // Nothing is stated of the layout, and undivided it cannot have run.
        const ParallelLayout undivided = layout;
        const TrainingEstimate before = job.estimate;
        space.divides = true;
        pin_degrees(false);
        if (place() && found) {
            job.assumed.push_back(fmt::format("tp, pp: {}, {}, to fit", layout.tensor, layout.pipeline));
        } else {
            layout = undivided;
            job.estimate = before;
        }
    } else if (open && found) {
        job.assumed.push_back(fmt::format("layout: the fastest that fits, {}", describe(layout)));
    }
    if (found && !memory && base.some_layers && !pin.recompute && layout.recompute == Recompute::full) {
        // Nothing is stated, and without recompute it does not fit: as many layers as it takes, no more.
        ParallelLayout kept = layout;
        kept.recompute = Recompute::none;
        TrainingEstimate whole;
        evaluate(s, kept, job.nodes, whole);
        const double spared = whole.memory_bytes - job.estimate.memory_bytes;
        if (whole.refused == Reason::memory && spared > 0 && whole.step_s < job.estimate.step_s) {
            const double share = std::clamp((whole.memory_bytes - s.device.memory_bytes) / spared, 0.0, 1.0);
            for (std::size_t i = 0; i < job.estimate.seconds.size(); ++i)
                job.estimate.seconds[i] = share * job.estimate.seconds[i] + (1 - share) * whole.seconds[i];
            job.estimate.step_s = share * job.estimate.step_s + (1 - share) * whole.step_s;
        }
    }
    if (!micro) job.assumed.push_back(fmt::format("micro_batch: {}", layout.micro_batch));
    if (recompute.empty() && !image) job.assumed.push_back(fmt::format("recompute: {}", to_string(layout.recompute)));
    if (!found && job.estimate.refused != Reason::memory) {
        return refuse(fmt::format("unsupported:{} (has {:g}, wants {:g})", code(job.estimate.refused),
                                  job.estimate.have, job.estimate.need));
    }
    return job;
}

}  // namespace stoker::validate
