#include "sizing/collectives.h"

#include <algorithm>
#include <bit>

namespace stoker {
namespace {

// ceil(log2 n): the depth of a tree over n ranks.
double depth(double n) noexcept {
    return n <= 1 ? 0 : static_cast<double>(std::bit_width(static_cast<std::uint32_t>(n + 0.5) - 1));
}

// What a group sees: its ranks on one node and the nodes, and the two links with the share of the NIC that is its own.
struct Legs {
    double inner = 1, outer = 1, ranks = 1;
    double inner_alpha = 0, inner_inverse = 0, inner_half = 0;
    double outer_alpha = 0, outer_inverse = 0, outer_half = 0;

    double inner_s(double bytes) const noexcept { return (inner - 1) / inner * bytes * inner_inverse; }
    double outer_s(double bytes) const noexcept { return (outer - 1) / outer * bytes * outer_inverse; }
    // A ring over all ranks enters and leaves each node once: what all but one rank have passes each adapter, also
    // where there are two nodes (two of eight A100: 180 GB/s of bus bandwidth, which is all that eight adapters have).
    double ring_s(double bytes) const noexcept { return outer > 1 ? (ranks - 1) / ranks * bytes * outer_inverse : 0; }
    // What an operation of no bytes costs: the hops one after the other, or the time to fill the pipe, whichever is
    // longer.
    double start_s(double inner_hops, double outer_hops) const noexcept {
        const double in = inner > 1 ? std::max(inner_hops * inner_alpha, inner_half * inner_inverse) : 0;
        const double out = outer > 1 ? std::max(outer_hops * outer_alpha, outer_half * outer_inverse) : 0;
        return in + out;
    }
};

double inverse(double bytes_per_second) noexcept {
    return bytes_per_second > 0 ? 1 / bytes_per_second : 1e3;
}

const LinkModel& inner_link(const Device& device, double ranks) noexcept {
    return device.pairs_only && ranks <= 2 && device.pair.bytes_per_second > 0 ? device.pair : device.inside;
}

Legs legs_of(const Device& device, Group group) noexcept {
    Legs legs;
    legs.inner = std::max(1.0, std::min(group.per_node, group.size));
    legs.outer = std::max(1.0, group.size / legs.inner);
    legs.ranks = std::max(1.0, group.size);
    if (legs.inner > 1) {
        const LinkModel& link = inner_link(device, legs.inner);
        legs.inner_alpha = link.latency_s;
        const double share = share_of_links(device, legs.inner);
        legs.inner_inverse = inverse(link.bytes_per_second * share);
        legs.inner_half = link.half_bytes * share;  // what arrives until the link is full takes as long
    }
    if (legs.outer > 1) {
        const double users = device.across_shared_by_node ? legs.inner * group.sharing : group.sharing;
        legs.outer_alpha = device.across.latency_s;
        const auto doublings = static_cast<std::size_t>(depth(legs.outer));
        const double loss = device.across_loss[std::min(doublings, device.across_loss.size() - 1)];
        legs.outer_inverse = inverse(device.across.bytes_per_second) * users * loss;
        legs.outer_half = device.across.half_bytes;
    }
    return legs;
}

// One pass of a gather or a scatter: the legs are pipelined, so the slower one decides beside the latencies.
double one_pass_s(const Device& device, Group group, double bytes) noexcept {
    if (group.size <= 1 || bytes <= 0) return 0;
    const Legs legs = legs_of(device, group);
    return legs.start_s(legs.inner - 1, legs.outer - 1) +
           std::max(legs.inner_s(bytes), legs.ring_s(bytes / legs.inner));
}

}  // namespace

double share_of_links(const Device& device, double ranks) noexcept {
    const double joined = device.ranks_joined();
    const bool meshed = device.gpu && !device.nvidia && joined > 2 && joined <= 8;
    return meshed && ranks < joined ? (ranks - 1) / (joined - 1) : 1;
}

Group make_group(const Device& device, double size, double stride) noexcept {
    const double domain = device.ranks_joined();
    Group group;
    group.size = size;
    group.per_node = std::clamp(domain / std::max(1.0, stride), 1.0, std::max(1.0, size));
    // Where the NIC belongs to the node, every group with a rank on it takes its part; where each GPU has its own, none
    // does.
    group.sharing = device.across_shared_by_node ? std::max(1.0, domain / group.per_node) : 1;
    return group;
}

// Thakur et al. 2005: ring 2(n-1) alpha + 2(n-1)/n S/BW; double binary tree 2 log2(n) alpha + 2 S/BW. The better one,
// as NCCL picks.
double all_reduce_s(const Device& device, Group group, double bytes) noexcept {
    if (group.size <= 1 || bytes <= 0) return 0;
    const Legs legs = legs_of(device, group);
    const double part = bytes / legs.inner;
    if (legs.outer <= 1) {
        const double ring = legs.start_s(2 * (legs.inner - 1), 0) + 2 * legs.inner_s(bytes);
        const double tree = legs.start_s(2 * depth(legs.inner), 0) + 2 * bytes * legs.inner_inverse;
        return std::min(ring, tree);
    }
    // Switches that reduce (NVLink of Hopper on) make it three steps: reduce-scatter inside, all-reduce of the part
    // across nodes, all-gather inside, pipelined. Without them it is one ring over all.
    const double across = device.hopper ? legs.outer_s(part) : legs.ring_s(part);
    const double inside = 2 * legs.inner_s(bytes);
    const double inner_hops = 2 * depth(legs.inner);
    const double ring = legs.start_s(inner_hops, 2 * (legs.outer - 1)) + std::max(inside, 2 * across);
    const double tree =
        legs.start_s(inner_hops, 2 * depth(legs.outer)) + std::max(inside, 2 * part * legs.outer_inverse);
    return std::min(ring, tree);
}

double all_gather_s(const Device& device, Group group, double bytes) noexcept {
    return one_pass_s(device, group, bytes);
}
double reduce_scatter_s(const Device& device, Group group, double bytes) noexcept {
    return one_pass_s(device, group, bytes);
}

// Pairwise: messages to ranks on this node and to the others leave at the same time on different links.
double all_to_all_s(const Device& device, Group group, double bytes) noexcept {
    if (group.size <= 1 || bytes <= 0) return 0;
    const Legs legs = legs_of(device, group);
    const double inside = (legs.inner - 1) / group.size * bytes * legs.inner_inverse;
    const double across = (group.size - legs.inner) / group.size * bytes * legs.outer_inverse;
    return legs.start_s(1, depth(legs.outer)) + std::max(inside, across);
}

double send_s(const Device& device, bool inside_node, double bytes) noexcept {
    if (bytes <= 0) return 0;
    const LinkModel& link = inside_node ? device.inside : device.across;
    const double users = !inside_node && device.across_shared_by_node ? device.ranks_per_node() : 1;
    const double rate = inverse(link.bytes_per_second) * users;
    return std::max(link.latency_s, link.half_bytes * rate) + bytes * rate;
}

double all_reduce_bytes(double size, double bytes) noexcept {
    return size > 1 ? 2 * (size - 1) / size * bytes : 0;
}
double gather_bytes(double size, double bytes) noexcept {
    return size > 1 ? (size - 1) / size * bytes : 0;
}

}  // namespace stoker
