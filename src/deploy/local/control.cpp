#include "deploy/local/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/document.h"
#include "base/json.h"

namespace stoker {
namespace {

constexpr std::array kVerbs = {"status", "signal", "stop"};
constexpr std::size_t kMaxRequest = 4096, kMaxAnswer = 16u << 20, kMaxClients = 16;
constexpr auto kSlowest = std::chrono::seconds(2);

// The name of the socket by way of the folder's descriptor, since an address has only 107 characters.
sockaddr_un address_in(const UniqueFd& folder) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/control";
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

UniqueFd folder_descriptor(const std::string& folder) {
    return UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Error unreachable(const std::string& folder, ErrorKind kind, const char* why) {
    return Error(kind, "the keeper of " + folder + " cannot be reached: " + why);
}

const Node* member(const Document& document, std::string_view key, NodeKind kind) {
    const Node* node = document.root().find(key);
    return node && node->kind == kind ? node : nullptr;
}

}  // namespace

std::string to_line(const ControlRequest& request) {
    return Json::object()
               .set("verb", kVerbs[static_cast<std::size_t>(request.verb)])
               .set("epoch", static_cast<std::int64_t>(request.epoch))
               .set("signal", request.signal)
               .set("grace_s", request.grace_s)
               .dump(0) +
           "\n";
}

std::string to_line(const ControlAnswer& answer) {
    return Json::object().set("ok", answer.ok).set("detail", answer.detail).set("status", answer.status).dump(0) + "\n";
}

Result<ControlRequest> parse_request(std::string_view line) {
    TRY(const Document document, Document::parse_json(line, "request"));
    ControlRequest request;
    const Node* verb = member(document, "verb", NodeKind::string);
    const Node* epoch = member(document, "epoch", NodeKind::number);
    const Node* signal = member(document, "signal", NodeKind::number);
    const Node* grace = member(document, "grace_s", NodeKind::number);
    if (!verb || !epoch || !signal || !grace || grace->number < 0)
        return Error(ErrorKind::invalid, "a request has verb, epoch, signal and grace_s");
    const auto integer = [](const Node& node, auto& value) {
        const auto [end, code] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
        return code == std::errc() && end == node.text.data() + node.text.size();
    };
    if (!integer(*epoch, request.epoch) || !integer(*signal, request.signal))
        return Error(ErrorKind::invalid, "epoch and signal are whole numbers");
    request.grace_s = grace->number;
    for (std::size_t i = 0; i < kVerbs.size(); ++i) {
        if (verb->text != kVerbs[i]) continue;
        request.verb = static_cast<ControlVerb>(i);
        return request;
    }
    return Error(ErrorKind::invalid, "a keeper knows status, signal and stop");
}

Result<ControlAnswer> parse_answer(std::string_view line) {
    TRY(const Document document, Document::parse_json(line, "answer", {.max_bytes = kMaxAnswer}));
    const Node* ok = member(document, "ok", NodeKind::boolean);
    const Node* detail = member(document, "detail", NodeKind::string);
    const Node* status = member(document, "status", NodeKind::string);
    if (!ok || !detail || !status) return Error(ErrorKind::invalid, "the keeper's answer is not understood");
    return ControlAnswer{ok->boolean, detail->text, status->text};
}

Result<ControlClient> ControlClient::connect(const std::string& folder, Deadline deadline) {
    const UniqueFd place = folder_descriptor(folder);
    if (!place) return unreachable(folder, ErrorKind::not_found, std::strerror(errno));
    const sockaddr_un address = address_in(place);
    for (;;) {
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket) return unreachable(folder, ErrorKind::exhausted, std::strerror(errno));
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
            return ControlClient(std::move(socket));
        if (errno == ENOENT || errno == ECONNREFUSED)
            return unreachable(folder, ErrorKind::not_found, std::strerror(errno));
        // EAGAIN: more wait than the keeper has room for.
        if (errno != EAGAIN && errno != EINTR) return unreachable(folder, ErrorKind::unavailable, std::strerror(errno));
        const int wait = milliseconds_until(deadline, 10);
        if (wait == 0) return unreachable(folder, ErrorKind::timed_out, "it does not answer");
        ::poll(nullptr, 0, wait);
    }
}

Result<ControlAnswer> ControlClient::ask(const ControlRequest& request, Deadline deadline) {
    const std::string line = to_line(request);  // shorter than any socket's buffer
    if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        return Error(ErrorKind::unavailable, std::string("the keeper has gone: ") + std::strerror(errno));
    std::string answer;
    std::array<char, 16384> block{};
    while (answer.size() < kMaxAnswer) {
        pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
        const int ready = ::poll(&wait, 1, milliseconds_until(deadline));
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0 && milliseconds_until(deadline) > 0) continue;
        if (ready == 0) return Error(ErrorKind::timed_out, "the keeper does not answer");
        const ssize_t got = ::recv(socket_.get(), block.data(), block.size(), 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return Error(ErrorKind::unavailable, "the keeper ended before it answered");
        answer.append(block.data(), static_cast<std::size_t>(got));
        if (answer.back() == '\n') return parse_answer(answer);
    }
    return Error(ErrorKind::invalid, "the keeper's answer has no end");
}

bool ControlClient::wait_for_end(Deadline deadline) {
    char byte = 0;
    for (;;) {
        pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
        const int left = milliseconds_until(deadline);
        const int ready = ::poll(&wait, 1, left);
        if (ready == 0 && left == 0) return false;
        if (ready <= 0) continue;
        const ssize_t got = ::recv(socket_.get(), &byte, 1, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
    }
}

Status ControlServer::listen(const std::string& folder) {
    const UniqueFd place = folder_descriptor(folder);
    const sockaddr_un address = address_in(place);
    ::unlink((folder + "/control").c_str());
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!place || !socket_ || ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_.get(), kMaxClients) != 0)
        return Error(ErrorKind::unavailable, "cannot listen in " + folder + ": " + std::strerror(errno));
    return done();
}

void ControlServer::add_to(std::vector<pollfd>& waits) const {
    if (socket_ && clients_.size() < kMaxClients)
        waits.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
    for (const Client& client : clients_) waits.push_back({.fd = client.socket.get(), .events = POLLIN, .revents = 0});
}

void ControlServer::serve(const std::function<ControlAnswer(const ControlRequest&)>& answer) {
    const auto now = std::chrono::steady_clock::now();
    while (socket_ && clients_.size() < kMaxClients) {
        UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) break;
        clients_.push_back({.socket = std::move(socket), .said = {}, .since = now});
    }
    for (auto client = clients_.begin(); client != clients_.end();) {
        std::array<char, 1024> block{};
        const ssize_t got = ::recv(client->socket.get(), block.data(), block.size(), 0);
        bool keep = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
        if (got > 0) client->said.append(block.data(), static_cast<std::size_t>(got));
        if (keep && client->said.ends_with('\n')) {
            auto request = parse_request(client->said);
            const std::string line =
                to_line(request ? answer(*request) : ControlAnswer{.detail = request.error().message(), .status = {}});
            client->said.clear();
            client->answered = true;
            // A status of more than the socket's buffer (some 200 KiB, thousands of ranks) would need a queue here; the
            // driver reads status.json then.
            keep = ::send(client->socket.get(), line.data(), line.size(), MSG_NOSIGNAL) ==
                   static_cast<ssize_t>(line.size());
        }
        if (client->said.size() > kMaxRequest || (!client->answered && now - client->since > kSlowest)) keep = false;
        client = keep ? std::next(client) : clients_.erase(client);
    }
}

}  // namespace stoker
