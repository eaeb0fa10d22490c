// The time the core is given: it begins at the wall clock and then goes on with the monotonic one, so that a clock that
// is set an hour forward ends nobody's lease, and one that is set back stalls none. Never before the last record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace stoker {

// One moment by both clocks: the server's own time, and the machine's monotonic clock, which counts from its boot.
struct ClockMark {
    std::string boot_id;  // empty: there is no mark
    std::int64_t monotonic_us = 0, at_us = 0;
};

class RunClock {
public:
    // `before`: of the server before this one, when the machine was not booted since. Then time goes on at least as
    // far as the monotonic clock did: a wall clock that was set back between the two takes no hour from anybody.
    RunClock(std::int64_t wall_us, std::int64_t monotonic_us, std::int64_t last_record_us, ClockMark before = {})
        : before_(std::move(before)), start_us_(std::max(wall_us, last_record_us)), monotonic_us_(monotonic_us) {
        if (!before_.boot_id.empty()) start_us_ = std::max(start_us_, of_before(monotonic_us));
    }

    std::int64_t now_us(std::int64_t monotonic_us) const {
        return start_us_ + std::max<std::int64_t>(0, monotonic_us - monotonic_us_);
    }
    // Of a moment that may lie before this server's start.
    std::int64_t at_us(std::int64_t monotonic_us) const {
        if (monotonic_us >= monotonic_us_) return now_us(monotonic_us);
        return before_.boot_id.empty() ? start_us_ - (monotonic_us_ - monotonic_us) : of_before(monotonic_us);
    }
    // How far the wall clock has been moved since; to be shown when it is more than a few seconds. A restart takes the
    // wall clock again when that is ahead.
    std::int64_t jump_us(std::int64_t wall_us, std::int64_t monotonic_us) const {
        return wall_us - now_us(monotonic_us);
    }

private:
    std::int64_t of_before(std::int64_t monotonic_us) const {
        return before_.at_us + (monotonic_us - before_.monotonic_us);
    }

    ClockMark before_;
    std::int64_t start_us_, monotonic_us_;
};

}  // namespace stoker
