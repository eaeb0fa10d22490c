// One call to the driver as GpuReader makes it: announced to whoever watches from outside, and recorded. For the files
// of GpuReader alone.
#pragma once

#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "io/process.h"
#include "observe/gpu/read_gpu.h"

namespace stoker {

inline std::int64_t nvml_thread_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

template <class... P, class... A>
int GpuReader::call(const char* name, int (*function)(P...), A... arguments) {
    if (!function) return nvml::kFunctionNotFound;
    const std::int64_t cpu_began = recorder_ ? nvml_thread_cpu_ns() : 0;
    const auto began = std::chrono::steady_clock::now();
    std::strncpy(stamp_.call, name, sizeof stamp_.call - 1);
    stamp_.started_us.store(monotonic_clock_us(), std::memory_order_release);
    const int code = function(arguments...);
    stamp_.started_us.store(0, std::memory_order_release);
    stamp_.calls.fetch_add(1, std::memory_order_relaxed);
    if (code == nvml::kGpuLost) lost_ = true;
    if (recorder_) {
        const auto ended = std::chrono::steady_clock::now();
        const std::int64_t cpu_ns = nvml_thread_cpu_ns() - cpu_began;
        std::string words;
        // What is passed by value names the call; where it answers is of no interest.
        const auto add = [&words](auto argument) {
            if constexpr (std::is_integral_v<decltype(argument)>) words += fmt::format("{} ", argument);
        };
        (add(arguments), ...);
        if (!words.empty()) words.pop_back();
        if (alone_ != 0) words = fmt::format("alone: {}", alone_);
        recorder_(
            {name, words, code, std::chrono::duration_cast<std::chrono::nanoseconds>(ended - began).count(), cpu_ns});
    }
    return code;
}

}  // namespace stoker
