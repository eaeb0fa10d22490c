// What joins GPUs with the rest: PCIe that trained to less than it can, NVLinks that are down, and collectives that go
// over TCP although InfiniBand is there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "observe/diagnoses/gpu_text.h"

namespace stoker {

namespace {

constexpr const char* kNeedsBytes = "bytes over PCIe and its lanes (gpu_pcie, gpu_lanes, gpu_gen), and step_s";

// Payload of a lane one way, by generation, after its line code (PCI-SIG: 8b/10b, 128b/130b, from 6 on FLITs).
double lane_bytes_per_s(double generation) {
    static constexpr std::array<double, 7> kGiga = {0.25, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    return 1e9 * kGiga[static_cast<std::size_t>(std::clamp(std::lround(generation), 1L, 6L))];
}

}  // namespace

DiagnosisVerdict judge_gpu_pcie(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const RankEvidence* worst = nullptr;
    double least = 1;
    bool known = false;
    for (const RankEvidence* rank : gpu_ranks(evidence)) {
        const MeasureSpread *lanes = rank->find("gpu_lanes"), *generation = rank->find("gpu_gen");
        const auto most = rank->mean("gpu_lanes_max"), newest = rank->mean("gpu_gen_max");
        // Boards save power at rest with a slower link: the best that it was while it worked counts.
        if (lanes == nullptr || generation == nullptr || !most || !newest ||
            rank->mean("gpu_util").value_or(0) < diagnosis_threshold("gpu.at_work"))
            continue;
        known = true;
        const double part = lanes->high * lane_bytes_per_s(generation->high) / (*most * lane_bytes_per_s(*newest));
        if (part < least) least = part, worst = rank;
    }
    if (!known) return diagnosis_silent("PCIe lanes and generation of a GPU that works (gpu_lanes, gpu_gen)");
    if (worst == nullptr || least > 0.99)
        return diagnosis_ruled_out("PCIe has all lanes, at the speed that is possible");
    const double lanes = worst->find("gpu_lanes")->high, generation = worst->find("gpu_gen")->high,
                 most = *worst->mean("gpu_lanes_max"), newest = *worst->mean("gpu_gen_max");
    Diagnosis found{
        .what = fmt::format("PCIe of {} is generation {:.0f} with {:.0f} lanes; {:.0f} with {:.0f} are possible",
                            gpu_of(*worst), generation, lanes, newest, most),
        .evidence = {fmt::format("{} of the bandwidth", percent_text(least))},
        .fix = "reseat the board, look at its riser and at the BIOS (lspci -vv: LnkSta beside LnkCap)",
        .rank = worst->rank};
    found.figures = {told_figure("pcie_bandwidth", least, "of what is possible"), told_figure("lanes", lanes, "lanes")};
    const auto rate = worst->mean("gpu_pcie"), step = worst->mean("step_s");
    if (rate && step) {
        found.evidence.push_back(rate_text(*rate) + " over it");
        // What a step moves takes as much longer; both directions move at once, so that half of the sum is each.
        const double seconds = 0.5 * *rate * *step / (lanes * lane_bytes_per_s(generation));
        found.cost_s = std::min(*step, seconds) * (1 - least);
    }
    if (const auto replays = worst->mean("gpu_replays"); replays && *replays > 0)
        found.evidence.push_back(fmt::format("{:.1f} packets a second are sent again", *replays));
    return diagnosis_found(std::move(found));
}

// What the host hands over in each step. What that costs depends on how: pinned and in the background it may cost
// nothing, pageable and waited for it takes several times as long as the link would.
DiagnosisVerdict judge_gpu_copies(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    std::set<std::string> nodes;
    for (const RankEvidence& rank : evidence.ranks) nodes.insert(rank.node);
    const RankEvidence* worst = worst_gpu(evidence, "gpu_pcie");
    if (worst == nullptr) return diagnosis_silent(kNeedsBytes);
    const MeasureSpread *lanes = worst->find("gpu_lanes"), *generation = worst->find("gpu_gen");
    const auto step = worst->mean("step_s");
    if (lanes == nullptr || generation == nullptr || !step || !(*step > 0)) return diagnosis_silent(kNeedsBytes);
    // Collectives without NVLink, and those to other machines, cross it too.
    if (nodes.size() > 1 || (evidence.ranks.size() > 1 && worst->mean("gpu_links").value_or(0) < 1))
        return diagnosis_silent("ranks whose collectives do not cross PCIe");
    const double link = lanes->high * lane_bytes_per_s(generation->high) * diagnosis_threshold("gpu.link_reached");
    const double rate = *worst->mean("gpu_pcie"), share = rate / link;
    if (share < diagnosis_threshold("gpu.copies_share"))
        return diagnosis_ruled_out(
            fmt::format("{} cross PCIe, {} of what it carries", rate_text(rate), percent_text(share)));
    const double slower = diagnosis_threshold("gpu.pageable_slower");
    Diagnosis found{
        .what = fmt::format("{} cross PCIe to or from {} in each step", size_text(rate * *step), gpu_of(*worst)),
        .evidence = {fmt::format("{}, {} of what the link carries", rate_text(rate), percent_text(share)),
                     fmt::format("{} a step at the rate of the link, and about {:.2g} times that from memory that is "
                                 "not pinned",
                                 milliseconds_text(share * *step), slower)},
        .fix =
            "pin_memory=True in the DataLoader and .to(device, non_blocking=True); what stays the same is kept on the "
            "GPU, and images go as uint8; offloaded states move so by their nature",
        .rank = worst->rank};
    found.figures = {deciding_figure("copies_share", share, "of what the link carries", "gpu.copies_share"),
                     told_figure("pcie", rate, "bytes/s")};
    found.cost_s = std::min(*step, share * *step * slower);
    found.cost_range = {.low_s = 0, .high_s = found.cost_s};
    return diagnosis_found(std::move(found));
}

DiagnosisVerdict judge_gpu_nvlink(const RunEvidence& evidence) {
    if (gpu_ranks(evidence).empty()) return no_gpu_here();
    const RankEvidence* worst = worst_gpu(evidence, "gpu_links_down");
    if (worst == nullptr) return diagnosis_silent("NVLinks that the driver tells of (gpu_links)");
    const double down = worst->find("gpu_links_down")->median, links = worst->mean("gpu_links").value_or(0);
    if (down < 0.5) return diagnosis_ruled_out(fmt::format("all {:.0f} NVLinks are up", links));
    Diagnosis found{
        .what = fmt::format("{:.0f} of {:.0f} NVLinks of {} are down", down, links, gpu_of(*worst)),
        .evidence = {},
        .fix =
            "nvidia-smi nvlink -s; restart the fabric manager, then the machine; links that stay down are for "
            "the vendor",
        .rank = worst->rank};
    found.figures = {told_figure("links_down", down, "links"), told_figure("links", links, "links")};
    if (const auto rate = worst->mean("gpu_nvlink")) found.evidence.push_back(rate_text(*rate) + " over NVLink");
    if (const auto collective = evidence.mean("allreduce_s"); collective && links > 0) {
        found.evidence.push_back(fmt::format("{} a step in collectives", milliseconds_text(*collective)));
        found.cost_s = *collective * std::min(1.0, down / links);
    }
    return diagnosis_found(std::move(found));
}

DiagnosisVerdict judge_tcp_not_infiniband(const RunEvidence& evidence) {
    std::set<std::string> nodes;
    for (const RankEvidence& rank : evidence.ranks) nodes.insert(rank.node);
    const auto ports = evidence.mean("ib_ports");
    // Without ports, or on one node, there is nothing that it could have taken.
    if (!ports || *ports < 0.5 || nodes.size() < 2) return no_gpu_here();
    const auto fabric = evidence.mean("ib_bytes"), sent = evidence.mean("net_sent"),
               collective = evidence.mean("allreduce_s");
    const auto step = evidence.step_s();
    if (!fabric || !sent || !step) return diagnosis_silent("ib_bytes and net_sent of the nodes, and step_s");
    if (*fabric > diagnosis_threshold("tcp.fabric_share") * *sent || *sent < diagnosis_threshold("tcp.least_bytes"))
        return diagnosis_ruled_out(
            fmt::format("{} over InfiniBand, {} over other devices", rate_text(*fabric), rate_text(*sent)));
    Diagnosis found{.what = fmt::format("collectives go over TCP: {} over Ethernet, {} over {:.0f} InfiniBand ports",
                                        rate_text(*sent), rate_text(*fabric), *ports),
                    .evidence = {},
                    .fix =
                        "NCCL_DEBUG=INFO says why (NET/Socket in place of NET/IB); give ranks /dev/infiniband and an "
                        "unlimited memlock, take NCCL_IB_DISABLE=1 out, and read `stoker explain rdma`",
                    .rank = {}};
    found.figures = {told_figure("net_sent", *sent, "bytes/s"), told_figure("ib_bytes", *fabric, "bytes/s")};
    if (collective) {
        found.evidence.push_back(fmt::format("{} a step in collectives ({} of it)", milliseconds_text(*collective),
                                             percent_text(*collective / *step)));
        found.cost_s = std::max(0.0, *collective - evidence.planned.collectives_s.value_or(0));
    }
    return diagnosis_found(std::move(found));
}

}  // namespace stoker
