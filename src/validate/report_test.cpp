// The predictions file is read by programs of other people: its layout must not move. Nor must a prediction, when what
// was measured changes.
#include "validate/report.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/text.h"
#include "validate/sample.h"

namespace stoker::validate {
namespace {

std::string predictions(const std::string& text) {
    const auto csv = Csv::read(text, "rows.csv");
    EXPECT_TRUE(csv.ok());
    const RowKind kind = *kind_of(*csv, "rows.csv");
    Hardware hardware(*Catalog::embedded());
    Shapes shapes(hardware.catalog());
    Jobs jobs(hardware, shapes);
    const Intervals intervals = *Intervals::embedded();
    std::vector<Line> lines;
    if (kind == RowKind::inference) lines = predict_inference(*csv, hardware, shapes, intervals);
    for (std::size_t i = 0; i < csv->rows() && kind != RowKind::inference; ++i)
        lines.push_back(kind == RowKind::training ? predict_training(Row(*csv, i), jobs, intervals)
                                                  : predict_memory(Row(*csv, i), jobs, intervals));
    return predictions_csv(lines);
}

// Every non-blank measured cell becomes 1, and every figure of a result in the notes 0.
std::vector<Cells> hidden(std::vector<Cells> rows) {
    static const std::regex results(
        "(GPU memory |HFU |MFU |avg latency |throughput |nvidia-smi reserved |after-load torch alloc |steps in "
        "~|activation ratio |90th pct latency |prompt eval |peak memory per GPU )[0-9.]+");
    for (Cells& cells : rows) {
        for (auto& [column, text] : cells)
            if (is_measured(column) && !text.empty()) text = "1";
        if (cells.contains("notes")) cells["notes"] = std::regex_replace(cells["notes"], results, "$010");
        if (cells.contains("mem_kind"))
            cells["mem_kind"] =
                std::regex_replace(cells["mem_kind"], std::regex("(optimizer |activations )[0-9.]+"), "$010");
    }
    return rows;
}

TEST(ReportTest, NothingThatWasMeasuredMovesAPrediction) {
    const std::vector<std::pair<RowKind, std::vector<Cells>>> files = {
        {RowKind::training,
         {training_row({{"notes", "grad_acc 4; GPU memory 50.2 GB; HFU 71.1; MFU 40.5"}}),
          training_row({{"id", "t-2"},
                        {"measured_step_s", ""},
                        {"measured_tokens_per_s_per_gpu", "2100"},
                        {"measured_mfu_pct", "44"}}),
          training_row({{"id", "t-3"},
                        {"measured_step_s", ""},
                        {"measured_tflops_per_gpu", "140"},
                        {"notes", "incl. full activation recompute (hardware FLOPs); steps in ~300"}}),
          training_row({{"id", "t-4"}, {"seq_len", ""}}),
          training_row({{"id", "t-5"},
                        {"model_name", "bert-large"},
                        {"arch", "bert"},
                        {"layers", "24"},
                        {"hidden", "1024"},
                        {"heads", "16"},
                        {"ffn", "4096"},
                        {"vocab", ""},
                        {"seq_len", "512"},
                        {"measured_step_s", ""},
                        {"measured_time_to_train_min", "20"},
                        {"notes", "run trained to samples_count=2550016"}})}},
        {RowKind::memory,
         {memory_row({{"notes", "nvidia-smi reserved 45237.0 MiB; after-load torch alloc 1646284288.0"}}),
          memory_row({{"id", "m-2"}, {"outcome", "OOM"}, {"peak_mem_gb", ""}, {"zero_stage", "0"}}),
          memory_row({{"id", "m-3"},
                      {"mem_kind", "GiB: params+optimizer 45.56 + activations 59.25 (read off)"},
                      {"outcome", "would-OOM (exceeds 80 GB)"}}),
          memory_row({{"id", "m-4"},
                      {"mem_kind", "activation memory as percent of TP baseline"},
                      {"outcome", "ratio"},
                      {"peak_mem_gb", ""},
                      {"notes", "activation ratio 66.84%"}})}},
        {RowKind::inference,
         {inference_row({{"latency_ms_p50", "900"}, {"notes", "throughput 61.41; one run per point"}}),
          inference_row({{"id", "i-2"},
                         {"scenario", "online_closed_loop_concurrency"},
                         {"ttft_ms", "300"},
                         {"tpot_ms", "12"},
                         {"measured_tokens_per_s_total", ""},
                         {"notes", "batch_size=16; attn_dp=1 moe_tp=1 moe_ep=1; gemm=fp8 moe=fp8"}}),
          inference_row({{"id", "i-3"},
                         {"scenario", "MLPerf SingleStream"},
                         {"model", "resnet50"},
                         {"layers", ""},
                         {"hidden", ""},
                         {"heads", ""},
                         {"latency_ms_p50", "1"},
                         {"notes", "system X, VALID; 90th pct latency 6.7597 ms;"}})}}};
    for (const auto& [kind, rows] : files) {
        const std::string before = predictions(sample_csv(kind, rows));
        EXPECT_EQ(before, predictions(sample_csv(kind, hidden(rows)))) << to_string(kind);
        EXPECT_NE(sample_csv(kind, rows), sample_csv(kind, hidden(rows)));
    }
}

TEST(ReportTest, TheLayoutIsAlwaysTheSevenColumns) {
    const std::string out = predictions(sample_csv(
        RowKind::memory,
        {memory_row(), memory_row({{"id", "a,\"b"}, {"model_name", "nobody"}, {"layers", ""}, {"hidden", ""}})}));
    const std::vector<std::string_view> lines = split_lines(out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0], "id,metric,predicted,low,high,refused_reason,outcome");
    EXPECT_TRUE(lines[1].starts_with("m-1,peak_mem_gb,"));
    EXPECT_TRUE(lines[1].ends_with(",,fit"));
    EXPECT_EQ(lines[2], "\"a,\"\"b\",peak_mem_gb,,,,unknown_model:nobody,fit");
}

TEST(ReportTest, TextIsWithinAHundredColumns) {
    Line line{.row = 0, .id = "T00001", .group = "a group whose name goes on and on and on and on", .metric = "step_s"};
    line.predict(2, {0.5, 1, 2});
    line.measured = 1;
    line.counted = true;
    const std::vector<Line> lines{line};
    const Score s = score(1, lines);
    for (const RowKind kind : {RowKind::training, RowKind::memory, RowKind::inference}) {
        const std::string text = report_text(kind, "rows.csv", s, Style{});
        for (const std::string_view each : split_lines(text)) EXPECT_LE(display_width(each), 100u) << each;
    }
    EXPECT_NE(report_json(RowKind::training, "rows.csv", s, lines).dump().find("median_of_group_medians"),
              std::string::npos);
}

}  // namespace
}  // namespace stoker::validate
