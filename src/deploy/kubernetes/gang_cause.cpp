#include "deploy/kubernetes/gang_cause.h"

#include <csignal>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/driver.h"
#include "deploy/kubernetes/rank_script.h"
#include "io/process.h"

namespace stoker::kubernetes {
namespace {

constexpr int kSignalled = 128;
constexpr std::int64_t kHalfSecond = 500'000;

Cause cause_of(const PodView& pod) {
    return cause_of_disruption(pod.disruption, pod.phase == "Failed" ? pod.reason : "");
}

std::string in_words(const PodView& pod, Cause cause) {
    const std::string why =
        pod.disruption.empty() ? pod.reason + ": " + pod.message : pod.disruption + ": " + pod.disruption_message;
    return fmt::format("{} on {}, by Kubernetes: {}", meaning_of(cause), pod.node.empty() ? "no node" : pod.node,
                       printable(why, 500));
}

}  // namespace

void end_rank(KeptRank& rank, const ContainerView& container, const PodView& pod, std::int64_t memory_bytes,
              bool stopped) {
    rank.ended_at_us = container.ended_us;
    // A kubelet tells whole seconds: what came and went within one took a part of it.
    if (container.ended_us == container.started_us) rank.ended_at_us += kHalfSecond;
    if (container.exit_code > kSignalled && container.exit_code < kSignalled + 65)
        rank.signal = container.exit_code - kSignalled;
    else
        rank.exit_code = container.exit_code;
    rank.cause = container.exit_code == 0 ? Cause::ok : Cause::user_error;
    // A program does not end itself by KILL: a person did, or the node, so it is worth another try, as elsewhere.
    if (rank.signal == SIGKILL) rank.cause = Cause::platform;
    if (rank.signal)
        rank.detail = "ended by " + signal_name(*rank.signal) + ", which Stoker did not send";
    else if (container.exit_code != 0)
        rank.detail = fmt::format("exit code {}", container.exit_code);
    if (container.reason == "OOMKilled") {
        rank.cause = Cause::oom;
        rank.detail = memory_bytes > 0
                          ? fmt::format("needed more than its {} MiB of memory (OOMKilled)", memory_bytes >> 20)
                          : "its node had no memory left (OOMKilled)";
    } else if (const Cause outside = cause_of(pod); outside != Cause::none && container.exit_code != 0) {
        rank.cause = outside;
        rank.detail = in_words(pod, outside);
    } else if (stopped && container.exit_code != 0) {
        rank.cause = Cause::cancelled;
        rank.detail = "ended by Stoker";
    } else if (container.reason == "StartError" || container.reason == "ContainerCannotRun") {
        rank.detail = "its container cannot start: " + printable(container.message, 500);
    }
}

GangVerdict verdict_of(const JobView& job, const std::vector<PodView>& pods, const GangStatus& status,
                       const std::vector<bool>& with_gang) {
    bool all_good = !status.ranks.empty();
    for (const KeptRank& rank : status.ranks) all_good = all_good && rank.ended_as != 0 && rank.cause == Cause::ok;
    if (all_good) return {Cause::ok, ""};
    // Before anything ran: a program that is not there.
    for (const PodView& pod : pods) {
        if (pod.check.phase != ContainerPhase::ended || pod.check.exit_code == 0) continue;
        const std::size_t at = pod.check.message.find(kRefused);
        if (at != std::string::npos)
            return {Cause::user_error, printable(pod.check.message.substr(at + kRefused.size()), kMaxDetailBytes)};
        if (cause_of(pod) == Cause::none && !pod.deleting)
            return {Cause::user_error,
                    fmt::format("its image cannot begin a program (exit code {}, {}): {}; it needs /bin/sh",
                                pod.check.exit_code, pod.check.reason, printable(pod.check.message, 500))};
    }
    for (const PodView& pod : pods)
        if (const Cause outside = cause_of(pod); outside != Cause::none && !pod.node.empty())
            return {outside, printable(in_words(pod, outside), kMaxDetailBytes)};
    // The first that went wrong by itself.
    std::size_t first = status.ranks.size();
    for (std::size_t i = 0; i < status.ranks.size(); ++i) {
        const KeptRank& rank = status.ranks[i];
        if (rank.ended_as == 0 || rank.cause == Cause::ok || (i < with_gang.size() && with_gang[i])) continue;
        if (first == status.ranks.size() || rank.ended_at_us < status.ranks[first].ended_at_us) first = i;
    }
    if (first < status.ranks.size()) {
        const KeptRank& rank = status.ranks[first];
        return {rank.cause, printable(fmt::format("rank {}: {}", first, rank.detail), kMaxDetailBytes)};
    }
    // The server ends what is left when a rank has failed: that is no cause.
    if (job.called_off) return {Cause::cancelled, status.started ? "cancelled" : "cancelled before it began"};
    if (job.deleting) return {Cause::cancelled, "somebody deleted its Job"};
    if (job.reason == "DeadlineExceeded") return {Cause::timeout, "its Job was active for longer than it may"};
    if (job.reason == "PodFailurePolicy") {
        Cause cause = Cause::evicted;
        return {cause, "a pod was taken away: " + printable(job.message, 1000)};
    }
    return {Cause::platform, "its pods are gone and left no word of their end; its Job says " +
                                 printable(job.reason + ": " + job.message, 1000)};
}

}  // namespace stoker::kubernetes
