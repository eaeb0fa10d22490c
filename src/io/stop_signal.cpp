#include "io/stop_signal.h"

#include <cerrno>
#include <ctime>

namespace stoker {

StopSignal::StopSignal() {
    sigemptyset(&watched_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched_, signal);
    ::pthread_sigmask(SIG_BLOCK, &watched_, &before_);
}

StopSignal::~StopSignal() {
    // One that is still pending was answered by ending.
    while (wait_for(0)) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int StopSignal::wait() {
    for (;;)
        if (const int signal = ::sigwaitinfo(&watched_, nullptr); signal > 0) return signal;
}

std::optional<int> StopSignal::wait_for(double seconds) {
    timespec time{.tv_sec = static_cast<time_t>(seconds),
                  .tv_nsec = static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
    const int signal = ::sigtimedwait(&watched_, nullptr, &time);
    if (signal > 0) return signal;
    return std::nullopt;
}

void StopSignal::exit_on_the_next() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
    ::pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
}

}  // namespace stoker
