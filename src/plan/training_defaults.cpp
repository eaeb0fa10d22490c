// What the training plan takes where the workload is silent: batch, node counts, framework; and what a device lacks.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/search_training.h"

namespace stoker {

double training_examples(const Workload& workload) {
    return workload.total_examples();
}

double global_batch_of(const Workload& workload) {
    const double sequence = std::max(1.0, workload.sequence());
    double batch = 0;
    if (workload.batch.global_examples)
        batch = *workload.batch.global_examples;
    else if (workload.batch.global_tokens)
        batch = *workload.batch.global_tokens / sequence;
    else if (!workload.model.transformer())
        batch = 1024;
    else if (workload.kind == WorkloadKind::training && parameters_of(workload.model) > 2e8)
        batch = 4'194'304 / sequence;  // 4 M tokens, as Llama 2
    else if (workload.kind == WorkloadKind::training)
        batch = 524'288 / sequence;  // GPT-2 and GPT-3 Small
    else
        batch = 64;
    const double examples = training_examples(workload);
    if (examples > 0) batch = std::min(batch, examples);
    return std::max(1.0, std::round(batch));
}

std::string batch_text(const ParallelLayout& layout, double asked) {
    const double batch = layout.global_batch();
    if (std::abs(batch - asked) < 0.5) return {};
    return fmt::format(
        "global batch {:.0f} instead of {:.0f}: {} ranks x micro-batches of {} cannot make {:.0f}, and no "
        "number of these machines can",
        batch, asked, layout.data, layout.micro_batch, asked);
}

std::vector<int> node_counts(const WhereSpec& where, const NodeType& type) {
    if (const auto pinned = where.pinned_nodes(type)) return {*pinned};
    if (type.mig) return {1};  // NCCL joins no parts of GPUs
    // 131,072 GPUs, more than any published run; who owns more, or names a number, is not bound by it.
    constexpr double kMost = 16384;
    const double there = type.available > 0 ? type.available : kMost;
    const int most = static_cast<int>(where.max_nodes ? std::min(*where.max_nodes, there) : there);
    std::vector<int> counts;
    for (int n = 1; n <= std::min(16, most); ++n) counts.push_back(n);
    // Then counts with many divisors, about an eighth to a quarter apart.
    for (int base = 16; base < most; base *= 2)
        for (int n : {base * 5 / 4, base * 3 / 2, base * 7 / 4, base * 2})
            if (n <= most) counts.push_back(n);
    if (most > 16 && counts.back() != most) counts.push_back(most);
    return counts;
}

bool needs_megatron(const ParallelLayout& layout) {
    if (layout.tensor > 1 || layout.pipeline > 1 || layout.expert > 1) return true;
    return layout.context > 1 && layout.zero < 2;  // FSDP has context parallelism of its own
}

std::string training_framework(const Workload& workload, const ParallelLayout& layout) {
    if (!workload.framework.empty()) return workload.framework;
    if (needs_megatron(layout)) return "megatron";
    if (layout.offload) return "deepspeed";
    if (layout.zero >= 2) return "fsdp";
    if (layout.zero == 1) return "deepspeed";
    return "pytorch";
}

std::string precision_text(Precision precision, const NodeChoice& choice) {
    const std::string name = choice.accelerator != nullptr ? choice.accelerator->name : "this CPU";
    std::string text = fmt::format("{} has no {} matrix units", name, to_string(precision));
    if (precision == Precision::bf16 && choice.accelerator != nullptr && choice.accelerator->vendor == "NVIDIA")
        text += "; A100, A10, H100 and later have them, fp16 runs here";
    if (precision == Precision::fp8) text += "; H100, L4 and later have them";
    return text;
}

}  // namespace stoker
