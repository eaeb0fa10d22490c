#include "run/decide/fragmentation.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {
constexpr std::size_t kMaxLevels = 128;
}

Fragmentation::Fragmentation(const std::vector<TypicalTask>& typical) {
    for (const TypicalTask& task : typical)
        if (task.shape.gpus > 0) levels_.push_back(task.shape.gpu_milli);
    std::sort(levels_.begin(), levels_.end());
    levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
    // Rarer sizes than there is room for are rounded up to the next one kept: their tasks then look a little larger.
    while (levels_.size() > kMaxLevels) {
        std::vector<int> kept;
        for (std::size_t i = levels_.size() % 2 == 0 ? 1 : 0; i < levels_.size(); i += 2) kept.push_back(levels_[i]);
        levels_ = std::move(kept);
    }
    for (const TypicalTask& task : typical) {
        const TaskShape& shape = task.shape;
        if (shape.gpus == 0) {
            without_gpu_ += task.share;
            continue;
        }
        const auto level = std::lower_bound(levels_.begin(), levels_.end(), shape.gpu_milli);
        entries_.push_back({shape.cpu_milli, shape.models, task.share, shape.gpus,
                            static_cast<int>(std::min(level, levels_.end() - 1) - levels_.begin())});
    }
}

double Fragmentation::of(const NodeRoom& room) const {
    if (room.gpu_left == 0) return 0;
    std::array<int, kMaxLevels> enough, too_small;
    for (std::size_t l = 0; l < levels_.size(); ++l) {
        int devices = 0, small = 0;
        for (int i = 0; i < room.gpus; ++i) {
            const int left = room.gpu_milli[static_cast<std::size_t>(i)];
            devices += left >= levels_[l] ? 1 : 0;
            small += left < levels_[l] ? left : 0;
        }
        enough[l] = devices;
        too_small[l] = small;
    }
    double sum = without_gpu_ * room.gpu_left;
    for (const Entry& entry : entries_) {
        const auto level = static_cast<std::size_t>(entry.level);
        const bool runs =
            room.cpu_milli >= entry.cpu_milli && enough[level] >= entry.gpus && room.has_model(entry.models);
        sum += entry.share * (runs ? too_small[level] : room.gpu_left);
    }
    return sum;
}

}  // namespace stoker
