// The far end of the network test (link_speed.h): what `stoker doctor serve` runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace stoker {

struct LinkServerOptions {
    std::string address = "127.0.0.1";  // numeric
    std::uint16_t port = 0;             // 0: a free one
    std::string token;                  // none: for 127.0.0.0/8 and ::1 alone
    int max_sessions = 32;              // that measure at the same time; more are told to come later
    int max_waiting = 128;              // that have not said yet who they are; the oldest make room
    double hello_s = 3;                 // within which they have to
};
struct LinkServerCounts {
    std::uint64_t sessions = 0, denied = 0, refused = 0;  // refused: too many at once, or not our protocol
};

// One thread until somebody has shown the token, then one for each session. Every wait has an end, so that a client
// that is slow, silent or no client of ours costs a descriptor for hello_s.
class LinkServer {
public:
    static Result<std::unique_ptr<LinkServer>> start(const LinkServerOptions& options);
    virtual ~LinkServer() = default;  // ends all sessions
    virtual std::uint16_t port() const = 0;
    virtual LinkServerCounts counts() const = 0;
};

// "127.0.0.1:7411", "[::1]:7411"
std::string host_and_port(const std::string& host, std::uint16_t port);
bool is_loopback_address(const std::string& address);  // numeric

}  // namespace stoker
