#include "io/resolve.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace stoker {
namespace {

constexpr int kMostResolving = 32;
std::atomic<int> resolving = 0;

struct Resolving {
    std::mutex mutex;
    std::condition_variable done;
    bool answered = false;
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
    if (++resolving > kMostResolving) {
        --resolving;
        return Error(ErrorKind::exhausted,
                     fmt::format("{} names are being looked up and none is answered", kMostResolving), {},
                     "look at the resolver of this machine (/etc/resolv.conf)");
    }
    const auto shared = std::make_shared<Resolving>();
    // What outlives its caller takes no signal that is another's to wait for.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([shared, host, service, resolver] {
        const addrinfo hints = hints_for(0);
        addrinfo* found = nullptr;
        const int code = resolver(host.c_str(), service.c_str(), &hints, &found);
        --resolving;
        const std::lock_guard guard(shared->mutex);
        shared->list.reset(code == 0 ? found : nullptr);
        shared->code = code;
        shared->answered = true;
        shared->done.notify_all();
    }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    std::unique_lock lock(shared->mutex);
    if (!shared->done.wait_until(lock, deadline, [&] { return shared->answered; }))
        return Error(ErrorKind::timed_out, fmt::format("the name {} was not looked up in time", host), {},
                     "look at the resolver of this machine (/etc/resolv.conf), or name an address");
    if (shared->code != 0)
        return Error(ErrorKind::unavailable,
                     fmt::format("the name {} has no address: {}", host, ::gai_strerror(shared->code)));
    return std::move(shared->list);
}

}  // namespace stoker
