#include "plan/calibrated.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker {

CaseShape case_shape(const Workload& workload, const ParallelLayout& layout) {
    const double sequence = workload.sequence();
    return {.hidden = static_cast<double>(workload.model.hidden),
            .layers = static_cast<double>(workload.model.layers) / layout.pipeline,
            .sequence = sequence,
            .tokens = static_cast<double>(layout.micro_batch) * layout.micro_batches * sequence / layout.context};
}

void calibrate(const Context& context, const NodeType& node, Point& point) {
    const auto& known = context.options.calibrations;
    const auto found = known.find(node.cloud);
    Prediction& p = point.prediction;
    if (found == known.end() || !(p.step_s.mid > 0)) return;
    const Calibration& learnt = found->second;

    const CaseShape shape = case_shape(context.workload, point.layout);
    const double published_s = p.step_s.mid;
    p.step_s = calibrated_step(learnt, parts_of(p.seconds), shape);
    for (std::size_t i = 0; i < p.seconds.size(); ++i)
        p.seconds[i] *= learnt.step.factor[static_cast<std::size_t>(part_of(static_cast<TimeTerm>(i)))];
    const double slower = p.step_s.mid / published_s;
    point.speed = p.step_s * (1 / p.step_s.mid);
    point.work_s *= slower;
    p.mfu /= slower, p.hfu /= slower, p.tokens_per_s /= slower;

    const MemoryParts memory = memory_parts_of(p.bytes, p.memory_bytes.mid);
    if (const auto bytes = calibrated_bytes(learnt, memory, shape)) {
        const auto [held, transient] = learnt.memory.factor;
        for (std::size_t i = 0; i < p.bytes.size(); ++i)
            if (is_transient(static_cast<MemoryTerm>(i))) p.bytes[i] *= transient;
        // Weights and optimizer are counted, not guessed: what came out otherwise is the framework's.
        double& framework = p.bytes[static_cast<std::size_t>(MemoryTerm::framework)];
        framework = std::max(0.0, framework + (held - 1) * memory.held);
        p.memory_bytes = *bytes;
    }

    const auto& factor = learnt.step.factor;
    std::string note = fmt::format(
        "calibrated on {} runs of this place: products x{:.2f}, memory and launches x{:.2f}, between ranks x{:.2f}; "
        "the published constants say {} a step",
        learnt.points, factor[0], factor[1], factor[2], format_seconds(Seconds(published_s)));
    const double outside = doublings_outside(learnt, shape);
    if (outside >= 0.05)
        note +=
            fmt::format("; {:.1f} doublings outside of the sizes that taught it, so its interval is wider", outside);
    point.notes.push_back(std::move(note));
}

}  // namespace stoker
