#include "plan/calibrated.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker {

void calibrate(const Context& context, const NodeType& node, Point& point) {
    const auto& known = context.options.calibrations;
    const auto found = known.find(node.cloud);
    Prediction& p = point.prediction;
    if (found == known.end() || !(p.step_s.mid > 0)) return;
    const Calibration& learnt = found->second;

    const double published_s = p.step_s.mid, published_bytes = p.memory_bytes.mid;
    p.step_s = calibrated_step(learnt, parts_of(p.seconds));
    for (std::size_t i = 0; i < p.seconds.size(); ++i)
        p.seconds[i] *= learnt.factor[static_cast<std::size_t>(part_of(static_cast<TimeTerm>(i)))];
    const double slower = p.step_s.mid / published_s;
    point.speed = p.step_s * (1 / p.step_s.mid);
    point.work_s *= slower;
    p.mfu /= slower, p.hfu /= slower, p.tokens_per_s /= slower;

    p.memory_bytes = calibrated_bytes(learnt, p.memory_bytes);
    // Weights and optimizer are counted, not guessed: what came out otherwise is the framework's.
    double& framework = p.bytes[static_cast<std::size_t>(MemoryTerm::framework)];
    framework = std::max(0.0, framework + p.memory_bytes.mid - published_bytes);

    point.notes.push_back(fmt::format(
        "calibrated on {} runs of this place: products x{:.2f}, memory and launches x{:.2f}, between ranks x{:.2f}; "
        "the "
        "published constants say {} a step",
        learnt.points, learnt.factor[0], learnt.factor[1], learnt.factor[2], format_seconds(Seconds(published_s))));
}

}  // namespace stoker
