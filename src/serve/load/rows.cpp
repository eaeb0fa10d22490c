#include "serve/load/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 36> kColumns = {"id",
                                                       "source",
                                                       "gpu_model",
                                                       "gpus",
                                                       "tp",
                                                       "pp",
                                                       "model",
                                                       "params_b",
                                                       "layers",
                                                       "hidden",
                                                       "heads",
                                                       "kv_heads",
                                                       "ffn",
                                                       "vocab",
                                                       "precision_weights",
                                                       "precision_kv",
                                                       "engine",
                                                       "input_len",
                                                       "output_len",
                                                       "batch_or_concurrency",
                                                       "scenario",
                                                       "measured_tokens_per_s_total",
                                                       "measured_out_tokens_per_s",
                                                       "measured_tokens_per_s_per_gpu",
                                                       "ttft_ms",
                                                       "tpot_ms",
                                                       "images_per_s",
                                                       "latency_ms_p50",
                                                       "latency_ms_p99",
                                                       "notes",
                                                       "samples_per_s",
                                                       "split_group",
                                                       "gpu_class",
                                                       "is_moe",
                                                       "experts",
                                                       "experts_per_token"};

bool is_of_the_run(std::string_view column) {
    return column.starts_with("measured_") || column.starts_with("latency_ms") || column == "ttft_ms" ||
           column == "tpot_ms" || column == "input_len" || column == "output_len" || column == "batch_or_concurrency" ||
           column == "scenario" || column == "images_per_s" || column == "samples_per_s";
}

std::string csv_cell(const std::string& cell) {
    if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
    return '"' + replace_all(cell, "\"", "\"\"") + '"';
}

}  // namespace

Result<std::string> inference_row(const LoadFigures& figures, const LoadPlan& load,
                                  const std::map<std::string, std::string>& cells) {
    std::map<std::string, std::string, std::less<>> row;
    for (const auto& [column, value] : cells) {
        if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end())
            return Error(ErrorKind::invalid, fmt::format("'{}' is no column of a row of inference", column), {},
                         "gpu_model, gpus, model, engine, precision_weights, layers, ...: data/validation/README.md");
        if (is_of_the_run(column))
            return Error(ErrorKind::invalid,
                         fmt::format("'{}' is what the run says, and not for you to write", column));
        row[column] = value;
    }
    if (figures.answered == 0)
        return Error(ErrorKind::unavailable, "nothing was answered, so there is no row to write");
    row.try_emplace("gpus", "1");
    row["input_len"] = fmt::format("{:.0f}", figures.prompt_tokens_mean);
    row["output_len"] = fmt::format("{:.0f}", figures.output_tokens_mean);
    row["measured_out_tokens_per_s"] = fmt::format("{:.6g}", figures.output_tokens_per_s);
    row["measured_tokens_per_s_total"] =
        fmt::format("{:.6g}", figures.output_tokens_per_s + figures.prompt_tokens_per_s);
    row["ttft_ms"] = fmt::format("{:.6g}", 1e3 * figures.ttft_s.mean);
    if (figures.tpot_s.count > 0) row["tpot_ms"] = fmt::format("{:.6g}", 1e3 * figures.tpot_s.mean);
    row["latency_ms_p50"] = fmt::format("{:.6g}", 1e3 * figures.e2e_s.p50);
    row["latency_ms_p99"] = fmt::format("{:.6g}", 1e3 * figures.e2e_s.p99);
    if (load.requests_per_second > 0) {
        row["scenario"] = "online_open_loop_rate";
        row["batch_or_concurrency"] = fmt::format("{:g}", load.requests_per_second);
    } else {
        row["scenario"] = "online_closed_loop_concurrency";
        row["batch_or_concurrency"] = fmt::format("{}", load.concurrency);
    }
    if (!row.contains("id")) row["id"] = "bench-serve";
    std::string head, line;
    for (const std::string_view column : kColumns) {
        head += (head.empty() ? "" : ",") + std::string(column);
        const auto cell = row.find(column);
        line += (column == kColumns.front() ? "" : ",") + (cell == row.end() ? std::string() : csv_cell(cell->second));
    }
    return head + "\n" + line + "\n";
}

}  // namespace stoker
