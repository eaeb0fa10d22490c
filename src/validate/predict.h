// The figures that rows want, predicted. What a row wants and in which unit: data/validation/README.md.
#pragma once

#include <vector>

#include "plan/intervals.h"
#include "validate/job.h"
#include "validate/lines.h"

namespace stoker::validate {

// step_s, tokens_per_s_per_gpu, samples_per_s, tflops_per_gpu, mfu_pct or time_to_train_min; empty: the row has none.
std::string training_metric(const Row& row);
Line predict_training(const Row& row, Jobs& jobs, const Intervals& intervals);

// Seconds of a step as measured, whatever the row prints it in; nothing where its metric is no time.
std::optional<double> measured_step(const Row& row);

Line predict_memory(const Row& row, Jobs& jobs, const Intervals& intervals);

// All rows at once: the simulations run on all cores.
std::vector<Line> predict_inference(const Csv& csv, Hardware& hardware, Shapes& shapes, const Intervals& intervals);

// Fills in what was measured and whether the line counts.
void compare(RowKind kind, const Csv& csv, std::vector<Line>& lines);

}  // namespace stoker::validate
