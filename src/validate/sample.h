// Rows for the tests: made up, in the three layouts of published measurements.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "validate/row.h"

namespace stoker::validate {

using Cells = std::map<std::string, std::string>;

inline const std::vector<std::string>& sample_columns(RowKind kind) {
    static const std::vector<std::string> training = {"id",
                                                      "source",
                                                      "source_group",
                                                      "gpu_model",
                                                      "gpu_mem_gb",
                                                      "gpus",
                                                      "gpus_per_node",
                                                      "intra_node_link",
                                                      "inter_node_link",
                                                      "model_name",
                                                      "arch",
                                                      "params_b",
                                                      "layers",
                                                      "hidden",
                                                      "heads",
                                                      "kv_heads",
                                                      "ffn",
                                                      "vocab",
                                                      "seq_len",
                                                      "global_batch",
                                                      "micro_batch",
                                                      "tp",
                                                      "pp",
                                                      "vpp",
                                                      "dp",
                                                      "cp",
                                                      "ep",
                                                      "zero_stage",
                                                      "recompute",
                                                      "precision",
                                                      "framework",
                                                      "optimizer",
                                                      "measured_step_s",
                                                      "measured_tokens_per_s_per_gpu",
                                                      "measured_tflops_per_gpu",
                                                      "measured_mfu_pct",
                                                      "measured_time_to_train_min",
                                                      "measured_samples_per_s",
                                                      "derived",
                                                      "notes"};
    static const std::vector<std::string> memory = {
        "id",       "source",       "source_group", "gpu_model", "gpu_mem_gb", "gpus",      "model_name",
        "params_b", "layers",       "hidden",       "heads",     "kv_heads",   "ffn",       "vocab",
        "seq_len",  "global_batch", "micro_batch",  "tp",        "pp",         "vpp",       "cp",
        "ep",       "dp",           "zero_stage",   "recompute", "precision",  "framework", "peak_mem_gb",
        "mem_kind", "outcome",      "notes"};
    static const std::vector<std::string> inference = {"id",
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
    return kind == RowKind::training ? training : kind == RowKind::memory ? memory : inference;
}

inline std::string sample_csv(RowKind kind, const std::vector<Cells>& rows) {
    std::string out;
    for (const std::string& column : sample_columns(kind)) out += (out.empty() ? "" : ",") + column;
    for (const Cells& cells : rows) {
        std::string line;
        for (const std::string& column : sample_columns(kind)) {
            const auto cell = cells.find(column);
            if (!line.empty() || column != "id") line += ",";
            if (cell != cells.end()) line += "\"" + replace_all(cell->second, "\"", "\"\"") + "\"";
        }
        out += "\n" + line;
    }
    return out + "\n";
}

inline Cells with(Cells cells, const Cells& others) {
    for (const auto& [column, text] : others) cells[column] = text;
    return cells;
}

// 7 billion parameters over 16 A100 on two nodes; nothing is left blank that the cost model asks for.
inline Cells training_row(const Cells& others = {}) {
    return with({{"id", "t-1"},
                 {"source_group", "invented"},
                 {"gpu_model", "A100-80GB"},
                 {"gpu_mem_gb", "80"},
                 {"gpus", "16"},
                 {"gpus_per_node", "8"},
                 {"intra_node_link", "NVLink"},
                 {"inter_node_link", "8x HDR 200Gb/s"},
                 {"model_name", "own-7b"},
                 {"arch", "llama"},
                 {"layers", "32"},
                 {"hidden", "4096"},
                 {"heads", "32"},
                 {"ffn", "11008"},
                 {"vocab", "32000"},
                 {"seq_len", "2048"},
                 {"global_batch", "64"},
                 {"micro_batch", "2"},
                 {"tp", "2"},
                 {"pp", "1"},
                 {"dp", "8"},
                 {"zero_stage", "1"},
                 {"recompute", "full"},
                 {"precision", "bf16"},
                 {"framework", "Megatron-LM"},
                 {"measured_step_s", "3.5"}},
                others);
}

inline Cells memory_row(const Cells& others = {}) {
    return with({{"id", "m-1"},
                 {"source_group", "invented"},
                 {"gpu_model", "A100-80GB"},
                 {"gpu_mem_gb", "80"},
                 {"gpus", "8"},
                 {"model_name", "llama-own"},
                 {"layers", "32"},
                 {"hidden", "4096"},
                 {"heads", "32"},
                 {"ffn", "11008"},
                 {"vocab", "32000"},
                 {"seq_len", "2048"},
                 {"global_batch", "32"},
                 {"micro_batch", "1"},
                 {"tp", "1"},
                 {"pp", "1"},
                 {"dp", "8"},
                 {"zero_stage", "3"},
                 {"recompute", "full"},
                 {"precision", "bf16"},
                 {"framework", "PyTorch FSDP"},
                 {"peak_mem_gb", "21"},
                 {"mem_kind", "peak torch allocated (1e9 bytes)"},
                 {"outcome", "fit"}},
                others);
}

inline Cells inference_row(const Cells& others = {}) {
    return with({{"id", "i-1"},
                 {"split_group", "invented"},
                 {"gpu_model", "H100 80GB HBM3"},
                 {"gpus", "1"},
                 {"tp", "1"},
                 {"pp", "1"},
                 {"model", "own-7b"},
                 {"layers", "32"},
                 {"hidden", "4096"},
                 {"heads", "32"},
                 {"kv_heads", "8"},
                 {"ffn", "14336"},
                 {"vocab", "32000"},
                 {"precision_weights", "FP16"},
                 {"engine", "vLLM 0.9"},
                 {"input_len", "512"},
                 {"output_len", "128"},
                 {"batch_or_concurrency", "16"},
                 {"scenario", "static_batch"},
                 {"measured_tokens_per_s_total", "5000"},
                 {"is_moe", "0"}},
                others);
}

}  // namespace stoker::validate
