// What an agent has not told its server yet: means of each board over some seconds, numbered, the last hour of them at
// most. Of whole boards: an instance (MIG) has no series of its own.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "observe/gpu/gpu_report.h"
#include "observe/gpu_source.h"

namespace stoker {

class GpuPointQueue {
public:
    explicit GpuPointQueue(double every_s, std::size_t most = 360) : every_s_(every_s), most_(most) {}
    // Once a second or so.
    void add(const std::vector<GpuReading>& boards, double now_s);
    // The oldest, with how long ago they were.
    std::vector<ReportedPoint> oldest(std::size_t count, double now_s) const;
    void kept_through(std::int64_t number);
    std::size_t waiting() const { return points_.size(); }
    std::int64_t lost() const { return lost_; }

private:
    static constexpr std::size_t kMeasures = 14;
    struct Mean {
        double sum = 0;
        std::uint32_t count = 0;
    };
    struct Board {
        int index = -1;
        std::array<float, kMeasures> values{};  // NaN: not told
    };
    struct Point {
        std::int64_t number = 0;
        double at_s = 0;
        std::vector<Board> boards;
    };
    const double every_s_;
    const std::size_t most_;
    double began_s_ = -1;
    std::map<int, std::array<Mean, kMeasures>> sums_;  // since then, by index
    std::deque<Point> points_;
    std::int64_t last_ = 0, lost_ = 0;
};

}  // namespace stoker
