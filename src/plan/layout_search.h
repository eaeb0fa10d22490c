// The best layout of a number of nodes of one type: every division, micro-batch and recompute, without money.
#pragma once

#include "plan/context.h"
#include "plan/layouts.h"

namespace stoker {

// The best layout for one (node type, number of nodes). Independent of price and region, so what-ifs share it.
struct LayoutResult {
    bool done = false, found = false;
    ParallelLayout layout;
    TrainingEstimate estimate;
    double seconds_per_example = 0, fit_probability = 0;
    bool whole = false;  // under the stack that cuts models, and nothing is cut
    // The fastest that surely fits of those that cut the model itself, whatever was found.
    std::optional<ParallelLayout> divided;
    double divided_mfu = 0, divided_seconds = 0;  // per example
    // What lacks least memory when nothing is found, with its times.
    bool nearly = false;
    ParallelLayout nearest;
    TrainingEstimate nearest_estimate;
    std::int64_t considered = 0, refused = 0, too_many_ranks = 0, uneven = 0;
    int uneven_ranks = 0;  // ranks that cannot share the batch evenly, of the first such division
    struct Worst {
        std::int64_t count = 0;
        double have = 0, need = 0;
    };
    std::array<Worst, static_cast<std::size_t>(Reason::count)> refusals{};
};

LayoutSpace layout_space(const Workload& workload, const TrainingSetup& setup, const NodeChoice& choice);
// `devices_per_node`: GPUs of a node, or 1 where it computes on its processors.
LayoutSpace layout_space(const Workload& workload, const TrainingSetup& setup, int devices_per_node);
// With the planner's taste for layouts that people run.
LayoutSpace prefer_simple(const Context& context, LayoutSpace space);
// The same for a number of nodes: devices in all, and how far the fast links reach.
LayoutSpace layout_space(LayoutSpace space, const TrainingSetup& setup, int nodes);
// `divided`: how layouts are run that cut the model itself, where nothing says which code base it is; null: as all are.
void evaluate_layouts(const TrainingSetup& setup, const TrainingSetup* divided, const LayoutSpace& space, int nodes,
                      double fit_wanted, LayoutResult& out);
// The setup of the two that a layout is run with.
const TrainingSetup& setup_for(const TrainingSetup& setup, const TrainingSetup* divided, const ParallelLayout& layout);

// What the workload leaves open is taken as it runs fastest on so many nodes: what is planned, estimated and held
// against published runs comes from here. Where nothing fits, the result is the nearest to fitting, and `found` false;
// where no layout of the shape exists, neither `found` nor `nearly`.
LayoutResult place_training(const TrainingSetup& setup, LayoutSpace space, int nodes, double fit_wanted,
                            const TrainingSetup* divided = nullptr);

// How many devices the pinned degrees make, and why no division is left where so many are there.
double pinned_devices(const LayoutSpec& pinned);
std::string no_division_text(const LayoutSpace& space, double devices);
double network_share(const TrainingEstimate& estimate);  // of the step that waits for the network
double waiting_share(const TrainingEstimate& estimate);  // the same, and in the bubble of the pipeline
Range absolute(Range range, double value);               // an interval given as factors, times its middle

}  // namespace stoker
