// The text of a DCGM exporter (curl :9400/metrics): one figure a line with the GPU in its labels. Names and units:
// NVIDIA/dcgm-exporter etc/default-counters.csv, 2026-08.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "readings/gpu_limits.h"

namespace stoker {

namespace {

std::string label_of(std::string_view labels, std::string_view name) {
    const std::string mark = std::string(name) + "=\"";
    for (std::size_t at = labels.find(mark); at != std::string_view::npos; at = labels.find(mark, at + 1)) {
        if (at > 0 && labels[at - 1] != ',' && labels[at - 1] != '{' && labels[at - 1] != ' ') continue;
        const std::size_t from = at + mark.size();
        return std::string(labels.substr(from, labels.find('"', from) - from));
    }
    return {};
}

}  // namespace

bool is_dcgm_metric(std::string_view line) {
    return line.starts_with("DCGM_FI_") && contains(line, "gpu=\"");
}

Result<ToolReading> read_dcgm_metrics(std::string_view text, const std::string& file, const ToolContext&) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::dcgm_metrics, file);
    struct Memory {
        double used = -1, free = -1;
        ToolPlace place;
    };
    std::map<std::string, Memory> memory;
    std::map<std::string, std::string> models;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        if (!is_dcgm_metric(line)) continue;
        const std::size_t open = line.find('{'), close = line.rfind('}');
        if (close == std::string_view::npos || close < open) continue;
        const std::string_view name = line.substr(0, open), labels = line.substr(open, close - open);
        const auto words = split_words(line.substr(close + 1));
        const auto value = words.empty() ? std::nullopt : tool_number(words[0]);
        if (!value) continue;
        const std::string host = label_of(labels, "Hostname");
        const std::string gpu = "GPU " + label_of(labels, "gpu") + (host.empty() ? "" : " of " + host);
        const ToolPlace place{static_cast<std::uint32_t>(i + 1), 1};
        models[gpu] = label_of(labels, "modelName");
        if (name == "DCGM_FI_DEV_GPU_TEMP") judge_limit(out, "gpu-temperature", gpu, *value, place);
        if (name == "DCGM_FI_DEV_FB_USED") memory[gpu].used = *value, memory[gpu].place = place;
        if (name == "DCGM_FI_DEV_FB_FREE") memory[gpu].free = *value;
        if (name == "DCGM_FI_DEV_XID_ERRORS" && *value >= 1) judge_xid(out, static_cast<int>(*value), gpu, place);
        const bool ecc = name == "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" || name == "DCGM_FI_DEV_ROW_REMAP_FAILURE" ||
                         name == "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS";
        if (ecc && *value > 0)
            out.check("gpu-faults", place,
                      {.verdict = name == "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" ? HealthVerdict::warn
                                                                                    : HealthVerdict::fail,
                       .message = fmt::format("{}: {} is {:g}", gpu, name, *value),
                       .fix = "drain the node and reset the GPU; hand the node back if it happens again",
                       .peer = gpu,
                       .measured = value,
                       .unit = "count"});
    }
    if (models.empty())
        return out.broken({1, 1}, "no figure of a GPU",
                          "save the whole of it: curl -s http://NODE:9400/metrics > dcgm.txt");
    for (const auto& [gpu, figures] : memory)
        if (figures.used >= 0 && figures.free >= 0 && figures.used + figures.free > 0)
            judge_limit(out, "gpu-memory-used", gpu, figures.used / (figures.used + figures.free), figures.place);
    out.fact("gpus", std::to_string(models.size()));
    if (!models.begin()->second.empty()) out.fact("model", cut(models.begin()->second, 80));
    if (out.checks() == 0)
        out.check("gpu-faults", {1, 1},
                  {.verdict = HealthVerdict::pass,
                   .message = fmt::format("{}: no Xid, no uncorrected memory error, no temperature near its limit",
                                          counted(models.size(), "GPU"))});
    return out.finish(counted(models.size(), "GPU") + " as a DCGM exporter tells of them");
}

}  // namespace stoker
