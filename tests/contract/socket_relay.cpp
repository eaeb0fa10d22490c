#include "contract/socket_relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

namespace stoker::contract {
namespace {

constexpr int kTurnMs = 20;

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
}

bool pass_on(int to, const char* data, ssize_t size) {
    for (ssize_t done = 0; done < size;) {
        const ssize_t sent = ::send(to, data + done, static_cast<std::size_t>(size - done), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        done += sent;
    }
    return true;
}

}  // namespace

SocketRelay::SocketRelay(std::string front, std::string back)
    : front_(std::move(front)), back_(std::move(back)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = address_of(front_);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << front_;
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    thread_ = std::thread([this] { serve(); });
}

SocketRelay::~SocketRelay() {
    over_ = true;
    thread_.join();
    for (std::thread& each : carriers_) each.join();
    ::unlink(front_.c_str());
}

void SocketRelay::serve() {
    while (!over_) {
        pollfd one{.fd = listener_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&one, 1, kTurnMs) <= 0) continue;
        UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (client) carriers_.emplace_back([this, client = std::move(client)]() mutable { carry(std::move(client)); });
    }
}

void SocketRelay::carry(UniqueFd client) {
    const UniqueFd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(back_);
    if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    std::array<char, 65536> buffer;
    for (bool loses = false; !over_;) {
        pollfd both[] = {{.fd = client.get(), .events = POLLIN, .revents = 0},
                         {.fd = server.get(), .events = POLLIN, .revents = 0}};
        if (::poll(both, 2, kTurnMs) <= 0) continue;
        if (both[0].revents != 0) {
            const ssize_t got = ::recv(client.get(), buffer.data(), buffer.size(), 0);
            if (got <= 0) return;
            const std::string_view said(buffer.data(), static_cast<std::size_t>(got));
            if (said.starts_with("POST ")) loses = lose_.exchange(false);
            if (!pass_on(server.get(), buffer.data(), got)) return;
        }
        if (both[1].revents != 0) {
            const ssize_t got = ::recv(server.get(), buffer.data(), buffer.size(), 0);
            if (got <= 0 || loses || !pass_on(client.get(), buffer.data(), got)) return;
        }
    }
}

}  // namespace stoker::contract
