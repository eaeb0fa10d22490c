// nvidia-smi -q -x. Elements: nvsmi_device_v*.dtd, https://docs.nvidia.com/deploy/nvidia-smi/ (QUERY OPTIONS). Names
// changed: volatile/double_bit/total became volatile/dram_uncorrectable and sram_uncorrectable, clocks_throttle_reasons
// became clocks_event_reasons.
#include <fmt/format.h>

#include <charconv>

#include "base/text.h"
#include "formats/xml_text.h"
#include "readings/smi_gpus.h"

namespace stoker {
namespace {

// formats/xml_text refuses a document type; nvidia-smi's only names a file. Blanks keep the places.
std::string without_doctype(std::string_view text) {
    std::string plain(text);
    const std::size_t begin = plain.find("<!DOCTYPE nvidia_smi_log");
    if (begin == std::string::npos) return plain;
    const std::size_t end = plain.find('>', begin);
    if (end == std::string::npos || contains(std::string_view(plain).substr(begin, end - begin), "[")) return plain;
    for (std::size_t i = begin; i <= end; ++i)
        if (plain[i] != '\n') plain[i] = ' ';
    return plain;
}

const XmlElement* find_path(const XmlElement* element, std::initializer_list<std::string_view> path) {
    for (const std::string_view name : path) {
        if (element == nullptr) return nullptr;
        element = element->find(name);
    }
    return element;
}
std::string xml_text_at(const XmlElement& element, std::initializer_list<std::string_view> path) {
    const XmlElement* found = find_path(&element, path);
    return found == nullptr ? std::string() : std::string(trim(found->text));
}
std::optional<double> xml_number_at(const XmlElement& element, std::initializer_list<std::string_view> path) {
    return leading_number(xml_text_at(element, path));
}

std::optional<double> uncorrected_of(const XmlElement& gpu) {
    const XmlElement* counts = find_path(&gpu, {"ecc_errors", "volatile"});
    if (counts == nullptr) return std::nullopt;
    if (const auto total = xml_number_at(*counts, {"double_bit", "total"})) return total;
    std::optional<double> sum;
    for (const XmlElement& each : counts->children)
        if (each.name == "dram_uncorrectable" || each.name.starts_with("sram_uncorrectable"))
            if (const auto count = leading_number(each.text)) sum = sum.value_or(0) + *count;
    return sum;
}

std::string slow_reasons(const XmlElement& gpu) {
    std::string found;
    for (const char* parent : {"clocks_event_reasons", "clocks_throttle_reasons"}) {
        const XmlElement* reasons = gpu.find(parent);
        if (reasons == nullptr) continue;
        for (const XmlElement& each : reasons->children)
            // Idle clocks and a set power limit are no fault.
            if (trim(each.text) == "Active" &&
                (contains(each.name, "hw_slowdown") || contains(each.name, "hw_thermal") ||
                 contains(each.name, "hw_power_brake") || contains(each.name, "sw_thermal")))
                found += (found.empty() ? "" : ", ") + each.name.substr(each.name.find("reason_") == std::string::npos
                                                                            ? 0
                                                                            : each.name.find("reason_") + 7);
    }
    return found;
}

SmiGpu gpu_of_element(const XmlElement& gpu, std::string_view text, std::size_t& from, std::size_t number) {
    SmiGpu found;
    const std::size_t at = text.find("<gpu id=", from);
    found.place = place_at(text, at == std::string_view::npos ? 0 : at);
    from = at == std::string_view::npos ? text.size() : at + 1;
    found.index = xml_text_at(gpu, {"minor_number"});
    if (!tool_number(found.index)) found.index = std::to_string(number);
    found.name = xml_text_at(gpu, {"product_name"});
    found.bus = xml_text_at(gpu, {"pci", "pci_bus_id"});
    found.memory_total_mib = xml_number_at(gpu, {"fb_memory_usage", "total"});
    found.memory_used_mib = xml_number_at(gpu, {"fb_memory_usage", "used"});
    found.utilisation = xml_number_at(gpu, {"utilization", "gpu_util"});
    found.temperature = xml_number_at(gpu, {"temperature", "gpu_temp"});
    found.ecc_uncorrected = uncorrected_of(gpu);
    found.pcie_width = xml_number_at(gpu, {"pci", "pci_gpu_link_info", "link_widths", "current_link_width"});
    found.pcie_width_most = xml_number_at(gpu, {"pci", "pci_gpu_link_info", "link_widths", "max_link_width"});
    const std::string mode = xml_text_at(gpu, {"mig_mode", "current_mig"}),
                      next = xml_text_at(gpu, {"mig_mode", "pending_mig"});
    if (mode == "Enabled" || mode == "Disabled") {
        found.mig = mode != next && (next == "Enabled" || next == "Disabled") ? mode + "*" : mode;
        found.mig_told = true;
    }
    if (const XmlElement* devices = gpu.find("mig_devices"))
        for (const XmlElement& each : devices->children) found.mig_devices += each.name == "mig_device" ? 1U : 0U;
    for (const char* name : {"remapped_row_failure", "remapped_row_pending"})
        if (xml_text_at(gpu, {"remapped_rows", name}) == "Yes")
            found.remapped = contains(name, "failure") ? "a row of its memory could not be remapped: remapping failed"
                                                       : "a bad row of its memory waits to be remapped";
    found.slowed = slow_reasons(gpu);
    for (const auto& value :
         {xml_text_at(gpu, {"fb_memory_usage", "total"}), found.name, xml_text_at(gpu, {"utilization", "gpu_util"})})
        if (contains(value, "GPU is lost") || contains(value, "Unknown Error") || contains(value, "ERR!") ||
            contains(value, "GPU requires reset"))
            found.broken = value;
    return found;
}

}  // namespace

Result<ToolReading> read_smi_xml(std::string_view text, const std::string& file, const ToolContext& context) {
    ReadingBuilder out(Tool::nvidia_smi_xml, file);
    const std::string plain = without_doctype(text);
    const auto root = parse_xml(plain);
    if (!root) {
        // "... at byte 1234: ..."
        std::size_t byte = plain.size();
        const std::string_view told = between(root.error().message(), "at byte ", ":");
        std::from_chars(told.data(), told.data() + told.size(), byte);
        return out.broken(place_at(plain, byte), std::string(root.error().message()),
                          "save the whole of it: nvidia-smi -q -x > nvidia-smi.xml");
    }
    if (root->name != "nvidia_smi_log")
        return out.broken({1, 1}, fmt::format("the first element is {}", printable(root->name, 40)),
                          "nvidia-smi -q -x");
    SmiSheet sheet;
    sheet.driver = trim(root->text_of("driver_version"));
    sheet.cuda = trim(root->text_of("cuda_version"));
    std::size_t from = 0;
    for (const XmlElement& each : root->children)
        if (each.name == "gpu") sheet.gpus.push_back(gpu_of_element(each, plain, from, sheet.gpus.size()));
    if (sheet.gpus.empty()) return no_gpu_seen(out);
    return judge_smi(out, sheet, context);
}

}  // namespace stoker
