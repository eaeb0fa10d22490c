// What was held and did nothing, by its cause: from the signals that there are (processors, disks and network, steps,
// GPUs where somebody measures them). Pure.
//
// A minute is idle only where every signal that is known lies below its threshold, and at least one is known: what is
// not known counts as busy, so that a measurement that failed accuses nobody.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

enum class WasteCause : std::uint8_t {
    no_work,           // held, and nothing moved
    waiting_for_data,  // threads waited for a device, or much was read, and little was computed
    deployment,        // held before the work began: images, folders, a gang that comes together
    forgotten          // nothing moved any more until the end, for long
};
constexpr std::array<std::pair<WasteCause, std::string_view>, 4> enum_names(WasteCause) {
    return {{{WasteCause::no_work, "no work"},
             {WasteCause::waiting_for_data, "waiting for data"},
             {WasteCause::deployment, "deployment"},
             {WasteCause::forgotten, "forgotten"}}};
}

inline constexpr double kBusyShareOfCores = 0.05;  // of the processors that are held
inline constexpr double kBusyShareOfGpus = 0.05;
inline constexpr double kBusyBytesPerS = 1e6;                                      // disk and network together
inline constexpr double kBlockedThreads = 0.5;                                     // that wait for a device, on average
inline constexpr std::int64_t kIdleAtLeastUs = std::int64_t{10} * 60 * 1'000'000;  // shorter pauses are part of work
inline constexpr std::int64_t kForgottenAfterUs = std::int64_t{60} * 60 * 1'000'000;

// What was measured of all ranks together over a piece of time; what is absent is not known.
struct WasteSample {
    std::int64_t from_us = 0, to_us = 0;
    std::optional<double> cores, bytes_per_s, blocked, gpus;  // gpus: as many as were busy
    bool stepped = false;                                     // a step ended
};
struct WasteSubject {
    std::int64_t began_us = 0, running_us = 0, until_us = 0;  // of an attempt; running_us 0: it never ran
    double cores = 0;                                         // that it holds
    int gpus = 0;
    std::vector<WasteSample> samples;  // in order
};
struct WastePiece {
    WasteCause cause = WasteCause::no_work;
    std::int64_t from_us = 0, to_us = 0;
    friend bool operator==(const WastePiece&, const WastePiece&) = default;
};
// Every signal that is known lies below its threshold, at least one is known, and nobody waits for data.
bool is_idle(const WasteSample& sample, const WasteSubject& subject);
// In order, apart from each other, within [began, until).
std::vector<WastePiece> judge_waste(const WasteSubject& subject);

}  // namespace stoker
