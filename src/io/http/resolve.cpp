#include "io/http/resolve.h"

#include <fmt/format.h>

#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::size_t kMostResolving = 32;

struct Resolved {
    int code = 0;
    Addresses list;
};

addrinfo hints_for(int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | flags;
    return hints;
}

}  // namespace

Result<Addresses> resolve(const std::string& host, int port, std::chrono::steady_clock::time_point deadline,
                          const Resolver& resolver) {
    const std::string service = std::to_string(port);
    // An address needs no resolver, and no thread.
    addrinfo* list = nullptr;
    const addrinfo numeric = hints_for(AI_NUMERICHOST);
    if (::getaddrinfo(host.c_str(), service.c_str(), &numeric, &list) == 0) return Addresses(list);
    static WithinDeadline lookups({.name = "stoker-resolve", .most = kMostResolving});
    auto resolved = lookups.run<Resolved>(deadline, [host, service, resolver] {
        const addrinfo hints = hints_for(0);
        addrinfo* found = nullptr;
        const int code = resolver(host.c_str(), service.c_str(), &hints, &found);
        return Resolved{.code = code, .list = Addresses(code == 0 ? found : nullptr)};
    });
    if (!resolved && resolved.error().kind() == ErrorKind::exhausted)
        return Error(ErrorKind::exhausted,
                     fmt::format("{} names are being looked up and none is answered", kMostResolving), {},
                     "look at the resolver of this machine (/etc/resolv.conf)");
    if (!resolved)
        return Error(ErrorKind::timed_out, fmt::format("the name {} was not looked up in time", host), {},
                     "look at the resolver of this machine (/etc/resolv.conf), or name an address");
    if (resolved->code != 0)
        return Error(ErrorKind::unavailable,
                     fmt::format("the name {} has no address: {}", host, ::gai_strerror(resolved->code)));
    return std::move(resolved->list);
}

}  // namespace stoker
