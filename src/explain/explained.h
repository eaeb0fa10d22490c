// A run held against its plan: what was measured of it, what was promised, and why the two differ. Plain values, times
// in UTC microseconds; whoever shows them chooses the words (server/explanation_view.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "observe/diagnosis.h"
#include "run/state/state.h"

namespace stoker {

// A run as it stands, copied from the state, so that it can be judged later and elsewhere.
struct RunAsItStands {
    Run run;
    std::int64_t now_us = 0;
    std::optional<std::int64_t> cost_microusd;  // so far, steps included; none: there is no price book
};

enum class HeldTermKind : std::uint8_t {
    step,
    compute,
    input,
    collectives,
    checkpoints,
    gpu_memory,
    memory,
    time,
    cost
};
constexpr std::array<std::pair<HeldTermKind, std::string_view>, 9> enum_names(HeldTermKind) {
    return {{{HeldTermKind::step, "step"},
             {HeldTermKind::compute, "compute"},
             {HeldTermKind::input, "input"},
             {HeldTermKind::collectives, "collectives"},
             {HeldTermKind::checkpoints, "checkpoints"},
             {HeldTermKind::gpu_memory, "gpu-memory"},
             {HeldTermKind::memory, "memory"},
             {HeldTermKind::time, "time"},
             {HeldTermKind::cost, "cost"}}};
}
std::string_view unit_of(HeldTermKind kind);  // s, bytes, microusd

// none: nothing to hold it against.
enum class PlanVerdict : std::uint8_t { none, inside, above, below };
constexpr std::array<std::pair<PlanVerdict, std::string_view>, 4> enum_names(PlanVerdict) {
    return {{{PlanVerdict::none, ""},
             {PlanVerdict::inside, "inside"},
             {PlanVerdict::above, "above"},
             {PlanVerdict::below, "below"}}};
}

// One term of a run against its plan.
struct HeldTerm {
    HeldTermKind kind = HeldTermKind::step;
    std::optional<double> measured, predicted, low, high;  // low and high: of the prediction
    PlanVerdict verdict = PlanVerdict::none;
    std::string note;  // why it is not measured, or what it went to
};

// What the GPUs of its ranks did in the steady state: means over the ranks, power of one board. What a board does not
// tell (before Hopper, what its units do) is none.
struct GpuUse {
    int count = 0;
    std::optional<double> busy_share;       // of the cycles, a warp was resident; else of the time, a kernel was
    std::optional<double> tensor_share;     // of the cycles
    std::optional<double> bandwidth_share;  // of device memory
    std::optional<double> power_w, power_limit_w;
    // Of the board that is fullest: what the allocator of the program holds of it, and how much it has.
    std::optional<double> memory_held_bytes, memory_size_bytes;
};

// Why it is slow; the names are those of the rules (observe/diagnosis.h), of today or of when it was kept.
struct ToldDiagnosis {
    std::string name, what;
    std::vector<std::string> evidence;
    double cost_s = 0;                   // of a step
    CostRange cost_range;                // none: it was measured
    std::optional<double> share_of_gap;  // of what the step is longer than predicted
    double expected_gain = 0;            // of the time of a step, at most
    std::string fix;
    std::optional<int> rank;
    std::string node;  // of that rank, where its gang is on several
    bool stops = false;
    bool in_step = false;                 // its cost is a part of a step; not kept
    std::vector<EvidenceFigure> figures;  // the same evidence for programs
    std::vector<EvidenceSpan> spans;      // when it was; empty: all the time
};
struct DiagnosisNote {
    std::string name, reason;
};

// How the steps of the rank that is looked at first went, in parts of so many seconds each. 0: none ended in that part.
struct ExplainedTimeline {
    int rank = 0;
    std::int64_t from_s = 0, each_s = 0;  // since 1970; each_s 0: no steps were seen
    std::vector<double> step_s, longest_s, wait_s, allreduce_s, checkpoint_s;
};

struct ExplainedRun {
    RunId run;
    RunState state = RunState::queued;
    Cause cause = Cause::none;  // why it ended
    AttemptId attempt;          // none: it has not run itself
    std::int64_t from_us = 0, to_us = 0;
    double steps = 0, warm_up_steps = 0;
    std::optional<double> gap_s;  // step measured less predicted, where it is outside of the interval
    // Of the gap, what no diagnosis costs; below 0: they overlap, and cost that much more together than there is.
    std::optional<double> unexplained_s;
    bool outside = false;      // any term, but for a time that earlier attempts explain
    std::int64_t point_s = 0;  // what was judged from: seconds a point covers; 0: nothing was measured
    std::int64_t kept_us = 0;  // judged when the run ended, and kept; 0: judged now
    std::vector<HeldTerm> terms;
    std::optional<GpuUse> gpu;             // none: no rank holds one, or nobody watched
    std::vector<ToldDiagnosis> diagnoses;  // what stops the run, then the dearest first
    std::vector<DiagnosisNote> ruled_out, not_known;
    ExplainedTimeline timeline;
};

}  // namespace stoker
