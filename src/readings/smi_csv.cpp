// nvidia-smi --query-gpu=FIELDS --format=csv. Fields: nvidia-smi --help-query-gpu, https://docs.nvidia.com/deploy/
// nvidia-smi/. With noheader nobody can tell the columns, and the file is not recognised.
#include <fmt/format.h>

#include "base/text.h"
#include "readings/smi_gpus.h"

namespace stoker {
namespace {

std::vector<std::string_view> csv_cells(std::string_view line) {
    std::vector<std::string_view> cells;
    for (const std::string_view cell : split(line, ',')) cells.push_back(trim(cell));
    return cells;
}

// "memory.total [MiB]" is memory.total.
std::string_view field_name(std::string_view cell) {
    return trim(cell.substr(0, std::min(cell.find(" ["), cell.size())));
}

void take_field(SmiGpu& gpu, SmiSheet& sheet, std::string_view field, std::string_view value) {
    if (contains(value, "Unknown Error") || contains(value, "GPU is lost") || contains(value, "requires reset") ||
        value == "ERR!")
        gpu.broken = value;
    if (field == "index") gpu.index = value;
    if (field == "name" || field == "gpu_name") gpu.name = value;
    if (field == "pci.bus_id" || field == "gpu_bus_id") gpu.bus = value;
    if (field == "driver_version") sheet.driver = value;
    if (field == "memory.total") gpu.memory_total_mib = leading_number(value);
    if (field == "memory.used") gpu.memory_used_mib = leading_number(value);
    if (field == "utilization.gpu") gpu.utilisation = leading_number(value);
    if (field == "temperature.gpu") gpu.temperature = leading_number(value);
    if (field == "ecc.errors.uncorrected.volatile.total") gpu.ecc_uncorrected = leading_number(value);
    if (field == "pcie.link.width.current") gpu.pcie_width = leading_number(value);
    if (field == "pcie.link.width.max") gpu.pcie_width_most = leading_number(value);
    if (field == "mig.mode.current" && (value == "Enabled" || value == "Disabled")) gpu.mig = value;
    if ((field.ends_with("hw_slowdown") || field.ends_with("hw_thermal_slowdown") ||
         field.ends_with("sw_thermal_slowdown") || field.ends_with("hw_power_brake_slowdown")) &&
        value == "Active")
        gpu.slowed += (gpu.slowed.empty() ? "" : ", ") + std::string(field.substr(field.rfind('.') + 1));
    if (field == "remapped_rows.pending" && (value == "1" || value == "Yes"))
        gpu.remapped = "a bad row of its memory waits to be remapped";
    if (field == "remapped_rows.failure" && (value == "1" || value == "Yes"))
        gpu.remapped = "a row of its memory could not be remapped: remapping failed";
}

}  // namespace

bool is_smi_csv_header(std::string_view line) {
    int known = 0;
    bool dotted = false;
    for (const std::string_view cell : csv_cells(line)) {
        const std::string_view name = field_name(cell);
        for (const std::string_view prefix : {"memory.",
                                              "utilization.",
                                              "temperature.",
                                              "power.",
                                              "clocks.",
                                              "pcie.link",
                                              "ecc.",
                                              "mig.mode",
                                              "pci.",
                                              "fan.speed",
                                              "driver_version",
                                              "compute_mode",
                                              "persistence_mode",
                                              "retired_pages",
                                              "remapped_rows",
                                              "clocks_event_reasons",
                                              "clocks_throttle_reasons",
                                              "gpu_uuid",
                                              "uuid",
                                              "name",
                                              "index",
                                              "timestamp",
                                              "pstate",
                                              "count",
                                              "serial",
                                              "gpu_name",
                                              "gpu_bus_id",
                                              "display_",
                                              "vbios_version",
                                              "compute_cap"})
            if (name.starts_with(prefix)) {
                ++known;
                dotted = dotted || contains(name, ".") || name == "driver_version" || contains(name, "uuid");
                break;
            }
    }
    return dotted && known > 0 && static_cast<std::size_t>(known) == csv_cells(line).size();
}

Result<ToolReading> read_smi_csv(std::string_view text, const std::string& file, const ToolContext& context) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::nvidia_smi_csv, file);
    std::size_t at = 0;
    while (at < lines.size() && !is_smi_csv_header(lines[at])) ++at;
    if (at == lines.size())
        return out.broken({1, 1}, "no line with the names of the columns", "leave noheader out: --format=csv");
    const auto names = csv_cells(lines[at]);
    SmiSheet sheet;
    for (++at; at < lines.size(); ++at) {
        if (trim(lines[at]).empty()) continue;
        const auto cells = csv_cells(lines[at]);
        const ToolPlace place{static_cast<std::uint32_t>(at + 1), 1};
        if (cells.size() != names.size())
            return out.broken(place,
                              fmt::format("{} for {}", counted(cells.size(), "value"), counted(names.size(), "column")),
                              "the file breaks off, or holds something else: nvidia-smi --query-gpu=... --format=csv");
        SmiGpu& gpu = sheet.gpus.emplace_back();
        gpu.place = place;
        for (std::size_t i = 0; i < cells.size(); ++i) take_field(gpu, sheet, field_name(names[i]), cells[i]);
        if (gpu.index.empty()) gpu.index = std::to_string(sheet.gpus.size() - 1);
    }
    if (sheet.gpus.empty()) return out.broken({lines.last_line(), 1}, "no GPU follows the names of the columns", "");
    return judge_smi(out, sheet, context);
}

}  // namespace stoker
