#include "io/grpc_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace stoker {
namespace {

using Limit = std::chrono::steady_clock::time_point;

// RFC 9113: types and flags of frames.
constexpr std::uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoAway = 7, kWindow = 8,
                       kContinuation = 9;
constexpr std::uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4, kPadded = 8;
constexpr std::size_t kFrameHead = 9, kMostFrame = 1 << 24;
constexpr std::uint32_t kOpenWindow = 1 << 30;

void put_big(std::string& out, std::uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}
std::uint32_t big(std::string_view bytes) {
    std::uint32_t value = 0;
    for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
    return value;
}

void put_frame(std::string& out, std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view body) {
    put_big(out, static_cast<std::uint32_t>(body.size()), 3);
    out.push_back(static_cast<char>(type));
    out.push_back(static_cast<char>(flags));
    put_big(out, stream, 4);
    out += body;
}

// HPACK (RFC 7541): literals that enter no table, without Huffman; what a server must read in any case.
void put_text(std::string& out, std::string_view text) {
    if (text.size() < 127) {
        out.push_back(static_cast<char>(text.size()));
    } else {
        std::size_t rest = text.size() - 127;
        out.push_back(127);
        for (; rest >= 128; rest >>= 7) out.push_back(static_cast<char>(rest % 128 + 128));
        out.push_back(static_cast<char>(rest));
    }
    out += text;
}
void put_header(std::string& out, std::string_view name, std::string_view value) {
    out.push_back(0);
    put_text(out, name);
    put_text(out, value);
}

std::string request_bytes(std::string_view method, std::string_view message) {
    std::string out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", body;
    // No table for compressed headers (nothing of them is read), no push, and room for the whole answer at once.
    for (const auto& setting : {std::pair<std::uint32_t, std::uint32_t>{1, 0}, {2, 0}, {4, kOpenWindow}}) {
        put_big(body, setting.first, 2);
        put_big(body, setting.second, 4);
    }
    put_frame(out, kSettings, 0, 0, body);
    body.clear();
    put_big(body, kOpenWindow, 4);
    put_frame(out, kWindow, 0, 0, body);
    body.clear();
    put_header(body, ":method", "POST");
    put_header(body, ":scheme", "http");
    put_header(body, ":path", method);
    put_header(body, ":authority", "localhost");
    put_header(body, "content-type", "application/grpc");
    put_header(body, "te", "trailers");
    put_header(body, "user-agent", "stoker");
    put_frame(out, kHeaders, kEndHeaders, 1, body);
    body.assign(1, '\0');  // not compressed
    put_big(body, static_cast<std::uint32_t>(message.size()), 4);
    body += message;
    put_frame(out, kData, kEndStream, 1, body);
    return out;
}

class Wire {
public:
    Wire(UniqueFd fd, Limit deadline) : fd_(std::move(fd)), deadline_(deadline) {}

    Status send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ::ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
            } else if (errno == EAGAIN) {
                TRY_VOID(ready(POLLOUT));
            } else if (errno != EINTR) {
                return Error(ErrorKind::unavailable, fmt::format("it cannot be written to: {}", std::strerror(errno)));
            }
        }
        return done();
    }
    Result<std::string> receive(std::size_t size) {
        while (buffer_.size() < size) {
            std::array<char, 16384> piece;
            const ::ssize_t got = ::recv(fd_.get(), piece.data(), piece.size(), 0);
            if (got > 0) {
                buffer_.append(piece.data(), static_cast<std::size_t>(got));
            } else if (got == 0) {
                return Error(ErrorKind::unavailable, "it hung up before it had answered");
            } else if (errno == EAGAIN) {
                TRY_VOID(ready(POLLIN));
            } else if (errno != EINTR) {
                return Error(ErrorKind::unavailable, fmt::format("it cannot be read: {}", std::strerror(errno)));
            }
        }
        std::string bytes = buffer_.substr(0, size);
        buffer_.erase(0, size);
        return bytes;
    }

private:
    Status ready(short events) {
        const int wait = milliseconds_until(deadline_);
        pollfd one{.fd = fd_.get(), .events = events, .revents = 0};
        if (wait <= 0 || ::poll(&one, 1, wait) == 0) return Error(ErrorKind::timed_out, "it did not answer in time");
        return done();
    }
    UniqueFd fd_;
    Limit deadline_;
    std::string buffer_;
};

// The message in what came as data of the stream: one byte for compression, four for its length.
Result<std::string> message_of(std::string data) {
    if (data.size() < 5 || data[0] != 0 || big(std::string_view(data).substr(1, 4)) != data.size() - 5)
        return Error(ErrorKind::unavailable,
                     data.empty() ? "it refused the call" : "its answer is not one gRPC message");
    data.erase(0, 5);
    return data;
}

}  // namespace

Result<std::string> grpc_call(const std::string& socket_path, std::string_view method, std::string_view request,
                              Limit deadline, std::size_t most_bytes) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path.empty() || socket_path.size() >= sizeof address.sun_path)
        return Error(ErrorKind::invalid, "no path of a socket: " + socket_path);
    std::memcpy(static_cast<void*>(address.sun_path), socket_path.data(), socket_path.size());
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return Error(ErrorKind::exhausted, fmt::format("no socket: {}", std::strerror(errno)));
    // A full backlog is EAGAIN, and waits for nobody: a server that stands still is found out at once.
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return Error(ErrorKind::unavailable, fmt::format("nobody listens there: {}", std::strerror(errno)));
    Wire wire(std::move(fd), deadline);
    TRY_VOID(wire.send(request_bytes(method, request)));

    std::string data;
    for (;;) {
        TRY(const std::string head, wire.receive(kFrameHead));
        const std::string_view view(head);
        const std::size_t size = big(view.substr(0, 3));
        const auto type = big(view.substr(3, 1)), flags = big(view.substr(4, 1));
        const std::uint32_t stream = big(view.substr(5, 4)) & 0x7fffffff;
        if (size > kMostFrame || data.size() + size > most_bytes)
            return Error(ErrorKind::unavailable, fmt::format("its answer has more than {} bytes", most_bytes));
        TRY(const std::string body, wire.receive(size));
        if (type == kSettings && (flags & kAck) == 0) {
            std::string answer;
            put_frame(answer, kSettings, kAck, 0, "");
            TRY_VOID(wire.send(answer));
        } else if (type == kPing && (flags & kAck) == 0) {
            std::string answer;
            put_frame(answer, kPing, kAck, 0, body);
            TRY_VOID(wire.send(answer));
        } else if (type == kGoAway) {
            // It goes on with streams up to the one that it names; an error names none.
            if (body.size() < 8 || big(std::string_view(body).substr(4, 4)) != 0)
                return Error(ErrorKind::unavailable, "it is no server of gRPC, or it refuses the connection");
        } else if (type == kReset && stream == 1) {
            return Error(ErrorKind::unavailable, "it broke the call off");
        } else if (type == kData && stream == 1) {
            std::size_t from = 0, padding = 0;
            if ((flags & kPadded) != 0 && !body.empty()) from = 1, padding = static_cast<std::uint8_t>(body[0]);
            if (from + padding > body.size())
                return Error(ErrorKind::unavailable, "a frame is shorter than its padding");
            data.append(body, from, body.size() - from - padding);
        }
        const bool ends = (type == kData || type == kHeaders || type == kContinuation) && (flags & kEndStream) != 0;
        if (stream == 1 && ends && type != kContinuation) return message_of(std::move(data));
    }
}

}  // namespace stoker
