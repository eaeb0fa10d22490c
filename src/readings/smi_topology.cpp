// nvidia-smi topo -m. The words of the matrix (NV#, PIX, PXB, PHB, NODE, SYS) are explained in the legend that it
// prints itself; https://docs.nvidia.com/deploy/nvidia-smi/ (topo).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "readings/tool_reader.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

bool is_link_word(std::string_view word) {
    for (const std::string_view known : {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PIX/PXB"})
        if (word == known) return true;
    return word.starts_with("NV") && tool_number(word.substr(2));
}
bool is_gpu_name(std::string_view word) {
    return word.starts_with("GPU") && word.size() > 3 && tool_number(word.substr(3));
}
// Drivers before 520 name the device itself where later ones write NIC0.
bool is_nic_name(std::string_view word) {
    return (word.starts_with("NIC") && word.size() > 3 && tool_number(word.substr(3))) || word.starts_with("mlx") ||
           word.starts_with("rocep") || word.starts_with("ibp") || word.starts_with("bnxt_re");
}

struct TopologyRow {
    ToolPlace place;
    std::string name;
    std::vector<std::string> links;
};
struct Topology {
    ToolPlace place;
    std::vector<std::string> columns;
    std::vector<TopologyRow> rows;
    std::map<std::string, std::string, std::less<>> devices;  // NIC0: mlx5_0
};

struct GpuLinks {
    std::map<std::string, std::size_t, std::less<>> words;  // NV18: 28
    std::string odd;                                        // the first pair that is not like most
    ToolPlace odd_place;
    std::size_t pairs = 0, nvlinked = 0;
    bool bridges = true;  // each GPU has at most one NVLink partner
};

GpuLinks links_of_gpus(const Topology& topology) {
    GpuLinks found;
    for (std::size_t row = 0; row < topology.rows.size(); ++row) {
        if (!is_gpu_name(topology.rows[row].name)) continue;
        std::size_t partners = 0;
        for (std::size_t i = 0; i < topology.columns.size(); ++i) {
            if (!is_gpu_name(topology.columns[i]) || topology.rows[row].links[i] == "X") continue;
            const std::string& word = topology.rows[row].links[i];
            ++found.words[word];
            ++found.pairs;
            if (word.starts_with("NV")) {
                ++found.nvlinked;
                ++partners;
            }
        }
        found.bridges = found.bridges && partners <= 1;
    }
    std::string usual;
    for (const auto& [word, count] : found.words)
        // Of as many, the one with more links is what was built.
        if (usual.empty() || count > found.words[usual] || (count == found.words[usual] && word.starts_with("NV")))
            usual = word;
    for (const TopologyRow& row : topology.rows)
        for (std::size_t i = 0; i < topology.columns.size() && found.odd.empty(); ++i)
            if (is_gpu_name(row.name) && is_gpu_name(topology.columns[i]) && row.links[i] != "X" &&
                row.links[i] != usual) {
                found.odd = fmt::format("{}-{} is {}, most are {}", row.name, topology.columns[i], row.links[i], usual);
                found.odd_place = row.place;
            }
    return found;
}

void judge_gpu_links(ReadingBuilder& out, const Topology& topology, const ToolSize& size) {
    const GpuLinks links = links_of_gpus(topology);
    if (links.pairs == 0) return;
    std::string seen;
    for (const auto& [word, count] : links.words)
        seen += fmt::format("{}{} of {} are {}", seen.empty() ? "" : ", ", count / 2, links.pairs / 2, word);
    const bool all = links.nvlinked == links.pairs, even = links.words.size() == 1;
    ToolFinding finding{.message = "pairs of GPUs: " + seen};
    ToolPlace place = topology.place;
    if (all && even) {
        finding.verdict = HealthVerdict::pass;
    } else if (size.has_nvlink() || (links.nvlinked > 0 && !links.bridges)) {
        finding.verdict = HealthVerdict::fail;
        place = links.odd.empty() ? place : links.odd_place;
        finding.message = links.odd.empty() ? fmt::format("no pair of GPUs has NVLink; {} has it", size.name)
                                            : "NVLink is not whole: " + links.odd;
        finding.fix =
            "nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager (of the driver's version); then restart the "
            "node";
    } else if (links.nvlinked > 0) {
        finding.verdict = HealthVerdict::pass;
        finding.message += ": bridged pairs; keep tensor parallel groups within a pair";
    } else {
        finding.message += ": no NVLink, as GPUs on PCIe cards have it; what the node should have was not said";
        finding.fix = size.known() ? "" : say_the_size();
    }
    out.check("gpu-links", place, std::move(finding));
}

void judge_nic_links(ReadingBuilder& out, const Topology& topology, const ToolSize& size) {
    std::size_t nics = 0;
    for (const std::string& column : topology.columns) nics += is_nic_name(column) ? 1U : 0U;
    if (nics == 0) {
        if (size.has_infiniband())
            out.check(
                "nic-count", topology.place,
                {.layer = HealthLayer::network,
                 .verdict = HealthVerdict::fail,
                 .message = fmt::format("no network adapter is seen; {} has {:g} InfiniBand ports", size.name,
                                        size.ib_ports.value_or(1)),
                 .fix = "ibstat; lspci | grep -i mellanox; without the OFED driver there are none: use an -hpc image",
                 .measured = 0,
                 .expected = size.ib_ports,
                 .unit = "count",
                 .source = size.ports_source});
        return;
    }
    if (size.ib_ports) {
        const bool enough = static_cast<double>(nics) >= *size.ib_ports;
        out.check("nic-count", topology.place,
                  {.layer = HealthLayer::network,
                   .verdict = enough ? HealthVerdict::pass : HealthVerdict::fail,
                   .message = fmt::format("{}; {} has {:g} InfiniBand ports", counted(nics, "network adapter"),
                                          size.name, *size.ib_ports),
                   .fix = enough ? "" : "ibstat; dmesg | grep mlx5: a port that is missing takes a restart",
                   .measured = static_cast<double>(nics),
                   .expected = size.ib_ports,
                   .unit = "count",
                   .source = size.ports_source});
    }
    std::string far;
    ToolPlace place = topology.place;
    std::size_t distant = 0, gpus = 0;
    for (const TopologyRow& row : topology.rows) {
        if (!is_gpu_name(row.name)) continue;
        ++gpus;
        bool near = false;
        std::string best;
        for (std::size_t i = 0; i < topology.columns.size(); ++i) {
            if (!is_nic_name(topology.columns[i])) continue;
            near = near || row.links[i] == "PIX" || row.links[i] == "PXB";
            if (best.empty() || row.links[i] != "SYS") best = row.links[i];
        }
        if (near) continue;
        if (distant++ == 0) {
            far = fmt::format("{} reaches its nearest adapter by {} only", row.name, best);
            place = row.place;
        }
    }
    if (gpus == 0) return;
    const bool azure = size.node != nullptr && size.node->cloud == "azure";
    ToolFinding finding{.layer = HealthLayer::network,
                        .verdict = distant == 0 ? HealthVerdict::pass : HealthVerdict::warn,
                        .message = distant == 0 ? "each GPU has an adapter behind the same PCIe switch (PIX or PXB)"
                                                : fmt::format("{} ({} of {} GPUs): GPUDirect RDMA crosses the "
                                                              "processor's host bridge",
                                                              far, distant, gpus)};
    if (distant > 0) {
        finding.fix =
            "NCCL_TOPO_FILE with the real tree (Azure ND: /opt/microsoft/ndv5/topo.xml or ndv4/topo.xml); on a "
            "machine of your own: an adapter in a slot of the GPU's switch";
        // The guest of a VM sees a PCI tree that is made up; the host's is in NCCL_TOPO_FILE.
        if (azure) {
            finding.verdict = HealthVerdict::skipped;
            finding.message += "; in an Azure VM the tree is virtual, so that this says nothing about the hardware";
        }
    }
    out.check("nic-links", place, std::move(finding));
}

}  // namespace

Result<ToolReading> read_smi_topology(std::string_view text, const std::string& file, const ToolContext& context) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::smi_topology, file);
    const std::string remedy = "save the whole of it: nvidia-smi topo -m > topo.txt";
    Topology topology;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        const auto words = split_words(lines[at]);
        if (words.empty()) continue;
        const ToolPlace place{static_cast<std::uint32_t>(at + 1), 1};
        if (topology.columns.empty()) {
            if (!is_gpu_name(words[0]) || (words.size() > 1 && is_link_word(words[1]))) continue;
            topology.place = place;
            for (const std::string_view word : words) {
                if (!is_gpu_name(word) && !is_nic_name(word)) break;  // CPU Affinity
                topology.columns.emplace_back(word);
            }
            continue;
        }
        if (words[0].ends_with(':') && words.size() == 2 && is_nic_name(words[0].substr(0, words[0].size() - 1))) {
            out.fact(std::string(words[0].substr(0, words[0].size() - 1)), std::string(words[1]));
            continue;
        }
        if (!is_gpu_name(words[0]) && !is_nic_name(words[0])) continue;
        TopologyRow row{place, std::string(words[0]), {}};
        for (std::size_t i = 1; i < words.size() && row.links.size() < topology.columns.size(); ++i) {
            if (!is_link_word(words[i])) break;
            row.links.emplace_back(words[i]);
        }
        if (row.links.size() != topology.columns.size())
            return out.broken(
                place,
                fmt::format("the row of {} has {} of {} columns", row.name, row.links.size(), topology.columns.size()),
                remedy);
        topology.rows.push_back(std::move(row));
    }
    if (topology.columns.empty()) return out.broken({1, 1}, "no line with the names GPU0, GPU1, ...", remedy);
    if (topology.rows.size() < topology.columns.size())
        return out.broken({lines.last_line(), 1},
                          fmt::format("{} of {} rows: it breaks off", topology.rows.size(), topology.columns.size()),
                          remedy);
    const ToolSize size = tool_size(context);
    judge_gpu_links(out, topology, size);
    judge_nic_links(out, topology, size);
    std::size_t gpus = 0;
    for (const std::string& column : topology.columns) gpus += is_gpu_name(column) ? 1U : 0U;
    out.fact("gpus", std::to_string(gpus));
    if (gpus == 1) out.tell(topology.place, HealthLayer::device, "one GPU: no link between GPUs to look at");
    return out.finish(
        fmt::format("{}, {}", counted(gpus, "GPU"), counted(topology.columns.size() - gpus, "network adapter")));
}

}  // namespace stoker
