#include "serve/gateway/poller.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace stoker::gateway {
namespace {

constexpr std::int64_t kLookUs = 20'000;

// epoll_wait counts in milliseconds. By its number, not by glibc's name, which those before 2.35 have not; kernels
// before 5.11 do not know it and wait for the whole millisecond.
int wait_for(int epoll, std::array<epoll_event, 256>& ready, std::chrono::microseconds timeout) {
    const auto size = static_cast<int>(ready.size());
    const auto us = static_cast<long>(timeout.count());
    if (us % 1000 != 0) {
        const timespec time{.tv_sec = us / 1'000'000, .tv_nsec = us % 1'000'000 * 1000};
        const long count = ::syscall(SYS_epoll_pwait2, epoll, ready.data(), size, &time, nullptr, 0);
        if (count >= 0 || errno != ENOSYS) return static_cast<int>(count);
    }
    return ::epoll_wait(epoll, ready.data(), size, static_cast<int>((us + 999) / 1000));
}

}  // namespace

Result<std::unique_ptr<Poller>> Poller::make() {
    auto poller = std::unique_ptr<Poller>(new Poller());
    poller->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    poller->event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!poller->epoll_ || !poller->event_ || !poller->add(poller->event_.get(), nullptr, EPOLLIN))
        return Error(ErrorKind::exhausted, std::string("cannot make an event loop: ") + std::strerror(errno));
    return poller;
}

bool Poller::add(int fd, Watcher* watcher, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.ptr = watcher}};
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::change(int fd, Watcher* watcher, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.ptr = watcher}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Poller::bury(std::shared_ptr<void> thing) {
    buried_.push_back(std::move(thing));
}

void Poller::wake() {
    const std::uint64_t one = 1;
    // Full means that it is awake already.
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void Poller::post(std::function<void()> work) {
    {
        const std::lock_guard guard(mutex_);
        posted_.push_back(std::move(work));
    }
    wake();
}

void Poller::turn(std::chrono::microseconds timeout) {
    std::array<epoll_event, 256> ready;
    const std::int64_t began_us = monotonic_clock_us();
    const int count = wait_for(epoll_.get(), ready, timeout);
    const std::int64_t now_us = monotonic_clock_us();
    waited_us_ += now_us - began_us;
    if (now_us - looked_us_ >= kLookUs) {
        busy_share_ = 1 - static_cast<double>(waited_us_) / static_cast<double>(now_us - looked_us_);
        looked_us_ = now_us;
        waited_us_ = 0;
    }
    for (int i = 0; i < count; ++i) {
        auto* watcher = static_cast<Watcher*>(ready[static_cast<std::size_t>(i)].data.ptr);
        if (watcher != nullptr) {
            watcher->on_ready(ready[static_cast<std::size_t>(i)].events);
            continue;
        }
        std::uint64_t times = 0;
        [[maybe_unused]] const ssize_t got = ::read(event_.get(), &times, sizeof times);
        std::vector<std::function<void()>> work;
        {
            const std::lock_guard guard(mutex_);
            work.swap(posted_);
        }
        for (const auto& each : work) each();
    }
    // What goes may bury more.
    while (!buried_.empty()) {
        std::vector<std::shared_ptr<void>> gone;
        gone.swap(buried_);
    }
}

}  // namespace stoker::gateway
