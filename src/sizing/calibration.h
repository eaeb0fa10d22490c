// What is learnt from runs that were predicted and then measured in one place: a factor for each of the three kinds of
// work in a step, and how far off the next prediction will be. Published constants stay as they are; this is kept apart
// from them, told as such, and can be thrown away.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

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

struct CalibrationPoint {
    std::string run;                        // where it comes from
    StepParts predicted;                    // as the published constants have it
    double step_s = 0;                      // measured: the median of the run's steps
    double predicted_bytes = 0, bytes = 0;  // the peak of a rank; 0: not known
};

struct Calibration {
    std::size_t points = 0;
    std::array<double, 3> factor{1, 1, 1};              // by StepPart
    std::array<std::array<double, 3>, 3> covariance{};  // of the factors
    double spread = 0;                                  // relative deviation that is left after them
    double freedom = 0;                                 // of that deviation: what its own uncertainty is
    double memory_factor = 1, memory_spread = 0;        // 0: no point tells
};

inline constexpr std::size_t kLeastCalibration = 3;

// The median ratio of measured to predicted first, then Bayesian linear regression of the steps on their parts (Gelman
// et al., Bayesian Data Analysis, ch. 14), each point weighed by its own step so that small and large models count the
// same. The factors are believed to differ from the median by 35 % (compute) and 60 % (the others), and what is left to
// be 6 %; points far outside pull less than in a least-squares fit. Nothing below three points.
std::optional<Calibration> fit_calibration(std::span<const CalibrationPoint> points);

// The step that it expects, with its 80 % interval (Student's t).
Range calibrated_step(const Calibration& calibration, const StepParts& predicted);
// The peak of a rank; the prediction itself where no point tells.
Range calibrated_bytes(const Calibration& calibration, const Range& predicted);

}  // namespace stoker
