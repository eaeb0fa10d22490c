// What NCCL and PyTorch say when something is wrong, with its layer and what to do. Sources: NVIDIA/nccl src/transport/
// net_ib.cc, net_socket.cc, p2p.cc, shm.cc, src/misc/socket.cc, src/init.cc, src/bootstrap.cc; NCCL user guide,
// Troubleshooting; pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.
#pragma once

#include <string_view>

#include "base/health.h"

namespace stoker {

struct NcclMessage {
    std::string_view text, also;  // both stand in the line; also: may be empty
    HealthLayer layer = HealthLayer::network;
    HealthVerdict verdict = HealthVerdict::fail;
    std::string_view name, what, fix;
};
// The first that a line holds, or nullptr. Specific ones stand before general ones.
const NcclMessage* nccl_message(std::string_view line);

}  // namespace stoker
