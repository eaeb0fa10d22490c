// One rank is slower than the others, which wait for it in the collectives.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "observe/diagnoses/rule_text.h"
#include "observe/health_judge.h"

namespace stoker {
namespace {

// What a rank computes in a step by the processor's clock.
std::optional<double> processor_seconds(const RankEvidence& rank) {
    if (const auto told = rank.mean("cpu_s")) return told;
    const auto cpu = rank.mean("cpu"), step = rank.mean("step_s");
    return cpu && step ? std::optional(*cpu * *step) : std::nullopt;
}

// What a rank computes longer than the others, by whose doing.
struct OwnPart {
    double work_s = 0;   // more processor time, and the waiting for a processor that goes with it
    double still_s = 0;  // neither on a processor nor ready for one: a sleep, a lock, a request
};

std::optional<OwnPart> own_part(const RunEvidence& evidence, const RankEvidence& late, double step) {
    // A rank that waits for a GPU stands still as well.
    const bool devices = evidence.planned.devices || evidence.mean("gpu_util");
    const auto still_of = [&](const RankEvidence& rank) -> std::optional<double> {
        const auto worked = processor_seconds(rank), compute = rank.mean("compute_s"),
                   queued = queued_seconds(rank, step);
        if (!worked || !compute || !queued || devices) return std::nullopt;
        const double stopped = rank.mean("throttled").value_or(0) + std::min(1.0, rank.mean("blocked").value_or(0));
        return std::max(0.0, *compute - *worked - *queued - stopped * step);
    };
    std::vector<double> worked, still;
    for (const RankEvidence& each : evidence.ranks) {
        if (&each == &late) continue;
        if (const auto seconds = processor_seconds(each)) worked.push_back(*seconds);
        if (const auto seconds = still_of(each)) still.push_back(*seconds);
    }
    const auto own = processor_seconds(late);
    if (!own || worked.empty()) return std::nullopt;
    const auto queue = common_queue(evidence);
    OwnPart part{.work_s = std::max(0.0, *own - spread_of(worked).median) * (1 + (queue ? queue->share : 0))};
    // How long threads wait is looked at every few seconds: less than a rule of its own asks for may be chance.
    const auto stands = still_of(late);
    if (stands && !still.empty())
        if (const double more = *stands - spread_of(still).median; more >= diagnosis_threshold("idle.share") * step)
            part.still_s = more;
    return part;
}

}  // namespace

DiagnosisVerdict judge_straggler(const RunEvidence& evidence) {
    const auto step = evidence.step_s();
    // A rank is slow all the time, or it was merely unlucky: medians. What it computes by itself: its collectives take
    // what the others need, and its waiting for data has a rule.
    std::vector<std::pair<double, const RankEvidence*>> own;
    for (const RankEvidence& rank : evidence.ranks)
        if (const MeasureSpread* compute = rank.find("compute_s")) own.emplace_back(compute->median, &rank);
    if (!step || own.size() < 2) return diagnosis_silent("compute_s of two ranks or more (each writes its metrics)");
    std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto [slowest, rank] = own.back();
    own.pop_back();
    const double others = own[own.size() / 2].first, cost = slowest - others;
    if (cost < diagnosis_threshold("straggler.share") * *step)
        return diagnosis_ruled_out(
            fmt::format("the slowest rank works {} longer than the others{}", milliseconds_text(std::max(0.0, cost)),
                        cost > 0.02 * *step ? fmt::format(", {} of a step; told from {} on", percent_text(cost / *step),
                                                          percent_text(diagnosis_threshold("straggler.share")))
                                            : ""));
    // What a quota stops a rank for is in what it computes, and no two ranks are stopped alike.
    if (rank->mean("throttled").value_or(0) >= diagnosis_threshold("cpu.throttled_share") &&
        evidence.mean("throttled").value_or(0) >= 0.75 * *rank->mean("throttled"))
        return diagnosis_ruled_out(fmt::format("{} works {} longer, and a quota stops all of them", rank_text(*rank),
                                               milliseconds_text(cost)));
    // Where other programs take processors from all ranks, the one that they take most from is no slow one: it computes
    // as much as the others.
    const auto taken = foreign_use(evidence);
    const auto queued = common_queue(evidence);
    const auto part = own_part(evidence, *rank, *step);
    if (taken && taken->much && (!queued || queued->share >= diagnosis_threshold("cpu.queue_share"))) {
        if (part && part->work_s + part->still_s < 0.5 * cost)
            return diagnosis_ruled_out(fmt::format(
                "{} works {} longer and computes no more than the others: other programs take its processor",
                rank_text(*rank), milliseconds_text(cost)));
    }
    const bool stands = part && part->still_s > part->work_s;
    const std::string who = rank_text(*rank);
    Diagnosis found{.what = fmt::format("{} works {} a step, the others {}", who, milliseconds_text(slowest),
                                        milliseconds_text(others)),
                    .evidence = {},
                    .cost_s = cost,
                    .fix = stands ? fmt::format("py-spy dump --pid PID of {}, a few times, shows what it stands in: a "
                                                "sleep, a lock, a request to a service",
                                                who)
                                  : fmt::format("look at what {} runs beside: other programs on its processors, its "
                                                "clock, its share of the batch",
                                                who),
                    .rank = rank->rank};
    found.figures = {deciding_figure("longer_share", cost / *step, "of a step", "straggler.share"),
                     told_figure("compute_s", slowest, "s"), told_figure("others_compute_s", others, "s")};
    if (!rank->node.empty()) found.fix += fmt::format("; `stoker nodes check {}` measures the node", rank->node);
    for (const HealthReport& report : judge_nodes_of(evidence))
        for (const HealthCheck& check : report.checks)
            if (check.node == rank->node && check.expected)
                found.evidence.push_back(fmt::format("the ranks on {} work {} a step, {} {} ({})", check.node,
                                                     milliseconds_text(*check.measured),
                                                     check.verdict == HealthVerdict::fail ? "beyond" : "within",
                                                     milliseconds_text(*check.expected), check.source));
    for (const RankEvidence& each : evidence.ranks) {
        const auto collective = each.mean("allreduce_s");
        if (each.rank != rank->rank && collective) {
            found.evidence.push_back(
                fmt::format("{} waits {} a step in collectives", rank_text(each), milliseconds_text(*collective)));
            break;
        }
    }
    if (stands) {
        found.evidence.push_back(fmt::format("{} of that it is neither on a processor nor ready for one",
                                             milliseconds_text(std::min(cost, part->still_s))));
        found.figures.push_back(told_figure("still_s", part->still_s, "s"));
    }
    const auto queue = queue_share(*rank);
    if (!stands && queue && *queue >= diagnosis_threshold("cpu.queue_share")) {
        found.evidence.push_back(fmt::format("its threads wait {} for a processor", queue_text(*queue)));
        if (const auto foreign = foreign_use(evidence, rank); foreign && foreign->much)
            found.evidence.push_back(fmt::format("other programs use {:.2f} processors", foreign->processors));
        found.fix = fmt::format("free the processors of {} from other programs, or move it", who);
    }
    const auto cpu = rank->mean("cpu");
    if (cpu) found.evidence.push_back(fmt::format("{:.2f} processors in use by it", *cpu));
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
