// One unary gRPC call over a Unix socket, for the few answers that node services give only that way (kubelet). Not a
// gRPC library: one call a connection, no compression, no metadata; what the server says of a failure beyond its code
// in HTTP/2 is not decoded.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/process.h"

namespace stoker {

// `method`: "/v1.PodResourcesLister/List"; `request`: the encoded message. The encoded answer, of at most `most_bytes`.
Result<std::string> grpc_call(const std::string& socket_path, std::string_view method, std::string_view request,
                              std::chrono::steady_clock::time_point deadline, std::size_t most_bytes = 16 << 20);

}  // namespace stoker
