// The only file that reads measured values for the report. It runs after everything has been predicted.
#include "base/text.h"
#include "validate/predict.h"

namespace stoker::validate {
namespace {

// The column of a figure; empty for step_s, which may have to be derived.
std::string_view column_of(std::string_view metric, RowKind kind) {
    struct Name {
        std::string_view metric, column;
    };
    static constexpr Name kTraining[] = {{"tokens_per_s_per_gpu", "measured_tokens_per_s_per_gpu"},
                                         {"samples_per_s", "measured_samples_per_s"},
                                         {"tflops_per_gpu", "measured_tflops_per_gpu"},
                                         {"mfu_pct", "measured_mfu_pct"},
                                         {"time_to_train_min", "measured_time_to_train_min"}};
    static constexpr Name kInference[] = {{"out_tokens_per_s", "measured_out_tokens_per_s"},
                                          {"tokens_per_s_total", "measured_tokens_per_s_total"}};
    if (kind == RowKind::training) {
        for (const Name& name : kTraining)
            if (name.metric == metric) return name.column;
        return {};
    }
    for (const Name& name : kInference)
        if (name.metric == metric) return name.column;
    return metric;  // ttft_ms, tpot_ms, latency_ms_p50, samples_per_s, peak_mem_gb
}

}  // namespace

void compare(RowKind kind, const Csv& csv, std::vector<Line>& lines) {
    for (Line& line : lines) {
        const Row row(csv, line.row);
        const std::string_view column = column_of(line.metric, kind);
        line.measured = column.empty() ? measured_step(row) : row.measured(column);
        line.counted = true;
        if (kind != RowKind::memory) continue;
        line.measured_outcome = row.measured_text("outcome");
        const std::string outcome = lower(line.measured_outcome);
        // A formula above the capacity is a figure; the wall that a failed run hit is not.
        line.counted = outcome == "fit" || outcome.starts_with("would-oom");
    }
}

}  // namespace stoker::validate
