// What no published measurement backs: said, not hidden.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

#include "plan/advice/advice.h"
#include "plan/pipeline.h"

namespace stoker {

namespace {

std::string nvidia_alternative(const AdviceInput& input) {
    for (const auto* list : {&input.plan.candidates, &input.plan.pareto})
        for (const Candidate& other : *list) {
            const NodeType& machine = input.node(other);
            if (machine.has_gpu() &&
                input.context.catalog.accelerators()[static_cast<std::size_t>(machine.accelerator)].vendor == "NVIDIA")
                return fmt::format(". First with NVIDIA: {} x {}, {}", other.nodes, machine.name,
                                   format_usd(Usd::from_double(other.prediction.usd.mid)));
        }
    return input.context.workload.where.accelerators.empty()
               ? ". No NVIDIA size made the list: where: {accelerators: [nvidia]} shows why"
               : ". What NVIDIA would take stands under what would change";
}

}  // namespace

void advise_knowledge(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const Workload& workload = input.context.workload;
    const NodeType& node = input.node(*winner);
    if (!workload.parameters_differ.empty())
        out.push_back({AdviceSeverity::warning, "parameters-differ", workload.parameters_differ,
                       "take parameters out, or give the whole shape: vocab, ffn and heads count", ""});
    if (workload.model.assumed)
        out.push_back({AdviceSeverity::warning, "assumed-model",
                       "the shape of the model is assumed (see what was taken for granted)",
                       "give layers, hidden, heads, kv_heads, ffn and vocab, or a config.json", ""});
    const auto& accelerators = input.context.catalog.accelerators();
    const auto lock_in = [](const Accelerator& chip) {
        return fmt::format("{} is rented by {} and programmed with {}: {}", chip.name,
                           chip.clouds.empty() ? "nobody here" : join(chip.clouds, ", "), chip.toolchain, chip.lock_in);
    };
    if (input.context.accelerator_missing) {
        for (const std::string& word : workload.where.accelerators) {
            const auto chip = std::find_if(accelerators.begin(), accelerators.end(), [&](const Accelerator& one) {
                return matches_accelerator(word, one) || equals_ignore_case(word, one.kind);
            });
            const std::string why = chip != accelerators.end() && !chip->is_gpu()
                                        ? lock_in(*chip)
                                        : std::string("none of these clouds has it");
            out.push_back({AdviceSeverity::warning, "lock-in",
                           fmt::format("{} was asked for: {}. This plan is the NVIDIA alternative", word, why),
                           "where: {cloud: any} weighs what other clouds have", ""});
        }
    } else if (node.has_gpu() && !accelerators[static_cast<std::size_t>(node.accelerator)].is_gpu()) {
        out.push_back({AdviceSeverity::warning, "lock-in",
                       "locked in to one vendor: " + lock_in(accelerators[static_cast<std::size_t>(node.accelerator)]),
                       "compare with the NVIDIA plan below before code is written for it", ""});
    }
    if (!node.has_gpu()) return;
    const Accelerator& gpu = input.context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
    const bool training = is_training(workload.kind);
    if (gpu.name == "T4" && training)
        out.push_back(
            {AdviceSeverity::warning, "no-t4-training-row",
             "no published training run on a T4 is known: this figure is bounded from V100 runs and the data sheet",
             "time a few steps first", ""});
    else if (gpu.name == "T4" || gpu.name == "A10") {
        if (serves(workload) && workload.model.kind == ModelKind::decoder)
            out.push_back(
                {AdviceSeverity::info, "no-llm-row",
                 fmt::format("no published LLM serving run on {} is known; the interval is wider for it", gpu.name), "",
                 ""});
    } else if (gpu.vendor == "AMD" && !training && !serves(workload)) {
        // A graphics size: its driver comes with it.
    } else if (gpu.vendor == "AMD") {
        std::string text = training
                               ? "no published training run on AMD Instinct is in the data; peer links of MI300X are "
                                 "64 GB/s point to point. CUDA-only code (NCCL, TensorRT) must be ported to ROCm"
                               : "engines and kernels must be their ROCm builds; only MLPerf rows back the figures";
        text += nvidia_alternative(input);
        out.push_back({AdviceSeverity::warning, "amd", text, "name sizes or sort out ROCm before counting on it", ""});
    }
    if (gpu.vendor != "NVIDIA" && gpu.vendor != "AMD") {
        std::string text = fmt::format("{} is had from {} only and needs its own toolchain: code is locked in to it",
                                       gpu.name, gpu.vendor);
        text += nvidia_alternative(input);
        out.push_back({AdviceSeverity::warning, "lock-in", std::move(text), "", ""});
    }
    if (gpu.has(Precision::bf16)) return;
    if (workload.precision_order.empty() && workload.precision == Precision::bf16)
        out.push_back(
            {AdviceSeverity::warning, "no-bf16",
             fmt::format(
                 "{} has no BF16 (T4 and V100 do not; A100, A10, H100 and later do): use fp16 with loss scaling",
                 gpu.name),
             "", ""});
    else if (!workload.precision_order.empty() && winner->precision == Precision::fp16 && is_training(workload.kind))
        out.push_back(
            {AdviceSeverity::warning, "no-bf16",
             fmt::format("{} has no BF16 (A100, A10, H100 and later do): fp16 needs loss scaling, and a model "
                         "trained in bf16 may overflow in it",
                         gpu.name),
             "", ""});
}

}  // namespace stoker
