#include "deploy/kubernetes/job_watch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/kubernetes/gang_cause.h"
#include "deploy/local/launcher.h"
#include "io/process.h"

namespace stoker::kubernetes {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration from_seconds(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

constexpr auto kLogLimit = std::chrono::seconds(8);  // for the last lines of pods that are over

}  // namespace

JobWatch::JobWatch(double gang_wait_s, double standstill_s)
    : gang_wait_(from_seconds(gang_wait_s)),
      standstill_(from_seconds(standstill_s)),
      // Cursors of an earlier driver are lower, whatever it told.
      first_cursor_(static_cast<std::uint64_t>(wall_clock_us())),
      next_cursor_(first_cursor_) {}

void JobWatch::changed() {
    ++seen_;
    news_.notify_all();
}

void JobWatch::tell(Fact fact) {
    fact.cursor = next_cursor_++;
    facts_.emplace(fact.cursor, std::move(fact));
    woken_ = true;
    news_.notify_all();
}

void JobWatch::mine(const std::string& site) {
    if (site.empty()) return;
    const std::lock_guard guard(mutex_);
    if (site_ == site) return;
    site_ = site;
    changed();
}

bool JobWatch::knows_its_site() const {
    const std::lock_guard guard(mutex_);
    return !site_.empty();
}

void JobWatch::see(const JobView& job) {
    const std::lock_guard guard(mutex_);
    Gang& gang = gangs_[job.operation];
    if (gang.order.gang.ranks.empty()) {
        auto kept = read_kept_gang(job.operation, job.gang);
        // Nobody but a person changes it; then it is known, and can be ended.
        if (!kept) kept = KeptGang{.order = {.operation = job.operation}, .shape = {}};
        gang.order = std::move(kept->order);
        gang.shape = kept->shape;
        gang.order.gang.ranks.resize(static_cast<std::size_t>(gang.shape.pods * gang.shape.per_pod));
        gang.status.ranks.resize(gang.order.gang.ranks.size());
        gang.ended_with_gang.resize(gang.order.gang.ranks.size());
        gang.status.epoch = gang.order.gang.epoch;
    }
    highest_epoch_ = std::max({highest_epoch_, job.epoch, gang.order.gang.epoch});
    if (gang.job.may_begin != job.may_begin) gang.looked = false;
    gang.job = job;
    if (job.pod) gang.pod = job.pod;
    gang.job.pod = nullptr;
    gang.there = true;
    if (!job.suspended && !gang.admitted) gang.admitted = Clock::now();
    if (job.suspended) {
        gang.admitted.reset();
        gang.placed = 0;
        gang.placed_at = {};
    }
    judge(gang);
    changed();
}

void JobWatch::see(const PodView& pod, bool gone) {
    const std::lock_guard guard(mutex_);
    Gang& gang = gangs_[pod.operation];
    KnownPod& known = gang.pods[pod.uid];
    known.view = pod;
    known.gone = gone;
    if (gang.there) {
        warn(gang);
        judge(gang);
    }
    changed();
}

void JobWatch::lost_job(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end() || !found->second.there) return;
    Gang& gang = found->second;
    if (!gang.over && !gang.status.started) {
        // Lost before it began: the same operation may begin then.
        gangs_.erase(found);
    } else {
        gang.there = false;
        gang.job.deleting = true;
        judge(gang);
    }
    changed();
}

void JobWatch::only_jobs(const std::set<OperationId>& there) {
    std::vector<OperationId> missing;
    {
        const std::lock_guard guard(mutex_);
        for (const auto& [operation, gang] : gangs_)
            if (gang.there && there.count(operation) == 0) missing.push_back(operation);
    }
    for (const OperationId& operation : missing) lost_job(operation);
}

void JobWatch::only_pods(const std::set<std::string>& uids) {
    const std::lock_guard guard(mutex_);
    for (auto& [operation, gang] : gangs_) {
        bool fewer = false;
        for (auto& [uid, pod] : gang.pods)
            if (!pod.gone && uids.count(uid) == 0) pod.gone = fewer = true;
        if (fewer && gang.there) {
            warn(gang);
            judge(gang);
        }
    }
    changed();
}

void JobWatch::only_pods_of(const OperationId& operation, const std::set<std::string>& uids) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end()) return;
    for (auto& [uid, pod] : found->second.pods) pod.gone = pod.gone || uids.count(uid) == 0;
    found->second.looked = no_more_pods(found->second.job) || !found->second.job.may_begin.empty();
    warn(found->second);
    judge(found->second);
    changed();
}

std::vector<Ours> JobWatch::known(const std::string& site) const {
    const std::lock_guard guard(mutex_);
    std::vector<Ours> all;
    for (const auto& [operation, gang] : gangs_)
        if (gang.there && (site.empty() || operation.site == site))
            all.push_back({.operation = operation,
                           .epoch = gang.order.gang.epoch,
                           .ended = gang.over,
                           .waits = !gang.over && !gang.status.started});
    return all;
}

void JobWatch::forget(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    std::erase_if(facts_, [&](const auto& each) { return each.second.operation == operation; });
    gangs_.erase(operation);
}

std::optional<Outcome> JobWatch::refuse_epoch(std::uint64_t epoch) {
    const std::lock_guard guard(mutex_);
    if (epoch < highest_epoch_)
        return rejected(Cause::platform,
                        fmt::format("epoch {} is over: epoch {} has given orders", epoch, highest_epoch_));
    highest_epoch_ = epoch;
    return std::nullopt;
}

std::optional<JobView> JobWatch::job_of(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end() || !found->second.there) return std::nullopt;
    return found->second.job;
}

std::vector<PodView> JobWatch::pods_of(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    std::vector<PodView> pods;
    if (const auto found = gangs_.find(operation); found != gangs_.end())
        for (const auto& [uid, pod] : found->second.pods)
            if (!pod.gone) pods.push_back(pod.view);
    return pods;
}

bool JobWatch::is_over(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found != gangs_.end() && found->second.over;
}

bool JobWatch::is_looked_at(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found != gangs_.end() && found->second.shape.looked_at;
}

int JobWatch::pods_wanted(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found == gangs_.end() ? 1 : found->second.shape.pods;
}

bool JobWatch::another_is_admitted(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    return std::any_of(gangs_.begin(), gangs_.end(), [&](const auto& each) {
        const Gang& gang = each.second;
        return each.first != operation && gang.there && !gang.over && !gang.status.started && gang.shape.pods > 1 &&
               gang.admitted && !gang.job.begun;
    });
}

bool JobWatch::has_begun(const OperationId& operation) const {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    return found != gangs_.end() && found->second.status.started;
}

std::vector<const JobWatch::KnownPod*> JobWatch::current(const Gang& gang) const {
    std::vector<const KnownPod*> pods(static_cast<std::size_t>(gang.shape.pods));
    for (const auto& [uid, pod] : gang.pods) {
        const auto index = static_cast<std::size_t>(pod.view.index);
        if (pod.view.index < 0 || index >= pods.size()) continue;
        // Of one that was backed out, or made twice, there may be several: the one that may begin, that is there, or
        // did something.
        const auto better = [&](const KnownPod& a, const KnownPod& b) {
            const bool may_a = may_begin(gang, a.view), may_b = may_begin(gang, b.view);
            return may_a != may_b ? may_a : !a.gone && b.gone;
        };
        if (pods[index] == nullptr || better(pod, *pods[index])) pods[index] = &pod;
    }
    return pods;
}

bool JobWatch::may_begin(const Gang& gang, const PodView& pod) {
    return gang.job.begun && (gang.job.may_begin.empty() || gang.job.may_begin.count(mark_of(pod)) > 0);
}

// The one pod of a gang went before anything of it ran: its queue took it back, or it was the one too many. Of a pod
// that was never seen nobody knows that, but for a queue's: there a Job whose pod ran does not fail by losing it.
bool JobWatch::is_to_be_chosen_anew(const Gang& gang) const {
    if (!gang.job.begun || gang.job.may_begin.empty() || gang.status.started || gang.shape.pods > 1) return false;
    for (const auto& each : gang.pods) {
        const KnownPod& pod = each.second;
        if (!may_begin(gang, pod.view)) continue;
        if (!pod.gone) return false;
        for (int local = 0; local < gang.shape.per_pod; ++local)
            if (has_started(container_of(pod.view, local))) return false;
        return true;
    }
    return gang.job.queued;
}

bool JobWatch::all_run(const Gang& gang) const {
    for (const KnownPod* pod : current(gang)) {
        if (pod == nullptr || pod->gone || pod->view.deleting || pod->view.phase != "Running") return false;
        for (int local = 0; local < gang.shape.per_pod; ++local)
            if (!has_started(container_of(pod->view, local))) return false;
    }
    return true;
}

// ---- what has become of it

void JobWatch::judge_ranks(Gang& gang) {
    const auto pods = current(gang);
    if (!gang.status.started) {
        bool begun = gang.job.begun;
        if (gang.shape.pods == 1) {
            // It may be told before it has a node.
            begun = pods[0] != nullptr && (may_begin(gang, pods[0]->view) || !gang.shape.told);
            for (int local = 0; begun && local < gang.shape.per_pod; ++local)
                begun = has_started(container_of(pods[0]->view, local));
        }
        if (!begun) return;
        gang.status.started = true;
        gang.status.state = GangState::running;
    }
    int ended = 0;
    for (const KeptRank& rank : gang.status.ranks) ended = std::max(ended, rank.ended_as);
    std::vector<std::pair<std::int64_t, std::size_t>> ends;
    for (std::size_t i = 0; i < gang.status.ranks.size(); ++i) {
        KeptRank& rank = gang.status.ranks[i];
        const KnownPod* pod = pods[i / static_cast<std::size_t>(gang.shape.per_pod)];
        const ContainerView* container =
            pod == nullptr ? nullptr : container_of(pod->view, static_cast<int>(i) % gang.shape.per_pod);
        if (pod != nullptr && rank.node.empty()) rank.node = pod->view.node;
        if (rank.pid == 0) {
            rank.pid = 1;  // in its container
            rank.started_at_us =
                container != nullptr && container->started_us > 0 ? container->started_us : wall_clock_us();
        }
        if (rank.ended_as != 0 || container == nullptr || container->phase != ContainerPhase::ended) continue;
        gang.ended_with_gang[i] = pod->view.deleting && pod->view.disruption.empty();
        end_rank(rank, *container, pod->view, gang.order.gang.ranks[i].memory_bytes,
                 gang.ended_with_gang[i] && gang.job.called_off);
        ends.emplace_back(rank.ended_at_us, i);
    }
    std::stable_sort(ends.begin(), ends.end());
    for (const auto& [at_us, i] : ends) gang.status.ranks[i].ended_as = ++ended;
}

// Nothing of it runs, nor will.
bool JobWatch::nothing_runs(const Gang& gang) const {
    const JobView& job = gang.job;
    const bool named = job.begun && !job.may_begin.empty();
    // One too many waits for ever, unless its Job ends.
    const bool ends = no_more_pods(job) || job.called_off || !gang.there;
    std::size_t over = 0;
    for (const auto& [uid, pod] : gang.pods) {
        const bool counts = !named || may_begin(gang, pod.view);
        if (!pod.gone && !pod.view.over() && (counts || ends)) return false;
        if (counts) ++over;
    }
    // The news of its Job may have come before that of its pods.
    if (gang.there && over < static_cast<std::size_t>(gang.shape.pods) && !gang.looked) return false;
    if (!gang.there || job.ended != JobEnd::none || job.deleting) return true;
    if (job.called_off) return job.is_suspended;
    // The controller makes no other pods: each index may fail no more often. What a queue makes anew may not begin.
    return gang.status.started && (named || over >= static_cast<std::size_t>(gang.shape.pods));
}

// Whether pods of it that are not known are gone for good, or have not been told of yet.
bool JobWatch::needs_look(const Gang& gang) const {
    if (gang.looked) return false;
    if (no_more_pods(gang.job)) return true;
    if (!gang.status.started || !gang.job.begun || gang.job.may_begin.empty()) return false;
    return std::none_of(gang.pods.begin(), gang.pods.end(), [&](const auto& each) {
        const KnownPod& pod = each.second;
        return may_begin(gang, pod.view) && !pod.gone && !pod.view.over();
    });
}

void JobWatch::judge(Gang& gang) {
    if (gang.over) return;
    if (gang.status.state == GangState::ended) {
        if (!gang.there) tell_end(gang);
        return;
    }
    if (!gang.job.end.empty()) {
        if (auto kept = parse_gang_status(gang.job.end, kEnd)) {
            gang.status = std::move(*kept);
            gang.logs_done = true;
            return tell_end(gang);
        }
    }
    judge_ranks(gang);
    // The last ranks of a gang end with it, once what they wrote last has come: who looks at them looks no longer then.
    const bool all_ended = std::all_of(gang.status.ranks.begin(), gang.status.ranks.end(),
                                       [](const KeptRank& rank) { return rank.ended_as != 0; });
    if (!gang.shape.looked_at || !all_ended)
        for (Fact& fact : untold_facts(gang.order, gang.status, gang.told)) tell(std::move(fact));
    if (!nothing_runs(gang)) return;
    // After its end nobody asks for its pods, and they go: first the last lines of their logs.
    if (!gang.ending) gang.ending = Clock::now();
    if (gang.logs_done || !gang.status.started || Clock::now() > *gang.ending + kLogLimit) end(gang);
}

void JobWatch::end(Gang& gang) {
    std::vector<PodView> pods;
    for (const auto& [uid, pod] : gang.pods)
        if (!gang.job.begun || may_begin(gang, pod.view)) pods.push_back(pod.view);
    std::stable_sort(pods.begin(), pods.end(), [](const PodView& a, const PodView& b) { return a.index < b.index; });
    GangVerdict verdict = verdict_of(gang.job, pods, gang.status, gang.ended_with_gang);
    GangStatus& status = gang.status;
    status.state = GangState::ended;
    status.cause = verdict.cause;
    status.detail = std::move(verdict.detail);
    status.ended_at_us = 0;
    for (const KeptRank& rank : status.ranks) status.ended_at_us = std::max(status.ended_at_us, rank.ended_at_us);
    if (status.ended_at_us == 0) status.ended_at_us = wall_clock_us();
    end_ranks_with(status);
    changed();
    // Told when its Job keeps it: whoever comes next must find the same.
    if (!gang.there) tell_end(gang);
}

void JobWatch::tell_end(Gang& gang) {
    gang.over = true;
    for (Fact& fact : untold_facts(gang.order, gang.status, gang.told)) tell(std::move(fact));
}

// Its node is drained, or it makes room: programs have until then.
void JobWatch::warn(Gang& gang) {
    for (auto& [uid, pod] : gang.pods) {
        const bool over = pod.gone || pod.view.over();
        const bool begins =
            !pod.warned && !over && pod.view.deleting && !pod.view.disruption.empty() && gang.status.started;
        // It was this pod's alone: the node takes work again, as far as the cluster lets it.
        const bool ends = pod.warned && !pod.taken_back && over;
        if (!begins && !ends) continue;
        (begins ? pod.warned : pod.taken_back) = true;
        tell({.kind = FactKind::notice,
              .operation = gang.order.operation,
              .epoch = gang.order.gang.epoch,
              .at_us = wall_clock_us(),
              .cause = cause_of_disruption(pod.view.disruption, ""),
              .seconds = begins ? static_cast<double>(pod.view.grace_s) : -1,
              .node = pod.view.node,
              .detail = printable(pod.view.disruption + ": " + pod.view.disruption_message, 500)});
    }
}

std::vector<Fact> JobWatch::facts_after(std::uint64_t cursor, std::size_t most, Time until) {
    std::unique_lock lock(mutex_);
    for (;;) {
        // Another driver's cursor: its facts may have been others, so all are told again.
        const bool foreign = cursor < first_cursor_ || cursor >= next_cursor_;
        std::vector<Fact> facts;
        for (auto it = foreign ? facts_.begin() : facts_.upper_bound(cursor); it != facts_.end() && facts.size() < most;
             ++it)
            if (is_mine(it->second.operation)) facts.push_back(it->second);
        if (!facts.empty() || std::exchange(woken_, false)) return facts;
        if (news_.wait_until(lock, until) == std::cv_status::timeout) return facts;
    }
}

void JobWatch::wake() {
    const std::lock_guard guard(mutex_);
    woken_ = true;
    news_.notify_all();
}

std::uint64_t JobWatch::wait_for_change(std::uint64_t seen, Time until) {
    std::unique_lock lock(mutex_);
    while (seen_ == seen && news_.wait_until(lock, until) != std::cv_status::timeout) {
    }
    return seen_;
}

}  // namespace stoker::kubernetes
