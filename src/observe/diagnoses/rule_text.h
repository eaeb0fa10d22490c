// Words that all rules share.
#pragma once

#include <string>
#include <utility>

#include "base/units.h"
#include "observe/diagnosis.h"
#include "observe/thresholds.h"

namespace stoker {

inline DiagnosisVerdict diagnosis_silent(std::string missing) {
    return {.kind = DiagnosisVerdict::Kind::silent, .reason = "needs " + std::move(missing), .diagnosis = {}};
}
inline DiagnosisVerdict diagnosis_ruled_out(std::string figure) {
    return {.kind = DiagnosisVerdict::Kind::ruled_out, .reason = std::move(figure), .diagnosis = {}};
}
inline DiagnosisVerdict diagnosis_found(Diagnosis found) {
    return {.kind = DiagnosisVerdict::Kind::found, .reason = {}, .diagnosis = std::move(found)};
}
// The figure that decided, with the threshold of that name; and one that is told beside it.
EvidenceFigure deciding_figure(std::string name, double value, std::string unit, std::string_view threshold);
EvidenceFigure told_figure(std::string name, double value, std::string unit);
std::string milliseconds_text(double seconds);            // "18 ms", "0.4 ms", "2,310 ms"
std::string planned_text(std::optional<double> seconds);  // " (planned 18 ms)"; nothing without a plan
std::string percent_text(double share);                   // "7 %"
std::string size_text(double bytes);                      // "3.1 GB", "12 MB", "0.4 MB"
std::string rate_text(double bytes_per_s);                // "3.1 GB/s", "12 MB/s"
std::string queue_text(double share);  // "30 % of the time they run", "4.2 times as long as they run"

// How long ready threads of a rank wait for a processor, for each second that they run. Nothing: not known, they hardly
// want to run at all, or a quota stops it, which counts as waiting too.
std::optional<double> queue_share(const RankEvidence& rank);
// How long a rank waits for a processor in a step: what the program tells of the thread that makes the steps
// (python/stoker_torch), else all its threads together.
std::optional<double> queued_seconds(const RankEvidence& rank, double step_s);
// What all ranks wait alike: the smallest share, and what it costs in the step of that rank. What one of them waits
// beyond is told of a straggler.
struct CommonQueue {
    double share = 0, cost_s = 0;
    double least_s = 0, most_s = 0;  // what it costs lies between these
    bool much = false;               // over the threshold
};
std::optional<CommonQueue> common_queue(const RunEvidence& evidence);
// Ranks that have more threads ready to run than there are processors for them, whoever else is there: on the machine,
// or where an affinity keeps several of them on the same few.
struct OwnCrowd {
    double ready = 0, processors = 0;  // ready: running or waiting for their turn, on average
    bool affinity = false;
    int ranks = 0;      // that share those processors
    bool fills = true;  // they use most of those processors: nobody else is to blame
    // What part of the waiting is theirs, where others use so many processors as well.
    double part_beside(double foreign) const;
};
std::optional<OwnCrowd> own_crowd(const RunEvidence& evidence);
// The pools of all ranks together are no wider than the machine: what is ready beyond them are workers of a loader and
// the like, now and then. Up to so many times its processors that is no crowd.
constexpr double kOverWithWorkers = 1.5;
bool pools_take_turns(const RunEvidence& evidence);  // several, of which one spins while another computes
bool pools_fit(const RunEvidence& evidence);
std::optional<double> threads_ready(const RunEvidence& evidence);  // running or waiting for a processor, of all ranks
// Threads of the libraries that a rank computes with: what the program tells (python/stoker_torch), else what its
// environment says; the widest of all ranks. `told`: by the program.
struct PoolWidth {
    std::string_view variable;  // OMP_NUM_THREADS
    double threads = 0;
    bool told = false;
};
std::vector<PoolWidth> pool_widths(const RunEvidence& evidence);
double widest_pool(const RunEvidence& evidence);  // of all of them, one at least
// Processors that a rank has to itself: what it asked for, at most its limit, its affinity and its share of the
// machine.
double processors_of_rank(const RunEvidence& evidence);
// What a step takes longer than planned, what it waits for data apart; none: there is no plan. Where measures say no
// more than how long threads wait, a fault of computing costs about so much at most.
std::optional<double> step_beyond_plan(const RunEvidence& evidence);

// Processors that programs use which are no ranks of the run, and the share of the machine's that is.
struct ForeignUse {
    double processors = 0, share = 0, stolen = 0;
    bool much = false;
};
// On the node of that rank, where the gang is on several; none: over all of them.
std::optional<ForeignUse> foreign_use(const RunEvidence& evidence, const RankEvidence* rank = nullptr);

}  // namespace stoker
