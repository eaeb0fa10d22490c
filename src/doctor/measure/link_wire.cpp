#include "doctor/measure/link_wire.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <vector>

#include "io/store/request_sign.h"

namespace stoker::link_wire {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
constexpr double kAfterWindowS = 1;  // the other end's clock started when the first byte arrived

void put_number(std::string& out, std::uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

std::uint64_t take_number(std::string_view text, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
    return value;
}

double seconds_since(Deadline start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string request_text(const Ask& ask, std::string_view nonce, std::string_view token) {
    std::string text(kMagic);
    text += static_cast<char>(ask.want);
    text.append(3, '\0');
    put_number(text, static_cast<std::uint64_t>(std::llround(1e3 * ask.warm_up_s)), 4);
    put_number(text, static_cast<std::uint64_t>(std::llround(1e3 * ask.seconds)), 4);
    return text + hmac_sha256(token, std::string(nonce) + text);
}

std::optional<Ask> read_ask(std::string_view request) {
    if (request.size() != kRequestBytes || !request.starts_with(kMagic)) return std::nullopt;
    Ask ask;
    ask.want = static_cast<Want>(request[8]);
    if (ask.want != Want::echo && ask.want != Want::upload && ask.want != Want::download) return std::nullopt;
    ask.warm_up_s = 1e-3 * static_cast<double>(take_number(request, 12, 4));
    ask.seconds = 1e-3 * static_cast<double>(take_number(request, 16, 4));
    if (!(ask.seconds > 0) || ask.warm_up_s + ask.seconds > kMostSeconds) return std::nullopt;
    return ask;
}

bool is_signed(std::string_view request, std::string_view nonce, std::string_view token) {
    if (request.size() != kRequestBytes) return false;
    const std::string expected = hmac_sha256(token, std::string(nonce) + std::string(request.substr(0, kAskBytes)));
    unsigned different = 0;  // all bytes are looked at, whichever differs: its time tells nothing
    for (std::size_t i = 0; i < expected.size(); ++i)
        different |= static_cast<unsigned>(static_cast<unsigned char>(expected[i]) ^
                                           static_cast<unsigned char>(request[kAskBytes + i]));
    return different == 0;
}

std::string report_text(const Arrived& arrived) {
    std::string text;
    put_number(text, arrived.bytes, 8);
    put_number(text, static_cast<std::uint64_t>(std::llround(1e9 * arrived.seconds)), 8);
    return text;
}

Arrived read_report(std::string_view report) {
    if (report.size() != kReportBytes) return {};
    return {.bytes = take_number(report, 0, 8), .seconds = 1e-9 * static_cast<double>(take_number(report, 8, 8))};
}

bool wait_for(int fd, short events, Deadline deadline) {
    for (;;) {
        pollfd each{.fd = fd, .events = events, .revents = 0};
        const int wait = milliseconds_until(deadline);
        const int got = ::poll(&each, 1, wait);
        if (got > 0) return true;
        if (got < 0 && errno != EINTR) return false;
        if (got == 0 && wait == 0) return false;
    }
}

bool send_all(int fd, std::string_view bytes, Deadline deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!wait_for(fd, POLLOUT, deadline)) return false;
        } else {
            return false;
        }
    }
    return true;
}

bool receive_all(int fd, char* into, std::size_t size, Deadline deadline) {
    while (size > 0) {
        const ssize_t got = ::recv(fd, into, size, MSG_DONTWAIT);
        if (got > 0) {
            into += got;
            size -= static_cast<std::size_t>(got);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!wait_for(fd, POLLIN, deadline)) return false;
        } else {
            return false;
        }
    }
    return true;
}

Arrived receive_window(int fd, const Ask& ask, Deadline deadline) {
    std::vector<char> piece(kPieceBytes);
    Arrived arrived;
    std::optional<Deadline> first, begin;  // of the first byte, and of the window
    const Deadline latest = std::min(deadline, after(2 * (ask.warm_up_s + ask.seconds) + 2));
    const auto whole =
        std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(ask.warm_up_s + ask.seconds));
    for (;;) {
        if (!wait_for(fd, POLLIN, first ? std::min(latest, *first + whole) : latest)) {
            if (begin) arrived.seconds = seconds_since(*begin);  // it stands still: that time counts
            break;
        }
        const ssize_t got = ::recv(fd, piece.data(), piece.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got <= 0) break;
        const Deadline now = std::chrono::steady_clock::now();
        if (!first) first = now;
        // The window begins with an arrival that does not count, and ends with one that does.
        if (!begin) {
            if (seconds_since(*first) >= ask.warm_up_s) begin = now;
            continue;
        }
        arrived.bytes += static_cast<std::uint64_t>(got);
        arrived.seconds = std::chrono::duration<double>(now - *begin).count();
        if (arrived.seconds >= ask.seconds) break;
    }
    return arrived;
}

void send_window(int fd, const Ask& ask, Deadline deadline) {
    const std::vector<char> piece(kPieceBytes, 'x');
    const Deadline latest = std::min(deadline, after(ask.warm_up_s + ask.seconds + kAfterWindowS));
    while (std::chrono::steady_clock::now() < latest) {
        pollfd each{.fd = fd, .events = POLLIN | POLLOUT, .revents = 0};
        if (::poll(&each, 1, milliseconds_until(latest)) <= 0) {
            if (errno == EINTR) continue;
            return;
        }
        if ((each.revents & (POLLIN | POLLERR | POLLHUP)) != 0) return;
        const ssize_t sent = ::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return;
    }
}

void discard_on_close(int fd) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace stoker::link_wire
