// Time of collectives: ring and tree, flat and two-level, on the link each byte really crosses. Seconds from bytes.
// Costs: Thakur et al. 2005; NCCL bus-bandwidth convention: nccl-tests PERFORMANCE.md.
#pragma once

#include "sizing/device.h"

namespace stoker {

// A group of ranks: `size` of them, `per_node` on each node; `sharing` groups use the same NIC at the same time.
struct Group {
    double size = 1, per_node = 1, sharing = 1;
};

// Of a device's links inside a node, what `ranks` of the devices reach each other with. Without a switch between them
// (Gaudi's Ethernet, xGMI) each pair has links of its own: fewer ranks than are joined leave those to the others idle.
double share_of_links(const Device& device, double ranks) noexcept;

// The group of `size` ranks that are `stride` apart in the rank order, while all other groups like it are busy too.
Group make_group(const Device& device, double size, double stride) noexcept;

double all_reduce_s(const Device& device, Group group, double bytes) noexcept;      // bytes of the full tensor
double all_gather_s(const Device& device, Group group, double bytes) noexcept;      // bytes of the gathered tensor
double reduce_scatter_s(const Device& device, Group group, double bytes) noexcept;  // bytes of the full tensor
double all_to_all_s(const Device& device, Group group, double bytes) noexcept;      // bytes each rank sends in all
double send_s(const Device& device, bool inside_node, double bytes) noexcept;

// Bytes each rank sends, whatever the algorithm: 2(n-1)/n S for an all-reduce, (n-1)/n S for the others.
double all_reduce_bytes(double size, double bytes) noexcept;
double gather_bytes(double size, double bytes) noexcept;

}  // namespace stoker
