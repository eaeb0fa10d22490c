// nvidia-smi -q, the form that ends up in tickets: "Key : Value" by indentation, a block for each GPU. The keys are
// those of the XML in words (docs.nvidia.com/deploy/nvidia-smi, QUERY OPTIONS); as driver 580 writes them.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "readings/smi_gpus.h"

namespace stoker {
namespace {

constexpr std::size_t kMostDepth = 8;

// The values of one block by their path: "FB Memory Usage/Total".
using QueryBlock = std::map<std::string, std::string, std::less<>>;

struct QueryPath {
    std::vector<std::pair<std::size_t, std::string>> keys;  // by indentation
    std::string with(std::size_t indent, std::string_view key) {
        while (!keys.empty() && keys.back().first >= indent) keys.pop_back();
        std::string path;
        for (const auto& each : keys) path += each.second + "/";
        path += key;
        if (keys.size() < kMostDepth) keys.emplace_back(indent, std::string(key));
        return path;
    }
};

std::string_view query_value(const QueryBlock& block, std::string_view path) {
    const auto found = block.find(path);
    return found == block.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<double> query_uncorrected(const QueryBlock& block) {
    std::optional<double> sum;
    for (const auto& [path, value] : block)
        if (path.starts_with("ECC Errors/Volatile/") && contains(path, "Uncorrectable"))
            if (const auto count = leading_number(value)) sum = sum.value_or(0) + *count;
    return sum ? sum : leading_number(query_value(block, "ECC Errors/Volatile/Double Bit/Total"));
}

SmiGpu gpu_of_block(const QueryBlock& block, SmiGpu found, std::size_t number) {
    const auto value = [&](std::string_view path) { return query_value(block, path); };
    found.index = value("Minor Number");
    if (!tool_number(found.index)) found.index = std::to_string(number);
    found.name = value("Product Name");
    found.memory_total_mib = leading_number(value("FB Memory Usage/Total"));
    found.memory_used_mib = leading_number(value("FB Memory Usage/Used"));
    found.utilisation = leading_number(value("Utilization/GPU"));
    if (!found.utilisation) found.utilisation = leading_number(value("Utilization/Gpu"));
    found.temperature = leading_number(value("Temperature/GPU Current Temp"));
    found.ecc_uncorrected = query_uncorrected(block);
    found.pcie_width = leading_number(value("PCI/GPU Link Info/Link Width/Current"));
    found.pcie_width_most = leading_number(value("PCI/GPU Link Info/Link Width/Max"));
    const std::string mode(value("MIG Mode/Current")), next(value("MIG Mode/Pending"));
    if (mode == "Enabled" || mode == "Disabled")
        found.mig = mode != next && (next == "Enabled" || next == "Disabled") ? mode + "*" : mode;
    if (value("Remapped Rows/Remapping Failure Occurred") == "Yes")
        found.remapped = "a row of its memory could not be remapped: remapping failed";
    else if (value("Remapped Rows/Pending") == "Yes")
        found.remapped = "a bad row of its memory waits to be remapped";
    for (const auto& [path, told] : block) {
        if (told != "Active" || !path.starts_with("Clocks ") || contains(path, "Counters")) continue;
        const std::string_view key = std::string_view(path).substr(path.rfind('/') + 1);
        // Idle clocks and a set power limit are no fault.
        if (key.starts_with("HW ") || key == "SW Thermal Slowdown")
            found.slowed += (found.slowed.empty() ? "" : ", ") + lower(key);
    }
    for (const std::string_view path : {"FB Memory Usage/Total", "Product Name", "Utilization/GPU"})
        for (const std::string_view word : {"GPU is lost", "Unknown Error", "ERR!", "GPU requires reset"})
            if (contains(value(path), word)) found.broken = value(path);
    return found;
}

}  // namespace

bool is_smi_query_head(std::string_view line) {
    return contains(line, "=NVSMI LOG=");
}

Result<ToolReading> read_smi_query(std::string_view text, const std::string& file, const ToolContext& context) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::nvidia_smi_query, file);
    SmiSheet sheet;
    QueryBlock block;
    QueryPath path;
    SmiGpu gpu;
    bool inside = false;
    const auto close = [&] {
        if (inside) sheet.gpus.push_back(gpu_of_block(block, std::move(gpu), sheet.gpus.size()));
        block.clear(), path.keys.clear();
        gpu = SmiGpu{};
    };
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = lines[i], told = trim(line);
        if (told.empty()) continue;
        const std::size_t indent = line.find_first_not_of(' ');
        const std::size_t colon = line.find(" : ");
        // "GPU 00000000:00:06.0" begins a block; bus addresses have no blank beside their points.
        if (indent == 0 && told.starts_with("GPU ") && colon == std::string_view::npos) {
            close();
            inside = true;
            gpu.place = {static_cast<std::uint32_t>(i + 1), 1};
            gpu.bus = trim(told.substr(4));
            continue;
        }
        const std::string_view key = trim(line.substr(0, colon));
        const std::string_view value =
            colon == std::string_view::npos ? std::string_view() : trim(line.substr(colon + 3));
        if (!inside) {
            if (key == "Driver Version") sheet.driver = value;
            if (key == "CUDA Version") sheet.cuda = value;
            continue;
        }
        const std::string at = path.with(indent, key);
        if (colon != std::string_view::npos) block.emplace(at, value);
    }
    close();
    if (sheet.gpus.empty() && sheet.driver.empty())
        return out.broken({1, 1}, "it breaks off before the first GPU", "save the whole of it: nvidia-smi -q > q.txt");
    if (sheet.gpus.empty()) return no_gpu_seen(out);
    if (sheet.gpus.back().name.empty())
        return out.broken({lines.last_line(), 1}, "it breaks off within a GPU",
                          "save the whole of it: nvidia-smi -q > q.txt");
    return judge_smi(out, sheet, context);
}

}  // namespace stoker
