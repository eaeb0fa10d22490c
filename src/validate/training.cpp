#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "validate/predict.h"
#include "validate/stated.h"
#include "validate/unmeasured.h"

namespace stoker::validate {
namespace {

// MLPerf's RetinaNet logs its throughput per device, so that what is derived from it is off by the number of them: only
// the minutes can be used. It is called ssd from round v2.0 on.
bool logs_per_device(const Row& row) {
    const std::string_view name = row.text("model_name");
    if (equals_ignore_case(name, "retinanet")) return true;
    if (!equals_ignore_case(name, "ssd")) return false;
    return stated_number(row, "mlperf_training_round").value_or(0) >= 2;
}

// FLOP of one token as sources print it: dense matrices three times forward, attention in full.
double printed_flops_per_token(const TrainingSetup& s, double sequence, bool hardware) {
    const double gates = s.gate_matrices;
    const double ffn = s.experts > 1 ? s.active_experts * s.expert_ffn + s.shared_ffn : s.ffn;
    const double layer = s.hidden * s.hidden * (2 + 2 * s.kv_heads / s.heads) + gates * s.hidden * ffn;
    const double weights = s.layers * layer, attention = s.layers * s.hidden * sequence;
    const double logits = 6 * s.vocabulary * s.hidden;
    return hardware ? 8 * weights + 16 * attention + logits : 6 * weights + 12 * attention + logits;
}

// Samples of a run until its target, from the note "run trained to"; its unit depends on the benchmark. 0: not told.
double work_of(const Row& row) {
    const std::string name = lower(row.text("model_name"));
    const auto is = [&name](std::string_view part) { return name.find(part) != std::string::npos; };
    if (const auto samples = stated_number(row, "trained_samples")) return *samples;
    if (const auto steps = stated_number(row, "trained_steps")) return *steps * row.number("global_batch").value_or(0);
    const auto epochs = stated_number(row, "epochs");
    if (!epochs) return 0;
    if (is("resnet")) return *epochs * 1281167;  // ImageNet-1k
    if (is("unet3d")) return *epochs > 20000 ? *epochs : *epochs * 168;
    if (logs_per_device(row)) return *epochs * 1170301;        // OpenImages, the MLPerf subset
    if (is("ssd") || is("maskrcnn")) return *epochs * 117266;  // COCO 2017
    if (is("gpt3")) return *epochs / std::max(1.0, row.number("seq_len").value_or(2048));  // counted in tokens
    // Counted in samples; some rounds logged a plain 1, which counts nothing.
    const bool counted = *epochs >= row.number("global_batch").value_or(1);
    if (counted && (is("bert") || is("llama2") || is("diffusion"))) return *epochs;
    return 0;
}

}  // namespace

std::string training_metric(const Row& row) {
    if (says(row.text("derived"), "global_batch assumes no grad accumulation") &&
        row.given("measured_tokens_per_s_per_gpu"))
        return "tokens_per_s_per_gpu";
    if (logs_per_device(row) && row.given("measured_time_to_train_min")) return "time_to_train_min";
    if (row.given("measured_step_s")) return "step_s";
    const bool batch = row.given("global_batch");
    if (row.given("measured_tokens_per_s_per_gpu") && row.given("gpus") && row.given("seq_len") && batch)
        return "step_s";
    if (row.given("measured_samples_per_s") && batch) return "step_s";
    for (const auto& [column, metric] :
         {std::pair{"measured_tokens_per_s_per_gpu", "tokens_per_s_per_gpu"},
          std::pair{"measured_samples_per_s", "samples_per_s"}, std::pair{"measured_tflops_per_gpu", "tflops_per_gpu"},
          std::pair{"measured_mfu_pct", "mfu_pct"}, std::pair{"measured_time_to_train_min", "time_to_train_min"}})
        if (row.given(column)) return metric;
    return "";
}

Line predict_training(const Row& row, Jobs& jobs, const Intervals& intervals) {
    Line line{.row = row.index(),
              .id = std::string(row.text("id")),
              .group = std::string(row.text("source_group")),
              .metric = training_metric(row)};
    const auto refuse = [&line](std::string why) {
        line.refused = std::move(why);
        return line;
    };
    if (line.metric.empty()) {
        line.metric = "step_s";
        return refuse("missing:every measured column is blank");
    }
    const Job job = jobs.of(row, false);
    line.assumed = job.assumed;
    if (!row.invalid().empty()) return refuse(fmt::format("invalid:{}", row.invalid()));
    if (!job.refused.empty()) return refuse(job.refused);
    const double step = job.estimate.step_s, batch = job.global_batch;
    if (!(step > 0) || !std::isfinite(step)) return refuse("unsupported:no step time");
    const TrainingSetup& s = *job.setup;
    // Its own source says nothing of how near others are.
    const Nearness near = nearness(job.measured, line.group);
    line.distance = near.distance;
    const double growth = interval_growth_of_row(jobs.catalog(), MeasuredWork::training, near, line.group);
    line.growth = growth;
    Range own = wider_where_unmeasured(step_interval(s, job.layout, job.estimate, growth), jobs.catalog(),
                                       job.accelerator, "training");
    // Rates are the reciprocal of the step, and so is their interval.
    if (line.metric != "step_s" && line.metric != "time_to_train_min") own = {1 / own.high, 1, 1 / own.low};
    double figure = step;
    const bool hardware = stated(row, "hardware_flops");
    if (line.metric == "tokens_per_s_per_gpu") {
        figure = batch * job.sequence / (step * job.gpus);
    } else if (line.metric == "samples_per_s") {
        figure = batch / step;
    } else if (line.metric == "tflops_per_gpu" || line.metric == "mfu_pct") {
        if (!s.transformer) return refuse("unsupported:FLOP convention of an image network");
        const double flops = printed_flops_per_token(s, job.sequence, hardware);
        figure = batch * job.sequence * flops / (step * job.gpus * 1e12);
        if (line.metric == "mfu_pct") figure *= 100 * 1e12 / std::max(1.0, s.device.peak(s.precision));
        if (!hardware) own.low /= 1.35;  // conventions differ by so much, and the row does not tell its own
    } else if (line.metric == "time_to_train_min") {
        const double work = work_of(row);
        if (work <= 0) return refuse("missing:run trained to");
        figure = work / batch * step / 60;
    }
    if (!(figure > 0) || !std::isfinite(figure)) return refuse("unsupported:no figure");
    line.predict(figure, intervals.factors(line.metric, own, line.assumed.size(), growth));
    return line;
}

std::optional<double> measured_step(const Row& row) {
    if (training_metric(row) != "step_s") return std::nullopt;
    if (row.given("measured_step_s")) return row.measured("measured_step_s");
    const double batch = row.number("global_batch").value_or(0);
    if (const auto rate = row.measured("measured_tokens_per_s_per_gpu");
        rate && *rate > 0 && row.given("gpus") && row.given("seq_len"))
        return batch * row.number("seq_len").value_or(0) / (*rate * row.number("gpus").value_or(1));
    if (const auto rate = row.measured("measured_samples_per_s"); rate && *rate > 0) return batch / *rate;
    return std::nullopt;
}

}  // namespace stoker::validate
