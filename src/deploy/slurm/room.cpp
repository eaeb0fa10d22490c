#include "deploy/slurm/room.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker::slurm {
namespace {

std::int64_t number_at(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace

Room room_of(const std::vector<SlurmNode>& nodes, const std::vector<std::string>& partitions) {
    Room room;
    for (const SlurmNode& node : nodes) {
        const bool in =
            partitions.empty() || std::any_of(partitions.begin(), partitions.end(), [&](const std::string& name) {
                return std::find(node.partitions.begin(), node.partitions.end(), name) != node.partitions.end();
            });
        if (!in) continue;
        const std::int64_t cores = node.info.cpu_milli / 1000;
        const auto gpus = static_cast<std::int64_t>(node.info.devices.size());
        ++room.nodes;
        room.cores += cores, room.gpus += gpus;
        if (!node.usable) continue;
        if (node.cores_used == 0 && node.gpus_used == 0) ++room.idle_nodes;
        room.free_cores += std::max<std::int64_t>(0, cores - node.cores_used);
        room.free_gpus += std::max<std::int64_t>(0, gpus - node.gpus_used);
    }
    return room;
}

std::vector<std::int64_t> read_waiting(std::string_view priorities) {
    std::vector<std::int64_t> waiting;
    for (const std::string_view line : split_lines(priorities))
        if (const std::string_view text = trim(line); !text.empty()) waiting.push_back(number_at(text));
    return waiting;
}

std::string numbers_of(const Job& job, const Room& room) {
    const Cause cause = read_reason(job.reason).cause;
    if (room.nodes == 0) return {};
    if (cause == Cause::capacity_busy || cause == Cause::node_unhealthy) {
        std::string text;
        if (room.gpus > 0) text = fmt::format("{} of {} GPUs, ", room.free_gpus, room.gpus);
        return text + fmt::format("{} of {} cores and {} of {} nodes are free", room.free_cores, room.cores,
                                  room.idle_nodes, room.nodes);
    }
    if (cause != Cause::order_behind) return {};
    const auto before = std::count_if(room.waiting.begin(), room.waiting.end(),
                                      [&](std::int64_t priority) { return priority > job.priority; });
    if (before == 0) return {};
    return before == 1 ? std::string("1 job that waits there comes before it")
                       : fmt::format("{} jobs that wait there come before it", before);
}

}  // namespace stoker::slurm
