// The ranks spend their time in collectives, and not because one of them comes late: the link is slow.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "observe/diagnoses/rule_text.h"

namespace stoker {
namespace {

// Ranks that hardly compute in their collectives, nor wait for a processor, wait for what comes over the link. Within a
// machine there is none: what they do there is to copy, to add, and to wake each other.
// Nothing: nobody knows.
std::optional<bool> computes_in_collectives(const RankEvidence& rank, double transfer_s) {
    constexpr double kAwake = 0.25;  // of the transfer
    const auto cpu = rank.mean("cpu"), whole = rank.mean("step_s"), compute = rank.mean("compute_s"),
               run_wait = rank.mean("run_wait");
    if (!cpu || !whole || !run_wait) return std::nullopt;
    const double worked = *cpu * *whole;
    return std::max(0.0, worked - compute.value_or(0)) + *run_wait * worked >= kAwake * transfer_s;
}

// The nodes that the link joins; none: all ranks are on one, or nobody knows.
std::vector<std::string> joined_nodes(const RunEvidence& evidence) {
    std::vector<std::string> nodes;
    for (const RankEvidence& rank : evidence.ranks)
        if (!rank.node.empty() && std::find(nodes.begin(), nodes.end(), rank.node) == nodes.end())
            nodes.push_back(rank.node);
    std::sort(nodes.begin(), nodes.end());
    if (nodes.size() < 2) nodes.clear();
    return nodes;
}

}  // namespace

DiagnosisVerdict judge_slow_link(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    // The shortest collective of a second, on the rank where it is shortest, waits for nobody: it is the transfer.
    std::optional<double> transfer;
    const RankEvidence* quickest = nullptr;
    int known = 0;
    for (const RankEvidence& rank : evidence.ranks)
        if (const MeasureSpread* shortest = rank.find("allreduce_min_s")) {
            ++known;
            if (!transfer || shortest->median < *transfer) {
                transfer = shortest->median;
                quickest = &rank;
            }
        }
    if (!step || known < 2) return diagnosis_silent("allreduce_s of two ranks or more in the metrics files");
    // Ranks that queue for processors are late in their collectives too: by what they queue beyond what shows in their
    // computing, and by no more than their share.
    const RankEvidence* throttled = evidence.worst("throttled");
    if (throttled != nullptr && *throttled->mean("throttled") >= diagnosis_threshold("cpu.throttled_share"))
        return diagnosis_ruled_out(
            fmt::format("{} a step in collectives, while a quota stops the ranks", milliseconds_text(*transfer)));
    const auto queue = common_queue(evidence);
    // Collectives within a machine are work for its processors.
    const auto taken = foreign_use(evidence);
    const auto sent = quickest->mean("net_sent");
    constexpr double kLeaves = 1e5;  // bytes/s: less stays on the machine
    const bool within = sent && *sent < kLeaves && joined_nodes(evidence).empty();
    const auto computes = computes_in_collectives(*quickest, *transfer);
    if (within && computes != false && ((taken && taken->much) || !computes))
        return diagnosis_silent(
            "run_wait and processors that nobody else uses: collectives within a machine need them");
    if (within && *computes)
        return diagnosis_ruled_out(
            fmt::format("{} a step in collectives that wait for nobody{}: within this machine, and its processors work "
                        "in them",
                        milliseconds_text(*transfer), planned_text(evidence.planned.collectives_s)));
    // How long threads wait is looked at every few seconds: of a shorter run nobody knows whom they wait for.
    if (!queue && taken && taken->much && !quickest->mean("run_wait"))
        return diagnosis_silent("run_wait: other programs use the processors too");
    double late = queue ? *transfer * queue->share / (1 + queue->share) : 0;
    const auto cpu = quickest->mean("cpu"), whole = quickest->mean("step_s"), compute = quickest->mean("compute_s");
    if (queue && cpu && whole && compute) {
        // A sleep or a lock in what it computes is no queueing either: at most what its part of the work waits.
        const double worked = *cpu * *whole, waited = queue->share * worked;
        const double part = *compute / std::max(1e-9, *compute + quickest->mean("allreduce_s").value_or(0));
        late = std::clamp(waited - std::clamp(*compute - worked, 0.0, part * waited), 0.0, late);
    }
    const double planned = evidence.planned.collectives_s.value_or(0), cost = *transfer - late - planned;
    if (cost < diagnosis_threshold("link.share") * *step)
        return diagnosis_ruled_out(
            fmt::format("{} a step in collectives that wait for nobody{}{}", milliseconds_text(*transfer),
                        planned_text(evidence.planned.collectives_s),
                        late > 0.02 * *step ? fmt::format(", {} of it for a processor", milliseconds_text(late)) : ""));
    const auto nodes = joined_nodes(evidence);
    // Of more than two the slowest link holds up all: only a measurement of pairs tells which it is.
    const std::string where = nodes.empty()       ? ""
                              : nodes.size() == 2 ? fmt::format(", between {} and {}", nodes[0], nodes[1])
                                                  : fmt::format(", among {} nodes", nodes.size());
    Diagnosis found{
        .what = fmt::format("{} a step in collectives that wait for nobody{}{}", milliseconds_text(*transfer),
                            planned_text(evidence.planned.collectives_s), where),
        .evidence = {fmt::format("{} of the step", percent_text(*transfer / *step))},
        .cost_s = cost,
        .fix = fmt::format("measure the link (stoker doctor serve at {}, stoker doctor network --peer {} at "
                           "{}); fewer bytes: gradient accumulation or compression "
                           "(comm_hooks.fp16_compress_hook)",
                           nodes.empty() ? "one node" : nodes[0], nodes.empty() ? "NODE" : nodes[0],
                           nodes.size() == 2 ? nodes[1] : "the other"),
        .rank = {}};
    for (const char* name : {"net_loopback", "net_sent"}) {
        const auto bytes = quickest->mean(name);
        const auto steps = quickest->find("step_s");
        if (!bytes || *bytes < 1e4 || steps == nullptr) continue;
        // What passed in a step, over the time of its transfer.
        found.evidence.push_back(fmt::format("{} over {} during the transfer", rate_text(*bytes * *step / *transfer),
                                             name[4] == 'l' ? "loopback" : "the network"));
    }
    found.figures = {deciding_figure("transfer_share", cost / *step, "of a step", "link.share"),
                     told_figure("transfer_s", *transfer, "s"), told_figure("planned_s", planned, "s")};
    if (cpu) found.evidence.push_back(fmt::format("{:.2f} processors in use", *cpu));
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
