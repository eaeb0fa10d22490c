// For the tests of the HTTP server: a bare connection, so that bytes go out as a test wants them, and small handlers.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "io/http/http_server.h"
#include "io/process.h"

namespace stoker::http_test {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(20);  // for what must happen; never waited for in full

class Wire {
public:
    explicit Wire(std::uint16_t port, int receive_buffer = 0)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        if (receive_buffer > 0)
            ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }
    bool connected() const { return connected_; }
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t size = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (size <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(size));
        }
        return true;
    }
    void end_sending() { ::shutdown(socket_.get(), SHUT_WR); }
    // Until the other side closes, or `text` has come.
    std::string read_until(std::string_view text = {}) {
        const auto deadline = Clock::now() + kPatience;
        while (text.empty() || seen_.find(text) == std::string::npos) {
            pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
            if (::poll(&one, 1, milliseconds_until(deadline)) <= 0) {
                ADD_FAILURE() << "nothing came; so far: " << seen_.substr(0, 500);
                break;
            }
            char buffer[65536];
            const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, 0);
            if (size <= 0) {
                closed_ = true;
                break;
            }
            seen_.append(buffer, static_cast<std::size_t>(size));
        }
        return seen_;
    }
    bool closed() const { return closed_; }
    void forget() { seen_.clear(); }

private:
    UniqueFd socket_;
    bool connected_ = false, closed_ = false;
    std::string seen_;
};

template <class Condition>
bool eventually(Condition condition) {
    for (const auto deadline = Clock::now() + kPatience; Clock::now() < deadline;) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

inline int count_of(std::string_view text, std::string_view what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++count;
    return count;
}

inline HttpResponse text_answer(std::string body) {
    return {.status = 200, .content_type = "text/plain", .headers = {}, .body = std::move(body)};
}

inline void echo(HttpRequest request, HttpReply reply) {
    reply.send(text_answer(request.method + " " + request.path + " " + request.body));
}

inline std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
    auto server = HttpServer::start(std::move(options), std::move(handler));
    EXPECT_TRUE(server.ok()) << server.error().text();
    return std::move(server).value();
}

inline std::string request_for(const std::string& path, const std::string& headers = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}
inline const std::string kClose = "Connection: close\r\n";

}  // namespace stoker::http_test
