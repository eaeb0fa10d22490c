#include "doctor/measure/link_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "doctor/measure/link_wire.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "io/worker.h"

namespace stoker::link_wire {
namespace {

struct NumericAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

Result<NumericAddress> numeric_address(const std::string& address, std::uint16_t port) {
    NumericAddress out;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        out.size = sizeof *v4;
    } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        out.size = sizeof *v6;
    } else {
        return Error(ErrorKind::invalid, "'" + address + "' is not a numeric IPv4 or IPv6 address");
    }
    return out;
}

Error cannot_listen(const LinkServerOptions& options, int code) {
    const std::string place = host_and_port(options.address, options.port);
    if (code == EADDRINUSE)
        return Error(ErrorKind::unavailable, place + " is in use by another program", {},
                     "stop that program, or choose another port");
    if (code == EACCES)
        return Error(ErrorKind::denied, "we may not listen on " + place, {},
                     "ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another port");
    if (code == EADDRNOTAVAIL)
        return Error(ErrorKind::unavailable, options.address + " is not an address of this machine", {},
                     "ip addr lists them");
    return Error(ErrorKind::unavailable, fmt::format("cannot listen on {}: {}", place, std::strerror(code)));
}

// Until the client leaves, or the time it asked for is over.
void echo_messages(int fd, const Ask& ask) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::array<char, kMessageBytes> message{};
    const Deadline deadline = after(ask.warm_up_s + ask.seconds + 1);
    while (receive_all(fd, message.data(), message.size(), deadline))
        if (!send_all(fd, {message.data(), message.size()}, deadline)) return;
}

void answer_session(int fd, const Ask& ask) {
    const double longest = 2 * (ask.warm_up_s + ask.seconds) + 5;
    switch (ask.want) {
        case Want::echo: echo_messages(fd, ask); break;
        case Want::download: send_window(fd, ask, after(longest)); break;
        case Want::upload: {
            const Arrived arrived = receive_window(fd, ask, after(longest));
            if (!send_all(fd, report_text(arrived), after(2))) break;
            // What is still on its way must be taken, or the reset of the connection would overtake the report.
            std::array<char, 65536> rest{};
            const Deadline until = after(2);
            while (wait_for(fd, POLLIN, until))
                if (::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) <= 0) break;
            break;
        }
    }
    discard_on_close(fd);
}

class ThreadedLinkServer final : public LinkServer {
public:
    ThreadedLinkServer(LinkServerOptions options, UniqueFd listener, UniqueFd wake, std::uint16_t port)
        : options_(std::move(options)), listener_(std::move(listener)), wake_(std::move(wake)), port_(port) {
        thread_ = masked_thread("stoker-link", [this] { accept_and_greet(); });
    }
    ~ThreadedLinkServer() override {
        {
            const std::lock_guard guard(mutex_);
            stopping_ = true;
            for (const Session& session : sessions_) ::shutdown(session.fd, SHUT_RDWR);
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
        thread_.join();
        for (Session& session : sessions_) session.thread.join();
    }
    std::uint16_t port() const override { return port_; }
    LinkServerCounts counts() const override {
        const std::lock_guard guard(mutex_);
        return counts_;
    }

private:
    // Somebody who has connected and has not yet shown the token.
    struct Guest {
        UniqueFd fd;
        std::string nonce, request;
        Deadline until;
    };
    struct Session {
        std::thread thread;
        int fd = -1;
        bool over = false;
    };

    void accept_and_greet() {
        for (;;) {
            std::vector<pollfd> watched{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                        {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
            for (const Guest& guest : guests_)
                watched.push_back({.fd = guest.fd.get(), .events = POLLIN, .revents = 0});
            // Deadlines of guests are looked at four times a second, and only while there are some.
            const int got = ::poll(watched.data(), watched.size(), guests_.empty() ? 60'000 : 250);
            {
                const std::lock_guard guard(mutex_);
                if (stopping_) return;
                for (auto it = sessions_.begin(); it != sessions_.end();)
                    if (it->over) {
                        it->thread.join();
                        it = sessions_.erase(it);
                    } else {
                        ++it;
                    }
            }
            if (got < 0 && errno != EINTR) return;
            auto guest = guests_.begin();
            for (std::size_t i = 2; i < watched.size(); ++i) {
                const bool keep =
                    watched[i].revents == 0 ? std::chrono::steady_clock::now() < guest->until : listen_to(*guest);
                guest = keep ? std::next(guest) : guests_.erase(guest);
            }
            if ((watched[1].revents & POLLIN) != 0) welcome();
        }
    }

    void welcome() {
        UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd) {
            // Without descriptors the listener stays readable: do not spin on it.
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ::poll(nullptr, 0, 50);
            return;
        }
        if (guests_.size() >= static_cast<std::size_t>(options_.max_waiting)) {
            guests_.pop_front();
            count(&LinkServerCounts::refused);
        }
        Guest guest{
            .fd = std::move(fd), .nonce = sha256(random_hex(32)), .request = {}, .until = after(options_.hello_s)};
        // A fresh socket takes 40 bytes at once.
        const std::string hello = std::string(kMagic) + guest.nonce;
        if (::send(guest.fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
            static_cast<ssize_t>(hello.size()))
            guests_.push_back(std::move(guest));
    }

    // False: done with this guest.
    bool listen_to(Guest& guest) {
        std::array<char, kRequestBytes> bytes{};
        const ssize_t got = ::recv(guest.fd.get(), bytes.data(), kRequestBytes - guest.request.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (got <= 0) return false;
        guest.request.append(bytes.data(), static_cast<std::size_t>(got));
        if (!kMagic.starts_with(guest.request.substr(0, kMagic.size()))) {
            count(&LinkServerCounts::refused);
            return false;
        }
        if (guest.request.size() < kRequestBytes) return true;
        const auto ask = read_ask(guest.request);
        const bool known = is_signed(guest.request, guest.nonce, options_.token);
        if (!known || !ask) {
            count(known ? &LinkServerCounts::refused : &LinkServerCounts::denied);
            say(guest.fd.get(), known ? LinkAnswer::wrong : LinkAnswer::denied);
            return false;
        }
        const std::lock_guard guard(mutex_);
        if (sessions_.size() >= static_cast<std::size_t>(options_.max_sessions)) {
            ++counts_.refused;
            say(guest.fd.get(), LinkAnswer::busy);
            return false;
        }
        ++counts_.sessions;
        say(guest.fd.get(), LinkAnswer::yes);
        Session& session = sessions_.emplace_back();
        session.fd = guest.fd.get();
        // The lock is held here: the thread's last act waits until its entry is whole.
        session.thread = std::thread([this, &session, fd = std::move(guest.fd), ask = *ask]() mutable {
            answer_session(fd.get(), ask);
            const std::lock_guard closing(mutex_);
            fd.reset();
            session.fd = -1;
            session.over = true;
        });
        return false;
    }

    static void say(int fd, LinkAnswer answer) {
        const char byte = static_cast<char>(answer);
        [[maybe_unused]] const ssize_t sent = ::send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    void count(std::uint64_t LinkServerCounts::*which) {
        const std::lock_guard guard(mutex_);
        ++(counts_.*which);
    }

    const LinkServerOptions options_;
    UniqueFd listener_, wake_;
    const std::uint16_t port_;
    std::list<Guest> guests_;   // of the accepting thread
    mutable std::mutex mutex_;  // guards all below but thread_
    std::list<Session> sessions_;
    LinkServerCounts counts_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace
}  // namespace stoker::link_wire

namespace stoker {

std::string host_and_port(const std::string& host, std::uint16_t port) {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

bool is_loopback_address(const std::string& address) {
    in_addr v4{};
    if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    in6_addr v6{};
    return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && std::memcmp(&v6, &in6addr_loopback, sizeof v6) == 0;
}

Result<std::unique_ptr<LinkServer>> LinkServer::start(const LinkServerOptions& options) {
    TRY(link_wire::NumericAddress address, link_wire::numeric_address(options.address, options.port));
    if (options.token.empty() && !is_loopback_address(options.address))
        return Error(ErrorKind::denied,
                     fmt::format("without a token it listens on loopback only, not on {}", options.address), {},
                     "anybody who reaches it could fill the network: give a token that both ends share");
    UniqueFd listener(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener) return link_wire::cannot_listen(options, errno);
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), address.size) != 0 ||
        ::listen(listener.get(), 64) != 0)
        return link_wire::cannot_listen(options, errno);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
        return link_wire::cannot_listen(options, errno);
    const std::uint16_t port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                                 : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return link_wire::cannot_listen(options, errno);
    return std::unique_ptr<LinkServer>(
        std::make_unique<link_wire::ThreadedLinkServer>(options, std::move(listener), std::move(wake), port));
}

}  // namespace stoker
