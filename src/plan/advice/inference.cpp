// CPU first, T4 first, no InfiniBand for inference, and what an engine is really bound by.
#include <algorithm>

#include <fmt/format.h>

#include "plan/advice/advice.h"
#include "plan/search_serving.h"

namespace stoker {

void advise_inference(const AdviceInput& input, AdviceList& out) {
    const Context& context = input.context;
    const Workload& workload = context.workload;
    const WorkloadKind kind = workload.kind;
    if (kind != WorkloadKind::inference && kind != WorkloadKind::batch_inference && kind != WorkloadKind::embedding)
        return;
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const NodeType& node = input.node(*winner);
    const auto limit = tightest_limit(workload.objective.latency);
    const double longest = workload.traffic.prompt_tokens.value_or(0) + workload.traffic.output_tokens.value_or(0);
    if (workload.model.kind == ModelKind::decoder && workload.model.max_sequence > 0 &&
        longest > static_cast<double>(workload.model.max_sequence))
        out.push_back(
            {AdviceSeverity::warning, "beyond-context",
             fmt::format("{} was made for {} tokens, and prompt and answer have {}: engines refuse them",
                         workload.model.name, format_thousands(workload.model.max_sequence), format_thousands(longest)),
             "a model with a longer context, or shorter prompts; to stretch its positions (YaRN) changes its "
             "answers",
             ""});

    if (!node.has_gpu())
        out.push_back(
            {AdviceSeverity::info, "cpu-first",
             fmt::format(
                 "benchmark on CPU first: the model fits comfortably in {} of RAM and {}; only then pay for a GPU",
                 format_bytes_gib(node.memory),
                 limit ? fmt::format("is predicted to keep the limit of {}", format_seconds(Seconds(*limit)))
                       : "no latency limit asks for less"),
             "stoker bench cpu on the size, then plan with what it measured", ""});
    else if (limit && !latency_allows_cpu(workload.objective.latency))
        out.push_back(as_background({AdviceSeverity::info, "cpu-not-by-rule",
                                     fmt::format("a limit of {} is not above 50 ms: the CPU-first rule does not apply",
                                                 format_seconds(Seconds(*limit))),
                                     "", ""}));

    const Rejection* t4 = nullptr;
    const Candidate* on_t4 = nullptr;
    auto is_t4 = [&](int type) {
        const NodeType& other = context.node(type);
        return other.has_gpu() &&
               context.catalog.accelerators()[static_cast<std::size_t>(other.accelerator)].name == "T4";
    };
    for (const Rejection& rejection : input.plan.rejected)
        if (is_t4(rejection.node_type) && rejection.reason == Reason::memory &&
            context.node(rejection.node_type).accelerators <= 1)
            t4 = &rejection;
    for (const Candidate& candidate : input.plan.candidates)
        if (is_t4(candidate.node_type) && candidate.replica.gpus() == 1 && on_t4 == nullptr) on_t4 = &candidate;
    if (on_t4 != nullptr && is_t4(winner->node_type)) {
        std::string text =
            "the model fits a T4 (about 15 of its 16 GiB are usable; INT8, FP16 and Tensor Cores, no BF16): start at "
            "NC4as_T4_v3";
        auto t4_size = context.catalog.find_node_type("Standard_NC4as_T4_v3");
        auto a100 = context.catalog.find_node_type("Standard_NC24ads_A100_v4");
        if (t4_size && a100) {
            auto price = [&](int type) {
                return context.catalog.price(type, on_t4->region, workload.where.os, Pricing::on_demand);
            };
            if (const Price* small = price(*t4_size), *large = price(*a100);
                small != nullptr && large != nullptr && large->per_hour.dollars() > 0)
                text += fmt::format("; an hour costs {:.0f} % of an A100's",
                                    100 * small->per_hour.dollars() / large->per_hour.dollars());
        }
        out.push_back({AdviceSeverity::info, "t4-first", text, "", ""});
    } else if (on_t4 == nullptr && t4 != nullptr && kind == WorkloadKind::inference) {
        out.push_back(as_background(
            {AdviceSeverity::info, "t4-too-small", fmt::format("does not fit one T4: {}", t4->text), "", ""}));
    }

    for (const Rejection& rejection : input.plan.rejected) {
        if (rejection.reason != Reason::policy_inference_rdma) continue;
        const bool shown = std::any_of(
            input.plan.candidates.begin(), input.plan.candidates.end(),
            [&](const Candidate& c) { return is_twin_without_rdma(context.node(rejection.node_type), input.node(c)); });
        if (!shown) continue;
        out.push_back({AdviceSeverity::info, "no-infiniband-for-inference",
                       fmt::format("{}: {}", context.node(rejection.node_type).name, rejection.text), "",
                       node.provenance.source});
        break;
    }
    if (is_rdma(node) && winner->nodes > 0 && winner->replica.gpus() <= std::max(1, node.whole_gpus()))
        out.push_back(
            {AdviceSeverity::info, "infiniband-for-inference",
             fmt::format("the {} of this size is not used by replicas inside one node; without it these GPUs cost no "
                         "less here",
                         node.rdma == "infiniband" || node.rdma.empty() ? "InfiniBand" : node.rdma_name()),
             "", ""});

    if (workload.model.kind == ModelKind::decoder && kind == WorkloadKind::inference)
        out.push_back(as_background(
            {AdviceSeverity::info, "inference-bound",
             fmt::format("prefill is bound by {}, decode by {}: more memory bandwidth per dollar serves more, peak "
                         "FLOP/s alone does not",
                         to_string(winner->prediction.prefill_bound), to_string(winner->prediction.bottleneck)),
             "", ""}));
    if (workload.models_served > 1)
        out.push_back(
            {AdviceSeverity::info, "several-models",
             "each model has a GPU of its own on the shared VM; on one GPU for all they would share its memory "
             "and wait for each other",
             "", ""});
    if (kind == WorkloadKind::batch_inference)
        out.push_back(as_background({AdviceSeverity::info, "real-time-variant",
                                     "the same model behind an endpoint is a different plan: set kind: inference with "
                                     "traffic.requests_per_second and objective.latency",
                                     "", ""}));
    if (kind == WorkloadKind::inference)
        out.push_back(as_background(
            {AdviceSeverity::info, "cost-per-request",
             "cost per request = price per second of a replica / requests per second it sustains within the "
             "latency limits (latency x throughput x price is no cost)",
             "", ""}));
    // What holds at most is the answer to the question of capacity, and no warning. Clients who wait for their answers
    // keep an engine busy, and ask no faster for it.
    if (winner->prediction.utilisation > 0.85 && workload.clients() <= 0 && kind == WorkloadKind::inference &&
        !workload.asks_for_capacity())
        out.push_back(
            {AdviceSeverity::warning, "near-the-knee",
             fmt::format(
                 "replicas run at {:.0f} % of what they sustain: small errors of the rate move the latency a lot",
                 100 * winner->prediction.utilisation),
             "add one replica", ""});
}

}  // namespace stoker
