// The published run that a plan is most like, as measured and as the cost model predicts it, and how many lie near.
// Of data/published, a reduced copy of data/validation (tools/reduce_rows.py). Predictions are made when asked for.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "catalog/catalog.h"
#include "plan/plan.h"

namespace stoker::validate {

// What decides how much a published run says about a plan. A figure that is 0 is not known and counts nothing.
struct CaseFeatures {
    bool serving = false;
    int accelerator = -1;
    ModelKind kind = ModelKind::decoder;
    bool experts = false, adapter = false;
    bool narrow = false;  // adapters: on weights that are kept in four bits
    double parameters = 0, gpus = 0;
    double sequence = 0;  // image models: operations of one sample
    double tokens = 0;    // of a device's step, images of image models; serving: in flight
    double tensor = 0, pipeline = 0, output = 0;
    double room = 0;  // serving: the share of a device that weights leave to what is under way
    Precision precision = Precision::bf16;
    std::string framework;  // lower case; empty: not known
};

// How far two cases are from each other, in doublings: the root of the sum of squares of
//   log2 of the ratio of parameters, half of it for devices, sequence, tokens and output tokens, tensor and pipeline
//   degree; log2 of the ratio of what weights leave of a device, since an engine whose cache is full puts requests off
//   and begins them again; 1 for another size of the same device, 1.5 for another device of one architecture, 2.5 for
//   any other; 1 for another framework or engine; 1 for another precision, and for QLoRA against LoRA; 2 for adapters
//   against full training, experts against dense; 6 for another kind of network.
double distance(const CaseFeatures& a, const CaseFeatures& b, const Catalog& catalog);
// Up to here a run is near: one doubling of the model and another framework at the same time, or the like.
inline constexpr double kNear = 2.0;
// From here on nothing is called closest.
inline constexpr double kTooFar = 6.0;

// Read when first asked, and once. The catalogue outlives it. One caller at a time.
class PublishedRuns {
public:
    explicit PublishedRuns(const Catalog& catalog);
    ~PublishedRuns();
    // Of what was published of this kind of work, the run that a configuration is most like, with what sets it apart
    // and what sources about as near showed together with it.
    std::optional<PublishedRun> nearest(const PlannedCase& planned);
    PublishedEvidence evidence(const Plan& plan);

private:
    class RunTable;
    RunTable* table_for(const Workload& workload);  // null: nothing of this kind is published
    const Catalog& catalog_;
    std::unique_ptr<RunTable> training_, serving_;
};

// For PlanOptions::nearest_run.
std::function<std::optional<PublishedRun>(const PlannedCase&)> nearest_published(const Catalog& catalog);

}  // namespace stoker::validate
