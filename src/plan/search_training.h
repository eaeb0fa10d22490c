// Training and fine-tuning: the best layout of every node type and number of nodes, with bounds that leave out only
// what cannot win.
#pragma once

#include <memory>

#include "plan/layout_search.h"
#include "plan/option.h"

namespace stoker {

struct LayoutCache;  // by node type and number of nodes; valid for one workload as far as layouts depend on it
std::shared_ptr<LayoutCache> make_layout_cache();

struct TrainingSearchOptions {
    bool exhaustive = false;  // no bounds: for tests
    int top = 5;              // the best of so many groups must survive the bounds
    bool quick = false;       // what-if: only the groups near the optimum matter
    std::shared_ptr<LayoutCache> cache;
};
Result<Search> search_training(const Context& context, const TrainingSearchOptions& options);

// One node type and number of nodes, with the workload's pinned layout; the best that runs, or the nearest to running.
Result<Point> training_point(const Context& context, int choice, int nodes);

std::vector<int> node_counts(const WhereSpec& where, const NodeType& type);
double global_batch_of(const Workload& workload);  // sequences or images per step
// Why a layout takes another global batch than was asked for; empty where it does not.
std::string batch_text(const ParallelLayout& layout, double asked);
double training_examples(const Workload& workload);
std::string precision_text(Precision precision, const NodeChoice& choice);  // what the device has no units for
bool needs_megatron(const ParallelLayout& layout);                          // where no framework is named
std::string training_framework(const Workload& workload, const ParallelLayout& layout);

}  // namespace stoker
