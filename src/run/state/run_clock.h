// The time the core is given: it begins at the wall clock and then goes on with the monotonic one, so that a clock that
// is set an hour forward ends nobody's lease, and one that is set back stalls none. Never before the last record.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

class RunClock {
public:
    RunClock(std::int64_t wall_us, std::int64_t monotonic_us, std::int64_t last_record_us)
        : start_us_(std::max(wall_us, last_record_us)), monotonic_us_(monotonic_us) {}

    std::int64_t now_us(std::int64_t monotonic_us) const {
        return start_us_ + std::max<std::int64_t>(0, monotonic_us - monotonic_us_);
    }
    // How far the wall clock has been moved since; to be shown when it is more than a few seconds. A restart takes the
    // wall clock again.
    std::int64_t jump_us(std::int64_t wall_us, std::int64_t monotonic_us) const {
        return wall_us - now_us(monotonic_us);
    }

private:
    std::int64_t start_us_, monotonic_us_;
};

}  // namespace stoker
