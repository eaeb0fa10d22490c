// What both ends of the network test say to each other (link_server.h, link_speed.h). For their files alone.
//
//   server  STKLINK1 + 32 random bytes
//   client  STKLINK1, what it wants, how long the warm-up and the measurement are, HMAC-SHA256(token, random + these)
//   server  one byte: yes or why not
//   then    echo: small messages come back; upload: the client sends, and the server tells what arrived; download: the
//           server sends, and the client counts what arrives
//
// The token itself never passes. Rates are always of the end that receives: what a sender has handed to its kernel has
// not arrived anywhere.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker::link_wire {

using stoker::after;
using stoker::Deadline;

inline constexpr std::string_view kMagic = "STKLINK1";
inline constexpr std::size_t kNonceBytes = 32, kHelloBytes = 8 + kNonceBytes, kAskBytes = 20, kRequestBytes = 20 + 32;
inline constexpr std::size_t kReportBytes = 16, kMessageBytes = 64;
inline constexpr double kMostSeconds = 60;  // of a measurement, warm-up included

enum class Want : char { echo = 'E', upload = 'U', download = 'D' };
enum class LinkAnswer : char { yes = 'K', denied = 'T', busy = 'B', wrong = 'X' };

struct Ask {
    Want want = Want::echo;
    double warm_up_s = 0, seconds = 0;
};
std::string request_text(const Ask& ask, std::string_view nonce, std::string_view token);
// Nothing: it is none of ours.
std::optional<Ask> read_ask(std::string_view request);
bool is_signed(std::string_view request, std::string_view nonce, std::string_view token);  // in constant time

// What arrived in the window after the warm-up.
struct Arrived {
    std::uint64_t bytes = 0;
    double seconds = 0;
    double rate() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};
std::string report_text(const Arrived& arrived);
Arrived read_report(std::string_view report);

// All on sockets that do not block. False: the other end left or erred, or the deadline passed.
bool wait_for(int fd, short events, Deadline deadline);
bool send_all(int fd, std::string_view bytes, Deadline deadline);
bool receive_all(int fd, char* into, std::size_t size, Deadline deadline);
// Counts what arrives until warm-up and window are over, the sender ends, or the deadline.
Arrived receive_window(int fd, const Ask& ask, Deadline deadline);
// Sends until the time is over or the other end has something to say or left. The time goes on for a while after the
// window, so that the receiver ends first.
void send_window(int fd, const Ask& ask, Deadline deadline);
// The next close discards what was not sent, instead of sending it for as long as it takes.
void discard_on_close(int fd);

}  // namespace stoker::link_wire
