// Layouts and inputs known from measurements to be slow.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/advice/advice.h"

namespace stoker {
namespace {

// What FP32 leaves unused by the data sheet, and what this device has in its place: T4 and V100 have neither bf16 nor
// tf32, K80 and P100 no matrix units at all.
void advise_fp32(const Accelerator& gpu, AdviceList& out) {
    const Precision other = gpu.has(Precision::bf16) ? Precision::bf16 : Precision::fp16;
    const auto peak = [&](Precision p) { return gpu.peak[static_cast<std::size_t>(p)].v; };
    const double times = peak(Precision::fp32) > 0 ? peak(other) / peak(Precision::fp32) : 0;
    if (times < 3) return;
    std::string remedy = other == Precision::fp16 ? "fp16 with loss scaling" : "bf16";
    if (gpu.has(Precision::tf32)) remedy += ", or tf32 where fp32 storage is wanted";
    out.push_back(
        {AdviceSeverity::warning, "smell-fp32",
         fmt::format("FP32 leaves the matrix units off: {} matmuls are {:.0f} times as fast on {}, by its data sheet",
                     to_string(other), times, gpu.name),
         std::move(remedy), "measured sweeps, see docs/reference/model.md"});
}

// The head dimension whose kernel serves this one, padded (FlashAttention 2, csrc/flash_attn/src/static_switch.h);
// 0: none does.
int attention_kernel(int head) {
    for (const int built : {32, 64, 96, 128, 192, 256})
        if (built >= head) return built;
    return 0;
}

// Images against texts: each pair is told from the others that are on devices with it.
bool compares_pairs(const ModelSpec& model) {
    return model.kind == ModelKind::vit && (model.name.starts_with("clip") || model.name.starts_with("siglip"));
}

}  // namespace

void advise_smells(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    const Workload& workload = input.context.workload;
    if (winner == nullptr || !is_training(workload.kind)) return;
    const NodeType& node = input.node(*winner);
    const ParallelLayout& layout = winner->layout;
    const Prediction& p = winner->prediction;
    auto smell = [&](std::string_view id, std::string text, std::string remedy) {
        out.push_back({AdviceSeverity::warning, std::string(id), std::move(text), std::move(remedy),
                       "measured sweeps, see docs/reference/model.md"});
    };
    auto hint = [&](std::string_view id, std::string text, std::string remedy) {
        smell(id, std::move(text), std::move(remedy));
        out.back().severity = AdviceSeverity::info;
    };
    const auto share = [&](TimeTerm term) {
        return p.step_s.mid > 0 ? p.seconds[static_cast<std::size_t>(term)] / p.step_s.mid : 0;
    };

    const int whole = node.whole_gpus();
    if (layout.tensor > 1 && whole > 0 && layout.tensor > whole && node.scale_up_domain <= whole)
        smell("smell-tensor-across-nodes",
              fmt::format("tensor parallelism of {} leaves the node of {} GPUs: 1B models lose from 16.8k to 5.1k "
                          "tokens/s/GPU that way",
                          layout.tensor, whole),
              "pipeline or sharded data parallelism across nodes");
    if (layout.tensor > 2 && node.scale_up_pairs)
        smell("smell-tensor-pcie", "tensor parallelism beyond a bridged pair: 12 times slower all-reduce",
              "tensor 2 at most");
    // Interleaved, a stage waits for the part of a micro-batch that one of its chunks works on.
    const int chunks = std::max(1, layout.virtual_stages);
    if (layout.pipeline > 4 && layout.micro_batches * chunks < 2 * layout.pipeline)
        smell(
            "smell-bubble",
            fmt::format("{} micro-batches for {} stages{}: bubble (p-1)/({}m+p-1) = {:.0f} %", layout.micro_batches,
                        layout.pipeline, chunks > 1 ? fmt::format(" of {} chunks", chunks) : "", chunks > 1 ? "v" : "",
                        100.0 * (layout.pipeline - 1) / (layout.micro_batches * chunks + layout.pipeline - 1)),
            "more micro-batches or fewer stages");
    // Matrix units of a GPU want whole tiles; a CPU's vectors are shorter than any model's rows.
    const bool tiles = workload.model.transformer() && node.has_gpu();
    if (tiles && workload.model.hidden % (128 * layout.tensor) != 0)
        smell("smell-hidden",
              fmt::format("hidden size {} is not a multiple of 128 x tensor {}: 20-25 % slower matmuls",
                          workload.model.hidden, layout.tensor),
              "");
    if (const int head = workload.model.head_dim; tiles && head > 0) {
        const int kernel = attention_kernel(head);
        if (kernel == 0)
            smell("smell-head-dimension", fmt::format("head dimension {} has no fast attention kernel", head),
                  "64, 128 or 256");
        else if (kernel > 1.15 * head)
            smell("smell-head-dimension",
                  fmt::format("heads of {} run in the attention kernel for {}: {:.0f} % more work there", head, kernel,
                              100.0 * kernel / head - 100),
                  "64, 96, 128, 192 or 256");
    }
    constexpr int kWorthPadding = 1024;  // the logits of letters or amino acids are nothing beside the layers
    if (tiles && workload.model.vocabulary >= kWorthPadding && workload.model.vocabulary % (64 * layout.tensor) != 0)
        hint("smell-vocabulary",
             fmt::format("vocabulary {} is not padded to a multiple of {}", workload.model.vocabulary,
                         64 * layout.tensor),
             "have the framework pad the embedding");
    if (!workload.flash_attention && workload.sequence() >= 2048)
        smell("smell-unfused-attention", "unfused attention at 2k tokens and more", "FlashAttention");
    if (winner->precision == Precision::fp32 && node.has_gpu())
        advise_fp32(input.context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)], out);
    if (layout.expert > 1 && workload.model.routed_groups == 0 && whole > 0 && layout.expert > whole &&
        node.scale_up_domain <= whole)
        smell("smell-expert-across-nodes",
              fmt::format("experts spread over {} ranks cross nodes on every token", layout.expert),
              "device-limited routing (at most 4 nodes)");
    if (layout.zero == 1 && layout.data > 64 && layout.shard_group == 0 &&
        share(TimeTerm::gather_comm) + share(TimeTerm::gradient_comm) > 0.2)
        smell("smell-zero1-wide", "ZeRO-1 over all ranks: 2,271 tokens/s/GPU against 3,625 when shared inside the node",
              "shard_group = GPUs of a node");
    if (compares_pairs(workload.model) && layout.micro_batches > 1) {
        const double at_once = static_cast<double>(layout.data) * layout.micro_batch;
        smell(
            "smell-few-negatives",
            fmt::format("the loss compares the {} pairs that are on devices at once, not the {} of a step: steps that "
                        "are accumulated add no negatives",
                        format_thousands(at_once), format_thousands(layout.global_batch())),
            "cached gradients (GradCache, a second forward pass), or a batch of what fits at once");
        out.back().source = "Gao et al., arXiv 2101.06983";
    }
    if (share(TimeTerm::data_stall) > 0.05)
        smell("smell-starved",
              fmt::format("GPUs wait {:.0f} % of the step for input", 100 * share(TimeTerm::data_stall)),
              "more vCPUs, faster storage, or data decoded beforehand");
    if (share(TimeTerm::gradient_comm) + share(TimeTerm::gather_comm) > 0.35)
        smell("smell-network",
              fmt::format("{:.0f} % of the step waits for gradients and weights",
                          100 * (share(TimeTerm::gradient_comm) + share(TimeTerm::gather_comm))),
              "fewer, larger nodes; bigger batch; InfiniBand");
    if (share(TimeTerm::launch) > 0.3)
        smell("smell-launch",
              fmt::format("{:.0f} % of the step is kernel launches: the model is too small for {}",
                          100 * share(TimeTerm::launch), winner->devices_used > 1 ? "this many GPUs" : "this GPU"),
              winner->devices_used > 1 ? "larger micro-batch, torch.compile, fewer GPUs"
                                       : "larger batch, torch.compile, a smaller GPU");
}

}  // namespace stoker
