#include "run/decide/place.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker {
namespace {

constexpr int kBest = 100;

// What the published policies normalise with: the largest node of their fleet.
constexpr double kLargestCpuMilli = 128000, kLargestGpuMilli = 8000;
constexpr int kLargestGpuMilliWhole = 8000;

// Shapes times nodes whose scores are remembered: 192 MiB at the most. A fleet with more starts over.
constexpr std::size_t kMostScores = std::size_t{32} << 20;

struct PolicyName {
    PlacementPolicy policy;
    std::string_view name;
};
constexpr std::array kNames = {
    PolicyName{PlacementPolicy::random, "random"},
    PolicyName{PlacementPolicy::dot_product, "dot-product"},
    PolicyName{PlacementPolicy::gpu_clustering, "gpu-clustering"},
    PolicyName{PlacementPolicy::gpu_packing, "gpu-packing"},
    PolicyName{PlacementPolicy::best_fit, "best-fit"},
    PolicyName{PlacementPolicy::fragmentation, "fragmentation"},
};

// A node that is larger than those of the study still takes work: a negative score would say that nothing fits.
int not_below_0(double score) {
    return std::max(static_cast<int>(score), 0);
}

int score_dot_product(const NodeRoom& room, const TaskShape& task) {
    const double cpu = static_cast<double>(room.cpu_milli) * static_cast<double>(task.cpu_milli) /
                       (kLargestCpuMilli * kLargestCpuMilli);
    const double gpu = static_cast<double>(room.gpu_left) * static_cast<double>(task.total_gpu_milli()) /
                       (kLargestGpuMilli * kLargestGpuMilli);
    return not_below_0(kBest * (1 - (cpu + gpu) / 2));
}

int score_best_fit(const NodeRoom& room, const TaskShape& task) {
    const double cpu = static_cast<double>(room.cpu_milli - task.cpu_milli) / kLargestCpuMilli;
    const double gpu = static_cast<double>(room.gpu_left - task.total_gpu_milli()) / kLargestGpuMilli;
    return not_below_0((1 - (cpu + gpu) / 2) * kBest);
}

// Highest where devices already in use take the task, then a node in use, then an idle one; within each, the fuller.
int score_gpu_packing(const NodeRoom& room, const TaskShape& task) {
    if (task.gpus == 0) return 0;
    const int idle = room.whole_gpus();
    if (idle == room.gpus) return std::max(kBest / 3 - idle, idle);
    std::array<int, kMaxGpusOfNode> left{};
    for (int i = 0; i < room.gpus; ++i) left[static_cast<std::size_t>(i)] = room.gpu_milli[static_cast<std::size_t>(i)];
    std::sort(left.begin(), left.begin() + room.gpus);
    int wanted = task.gpus, whole = 0, spare = 0;
    for (int i = 0; i < room.gpus && wanted > 0; ++i) {
        const int milli = left[static_cast<std::size_t>(i)];
        if (milli < task.gpu_milli) continue;
        --wanted;
        whole += milli == kWholeGpu ? 1 : 0;
        spare += milli * 100 / kWholeGpu;
    }
    if (whole > 0) return std::max(kBest / 2 - whole, kBest / 3);
    return std::max(kBest - spare / 10, kBest / 2);
}

}  // namespace

std::string_view to_string(PlacementPolicy policy) {
    for (const PolicyName& entry : kNames)
        if (entry.policy == policy) return entry.name;
    return "?";
}

std::optional<PlacementPolicy> placement_policy(std::string_view name) {
    for (const PolicyName& entry : kNames)
        if (entry.name == name) return entry.policy;
    return std::nullopt;
}

const std::vector<PlacementPolicy>& all_placement_policies() {
    static const std::vector<PlacementPolicy> policies = [] {
        std::vector<PlacementPolicy> all;
        for (const PolicyName& entry : kNames) all.push_back(entry.policy);
        return all;
    }();
    return policies;
}

std::size_t Placer::ShapeHash::operator()(const TaskShape& task) const noexcept {
    const auto gpu = static_cast<std::uint64_t>(task.gpus) << 32 | static_cast<std::uint64_t>(task.gpu_milli);
    std::uint64_t hash = SplitMix::mix(static_cast<std::uint64_t>(task.cpu_milli));
    hash = SplitMix::mix(hash + static_cast<std::uint64_t>(task.memory_mib));
    return SplitMix::mix(SplitMix::mix(hash + gpu) + task.models + static_cast<std::uint64_t>(task.engine + 1));
}

Placer::Placer(const Fleet& fleet, PlacementPolicy policy, const std::vector<TypicalTask>& typical, std::uint64_t seed)
    : policy_(policy), fragmentation_(typical), random_(SplitMix::mix(seed)) {
    const std::size_t n = fleet.nodes.size();
    rooms_.reserve(n);
    for (const FleetNode& node : fleet.nodes) rooms_.push_back(room_of(node));
    stamps_.assign(n, 1);
    kinds_.assign(n, {});
    if (policy_ == PlacementPolicy::fragmentation) {
        fragments_.reserve(n);
        for (const NodeRoom& room : rooms_) fragments_.push_back(fragmentation_.of(room));
    }
}

std::size_t Placer::kind_of(const TaskShape& task) {
    return task.shares_gpu() ? 0 : static_cast<std::size_t>(task.gpus);
}

Placer::Scores& Placer::scores_of(const TaskShape& task) {
    const auto found = scores_.find(task);
    if (found != scores_.end()) return found->second;
    if ((scores_.size() + 1) * rooms_.size() > kMostScores) scores_.clear();
    Scores& scores = scores_[task];
    scores.value.assign(rooms_.size(), -1);
    scores.stamp.assign(rooms_.size(), 0);
    return scores;
}

// The drop of fragmentation that the task brings, through a sigmoid so that no outlier drowns the rest.
int Placer::score_fragmentation(std::size_t at, const TaskShape& task, int* device) const {
    const NodeRoom& room = rooms_[at];
    const auto descent = [&](std::uint32_t devices) {
        NodeRoom after = room;
        take(after, task, devices);
        const double drop = (fragments_[at] - fragmentation_.of(after)) / kWholeGpu;
        return static_cast<int>(kBest / (1 + std::exp(-drop)));
    };
    if (!task.shares_gpu()) return descent(whole_devices(room, task.gpus));
    int best = -1;
    for (int i = 0; i < room.gpus; ++i) {
        const int left = room.gpu_milli[static_cast<std::size_t>(i)];
        if (left < task.gpu_milli) continue;
        // A device with as much left as an earlier one gives the same answer.
        bool seen = false;
        for (int j = 0; j < i && !seen; ++j) seen = room.gpu_milli[static_cast<std::size_t>(j)] == left;
        if (seen) continue;
        const int value = descent(1U << i);
        if (value <= best) continue;
        best = value;
        if (device != nullptr) *device = i;
    }
    return best;
}

int Placer::score(std::size_t at, const TaskShape& task) const {
    const NodeRoom& room = rooms_[at];
    if (!room.fits(task)) return -1;
    switch (policy_) {
        case PlacementPolicy::random: return 0;
        case PlacementPolicy::dot_product: return score_dot_product(room, task);
        case PlacementPolicy::best_fit: return score_best_fit(room, task);
        case PlacementPolicy::gpu_packing: return score_gpu_packing(room, task);
        case PlacementPolicy::fragmentation: return score_fragmentation(at, task, nullptr);
        case PlacementPolicy::gpu_clustering: {
            if (task.gpus == 0) return 0;
            const auto& kinds = kinds_[at];
            const auto present = std::count_if(kinds.begin(), kinds.end(), [](std::int32_t n) { return n > 0; });
            const bool same = kinds[kind_of(task)] > 0;
            const int quarter = same ? (present == 1 ? 3 : 2) : (present == 0 ? 1 : 0);
            const int used = std::max(kLargestGpuMilliWhole - room.gpu_left, 0);
            return kBest / 4 * used / kLargestGpuMilliWhole + kBest * quarter / 4;
        }
    }
    return -1;
}

std::uint32_t Placer::choose_devices(std::size_t at, const TaskShape& task) {
    if (task.gpus == 0) return 0;
    const NodeRoom& room = rooms_[at];
    if (!task.shares_gpu()) return whole_devices(room, task.gpus);
    if (policy_ == PlacementPolicy::fragmentation) {
        int device = 0;
        score_fragmentation(at, task, &device);
        return 1U << device;
    }
    if (policy_ == PlacementPolicy::random) {
        std::array<int, kMaxGpusOfNode> enough{};
        std::uint64_t count = 0;
        for (int i = 0; i < room.gpus; ++i)
            if (room.gpu_milli[static_cast<std::size_t>(i)] >= task.gpu_milli) enough[count++] = i;
        return 1U << enough[random_.below(count)];
    }
    return 1U << tightest_device(room, task.gpu_milli);
}

Placement Placer::place(const TaskShape& task) {
    Scores& scores = scores_of(task);
    int best = -1;
    std::size_t chosen = 0;
    candidates_.clear();
    for (std::size_t at = 0; at < rooms_.size(); ++at) {
        if (scores.stamp[at] != stamps_[at]) {
            scores.value[at] = static_cast<std::int16_t>(score(at, task));
            scores.stamp[at] = stamps_[at];
        }
        const int value = scores.value[at];
        if (value < 0 || value < best) continue;
        if (policy_ == PlacementPolicy::random) {
            candidates_.push_back(at);
            best = 0;
        } else if (value > best) {
            best = value;
            chosen = at;
        }
    }
    if (best < 0) return {};
    if (policy_ == PlacementPolicy::random) chosen = candidates_[random_.below(candidates_.size())];
    const Placement placement{.node = static_cast<int>(chosen), .devices = choose_devices(chosen, task)};
    occupy(placement, task);
    return placement;
}

void Placer::occupy(const Placement& placement, const TaskShape& task) {
    const auto at = static_cast<std::size_t>(placement.node);
    take(rooms_[at], task, placement.devices);
    if (task.gpus > 0) ++kinds_[at][kind_of(task)];
    if (policy_ == PlacementPolicy::fragmentation) fragments_[at] = fragmentation_.of(rooms_[at]);
    touched(at);
}

Placement Placer::place_on(int node, const TaskShape& task) {
    const Placement placement{.node = node, .devices = choose_devices(static_cast<std::size_t>(node), task)};
    occupy(placement, task);
    return placement;
}

Placement Placer::hold(Placement placement, const TaskShape& task) {
    if (!placement) return placement;
    if (task.gpus > 0 && placement.devices == 0) {
        const NodeRoom& room = rooms_[static_cast<std::size_t>(placement.node)];
        placement.devices = task.shares_gpu() ? 1U << std::max(0, tightest_device(room, task.gpu_milli))
                                              : whole_devices(room, task.gpus);
    }
    occupy(placement, task);
    return placement;
}

void Placer::set_room(int node, const NodeRoom& room) {
    const auto at = static_cast<std::size_t>(node);
    rooms_[at] = room;
    if (policy_ == PlacementPolicy::fragmentation) fragments_[at] = fragmentation_.of(room);
    touched(at);
}

void Placer::release(const Placement& placement, const TaskShape& task) {
    if (!placement) return;
    const auto at = static_cast<std::size_t>(placement.node);
    give_back(rooms_[at], task, placement.devices);
    if (task.gpus > 0) --kinds_[at][kind_of(task)];
    if (policy_ == PlacementPolicy::fragmentation) fragments_[at] = fragmentation_.of(rooms_[at]);
    touched(at);
}

}  // namespace stoker
