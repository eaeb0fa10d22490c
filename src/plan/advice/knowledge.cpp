// What no published measurement backs: said, not hidden.
#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_knowledge(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const Workload& workload = input.context.workload;
    const NodeType& node = input.node(*winner);
    if (workload.model.assumed)
        out.push_back({Severity::warning, "assumed-model", workload.model.assumption,
                       "give layers, hidden, heads, kv_heads, ffn and vocab, or a config.json", ""});
    if (!node.has_gpu()) return;
    const Accelerator& gpu = input.context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
    const bool training = is_training(workload.kind);
    if (gpu.name == "T4" && training)
        out.push_back(
            {Severity::warning, "no-t4-training-row",
             "no published training run on a T4 is known: this figure is bounded from V100 runs and the data sheet",
             "time a few steps first", ""});
    else if (gpu.name == "T4" || gpu.name == "A10") {
        if (!training && workload.model.kind == ModelKind::decoder)
            out.push_back(
                {Severity::info, "no-llm-row",
                 fmt::format("no published LLM serving run on a {} is known; the interval is wider for it", gpu.name),
                 "", ""});
    } else if (gpu.vendor == "AMD") {
        std::string text = training
                               ? "no published training run on AMD Instinct is in the data; peer links of MI300X are "
                                 "64 GB/s point to point. CUDA-only code (NCCL, TensorRT) must be ported to ROCm"
                               : "engines and kernels must be their ROCm builds; only MLPerf rows back the figures";
        for (const Candidate& other : input.plan.candidates) {
            const NodeType& machine = input.node(other);
            if (!machine.has_gpu() ||
                input.context.catalog.accelerators()[static_cast<std::size_t>(machine.accelerator)].vendor != "NVIDIA")
                continue;
            text += fmt::format(". First with NVIDIA: {} x {}, {}", other.nodes, machine.name,
                                format_usd(Usd::from_double(other.prediction.usd.mid)));
            break;
        }
        out.push_back({Severity::warning, "amd", text, "name sizes or sort out ROCm before counting on it", ""});
    } else if (!make_device(input.context.catalog, winner->node_type).measured) {
        out.push_back({Severity::info, "unmeasured-device",
                       fmt::format("no published run on {} is known; the interval is wider for it", gpu.name), "", ""});
    }
    if (gpu.vendor != "NVIDIA" && gpu.vendor != "AMD")
        out.push_back({Severity::warning, "lock-in",
                       fmt::format("{} is had from one vendor or cloud only and needs its own toolchain; the NVIDIA "
                                   "candidates are the portable choice",
                                   gpu.name),
                       "", ""});
    if (!gpu.has(workload.precision) && training)
        out.push_back({Severity::warning, "precision-emulated",
                       fmt::format("{} has no {} units", gpu.name, to_string(workload.precision)), "", ""});
    if (!gpu.has(Precision::bf16) && workload.precision == Precision::bf16)
        out.push_back(
            {Severity::warning, "no-bf16",
             fmt::format(
                 "{} has no BF16 (T4 and V100 do not; A100, A10, H100 and later do): use fp16 with loss scaling",
                 gpu.name),
             "", ""});
}

}  // namespace stoker
