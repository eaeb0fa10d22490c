// What is known about a run, for the rules that say why it is slower than planned (diagnosis.h). Everything may be
// absent; a rule that lacks what it needs is silent. Nothing here reads anything: it is filled from series,
// specification and prediction (collect.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/counted_unit.h"

namespace stoker {

// One measure over the time that is looked at.
struct MeasureSpread {
    double mean = 0, median = 0, low = 0, high = 0;  // low and high: 10 % and 90 % of the values
    std::size_t count = 0;
};
// Each value with its weight, such as the number of steps that it is the mean of.
MeasureSpread weighted_spread(std::vector<std::pair<double, double>> values);
MeasureSpread spread_of(const std::vector<double>& values);

// A measure as it went, a second or more a point: for what changes while a run goes on.
struct CoursePoint {
    double at_s = 0, min = 0, mean = 0, max = 0;
    double count = 0;  // of measurements
};
using Course = std::vector<CoursePoint>;

struct RankEvidence {
    int rank = 0;
    // In the steady state, by the names of measures() in watch.h; what the program tells of itself
    // (python/stoker_torch) has the names of its lines. "allreduce_min_s": the shortest of each second, which waits for
    // nobody.
    std::map<std::string, MeasureSpread, std::less<>> measures;
    std::map<std::string, MeasureSpread, std::less<>> afterwards;  // since the last step, when that is long ago
    std::map<std::string, Course, std::less<>> courses;            // by the same names, in the steady state; not of all
    double steps = 0;                                              // that were seen, warm-up included
    std::string node;  // where it runs; empty: all run on one, or nobody knows
    const MeasureSpread* find(std::string_view name) const;
    std::optional<double> mean(std::string_view name) const;
    std::optional<double> after(std::string_view name) const;
    const Course& course(std::string_view name) const;  // empty: not known
};

// "rank 3", and where its gang is on several nodes "rank 3 on node-b".
std::string rank_text(const RankEvidence& rank);

struct Planned {
    std::optional<double> step_s, step_low_s, step_high_s;  // the 80 % interval
    std::optional<double> wait_s, collectives_s, memory_bytes;
    std::optional<double> processors;   // of a rank, that it asks for
    std::optional<double> tokens;       // of a step of a rank
    std::optional<double> samples;      // alike
    std::optional<double> steps;        // of the whole run
    std::optional<double> run_low_s;    // the low end of its time
    std::optional<int> precision_bits;  // of the arithmetic: 32, 16
    std::optional<bool> recompute;      // activations are computed again
    std::optional<bool> compiled;       // torch.compile or the like
    // Threads of each library's pool by the environment of a rank: OMP_NUM_THREADS and the like.
    std::map<std::string, double, std::less<>> pools;
    bool devices = false;                  // its ranks compute on GPUs
    std::optional<std::string> waiting;    // OMP_WAIT_POLICY of its environment
    std::optional<std::string> interface;  // GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME of its environment
    bool checkpoints = false;
};

// Which steps count. The first ones load code, fill caches and choose kernels; they are no measure of the rest.
struct SteadyState {
    double from_s = 0, to_s = 0;              // wall clock; to: the last step
    double steps = 0;                         // of one rank, in it
    double warm_up_steps = 0, warm_up_s = 0;  // before it, and what they took
    std::optional<double> all_step_s;         // mean of all steps, warm-up included
};

struct RunEvidence {
    std::vector<RankEvidence> ranks;
    Planned planned;
    std::optional<SteadyState> steady;   // none: too few steps
    std::optional<double> silent_s;      // since the last step, of a run that should go on
    double told_apart_s = 0;             // the longest between two looks that saw a step end
    std::optional<CountedUnit> counted;  // nobody tells steps: they are what its output counts
    std::optional<double> last_step;     // the highest number that a rank told
    std::optional<double> done_after_s;  // what it took, of a run that came to its end by itself
    std::optional<double> machine_cpus;  // processors of the machine

    // Time of a step without its checkpoints; median over ranks.
    std::optional<double> step_s() const;
    std::string node_of(int rank) const;  // RankEvidence::node
    // The mean of a measure over the ranks that have it.
    std::optional<double> mean(std::string_view name) const;
    // The mean over the ranks of one node; of all where that is empty.
    std::optional<double> mean_on(std::string_view node, std::string_view name) const;
    // The rank with the largest mean of a measure.
    const RankEvidence* worst(std::string_view name) const;
};

}  // namespace stoker
