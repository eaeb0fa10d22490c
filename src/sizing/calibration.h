// What is learnt from runs that were predicted and then measured in one place: a factor for each of the three kinds of
// work in a step and for the two kinds of memory of a rank, and how far off the next prediction will be. Published
// constants stay as they are; this is kept apart from them, told as such, and can be thrown away.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sizing/terms.h"

namespace stoker {

// Seconds of a step by what limits them.
struct StepParts {
    double compute_s = 0;   // matrix products
    double other_s = 0;     // what moves through memory, launches, the optimizer, the host
    double exchange_s = 0;  // between ranks
    double sum() const { return compute_s + other_s + exchange_s; }
};
enum class StepPart : std::uint8_t { compute, other, exchange };
StepPart part_of(TimeTerm term);
StepParts parts_of(const std::array<double, kTimeTerms>& seconds);

// Bytes of a rank at its peak by how sure they are: states are counted and the framework was measured; what a step
// allocates and frees depends on operators and allocator.
struct MemoryParts {
    double held = 0;       // weights, gradients, optimizer, framework
    double transient = 0;  // activations, logits, gathered weights, what the allocator keeps of them
    double sum() const { return held + transient; }
};
bool is_transient(MemoryTerm term);
// `total` may be more than the terms: what is over is held.
MemoryParts memory_parts_of(const std::array<double, kMemoryTerms>& bytes, double total);

// Where a case lies among others: the further from what was taught, the less is known of it.
struct CaseShape {
    double hidden = 0, layers = 0, sequence = 0, tokens = 0;  // tokens: of a rank's step; 0: not known
    std::array<double, 4> values() const { return {hidden, layers, sequence, tokens}; }
    bool known() const { return hidden > 0 && layers > 0 && sequence > 0 && tokens > 0; }
};

struct CalibrationPoint {
    std::string run;              // where it comes from
    StepParts predicted;          // as the published constants have it
    double step_s = 0;            // measured: the median of the run's steps
    MemoryParts predicted_bytes;  // sum 0: not known
    double bytes = 0;             // measured: the peak of a rank; 0: not known
    CaseShape shape;
    std::string kind;  // of the network, as ModelKind is written; empty: of before it was kept
};
// What was taught by networks of that kind: products, operators and memory of another kind are others, and their
// factors with them. Points of before kinds were kept are of decoders, which alone have a sequence.
std::vector<CalibrationPoint> points_of_kind(std::span<const CalibrationPoint> points, std::string_view kind);

// Factors of N parts that add up, believed and then learnt.
template <std::size_t N>
struct PartsFit {
    std::array<double, N> factor = filled();
    std::array<std::array<double, N>, N> covariance{};
    double spread = 0;   // relative deviation that is left after them
    double freedom = 0;  // of that deviation: what its own uncertainty is
    static constexpr std::array<double, N> filled() {
        std::array<double, N> ones{};
        ones.fill(1);
        return ones;
    }
};

struct Calibration {
    std::size_t points = 0;
    PartsFit<3> step;    // by StepPart
    PartsFit<2> memory;  // held, transient; spread 0: no point tells
    // log2 of the smallest and largest of each value of CaseShape that was taught; empty: none of them had a shape.
    std::optional<std::array<Range, 4>> taught;
};

inline constexpr std::size_t kLeastCalibration = 3;

// Of the steps: the median ratio of measured to predicted first, then Bayesian linear regression on their parts (Gelman
// et al., Bayesian Data Analysis, ch. 14), each point weighed by its own step so that small and large models count the
// same. The factors are believed to differ from the median by 35 % (compute) and 60 % (the others), and what is left to
// be 6 %; points far outside pull less than in a least-squares fit. Of the memory the same around 1, with 10 % (held)
// and 40 % (transient). Of runs of the same case the fastest counts, since what others take from a machine only ever
// adds, and the largest peak. Nothing below three runs.
std::optional<Calibration> fit_calibration(std::span<const CalibrationPoint> points);

// How many doublings outside of what was taught, over hidden, layers, sequence and tokens (root of the sum of squares);
// 0 inside, or where nothing is known.
double doublings_outside(const Calibration& calibration, const CaseShape& shape);

// The step that it expects, with its 80 % interval: Student's t over what the factors leave open for these parts, what
// is left after them, and kDeviationPerDoubling of distance.
Range calibrated_step(const Calibration& calibration, const StepParts& predicted, const CaseShape& shape = {});
// The peak of a rank, alike; nothing where no point tells.
std::optional<Range> calibrated_bytes(const Calibration& calibration, const MemoryParts& predicted,
                                      const CaseShape& shape = {});

}  // namespace stoker
