#include "deploy/local/gang_end.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "deploy/local/box.h"
#include "deploy/local/launcher.h"
#include "io/machine/cgroup.h"
#include "io/process.h"

namespace stoker {
namespace {

// Everything that carries the operation's mark, by control group or environment; killed until nothing is left.
Status end_remains(const LaunchOrder& order, Deadline deadline) {
    const Cgroup group(order.cgroups, order.cgroup_name());
    const std::string mark = "STOKER_OP=" + order.operation.text();
    for (;;) {
        std::vector<pid_t> left;
        if (order.tree == TreeKind::cgroup && !(left = group.processes()).empty()) group.kill();
        if (left.empty()) left = processes_with(mark);
        if (left.empty()) return done();
        for (const pid_t pid : left) ::kill(pid, SIGKILL);
        if (milliseconds_until(deadline) == 0)
            return Error(ErrorKind::timed_out, std::to_string(left.size()) + " processes of " + order.operation.text() +
                                                   " were killed and do not end, among them " +
                                                   std::to_string(left[0]));
        ::poll(nullptr, 0, 5);
    }
}

GangStatus last_words(const LaunchOrder& order, const Result<GangStatus>& known, bool rebooted, bool deleted) {
    GangStatus status;
    if (known) status = *known;
    status.ranks.resize(std::max(status.ranks.size(), order.gang.ranks.size()));
    status.epoch = std::max(status.epoch, order.gang.epoch);
    // A cause that the keeper had found is the first one, and stays.
    if (status.cause == Cause::none) {
        status.cause = rebooted ? Cause::node_lost : Cause::platform;
        status.detail = rebooted         ? "the machine was restarted while it ran"
                        : deleted        ? "its folder was deleted while it ran"
                        : status.started ? "its keeper was killed, and all of it ended with the keeper"
                        : known          ? "its keeper ended before the ranks ran"
                        : known.error().kind() == ErrorKind::not_found
                            ? "its keeper ended before it wrote a status"
                            : "its keeper was killed, and status.json is damaged: " + known.error().message();
    }
    status.state = GangState::ended;
    // What a machine that went down took with it had ended by the time at which it came up; when exactly, nobody saw.
    status.ended_at_us = rebooted ? boot_time_us() : wall_clock_us();
    if (!rebooted) {
        status.ended_monotonic_us = monotonic_clock_us();
        status.boot_id = boot_id();
    }
    end_ranks_with(status);
    return status;
}

}  // namespace

UniqueFd find_keeper(const std::string& folder) {
    const auto keeper = read_keeper_id(folder);
    if (!keeper || keeper->boot_id != boot_id()) return {};
    return open_process(keeper->pid, keeper->start_ticks);
}

std::string keeper_trouble(const std::string& folder) {
    const auto keeper = read_keeper_id(folder);
    if (!keeper || !find_keeper(folder)) return {};
    const char state = process_state(keeper->pid);
    if (state == 'T' || state == 't')
        return fmt::format("its keeper, process {}, is stopped: kill -CONT {} lets it go on", keeper->pid, keeper->pid);
    if (state == 'D') return fmt::format("its keeper, process {}, waits for a disk or device", keeper->pid);
    return {};
}

Result<GangStatus> bury(const std::string& folder, const LaunchOrder& order, Deadline deadline) {
    const std::string lock_path = folder + "/lock", status_path = folder + "/status.json";
    const UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    // Whoever deleted the folder of a gang that ran took its word with it, not its end.
    const bool deleted = !lock && errno == ENOENT;
    if (deleted && order.gang.ranks.empty()) return Error(ErrorKind::not_found, "there is no folder " + folder);
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
        return Error(ErrorKind::conflict, "the keeper of " + folder + " lives");
    // Without a lock file (a folder that has become read-only) the keeper's pid has to do, and it was looked at.
    const auto known = read_gang_status(folder);
    if (known && known->state == GangState::ended) return *known;
    const auto keeper = read_keeper_id(folder);
    const bool rebooted = keeper && keeper->boot_id != boot_id();
    if (!rebooted) TRY_VOID(end_remains(order, deadline));
    const GangStatus status = last_words(order, known, rebooted, deleted);
    if (!known && known.error().kind() == ErrorKind::invalid)
        (void)(::rename(status_path.c_str(), (status_path + ".damaged").c_str()) == 0);
    // When it cannot be written, the next driver finds the same again.
    (void)replace_file(status_path, to_json(status).dump(), true).ok();
    if (!rebooted) remove_boxes(folder, order);
    if (order.tree == TreeKind::cgroup) (void)remove_groups(order);
    return status;
}

bool remove_if_never_begun(const std::string& folder) {
    // The keeper writes both, under the lock.
    const auto begun = [&] { return path_exists(folder + "/keeper.json") || path_exists(folder + "/status.json"); };
    if (begun()) return false;
    const UniqueFd lock(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || begun()) return false;
    return remove_gang_folder(folder);
}

bool remove_groups(const LaunchOrder& order) {
    const bool boxes_gone = remove_box_groups(order);
    const bool gone = Cgroup(order.cgroups, order.cgroup_name()).remove() && boxes_gone;
    // Busy as long as another gang has a keeper.
    (void)Cgroup(order.cgroups, std::string(kKeeperGroup)).remove();
    return gone;
}

std::vector<Fact> untold_facts(const LaunchOrder& order, const GangStatus& status, Told& told) {
    std::vector<Fact> facts;
    const bool this_boot = !status.boot_id.empty() && status.boot_id == boot_id();
    const auto tell = [&](FactKind kind, int rank, std::int64_t at_us, std::int64_t monotonic_us) -> Fact& {
        Fact fact;
        fact.kind = kind;
        fact.operation = order.operation;
        fact.epoch = order.gang.epoch;
        fact.at_us = at_us;
        fact.monotonic_us = this_boot ? monotonic_us : 0;
        fact.rank = rank;
        if (rank >= 0 && static_cast<std::size_t>(rank) < order.gang.ranks.size()) {
            const auto index = static_cast<std::size_t>(rank);
            const bool told_node = index < status.ranks.size() && !status.ranks[index].node.empty();
            fact.node = told_node ? status.ranks[index].node : order.gang.ranks[index].node;
        }
        return facts.emplace_back(std::move(fact));
    };
    told.started.resize(std::max(told.started.size(), status.ranks.size()));
    told.ended.resize(told.started.size());
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < status.ranks.size(); ++i) {
        const KeptRank& rank = status.ranks[i];
        if (rank.pid != 0 && !told.started[i]) {
            told.started[i] = true;
            Fact& fact = tell(FactKind::rank_started, static_cast<int>(i), rank.started_at_us, 0);
            fact.pid = rank.pid;
            if (!order.image_digest.empty()) fact.detail = "image " + order.image_digest;
        }
        if (rank.ended_as != 0 && !told.ended[i]) ends.push_back(i);
    }
    std::sort(ends.begin(), ends.end(),
              [&](std::size_t a, std::size_t b) { return status.ranks[a].ended_as < status.ranks[b].ended_as; });
    for (const std::size_t i : ends) {
        const KeptRank& rank = status.ranks[i];
        told.ended[i] = true;
        Fact& fact = tell(FactKind::rank_ended, static_cast<int>(i), rank.ended_at_us, rank.ended_monotonic_us);
        fact.pid = rank.pid;
        fact.exit_code = rank.exit_code;
        fact.signal = rank.signal;
        fact.cause = rank.cause;
        fact.detail = rank.detail;
        fact.seconds = rank.seconds;
        fact.peak_memory_bytes = rank.peak_memory_bytes;
    }
    if (status.state == GangState::ended && !told.gang) {
        told.gang = true;
        Fact& fact = tell(FactKind::gang_ended, -1, status.ended_at_us, status.ended_monotonic_us);
        fact.cause = status.cause;
        fact.detail = status.detail;
    }
    return facts;
}

}  // namespace stoker
