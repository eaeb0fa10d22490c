// Right size: hardly used, nearly full, or a fraction that would do.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "plan/advice/advice.h"
#include "plan/sized_by.h"

namespace stoker {
namespace {

// What else than the work sets the size, and how to have less of it.
std::pair<std::string, std::string> why_under_used(const AdviceInput& input, const Candidate& winner) {
    const Workload& workload = input.context.workload;
    if (workload.kind != WorkloadKind::inference || winner.replicas <= 0) return {"", "a smaller size"};
    const std::string spare = spare_text(winner, workload.models_served);
    const std::string limit(sized_by_limit(winner));
    std::string why;
    for (const std::string& one : {limit, spare})
        if (!one.empty()) why += (why.empty() ? ": " : "; ") + one;
    if (why.empty() && winner.nodes == 1) why = ": it is the smallest that serves this model";
    if (spare.empty()) return {why, limit.empty() ? "share the GPU with other work" : "a wider limit"};
    std::string saved;
    if (winner.priced && winner.pricing != Pricing::owned)
        saved = fmt::format(" saves {} per hour",
                            format_usd(Usd::from_double(winner.spare_nodes * winner.node_per_hour.dollars())));
    return {why, fmt::format("objective.survive_one_replica_lost: false{}, or share the GPU", saved)};
}

}  // namespace

void advise_use(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const NodeType& node = input.node(*winner);
    const Prediction& p = winner->prediction;
    const WorkloadKind kind = input.context.workload.kind;
    if (p.utilisation > 0 && p.utilisation < 0.3 && kind != WorkloadKind::notebook) {
        const auto [why, remedy] = why_under_used(input, *winner);
        out.push_back(
            {AdviceSeverity::warning, "under-used",
             (p.utilisation < 0.005 ? std::string("less than 1 % of what is paid for is used")
                                    : fmt::format("only {:.0f} % of what is paid for is used", 100 * p.utilisation)) +
                 why,
             remedy, ""});
    }
    if (p.memory_capacity_bytes > 0 && p.memory_bytes.mid > 0.95 * p.memory_capacity_bytes && is_training(kind))
        out.push_back(
            {AdviceSeverity::warning, "memory-nearly-full",
             fmt::format("{} of {}: a fragmentation spike ends the run", format_bytes_gib(Bytes(p.memory_bytes.mid)),
                         format_bytes_gib(Bytes(p.memory_capacity_bytes))),
             "recompute activations, a smaller micro-batch, or more shards", ""});
    if (p.fit_probability < input.context.settings.fit_wanted - 1e-9)
        out.push_back({AdviceSeverity::warning, "memory-unsure",
                       fmt::format("{:.0f} % likely to fit in memory", std::floor(100 * p.fit_probability + 1e-9)),
                       "try one step on one node first", ""});
    if (node.mig)
        out.push_back(
            {AdviceSeverity::warning, "fractional-gpu",
             fmt::format("a machine here is a part of a GPU ({} with {}, {} of each {}): parts of one {} are lost "
                         "together, and none talks to another",
                         node.mig->profile, format_bytes_gib(node.accelerator_memory), node.mig->parts(), node.name,
                         node.name),
             "where one has to be lost without a gap, have the spare parts of a whole machine",
             node.provenance.source});
    else if (node.has_gpu() && node.accelerators < 1)
        out.push_back(
            as_background({AdviceSeverity::info, "fractional-gpu",
                           fmt::format("{} gets {:.3g} of a GPU with {}; the SKU API counts it as one", node.name,
                                       node.accelerators, format_bytes_gib(node.accelerator_memory)),
                           "", node.provenance.source}));
    const std::size_t runs = input.context.workload.run ? points_of(*input.context.workload.run) : 1;
    if (runs > 1 && p.hours.mid > 0 && kind != WorkloadKind::inference)
        out.push_back(
            {AdviceSeverity::warning, "several-runs",
             fmt::format("the file starts {} runs, and the figures are of one{}", runs,
                         winner->priced
                             ? fmt::format(": all of them cost {} to {}",
                                           format_usd(Usd::from_double(static_cast<double>(runs) * p.usd.low)),
                                           format_usd(Usd::from_double(static_cast<double>(runs) * p.usd.high)))
                             : ""),
             "for a deadline of them all, divide it by how many follow each other on one machine", ""});
    if (kind == WorkloadKind::notebook && winner->doubt == "no GPU")
        out.push_back(
            {AdviceSeverity::warning, "notebook-without-gpu",
             fmt::format("it has no GPU: none with one {}",
                         input.context.workload.objective.budget ? "keeps the budget" : "is left by what is asked"),
             "where: {accelerators: [nvidia]} without the budget shows what one costs", ""});
    if (kind == WorkloadKind::notebook)
        out.push_back({AdviceSeverity::info, "notebook-stop",
                       "a notebook forgotten over a weekend costs 48 hours: set auto-shutdown or an idle lease; a CPU "
                       "size does for most editing",
                       "", ""});
    if (node.has_gpu() && node.accelerators >= 1 && node.vcpus < 4 * node.accelerators)
        out.push_back({AdviceSeverity::warning, "few-vcpus",
                       fmt::format("{:.1f} vCPUs per GPU may starve data loading", node.vcpus / node.accelerators), "",
                       ""});
    if (input.plan.candidates.size() > 1 && winner->priced) {
        const Candidate& last = input.plan.candidates.back();
        if (last.priced && last.prediction.usd.mid > winner->prediction.usd.mid)
            out.push_back(as_background(
                {AdviceSeverity::info, "wrong-choice",
                 fmt::format("the last of the list, {} x {}, costs {} more for the same work", last.nodes,
                             input.node(last).name,
                             format_usd(Usd::from_double(last.prediction.usd.mid - winner->prediction.usd.mid))),
                 "", ""}));
    }
}

}  // namespace stoker
