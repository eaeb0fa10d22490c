// What a size is known to have, for the readers of tools: the lines of Microsoft's node check, and the catalogue's row.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "readings/tool_output.h"

namespace stoker {

// Figures that nobody publishes are absent.
struct ToolSize {
    std::string name;                          // Standard_ND96isr_H100_v5; empty: no size was given
    const NodeType* node = nullptr;            // of the catalogue
    const Accelerator* accelerator = nullptr;  // of the node
    std::optional<double> gpus, ib_ports, ib_link_gbps, ib_min_gbps, nccl_min_gb_s, nccl_message_bytes;
    std::string ib_min_source, nccl_source, gpus_source, ports_source;

    bool known() const { return !name.empty(); }
    bool has_infiniband() const { return ib_ports.value_or(0) > 0 || (node != nullptr && node->rdma == "infiniband"); }
    bool has_nvlink() const;  // between all GPUs of one node
};
ToolSize tool_size(const ToolContext& context);
// The fix where a figure has nothing to be held against. Of boards that name themselves with the sizes that have them.
inline constexpr std::string_view kSayTheSize = "say what the node should be: stoker doctor --read FILE --size ";
std::string say_the_size();
std::string say_the_size(std::string_view gpu, std::size_t gpus, const Catalog* catalog);

}  // namespace stoker
