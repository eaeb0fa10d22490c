// How far off a predicted step may be: the interval of plan, estimate and validate.
#include <algorithm>
#include <cmath>

#include "sizing/nearness.h"
#include "sizing/training.h"

namespace stoker {

Range step_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate) {
    return step_interval(setup, layout, estimate, setup.step_growth);
}

Range step_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate,
                    double growth) {
    const double step = std::max(estimate.step_s, 1e-12);
    const auto share = [&](TimeTerm term) { return estimate.seconds[static_cast<std::size_t>(term)] / step; };
    // Three causes that are independent of each other, and one that grows with distance from what was measured.
    const double device = setup.device.sigma;
    const double regime =
        setup.sigma_launch *
        (share(TimeTerm::launch) + share(TimeTerm::bubble) + share(TimeTerm::host) + share(TimeTerm::gradient_comm) +
         share(TimeTerm::gather_comm) + share(TimeTerm::expert_comm) + share(TimeTerm::tensor_comm));
    const double base = std::sqrt(device * device + setup.sigma_framework * setup.sigma_framework + regime * regime);
    const double gpus = layout.gpus();
    const double scale =
        gpus > setup.sigma_scale_from ? setup.sigma_scale * std::log(gpus / setup.sigma_scale_from) : 0;
    const double sigma = base + scale;
    constexpr double kNinetieth = 1.2816;  // of the normal distribution
    const Range wide = grown({std::min(setup.step_low, std::exp(-kNinetieth * setup.skew_low * sigma)), 1,
                              std::max(setup.step_high, std::exp(kNinetieth * setup.skew_high * sigma))},
                             growth);
    double low = wide.low;
    // Nobody has reached more: a step that would is not likely, but a record.
    if (setup.mfu_most > 0) low = std::max(low, std::min(1.0, estimate.mfu / setup.mfu_most));
    return {low, 1, wide.high};
}

}  // namespace stoker
