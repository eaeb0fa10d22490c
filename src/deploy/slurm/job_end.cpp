#include "deploy/slurm/job_end.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/slurm/queue.h"
#include "io/process.h"

namespace stoker::slurm {
namespace {

std::string in_words(Cause cause, const std::string& state) {
    switch (cause) {
        case Cause::node_lost: return "a node of it went down (" + state + ")";
        case Cause::preempted: return "it made room for another job (" + state + ")";
        case Cause::timeout: return "its time limit was over (" + state + ")";
        case Cause::oom: return "it needed more memory than its job has (" + state + ")";
        case Cause::cancelled:
            return "its job was cancelled in Slurm, by somebody or by a controller that had forgotten it (" + state +
                   ")";
        default: return "Slurm says " + state;
    }
}

GangStatus known_status(const std::string& folder, const LaunchOrder& order) {
    GangStatus status;
    if (auto known = read_gang_status(folder)) status = std::move(*known);
    status.ranks.resize(std::max(status.ranks.size(), order.gang.ranks.size()));
    status.epoch = std::max(status.epoch, order.gang.epoch);
    return status;
}

void write_last(const std::string& folder, GangStatus& status) {
    status.state = GangState::ended;
    status.ended_at_us = wall_clock_us();
    status.ended_monotonic_us = monotonic_clock_us();
    status.boot_id = boot_id();
    end_ranks_with(status);
    // When it cannot be written, the next driver finds the same again.
    (void)replace_file(folder + "/status.json", to_json(status).dump(), true).ok();
}

}  // namespace

GangStatus bury(const std::string& folder, const LaunchOrder& order, bool claimed, const std::string& state,
                const std::string& number) {
    GangStatus status = known_status(folder, order);
    const std::string job = number.empty() ? "its job" : "job " + number;
    Cause cause = state.empty() ? Cause::platform : cause_of_state(state);
    // Nothing of the user's has run, or its end was not seen: neither is its fault.
    if (cause == Cause::user_error || cause == Cause::ok) cause = Cause::platform;
    std::string detail;
    if (state.empty()) {
        detail = "Slurm knows nothing of " + job + " any more, and it left no word of its end";
    } else if (cause != Cause::platform) {
        detail = in_words(cause, state);
    } else if (claimed) {
        detail = fmt::format("{} is {} and its host left no word of its end", job, state);
    } else {
        detail = fmt::format(
            "{} is {} and began nothing: the nodes have to see {} and the program of the engine by the same names", job,
            state, folder);
    }
    if (cause == Cause::platform)
        if (const std::string said = end_of_file(folder + "/batch.out", 1500); !said.empty())
            detail += "; it said: " + said;
    // What the host had found is the first cause, and stays; that Slurm ended the job is none.
    if (status.cause == Cause::none || status.cause == Cause::platform) {
        status.cause = cause;
        status.detail = printable(detail, kMaxDetailBytes);
    }
    write_last(folder, status);
    return status;
}

GangStatus call_off(const std::string& folder, const LaunchOrder& order) {
    GangStatus status = known_status(folder, order);
    status.cause = Cause::cancelled;
    status.detail = "cancelled before it began";
    write_last(folder, status);
    return status;
}

GangStatus with_cause_of_slurm(const std::string& folder, GangStatus status, const std::string& state) {
    const Cause cause = state.empty() ? Cause::platform : cause_of_state(state);
    const bool says_more = cause != Cause::ok && cause != Cause::user_error && cause != Cause::platform;
    const auto open = [](Cause each) { return each == Cause::platform || each == Cause::user_error; };
    if (says_more && open(status.cause)) {
        status.cause = cause;
        status.detail = in_words(cause, state);
        for (KeptRank& rank : status.ranks) {
            if (!open(rank.cause)) continue;
            rank.cause = cause;
            rank.detail = status.detail;
        }
    }
    if (replace_file(folder + "/status.json", to_json(status).dump(), true).ok())
        ::unlink((folder + "/outside").c_str());
    return status;
}

}  // namespace stoker::slurm
