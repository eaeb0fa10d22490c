#include "readings/tool_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/utf16.h"
#include "readings/cloud_things.h"
#include "readings/cuda_driver.h"
#include "readings/kube_describe.h"
#include "readings/kube_objects.h"
#include "readings/tool_reader.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

constexpr std::size_t kHeadBytes = 256u << 10;  // what a tool writes to be recognised by stands in the first of a file

bool has_key(std::string_view text, std::string_view key) {
    return contains(text, fmt::format("\"{}\"", key));
}

Tool recognise_json(std::string_view text) {
    if (has_key(text, "test_categories") || contains(text, "\"DCGM GPU Diagnostic\"") ||
        contains(text, "\"DCGM Diagnostic\""))
        return Tool::dcgm_json;
    if (has_key(text, "apiVersion") && has_key(text, "kind")) return Tool::kubernetes;
    if (has_key(text, "test_info") && has_key(text, "results")) return Tool::ib_bandwidth;
    if (has_key(text, "average_bus_bandwidth") || (has_key(text, "nccl_version") && has_key(text, "nthreads")))
        return Tool::nccl_tests;
    if (has_key(text, "currentValue") && has_key(text, "limit")) return Tool::azure_usage;
    if (has_key(text, "resourceType") &&
        (has_key(text, "locations") || has_key(text, "locationInfo") || has_key(text, "restrictions")))
        return Tool::azure_skus;
    if (has_key(text, "locationInfo") || (has_key(text, "restrictions") && has_key(text, "locations")))
        return Tool::azure_skus;
    if (has_key(text, "provisioningState") &&
        (has_key(text, "typeHandlerVersion") || has_key(text, "instanceView") ||
         contains(text, "virtualMachines/extensions") || has_key(text, "typePropertiesType")))
        return Tool::azure_extension;
    if (has_key(text, "enableAcceleratedNetworking") && !has_key(text, "resources")) return Tool::azure_nic;
    if (has_key(text, "Status") && has_key(text, "Message") && text.size() < 20000) return Tool::azure_extension;
    return Tool::unknown;
}

// kubectl get -o yaml: keys in the order of the alphabet, so that the kind of a List stands behind its items.
bool is_kube_yaml(std::string_view text) {
    if (text.starts_with("---")) text = trim(text.substr(3));
    const auto has = [&](std::string_view key) {
        return text.starts_with(key) || contains(text, fmt::format("\n{}", key));
    };
    return has("apiVersion:") && (has("kind:") || has("items:")) &&
           (text.starts_with("apiVersion:") || text.starts_with("kind:") || text.starts_with("items:"));
}

bool is_matrix_header(std::string_view line) {
    const auto words = split_words(line);
    return !words.empty() && words[0] == "GPU0" &&
           (words.size() == 1 || words[1].starts_with("GPU") || words[1].starts_with("NIC") ||
            words[1].starts_with("mlx") || words[1] == "CPU");
}

// PowerShell's > writes UTF-16; others put a mark before UTF-8.
std::string plain_text(std::string_view text) {
    if (auto wide = utf8_from_utf16(text)) return *wide;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    return std::string(text);
}

const HealthCheck* first_of(const std::vector<ToolReading>& readings, HealthLayer layer, HealthVerdict verdict) {
    for (const ToolReading& reading : readings)
        for (const HealthCheck& check : reading.checks)
            if (check.layer == layer && check.verdict == verdict) return &check;
    return nullptr;
}

bool judged(const std::vector<ToolReading>& readings, HealthLayer layer) {
    return std::any_of(readings.begin(), readings.end(), [&](const ToolReading& reading) {
        return std::any_of(reading.checks.begin(), reading.checks.end(), [&](const HealthCheck& check) {
            return check.layer == layer && check.verdict != HealthVerdict::skipped;
        });
    });
}

// Measured, whether there was a line for it or not.
bool looked_at(const std::vector<ToolReading>& readings, HealthLayer layer) {
    return std::any_of(readings.begin(), readings.end(), [&](const ToolReading& reading) {
        return std::any_of(reading.checks.begin(), reading.checks.end(), [&](const HealthCheck& check) {
            return check.layer == layer && (check.verdict != HealthVerdict::skipped || check.measured);
        });
    });
}

// A figure that a slow network pulls down says nothing about the GPUs.
bool hangs_on_network(const HealthCheck& check) {
    return (check.name == "nccl-bandwidth" || check.name == "nccl-timeout") && check.verdict != HealthVerdict::pass;
}

// The network at fault: what hangs on it is not judged.
std::size_t withhold(std::vector<ToolReading>& readings) {
    std::size_t withheld = 0;
    for (ToolReading& reading : readings)
        for (HealthCheck& check : reading.checks) {
            if (check.layer == HealthLayer::network || !hangs_on_network(check) ||
                check.verdict == HealthVerdict::skipped)
                continue;
            for (ToolNote& note : reading.notes)
                if (note.message == check.detail) {
                    note.verdict = HealthVerdict::skipped;
                    note.message += "; not judged until the network is mended";
                    note.fix.clear();
                }
            check.verdict = HealthVerdict::skipped;
            check.detail += "; not judged until the network is mended";
            check.fix.clear();
            ++withheld;
        }
    return withheld;
}

bool on_cluster(const ToolReading& reading) {
    return reading.tool == Tool::kubernetes || reading.tool == Tool::azure_skus || reading.tool == Tool::azure_usage ||
           reading.tool == Tool::azure_extension;
}

// Driver and CUDA that differ between nodes.
void compare_nodes(std::vector<ToolReading>& readings) {
    std::map<std::string, std::string> drivers;
    for (const ToolReading& reading : readings)
        if (const ToolFact* driver = reading.fact("driver")) drivers.try_emplace(driver->value, reading.file);
    if (drivers.size() < 2) return;
    std::string all;
    for (const auto& [version, file] : drivers) all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", version, file);
    for (ToolReading& reading : readings) {
        const ToolFact* driver = reading.fact("driver");
        if (driver == nullptr || driver->value == drivers.begin()->first) continue;
        const std::string message = "the nodes have different drivers: " + cut(all, 300);
        const std::string fix = "one image for all nodes of a pool; NCCL and CUDA behave by the oldest of them";
        reading.notes.insert(reading.notes.begin(), {1, 1, HealthLayer::device, HealthVerdict::warn, message, fix});
        reading.checks.push_back({.layer = HealthLayer::device,
                                  .name = "driver-versions",
                                  .verdict = HealthVerdict::warn,
                                  .detail = message,
                                  .fix = fix});
        return;
    }
}

std::string one_line(std::string_view text) {
    return cut(replace_all(text, "\n", " "), 260);
}

void conclude(ToolReport& report) {
    auto& readings = report.readings;
    compare_nodes(readings);
    compare_drivers(readings);
    const HealthCheck* network = first_of(readings, HealthLayer::network, HealthVerdict::fail);
    const HealthCheck* device = first_of(readings, HealthLayer::device, HealthVerdict::fail);
    const HealthCheck* model = first_of(readings, HealthLayer::model, HealthVerdict::fail);
    const bool cluster = std::all_of(readings.begin(), readings.end(), on_cluster);
    if (network != nullptr) {
        const std::string what = one_line(network->detail);
        const bool figures = judged(readings, HealthLayer::device);
        const std::size_t withheld = withhold(readings);
        report.conclusion = "the network is at fault: " + what;
        if (withheld > 0 || figures) report.conclusion += "; GPU figures are not judged until that is mended";
        if (device != nullptr && device->verdict == HealthVerdict::fail)
            report.open.push_back("also found, and to be mended after it: " + one_line(device->detail));
        report.open.emplace_back("whether the model's code is at fault: mend the network, then measure the GPUs again");
    } else if (device != nullptr) {
        report.conclusion =
            cluster ? one_line(device->detail) : "the GPUs or their node are at fault: " + one_line(device->detail);
        if (!cluster && !looked_at(readings, HealthLayer::network))
            report.open.emplace_back(
                "whether the network is well: nothing here measures it (ib_write_bw, a log with NCCL_DEBUG=INFO)");
        if (model != nullptr) report.open.push_back("after that: " + one_line(model->detail));
        if (!cluster) report.open.emplace_back("whether the model's code is at fault: mend the node first");
    } else if (model != nullptr) {
        report.conclusion = "the program is at fault, as far as these files show: " + one_line(model->detail);
        if (!looked_at(readings, HealthLayer::network))
            report.open.emplace_back("whether the network is well: nothing here measures it (ib_write_bw)");
    } else {
        const HealthCheck* warned = nullptr;
        for (const auto& [layer, name] : enum_names(HealthLayer{}))
            if (warned == nullptr) warned = first_of(readings, layer, HealthVerdict::warn);
        if (warned != nullptr) {
            report.conclusion = "nothing failed; look at: " + one_line(warned->detail);
        } else if (report.verdict() == HealthVerdict::skipped) {
            report.conclusion = readings.size() == 1
                                    ? "nothing could be judged: " + one_line(readings.front().conclusion)
                                    : "nothing could be judged";
        } else {
            report.conclusion = readings.size() == 1
                                    ? "nothing failed: " + one_line(readings.front().conclusion)
                                    : fmt::format("nothing failed in {}", counted(readings.size(), "file"));
        }
        if (!cluster) {
            if (!looked_at(readings, HealthLayer::network))
                report.open.emplace_back(
                    "whether the network is well: nothing here measures it (ib_write_bw, a log with NCCL_DEBUG=INFO)");
            if (!looked_at(readings, HealthLayer::device))
                report.open.emplace_back(
                    "whether the GPUs are well: nothing here measures them (nvidia-smi -q -x, dcgmi diag -r 3)");
        }
    }
    for (const ToolReading& reading : readings)
        for (const ToolFact& fact : reading.facts)
            if (fact.name == "open" &&
                std::find(report.open.begin(), report.open.end(), fact.value) == report.open.end())
                report.open.push_back(fact.value);
    for (const ToolReading& reading : readings)
        for (const HealthCheck& check : reading.checks)
            if (check.verdict == HealthVerdict::skipped && check.measured && check.fix.starts_with(kSayTheSize)) {
                const std::string line = "figures that need a size to be held against: " + check.fix;
                if (std::find(report.open.begin(), report.open.end(), line) == report.open.end())
                    report.open.push_back(line);
            }
}

}  // namespace

std::string_view word_of(Tool tool) {
    return enum_names(tool)[static_cast<std::size_t>(tool)].second;
}

std::string readable_tools() {
    std::vector<std::string> names;
    for (const auto& [tool, name] : enum_names(Tool{}))
        if (tool != Tool::unknown) names.emplace_back(name);
    return join_or(names);
}

Tool recognise(std::string_view all) {
    const std::string head = plain_text(all.substr(0, kHeadBytes));
    const ToolLines lines(head);
    const std::string_view text = trim(head);
    if (text.starts_with('{') || text.starts_with('[')) {
        const Tool json = recognise_json(text);
        // Of logs, lines begin with [rank3] or [1,0]<stdout>.
        if (json != Tool::unknown) return json;
    }
    if (is_kube_yaml(text) || is_kube_describe(text)) return Tool::kubernetes;
    if (contains(text, "<nvidia_smi_log")) return Tool::nvidia_smi_xml;
    bool nccl = false, smi = false, trouble = false, xid = false, kernel = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        if (contains(line, "busbw") && contains(line, "algbw")) return Tool::nccl_tests;
        if (contains(line, "# Collective test") || (line.starts_with("# nThread ") && contains(line, "nGpus")))
            return Tool::nccl_tests;
        if (contains(line, "| Diagnostic ") && contains(line, "| Result")) return Tool::dcgm_text;
        if (contains(line, "BW peak[") || trim(line).ends_with("BW Test") || trim(line).ends_with("Latency Test"))
            return Tool::ib_bandwidth;
        if (contains(line, "Couldn't connect to") || contains(line, "Unable to find the Infiniband/RoCE device"))
            return Tool::ib_bandwidth;
        if (is_matrix_header(line)) return Tool::smi_topology;
        if (i < 20 && is_smi_csv_header(line)) return Tool::nvidia_smi_csv;
        if (is_dcgm_metric(line)) return Tool::dcgm_metrics;
        if (i < 20 && is_smi_query_head(line)) return Tool::nvidia_smi_query;
        kernel = kernel || is_kernel_line(line);
        xid = xid || is_xid_line(line);
        smi = smi || is_smi_banner(line);
        trouble = trouble || contains(line, "nvidia-smi: command not found") ||
                  contains(line, "nvidia-smi: not found") || contains(line, "NVIDIA-SMI has failed") ||
                  contains(line, "Failed to initialize NVML") || trim(line) == "No devices were found" ||
                  contains(line, "Unable to determine the device handle");
        nccl = nccl || contains(line, "NCCL INFO ") || contains(line, "NCCL WARN ") ||
               contains(line, "Watchdog caught collective operation timeout") || contains(line, "ncclSystemError") ||
               contains(line, "ncclUnhandledCudaError") || contains(line, "ncclRemoteError") ||
               contains(line, "ncclInternalError") || contains(line, "ncclInvalidUsage");
    }
    if (smi) return Tool::nvidia_smi;
    if (nccl) return Tool::nccl_log;
    if (xid) return Tool::kernel_log;
    if (trouble) return Tool::nvidia_smi;
    if (kernel) return Tool::kernel_log;
    // dcgmi writes warnings before its object.
    if (const std::size_t brace = text.find('{');
        brace != std::string_view::npos && contains(text.substr(brace), "\"DCGM "))
        return Tool::dcgm_json;
    return Tool::unknown;
}

HealthVerdict ToolReading::verdict() const {
    HealthVerdict worst = HealthVerdict::skipped;
    for (const HealthCheck& check : checks) worst = std::max(worst, check.verdict);
    return worst;
}

const ToolFact* ToolReading::fact(std::string_view name) const {
    for (const ToolFact& each : facts)
        if (each.name == name) return &each;
    return nullptr;
}

HealthVerdict ToolReport::verdict() const {
    HealthVerdict worst = HealthVerdict::skipped;
    for (const ToolReading& reading : readings) worst = std::max(worst, reading.verdict());
    return worst;
}

Result<ToolReading> read_tool_output(Tool tool, std::string_view text, const std::string& file,
                                     const ToolContext& context) {
    switch (tool) {
        case Tool::nvidia_smi: return read_smi_table(text, file, context);
        case Tool::nvidia_smi_query: return read_smi_query(text, file, context);
        case Tool::nvidia_smi_xml: return read_smi_xml(text, file, context);
        case Tool::nvidia_smi_csv: return read_smi_csv(text, file, context);
        case Tool::smi_topology: return read_smi_topology(text, file, context);
        case Tool::nccl_log: return read_nccl_log(text, file, context);
        case Tool::ib_bandwidth: return read_ib_bandwidth(text, file, context);
        case Tool::nccl_tests: return read_nccl_tests(text, file, context);
        case Tool::kubernetes: return read_kubernetes(text, file, context);
        case Tool::dcgm_json: return read_dcgm_json(text, file, context);
        case Tool::dcgm_text: return read_dcgm_text(text, file, context);
        case Tool::azure_skus: return read_azure_skus(text, file, context);
        case Tool::azure_usage: return read_azure_usage(text, file, context);
        case Tool::azure_extension: return read_azure_extension(text, file, context);
        case Tool::azure_nic: return read_azure_nic(text, file, context);
        case Tool::kernel_log: return read_kernel_log(text, file, context);
        case Tool::dcgm_metrics: return read_dcgm_metrics(text, file, context);
        case Tool::program_log: return read_program_log(text, file, context);
        case Tool::script:
        case Tool::unknown: break;
    }
    const std::string_view begin = trim(text.substr(0, 200));
    return Error(ErrorKind::invalid,
                 begin.empty() ? "the file is empty"
                               : fmt::format("not recognised: it begins with \"{}\"",
                                             printable(begin.substr(0, begin.find('\n')), 60)),
                 SourcePos{file, 1, 1},
                 read_cloud_list(text, file) ? "a list of what a cloud has: stoker doctor cloud --read " + file
                                             : "one of: " + readable_tools());
}

Result<ToolReport> read_tool_files(const std::vector<ToolFile>& files, ToolContext context) {
    ToolReport report;
    std::vector<Problem> problems;
    const auto keep = [&](const Error& error) {
        problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    };
    std::vector<std::pair<Tool, std::string>> texts;
    KubeState cluster;
    for (const ToolFile& file : files) {
        std::string text = plain_text(file.text);
        Tool tool = recognise(text);
        if (tool == Tool::unknown && ends_with_an_error(text)) tool = Tool::program_log;
        // Errors of these are told when the file is read for itself.
        if (tool == Tool::kubernetes) (void)read_kube_objects(text, file.name, cluster);
        texts.emplace_back(tool, std::move(text));
    }
    context.cluster = &cluster;
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto reading = read_tool_output(texts[i].first, texts[i].second, files[i].name, context);
        if (reading)
            report.readings.push_back(std::move(*reading));
        else
            keep(reading.error());
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    conclude(report);
    return report;
}

}  // namespace stoker
