#include "validate/fastest_layout.h"

#include <algorithm>
#include <cmath>

namespace stoker::validate {
namespace {

constexpr int kMostPipeline = 64, kMostContext = 8, kMostVirtual = 16, kMostMicroBatch = 8;

struct Fastest {
    bool found = false;
    ParallelLayout layout{};
    TrainingEstimate estimate{};
};

// Virtual stages, recompute and micro-batches of one division of the ranks.
void try_division(const TrainingSetup& setup, const ModelSpec& model, const LayoutQuestion& question,
                  ParallelLayout layout, Fastest& best) {
    const int stages = layout.pipeline > 1 ? kMostVirtual : 1;
    for (layout.virtual_stages = 1; layout.virtual_stages <= stages; layout.virtual_stages *= 2) {
        if (model.layers % (layout.pipeline * layout.virtual_stages) != 0) continue;
        for (const Recompute recompute : question.recompute) {
            layout.recompute = recompute;
            for (int size = 1; size <= kMostMicroBatch; size *= 2) {
                const double passes = question.global_batch / (static_cast<double>(layout.data) * size);
                if (passes < 1 || passes != std::floor(passes)) break;
                layout.micro_batch = size;
                layout.micro_batches = static_cast<std::int32_t>(passes);
                TrainingEstimate e;
                evaluate(setup, layout, question.nodes, e);
                if (e.refused != Reason::none || (best.found && e.step_s >= best.estimate.step_s)) continue;
                best = {true, layout, e};
            }
        }
    }
}

}  // namespace

bool fastest_layout(const TrainingSetup& setup, const ModelSpec& model, const LayoutQuestion& question,
                    ParallelLayout& layout, TrainingEstimate& estimate) {
    const int node = static_cast<int>(std::min(8.0, setup.device.ranks_per_node()));
    const int ranks = layout.data * layout.tensor * layout.context;
    Fastest best;
    for (int t = 1; t <= node; t *= 2) {
        for (int p = 1; p <= kMostPipeline; p *= 2) {
            for (int c = 1; c <= kMostContext; c *= 2) {
                const int parts = t * p * c;
                if (parts > ranks || ranks % parts != 0 || model.heads % t != 0 || model.layers % p != 0) continue;
                ParallelLayout divided = layout;
                divided.tensor = t;
                divided.pipeline = p;
                divided.context = c;
                divided.data = ranks / parts;
                divided.zero = std::max<std::uint8_t>(layout.zero, 1);
                divided.sequence_parallel = t > 1;
                try_division(setup, model, question, divided, best);
            }
        }
    }
    if (!best.found) return false;
    layout = best.layout;
    estimate = best.estimate;
    return true;
}

}  // namespace stoker::validate
