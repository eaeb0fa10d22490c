// What the tools of GPU nodes, clusters and clouds print, read from saved files: annotated line by line, judged against
// what is published for a size, and concluded together in the order network, device, model. Pure: text in, values out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/health.h"
#include "base/result.h"
#include "catalog/catalog.h"

namespace stoker {

enum class Tool : std::uint8_t {
    unknown,
    nvidia_smi,        // the table of nvidia-smi, and what it prints when there is no driver
    nvidia_smi_query,  // nvidia-smi -q
    nvidia_smi_xml,    // nvidia-smi -q -x
    nvidia_smi_csv,    // nvidia-smi --query-gpu=... --format=csv
    smi_topology,      // nvidia-smi topo -m
    nccl_log,          // NCCL_DEBUG=INFO
    ib_bandwidth,      // ib_write_bw and its sisters
    nccl_tests,        // all_reduce_perf and its sisters
    kubernetes,        // kubectl get pods, nodes, events, resourcequotas -o json or -o yaml; kubectl describe pod
    dcgm_json,         // dcgmi diag -j
    dcgm_text,         // dcgmi diag
    azure_skus,        // az vm list-skus
    azure_usage,       // az vm list-usage
    azure_extension,   // az vm extension show
    azure_nic,         // az network nic show, nic list
    kernel_log,        // dmesg, journalctl -k: what NVIDIA's driver tells in it
    dcgm_metrics,      // the text of a DCGM exporter
    program_log,       // any program's output that ends with an error: what it said last (last_words.h)
    script,            // what started it all; the caller's, who can read scripts
};
constexpr std::array<std::pair<Tool, std::string_view>, 20> enum_names(Tool) {
    return {{{Tool::unknown, "unknown"},
             {Tool::nvidia_smi, "nvidia-smi"},
             {Tool::nvidia_smi_query, "nvidia-smi -q"},
             {Tool::nvidia_smi_xml, "nvidia-smi -q -x"},
             {Tool::nvidia_smi_csv, "nvidia-smi --query-gpu"},
             {Tool::smi_topology, "nvidia-smi topo -m"},
             {Tool::nccl_log, "NCCL log"},
             {Tool::ib_bandwidth, "ib_write_bw"},
             {Tool::nccl_tests, "nccl-tests"},
             {Tool::kubernetes, "kubectl get or describe"},
             {Tool::dcgm_json, "dcgmi diag -j"},
             {Tool::dcgm_text, "dcgmi diag"},
             {Tool::azure_skus, "az vm list-skus"},
             {Tool::azure_usage, "az vm list-usage"},
             {Tool::azure_extension, "az vm extension show"},
             {Tool::azure_nic, "az network nic show"},
             {Tool::kernel_log, "dmesg"},
             {Tool::dcgm_metrics, "DCGM exporter"},
             {Tool::program_log, "a program's log that ends with an error"},
             {Tool::script, "script"}}};
}
std::string_view word_of(Tool tool);
// Of all of them, for help and for the message about a file that is none.
std::string readable_tools();

// By its content alone: files are named as people like.
Tool recognise(std::string_view text);

// A line of the file that says something. skipped: it is told and not judged.
struct ToolNote {
    std::uint32_t line = 0, column = 0;  // from 1
    HealthLayer layer = HealthLayer::device;
    HealthVerdict verdict = HealthVerdict::skipped;
    std::string message, fix;  // fix: commands or lines to change; may be several lines
};
struct ToolFact {
    std::string name, value;  // "driver" "535.104.05"
};
// A CUDA that something of the file was built for; held against the driver of the other files.
struct CudaNeed {
    std::uint32_t line = 0, column = 0;
    std::string cuda, what;      // "12.4", "the image nvidia/cuda:12.4.1-base-ubuntu22.04"
    bool brings_compat = false;  // it brings libraries that let it run on older drivers of data-centre GPUs
};
struct ToolReading {
    Tool tool = Tool::unknown;
    std::string file;
    std::vector<ToolNote> notes;  // in the order of their lines
    std::vector<HealthCheck> checks;
    std::vector<ToolFact> facts;
    std::vector<CudaNeed> needs;
    std::string conclusion;  // of this file alone

    HealthVerdict verdict() const;
    const ToolFact* fact(std::string_view name) const;
};

struct KubeState;  // kube_objects.h
struct ToolContext {
    std::string size;                    // what the node should be; empty: nobody said
    const Catalog* catalog = nullptr;    // model, memory and links of the size; none: they are not judged
    const KubeState* cluster = nullptr;  // of the other files; read_tool_files fills it
};

// invalid, with file:line:column: it is not what `tool` prints, or it breaks off.
Result<ToolReading> read_tool_output(Tool tool, std::string_view text, const std::string& file,
                                     const ToolContext& context);

struct ToolFile {
    std::string name, text;
};
// Several files of one node, one run or one cluster. Pods are held against the nodes and events of all files. Problems
// of all files are reported together.
struct ToolReport {
    std::vector<ToolReading> readings;  // in the order given
    std::string conclusion;             // one line: the first layer at fault
    std::vector<std::string> open;      // what cannot be concluded from these files
    std::vector<std::string> together;  // what several of them say of one thing, and what it costs

    HealthVerdict verdict() const;
};
Result<ToolReport> read_tool_files(const std::vector<ToolFile>& files, ToolContext context);

}  // namespace stoker
