#include "observe/gpu/point_queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker {

void GpuPointQueue::add(const std::vector<GpuReading>& boards, double now_s) {
    const auto measures = fleet_measures();
    CHECK(measures.size() == kMeasures);
    if (began_s_ < 0) began_s_ = now_s;
    for (const GpuReading& board : boards) {
        if (board.index < 0 || board.uuid.starts_with("MIG-")) continue;
        auto& sums = sums_[board.index];
        for (const auto& [name, value] : board.values)
            if (const auto at = std::find(measures.begin(), measures.end(), name); at != measures.end()) {
                Mean& mean = sums[static_cast<std::size_t>(at - measures.begin())];
                mean.sum += value, ++mean.count;
            }
    }
    if (now_s - began_s_ < every_s_) return;
    Point point{.number = ++last_, .at_s = now_s, .boards = {}};
    for (const auto& [index, sums] : sums_) {
        Board& board = point.boards.emplace_back(Board{.index = index});
        for (std::size_t i = 0; i < kMeasures; ++i)
            board.values[i] = sums[i].count == 0 ? std::numeric_limits<float>::quiet_NaN()
                                                 : static_cast<float>(sums[i].sum / sums[i].count);
    }
    sums_.clear();
    began_s_ = now_s;
    points_.push_back(std::move(point));
    if (points_.size() > most_) points_.pop_front(), ++lost_;
}

std::vector<ReportedPoint> GpuPointQueue::oldest(std::size_t count, double now_s) const {
    std::vector<ReportedPoint> told;
    for (const Point& point : points_) {
        if (told.size() == count) break;
        ReportedPoint& out = told.emplace_back();
        out.number = point.number, out.ago_s = std::max(0.0, now_s - point.at_s);
        for (const Board& board : point.boards) {
            ReportedFigures& figures = out.boards.emplace_back();
            figures.index = board.index;
            for (std::size_t i = 0; i < kMeasures; ++i)
                if (!std::isnan(board.values[i])) figures.values.emplace(fleet_measures()[i], board.values[i]);
        }
    }
    return told;
}

void GpuPointQueue::kept_through(std::int64_t number) {
    while (!points_.empty() && points_.front().number <= number) points_.pop_front();
}

}  // namespace stoker
