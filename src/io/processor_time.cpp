#include "io/processor_time.h"

#include <time.h>

namespace stoker {
namespace {

double seconds_of(clockid_t clock) {
    timespec used{};
    if (::clock_gettime(clock, &used) != 0) return 0;
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace

double processor_s_of_thread() {
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double processor_s_of(pid_t process) {
    clockid_t clock{};
    return ::clock_getcpuclockid(process, &clock) == 0 ? seconds_of(clock) : 0;
}

}  // namespace stoker
