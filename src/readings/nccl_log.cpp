// What NCCL writes with NCCL_DEBUG=INFO, alone or among a program's own lines. Format: NVIDIA/nccl src/debug.cc
// ("host:pid:tid [device] NCCL INFO text"); the lines that are read: src/init.cc, src/transport.cc,
// src/transport/net.cc and net_ib.cc, src/misc/param.cc, src/bootstrap.cc, src/graph/paths.cc.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "readings/cuda_driver.h"
#include "readings/nccl_messages.h"
#include "readings/tool_reader.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

struct Seen {
    std::size_t count = 0;
    ToolPlace place;
    void at(ToolPlace where) {
        if (count++ == 0) place = where;
    }
};

struct NcclLine {
    ToolPlace place;
    std::string_view host, text;  // after "NCCL INFO "
};

// The host of "host:pid:tid [0] NCCL ..."; launchers write ranks and times before it.
std::string_view host_before(std::string_view prefix) {
    for (const std::string_view word : split_words(prefix)) {
        const std::size_t last = word.rfind(':');
        if (last == std::string_view::npos || last == 0) continue;
        const std::size_t middle = word.rfind(':', last - 1);
        if (middle == std::string_view::npos || middle == 0) continue;
        const auto digits = [](std::string_view part) {
            return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        };
        if (!digits(word.substr(last + 1)) || !digits(word.substr(middle + 1, last - middle - 1))) continue;
        std::string_view host = word.substr(0, middle);
        // mpirun: "[1,0]<stdout>:node1"; a time "10:20:30" has no letter.
        if (const std::size_t mark = host.rfind('>'); mark != std::string_view::npos) host.remove_prefix(mark + 1);
        if (!host.empty() && host.front() == ':') host.remove_prefix(1);
        if (host.find_first_not_of("0123456789") == std::string_view::npos) continue;
        return host;
    }
    return {};
}

class NcclLogReader {
public:
    NcclLogReader(std::string_view text, const std::string& file, const ToolContext& context)
        : lines_(text), out_(Tool::nccl_log, file), size_(tool_size(context)) {}

    Result<ToolReading> read() {
        for (std::size_t at = 0; at < lines_.size(); ++at) line(at);
        if (lines_read_ == 0)
            return out_.broken({1, 1}, "no line of NCCL is in it",
                               "run with NCCL_DEBUG=INFO and save stderr and stdout");
        judge_transport();
        judge_gpu_direct();
        judge_ports();
        judge_peers();
        judge_versions();
        judge_interfaces();
        judge_timeouts();
        for (const std::string& host : hosts_) out_.fact("host", host);
        if (ranks_ > 0) out_.fact("ranks", std::to_string(ranks_));
        return out_.finish(sentence());
    }

private:
    bool rdma_expected() const { return size_.has_infiniband(); }

    void line(std::size_t at) {
        const std::string_view text = lines_[at];
        const ToolPlace place{static_cast<std::uint32_t>(at + 1), 1};
        const std::size_t info = text.find("NCCL INFO "), warn = text.find("NCCL WARN");
        if (info != std::string_view::npos || warn != std::string_view::npos) {
            ++lines_read_;
            const std::size_t mark = std::min(info, warn);
            const std::string_view host = host_before(text.substr(0, mark));
            if (!host.empty() && hosts_.size() < 4096) hosts_.insert(std::string(host));
            if (info != std::string_view::npos) return inform({place, host, trim(text.substr(info + 10))});
        }
        if (const NcclMessage* message = nccl_message(text)) {
            ++lines_read_;
            if (message->name == "nccl-timeout") return timed_out(text, place);
            out_.repeated(std::string(message->name), std::string(message->text) + std::string(message->what), place,
                          {.layer = message->layer,
                           .verdict = message->verdict,
                           .message = fmt::format(
                               "{}: \"{}\"", message->what,
                               printable(trim(warn != std::string_view::npos ? text.substr(warn) : text), 160)),
                           .fix = std::string(message->fix)});
        } else if (warn != std::string_view::npos) {
            const std::string said = printable(trim(text.substr(warn + 9)), 160);
            if (!said.empty())
                out_.repeated("nccl-warnings", said.substr(0, 40), place,
                              {.verdict = HealthVerdict::warn, .message = "NCCL warns: " + said});
        }
    }

    void inform(const NcclLine& line) {
        const std::string_view text = line.text;
        if (contains(text, " via ")) return channel(line);
        if (text.starts_with("NCCL version "))
            versions_[std::string(text.substr(13, text.find(' ', 13) - 13))].at(line.place);
        if (text.starts_with("cudaDriverVersion "))
            driver_runs_ = std::max(driver_runs_, static_cast<int>(leading_number(text.substr(18)).value_or(0)));
        if (text.starts_with("Using network ")) {
            const std::string name(trim(text.substr(14)));
            networks_[name].at(line.place);
        }
        if (contains(text, "NET/IB : No device found")) no_ib_.at(line.place);
        if (contains(text, "NET/IB : Using [")) ports(line);
        if (contains(text, "GPU Direct RDMA Disabled") || contains(text, "GPU Direct RDMA (nvidia-peermem) Disabled"))
            gdr_off_.at(line.place);
        if (contains(text, "set by environment to")) environment(line);
        if (contains(text, "Bootstrap") && contains(text, "Using ")) {
            const std::string_view interface = trim(between(text, "Using ", ":"));
            if (!interface.empty()) {
                // Older versions: "Bootstrap : Using [0]eth0:10.0.0.4<0>"
                const std::size_t mark = interface.find(']');
                const std::string name(mark == std::string_view::npos ? interface : interface.substr(mark + 1));
                if (interfaces_.size() < 64) interfaces_[name].at(line.place);
            }
        }
        if (contains(text, "P2P is disabled between connected GPUs")) p2p_off_.at(line.place);
        // "comm 0x... rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0" since 2.20.
        if (contains(text, "nNodes "))
            nodes_ = std::max(nodes_, leading_number(between(text, "nNodes ", " ")).value_or(0));
        if (contains(text, "nranks ")) {
            if (const auto ranks = leading_number(between(text, "nranks ", " ")))
                ranks_ = std::max(ranks_, static_cast<std::size_t>(std::clamp(*ranks, 0.0, 1e6)));
            if (contains(text, "Init COMPLETE")) complete_.at(line.place);
        }
        if (const NcclMessage* message = nccl_message(text); message != nullptr && message->name == "nccl-errors")
            out_.repeated("nccl-errors", std::string(message->what), line.place,
                          {.layer = message->layer,
                           .verdict = HealthVerdict::warn,
                           .message = fmt::format("{}: \"{}\"", message->what, printable(text, 160)),
                           .fix = std::string(message->fix)});
    }

    // "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA"
    void channel(const NcclLine& line) {
        const std::string_view way = trim(between(line.text, " via ", ""));
        if (way.starts_with("NET/Socket")) {
            socket_.at(line.place);
        } else if (way.starts_with("NET/IB") || way.starts_with("NET/IBext") || way.starts_with("NET/AWS") ||
                   way.starts_with("NET/")) {
            (contains(way, "GDRDMA") ? gdr_ : ib_).at(line.place);
        } else if (way.starts_with("P2P")) {
            peer_.at(line.place);
        } else if (way.starts_with("SHM")) {
            shared_.at(line.place);
        }
    }

    // "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.4<0>"
    void ports(const NcclLine& line) {
        std::size_t count = 0, roce = 0;
        for (std::string_view word : split_words(between(line.text, "Using ", ";"))) {
            if (!contains(word, ":") || !contains(word, "/")) continue;
            ++count;
            roce += word.ends_with("/RoCE") ? 1U : 0U;
        }
        if (count == 0) return;
        ports_.at(line.place);
        if (ports_.count == 1 || count < least_ports_) {
            least_ports_ = count;
            ports_.place = line.place;
        }
        roce_ports_ = std::max(roce_ports_, roce);
    }

    void environment(const NcclLine& line) {
        const std::string name(line.text.substr(0, line.text.find(' ')));
        std::string value(trim(between(line.text, "set by environment to", "")));
        while (value.ends_with('.')) value.pop_back();
        if (value.starts_with(':')) value = trim(std::string_view(value).substr(1));
        if (environment_.size() < 256) environment_.try_emplace(name, std::pair(value, line.place));
        out_.fact(name, printable(value, 80));
        const auto off = [&](std::string_view variable, HealthLayer layer, bool bad, std::string_view what) {
            if (name != variable || value == "0") return;
            out_.repeated("nccl-settings", name, line.place,
                          {.layer = layer,
                           .verdict = bad ? HealthVerdict::fail : HealthVerdict::warn,
                           .message = fmt::format("{}={}: {}", name, printable(value, 40), what),
                           .fix = "unset " + name + (name == "NCCL_IB_DISABLE" ? " on nodes with InfiniBand" : "")});
        };
        off("NCCL_IB_DISABLE", HealthLayer::network, rdma_expected(),
            "InfiniBand is switched off, TCP is taken between nodes");
        off("NCCL_P2P_DISABLE", HealthLayer::device, size_.has_nvlink(),
            "GPUs of one node do not talk over NVLink or PCIe, but through host memory");
        off("NCCL_SHM_DISABLE", HealthLayer::device, false,
            "what cannot go from GPU to GPU takes the network within the node");
        if (name == "NCCL_NET_GDR_LEVEL" && (value == "0" || value == "LOC"))
            out_.repeated("nccl-settings", name, line.place,
                          {.layer = HealthLayer::network,
                           .verdict = HealthVerdict::warn,
                           .message = fmt::format("{}={}: GPUDirect RDMA is switched off", name, value),
                           .fix = "unset NCCL_NET_GDR_LEVEL, or NCCL_NET_GDR_LEVEL=PHB"});
        if (name == "NCCL_SOCKET_IFNAME" && (value == "lo" || value.starts_with("docker")))
            out_.repeated(
                "nccl-settings", name, line.place,
                {.layer = HealthLayer::network,
                 .verdict = HealthVerdict::fail,
                 .message = fmt::format("NCCL_SOCKET_IFNAME={}: other nodes cannot reach that interface", value),
                 .fix = "NCCL_SOCKET_IFNAME=eth0 (ip -br addr shows the names)"});
    }

    void timed_out(std::string_view text, ToolPlace place) {
        timeouts_.at(place);
        if (const auto rank = leading_number(between(text, "[Rank ", "]")); rank && *rank >= 0 && *rank < 1e6)
            late_ranks_.insert(static_cast<std::size_t>(*rank));
        else if (const auto other = leading_number(between(text, "[rank", "]")); other && *other >= 0 && *other < 1e6)
            late_ranks_.insert(static_cast<std::size_t>(*other));
        if (late_work_.empty()) late_work_ = printable(between(text, "WorkNCCL(", ")"), 120);
    }

    // "IB", and the plugin's "IBext_v8".
    const Seen* network(std::string_view name) const {
        for (const auto& [each, seen] : networks_)
            if (each == name || each.starts_with(std::string(name) + "ext")) return &seen;
        return nullptr;
    }
    bool many_nodes() const { return hosts_.size() > 1 || nodes_ > 1; }
    bool on_sockets() const { return socket_.count > 0 || network("Socket") != nullptr; }
    bool on_rdma() const { return ib_.count + gdr_.count > 0 || network("IB") != nullptr; }

    void judge_transport() {
        if (on_sockets()) {
            const Seen* chosen = network("Socket");
            const ToolPlace place = socket_.count > 0 ? socket_.place : chosen->place;
            ToolFinding finding{.layer = HealthLayer::network};
            std::string why;
            if (no_ib_.count > 0) why = "; NET/IB found no device";
            if (environment_.contains("NCCL_IB_DISABLE") && environment_["NCCL_IB_DISABLE"].first != "0")
                why = "; NCCL_IB_DISABLE is set";
            const std::string how =
                socket_.count > 0 ? counted(socket_.count, "channel") + " between nodes" : std::string("the network");
            // A sign of RDMA in the log is as good as a size: another rank has it.
            const bool expected = rdma_expected() || on_rdma() || ports_.count > 0;
            finding.message = fmt::format("NCCL took TCP sockets (NET/Socket) for {}{}{}", how, why,
                                          rdma_expected() ? fmt::format("; {} has InfiniBand", size_.name)
                                          : expected      ? "; other lines show InfiniBand or RoCE"
                                                          : "");
            if (expected && (socket_.count > 0 || many_nodes() || rdma_expected())) {
                // Of one node alone nothing has been sent yet.
                finding.verdict = socket_.count > 0 || many_nodes() ? HealthVerdict::fail : HealthVerdict::warn;
                finding.fix =
                    why.ends_with("is set")
                        ? "unset NCCL_IB_DISABLE"
                        : "ibv_devinfo in the container: no device means no /dev/infiniband (Kubernetes: the RDMA "
                          "device plugin and rdma/ib: 1 in resources; Docker: --device /dev/infiniband --cap-add "
                          "IPC_LOCK --ulimit memlock=-1); NCCL_IB_HCA must name devices that are there";
            } else if (socket_.count > 0 || many_nodes()) {
                finding.verdict = HealthVerdict::warn;
                finding.message += ": right on a node without InfiniBand, a fallback on one with it";
                finding.fix = size_.known() ? "take a size with RDMA for jobs of several nodes" : say_the_size();
            } else {
                finding.message += ": no channel to another node is in this log";
            }
            out_.check("nccl-transport", place, std::move(finding));
        } else if (on_rdma()) {
            const Seen* chosen = network("IB");
            out_.check("nccl-transport",
                       gdr_.count > 0  ? gdr_.place
                       : ib_.count > 0 ? ib_.place
                                       : chosen->place,
                       {.layer = HealthLayer::network,
                        .verdict = HealthVerdict::pass,
                        .message = "NCCL took NET/IB between nodes"});
        } else if (!networks_.empty()) {
            out_.check("nccl-transport", networks_.begin()->second.place,
                       {.layer = HealthLayer::network,
                        .verdict = HealthVerdict::pass,
                        .message = fmt::format("NCCL took the network {}", printable(networks_.begin()->first, 60))});
        }
    }

    void judge_gpu_direct() {
        const bool off = ib_.count > 0 && gdr_.count == 0, mixed = ib_.count > 0 && gdr_.count > 0;
        if (gdr_.count > 0 && !mixed && gdr_off_.count == 0) {
            out_.check("nccl-gpu-direct", gdr_.place,
                       {.layer = HealthLayer::network,
                        .verdict = HealthVerdict::pass,
                        .message = "GPUDirect RDMA on " + counted(gdr_.count, "channel")});
        } else if (off || mixed || gdr_off_.count > 0) {
            out_.check(
                "nccl-gpu-direct", gdr_off_.count > 0 ? gdr_off_.place : ib_.place,
                {.layer = HealthLayer::network,
                 .verdict = rdma_expected() && ib_.count > 0 ? HealthVerdict::fail : HealthVerdict::warn,
                 .message = ib_.count > 0 ? fmt::format("{} over InfiniBand without GPUDirect RDMA (no GDRDMA), {} "
                                                        "with it: data goes through host memory",
                                                        counted(ib_.count, "channel"), gdr_.count)
                                          : counted(gdr_off_.count, "line") + " with GPU Direct RDMA Disabled",
                 .fix = "modprobe nvidia-peermem (or the open driver with DMA-BUF, kernel 5.12 or later) on each node; "
                        "NCCL_NET_GDR_LEVEL=PHB and NCCL_TOPO_FILE in VMs"});
        }
    }

    void judge_ports() {
        if (ports_.count == 0) {
            if (no_ib_.count > 0 && !on_sockets())
                out_.tell(no_ib_.place, HealthLayer::network, "NET/IB found no device");
            return;
        }
        if (!size_.ib_ports) {
            out_.fact("ports", std::to_string(least_ports_));
            return;
        }
        const auto found = static_cast<double>(least_ports_);
        const bool enough = found >= *size_.ib_ports;
        out_.check("ib-ports", ports_.place,
                   {.layer = HealthLayer::network,
                    .verdict = enough ? HealthVerdict::pass : HealthVerdict::fail,
                    .message = fmt::format("NCCL uses {} of {:g} InfiniBand ports", least_ports_, *size_.ib_ports),
                    .fix = enough ? "" : "ibstat on the node: every port Active; NCCL_IB_HCA=mlx5_ib (all), not a list",
                    .measured = found,
                    .expected = size_.ib_ports,
                    .unit = "count",
                    .source = size_.ports_source});
        if (roce_ports_ > 0 && rdma_expected())
            out_.check("ib-link", ports_.place,
                       {.layer = HealthLayer::network,
                        .verdict = HealthVerdict::warn,
                        .message = fmt::format("{} of RoCE among the ports; {} has InfiniBand",
                                               counted(roce_ports_, "port"), size_.name),
                        .fix = "NCCL_IB_HCA=mlx5_ib: the Ethernet adapter's port is not for this"});
    }

    void judge_peers() {
        if (p2p_off_.count > 0)
            out_.check(
                "nccl-peers", p2p_off_.place,
                {.verdict = size_.has_nvlink() ? HealthVerdict::fail : HealthVerdict::warn,
                 .message =
                     "GPUs that are connected may not talk to each other (P2P is disabled between connected GPUs)",
                 .fix = "nvidia-smi topo -p2p r; ACS off in the BIOS, no IOMMU translation; in VMs it may not be had"});
        if (shared_.count > 0)
            out_.check(
                "nccl-shared-memory", shared_.place,
                {.verdict = size_.has_nvlink() ? HealthVerdict::fail : HealthVerdict::warn,
                 .message = fmt::format("{} between GPUs of one node through host memory (SHM){}",
                                        counted(shared_.count, "channel"),
                                        size_.has_nvlink() ? fmt::format("; {} has NVLink", size_.name) : ""),
                 .fix = "nvidia-smi topo -m and topo -p2p r; NCCL_P2P_DISABLE unset; containers of one node need all "
                        "its GPUs visible and one IPC namespace"});
        else if (peer_.count > 0 && p2p_off_.count == 0)
            out_.check("nccl-peers", peer_.place,
                       {.verdict = HealthVerdict::pass,
                        .message = counted(peer_.count, "channel") + " directly between GPUs (P2P)"});
    }

    void judge_versions() {
        std::string all;
        for (const auto& [version, seen] : versions_) {
            all += (all.empty() ? "" : ", ") + printable(version, 40);
            out_.fact("nccl", printable(version, 40));
            // "2.21.5+cuda12.4"; 12040 is the CUDA of the driver's library that was found, cuda-compat included.
            const auto cuda = cuda_version(between(version, "+cuda", ""));
            if (cuda && driver_runs_ / 1000 < cuda->major)
                out_.needs_cuda(cuda->text(), "NCCL " + printable(version, 40), false, seen.place);
        }
        if (versions_.size() > 1)
            out_.check("nccl-versions", versions_.rbegin()->second.place,
                       {.verdict = HealthVerdict::fail,
                        .message = "several versions of NCCL in one run: " + cut(all, 120),
                        .fix = "one image for all ranks; LD_LIBRARY_PATH must not find another libnccl.so.2 first"});
    }

    void judge_interfaces() {
        std::string all;
        for (const auto& [name, seen] : interfaces_) {
            all += (all.empty() ? "" : ", ") + printable(name, 40);
            out_.fact("interface", printable(name, 40));
            if (hosts_.size() > 1 && (name == "lo" || name.starts_with("docker") || name.starts_with("virbr")))
                out_.check(
                    "nccl-interface", seen.place,
                    {.layer = HealthLayer::network,
                     .verdict = HealthVerdict::fail,
                     .message = fmt::format("ranks meet over {}, which ends at its own node", printable(name, 40)),
                     .fix = "NCCL_SOCKET_IFNAME=eth0 (ip -br addr shows the names)"});
        }
        if (interfaces_.size() > 1)
            out_.check("nccl-interface", interfaces_.rbegin()->second.place,
                       {.layer = HealthLayer::network,
                        .verdict = HealthVerdict::warn,
                        .message = "nodes meet over interfaces of different names: " + cut(all, 120),
                        .fix = "NCCL_SOCKET_IFNAME with what all nodes have"});
    }

    void judge_timeouts() {
        if (timeouts_.count == 0) return;
        std::string ranks;
        for (const std::size_t rank : late_ranks_) {
            if (ranks.size() > 60) {
                ranks += ", ...";
                break;
            }
            ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
        }
        std::string absent;
        if (ranks_ > late_ranks_.size() && !late_ranks_.empty() && ranks_ - late_ranks_.size() <= 8)
            for (std::size_t rank = 0; rank < ranks_; ++rank)
                if (!late_ranks_.contains(rank)) absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
        std::string message = "a collective did not end in time (watchdog)";
        if (!late_work_.empty()) message += ": " + late_work_;
        if (!ranks.empty()) message += "; waiting were ranks " + ranks;
        if (!absent.empty()) message += fmt::format("; rank {} did not wait: look there first", absent);
        out_.check(
            "nccl-timeout", timeouts_.place,
            {.layer = HealthLayer::model,
             .verdict = HealthVerdict::fail,
             .message = std::move(message),
             .fix = "the rank that did not come is the cause: its log, py-spy dump --pid PID there; "
                    "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records who called what; a longer timeout only hides it"});
    }

    std::string sentence() const {
        const std::string where = fmt::format("NCCL{}{} on {}", versions_.empty() ? "" : " ",
                                              versions_.empty() ? "" : printable(versions_.begin()->first, 40),
                                              counted(std::max<std::size_t>(hosts_.size(), 1), "node"));
        if (on_sockets()) return where + " over TCP sockets";
        if (on_rdma()) return where + (gdr_.count > 0 ? " over NET/IB with GPUDirect RDMA" : " over NET/IB");
        return where;
    }

    ToolLines lines_;
    ReadingBuilder out_;
    ToolSize size_;
    double nodes_ = 0;  // of the whole run, where it is told
    std::size_t lines_read_ = 0, ranks_ = 0, least_ports_ = 0, roce_ports_ = 0;
    std::set<std::string> hosts_;
    int driver_runs_ = 0;
    std::map<std::string, Seen, std::less<>> versions_, networks_, interfaces_;
    std::map<std::string, std::pair<std::string, ToolPlace>, std::less<>> environment_;
    Seen socket_, ib_, gdr_, peer_, shared_, no_ib_, gdr_off_, p2p_off_, ports_, complete_, timeouts_;
    std::set<std::size_t> late_ranks_;
    std::string late_work_;
};

}  // namespace

Result<ToolReading> read_nccl_log(std::string_view text, const std::string& file, const ToolContext& context) {
    return NcclLogReader(text, file, context).read();
}

}  // namespace stoker
