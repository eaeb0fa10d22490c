#include "io/handover.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::string_view kFile = "handover.sock";
constexpr std::string_view kHello = "stoker-handover 1\n", kGo = "go\n", kBye = "bye\n";
constexpr double kAnswerS = 10;    // of the old process
constexpr double kPatienceS = 60;  // with a new one that looks whether it can start

Error failed(std::string_view doing) {
    return Error(ErrorKind::unavailable, fmt::format("{}: {}", doing, std::strerror(errno)));
}

// The path of a socket has 107 bytes at most, those of folders have more: it is named below an open folder.
struct SocketName {
    UniqueFd folder;
    sockaddr_un address{};
};
Result<SocketName> name_in(const std::string& folder) {
    SocketName name;
    name.folder = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (name.folder.get() < 0) return failed("cannot open the folder " + printable(folder));
    name.address.sun_family = AF_UNIX;
    const std::string path = fmt::format("/proc/self/fd/{}/{}", name.folder.get(), kFile);
    std::memcpy(static_cast<char*>(name.address.sun_path), path.c_str(), path.size() + 1);
    return name;
}

bool readable_until(int fd, Deadline deadline) {
    pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
    for (;;) {
        const int ready = ::poll(&waited, 1, milliseconds_until(deadline));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
        if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    }
}

// A word, whole: the other end writes it at once.
bool reads(int fd, std::string_view word, Deadline deadline) {
    std::array<char, 64> bytes{};
    if (!readable_until(fd, deadline)) return false;
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    return got == static_cast<ssize_t>(word.size()) && std::memcmp(bytes.data(), word.data(), word.size()) == 0;
}

bool writes(int fd, std::string_view word) {
    return ::send(fd, word.data(), word.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word.size());
}

// A message of these bytes, with room for one descriptor.
class MessageWithSocket {
public:
    MessageWithSocket(char* bytes, std::size_t size) : text_{.iov_base = bytes, .iov_len = size} {
        message.msg_iov = &text_;
        message.msg_iovlen = 1;
        message.msg_control = room_.data();
        message.msg_controllen = room_.size();
    }
    MessageWithSocket(const MessageWithSocket&) = delete;
    MessageWithSocket& operator=(const MessageWithSocket&) = delete;
    msghdr message{};

private:
    iovec text_;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room_{};
};

bool send_socket(int peer, int socket) {
    MessageWithSocket hello(const_cast<char*>(kHello.data()), kHello.size());
    cmsghdr* head = CMSG_FIRSTHDR(&hello.message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &socket, sizeof socket);
    return ::sendmsg(peer, &hello.message, MSG_NOSIGNAL) == static_cast<ssize_t>(kHello.size());
}

UniqueFd take_socket(int peer) {
    std::array<char, 64> bytes{};
    MessageWithSocket hello(bytes.data(), bytes.size());
    const ssize_t got = ::recvmsg(peer, &hello.message, MSG_CMSG_CLOEXEC);
    cmsghdr* head = CMSG_FIRSTHDR(&hello.message);
    if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return UniqueFd();
    int socket = -1;
    std::memcpy(&socket, CMSG_DATA(head), sizeof socket);
    UniqueFd taken(socket);
    const bool ours =
        got == static_cast<ssize_t>(kHello.size()) && std::memcmp(bytes.data(), kHello.data(), kHello.size()) == 0;
    return ours ? std::move(taken) : UniqueFd();
}

Result<ucred> who_is(int peer) {
    ucred who{};
    socklen_t size = sizeof who;
    if (::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return failed("cannot ask who connects");
    return who;
}

}  // namespace

Result<std::unique_ptr<HandoverOffer>> HandoverOffer::start(const std::string& folder, int socket,
                                                            std::function<void(pid_t)> taken) {
    std::unique_ptr<HandoverOffer> offer(new HandoverOffer);
    offer->path_ = folder + "/" + std::string(kFile);
    offer->socket_ = socket;
    offer->taken_ = std::move(taken);
    TRY(PipePair pipe, make_pipe());
    offer->stop_read_ = std::move(pipe.read);
    offer->stop_write_ = std::move(pipe.write);
    offer->listening_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (offer->listening_.get() < 0) return failed("cannot make a socket");
    TRY(const SocketName name, name_in(folder));
    ::unlink(offer->path_.c_str());  // of a server that was killed: the folder is ours
    const auto* address = reinterpret_cast<const sockaddr*>(&name.address);
    if (::bind(offer->listening_.get(), address, sizeof name.address) != 0 ||
        ::chmod(offer->path_.c_str(), 0600) != 0 || ::listen(offer->listening_.get(), 4) != 0)
        return failed("cannot offer the socket at " + printable(offer->path_));
    offer->thread_ = masked_thread("stoker-handover", [raw = offer.get()] { raw->serve(); });
    return offer;
}

HandoverOffer::~HandoverOffer() {
    stop_write_ = UniqueFd();
    if (thread_.joinable()) thread_.join();
    ::unlink(path_.c_str());
}

void HandoverOffer::serve() {
    for (;;) {
        std::array<pollfd, 2> waited{pollfd{.fd = listening_.get(), .events = POLLIN, .revents = 0},
                                     pollfd{.fd = stop_read_.get(), .events = POLLIN, .revents = 0}};
        if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
        if (waited[1].revents != 0) return;
        if (waited[0].revents == 0) continue;
        const UniqueFd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (peer.get() >= 0 && hand_to(peer.get())) return;
    }
}

// True: it is over.
bool HandoverOffer::hand_to(int peer) {
    const auto who = who_is(peer);
    if (!who || (who->uid != ::geteuid() && who->uid != 0)) return false;
    if (!send_socket(peer, socket_)) return false;
    const Deadline deadline = after(kPatienceS);
    std::array<pollfd, 2> waited{pollfd{.fd = peer, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = stop_read_.get(), .events = POLLIN, .revents = 0}};
    while (waited[0].revents == 0) {
        if (::poll(waited.data(), waited.size(), milliseconds_until(deadline)) < 0 && errno != EINTR) return false;
        if (waited[1].revents != 0) return true;
        if (waited[0].revents == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    }
    if (!reads(peer, kGo, deadline)) return false;  // it thought better of it
    writes(peer, kBye);
    taken_(who->pid);
    return true;
}

Result<Handover> Handover::ask(const std::string& folder) {
    const auto nobody = [&] {
        return Error(ErrorKind::not_found, "no server offers its place in " + printable(folder), {},
                     "without --replace, stoker up starts one; one of an older Stoker has to be stopped first");
    };
    auto name = name_in(folder);
    if (!name) return nobody();
    UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connection.get() < 0) return failed("cannot make a socket");
    const auto* address = reinterpret_cast<const sockaddr*>(&name->address);
    if (::connect(connection.get(), address, sizeof name->address) != 0) {
        if (errno == EACCES || errno == EPERM)
            return Error(ErrorKind::denied, "the server of " + printable(folder) + " belongs to another user", {},
                         "replace it as that user, or as root");
        return nobody();
    }
    UniqueFd socket;
    if (readable_until(connection.get(), after(kAnswerS))) socket = take_socket(connection.get());
    if (socket.get() < 0)
        return Error(ErrorKind::denied, "the server of " + printable(folder) + " does not give its place", {},
                     "only its own user and root may take it; a server that is ending gives it to nobody");
    TRY(const ucred who, who_is(connection.get()));
    return Handover(std::move(connection), std::move(socket), who.pid);
}

Status Handover::go(double seconds) {
    const Deadline deadline = after(seconds);
    const auto ticks = start_ticks(pid_);
    if (!writes(connection_.get(), kGo) || !reads(connection_.get(), kBye, deadline))
        return Error(ErrorKind::unavailable, "the server before does not give its place any more", {},
                     "see whether it still runs: stoker nodes");
    if (!ticks) return done();  // gone already
    const UniqueFd process = open_process(pid_, *ticks);
    if (process.get() < 0 || readable_until(process.get(), deadline)) return done();
    return Error(ErrorKind::timed_out,
                 fmt::format("process {}, the server before, is still ending after {:g} s", pid_, seconds), {},
                 "stoker up starts one once it is gone");
}

Result<SocketPlace> place_of_socket(int socket) {
    int listening = 0;
    socklen_t size = sizeof listening;
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0)
        return Error(ErrorKind::invalid, fmt::format("descriptor {} is no listening socket", socket));
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (storage.ss_family == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
        ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
        return SocketPlace{text.data(), ntohs(v4->sin_port)};
    }
    if (storage.ss_family == AF_INET6) {
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
        ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
        return SocketPlace{text.data(), ntohs(v6->sin6_port)};
    }
    return Error(ErrorKind::invalid, fmt::format("descriptor {} listens on no address of the internet", socket), {},
                 "ListenStream= of the socket unit takes 127.0.0.1:8042");
}

}  // namespace stoker
