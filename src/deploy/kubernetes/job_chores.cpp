// What is to be done next about the gangs that a JobWatch knows.
#include <algorithm>

#include "base/text.h"
#include "deploy/kubernetes/job_watch.h"
#include "deploy/kubernetes/look_script.h"
#include "io/process.h"

namespace stoker::kubernetes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBackOff = std::chrono::seconds(30);      // of a gang that did not fit
constexpr auto kExplainAgain = std::chrono::seconds(5);  // while it waits
// Gangs that are admitted and not yet on their nodes. More would wait for the controller and the scheduler, not they
// for a server, and the time in which each must be placed goes on.
constexpr std::size_t kMostUnplaced = 16;

}  // namespace

void JobWatch::add_chores(Gang& gang, Time now, bool its_turn, bool gives_back, std::vector<Chore>& chores) {
    const JobView& job = gang.job;
    const auto chore = [&](ChoreKind kind) -> Chore& {
        return chores.emplace_back(Chore{.kind = kind, .operation = job.operation, .pods = {}, .job = job, .end = {}});
    };
    if (gang.over) return;
    if (gang.status.state == GangState::ended) {
        chore(ChoreKind::keep_end).end = to_json(gang.status).dump(0);
        return;
    }
    if (gang.ending) {
        chore(ChoreKind::finish_logs);
        judge(gang);
        return;
    }
    std::vector<PodView> alive;
    for (const auto& [uid, pod] : gang.pods)
        if (!pod.gone && !pod.view.over()) alive.push_back(pod.view);
    if (needs_look(gang)) chore(ChoreKind::look);
    if (job.deleting) {
        std::erase_if(alive, [](const PodView& pod) { return pod.deleting; });
        if (!alive.empty()) chore(ChoreKind::remove_pods).pods = std::move(alive);
        return;
    }
    if (job.called_off) return;
    if (gang.shape.told && job.begun) {
        std::vector<PodView> untold = alive;
        std::erase_if(untold, [&](const PodView& pod) {
            return pod.orders.starts_with("go") || pod.deleting || !may_begin(gang, pod);
        });
        if (!untold.empty()) chore(ChoreKind::go).pods = std::move(untold);
    }
    if (gang.status.started) return;
    if (gang.shape.told && gang.shape.pods == 1 && !job.suspended && (!job.begun || is_to_be_chosen_anew(gang))) {
        // As soon as there is one, so that it begins whether or not anybody is here when it gets a node.
        const auto one = std::find_if(alive.begin(), alive.end(), [](const PodView& pod) { return !pod.deleting; });
        if (one != alive.end()) chore(ChoreKind::begin).pods = {*one};
    }
    if (gang.shape.pods > 1 && !job.begun) {
        const bool ours = !job.queued;
        const auto placed = std::count_if(alive.begin(), alive.end(), [](const PodView& pod) { return pod.scheduled; });
        if (all_run(gang)) {
            Chore& begin = chore(ChoreKind::begin);
            for (const KnownPod* pod : current(gang)) begin.pods.push_back(pod->view);
            return;
        }
        if (its_turn) {
            chore(ChoreKind::admit);
            return;
        }
        if (ours && gang.admitted && placed < gang.shape.pods && (gives_back || now > *gang.admitted + gang_wait_))
            chore(ChoreKind::back_out).pods = alive;
    }
    if (now >= gang.explain_at) {
        gang.explain_at = now + kExplainAgain;
        chore(ChoreKind::explain).pods = std::move(alive);
    }
}

bool JobWatch::waits_for_turn(const Gang& gang) const {
    return gang.there && !gang.over && gang.shape.pods > 1 && !gang.job.queued && !gang.job.begun &&
           !gang.job.called_off && !(gang.job.suspended && gang.job.deleting) && is_mine(gang.job.operation);
}

void JobWatch::look_at_places(Gang& gang, Time now) {
    const auto pods = current(gang);
    const auto placed = static_cast<std::size_t>(std::count_if(pods.begin(), pods.end(), [](const KnownPod* pod) {
        return pod != nullptr && !pod->gone && pod->view.scheduled;
    }));
    if (placed > gang.placed || gang.placed_at == Time{}) gang.placed_at = now;
    gang.placed = placed;
}

bool JobWatch::wants_room() const {
    const std::lock_guard guard(mutex_);
    const auto now = Clock::now();
    std::size_t unplaced = 0, waiting = 0;
    for (const auto& each : gangs_) {
        const Gang& gang = each.second;
        if (!waits_for_turn(gang)) continue;
        if (gang.job.suspended)
            waiting += now >= gang.retry_at && !gang.alone ? 1 : 0;
        else
            unplaced += gang.placed < static_cast<std::size_t>(gang.shape.pods) ? 1 : 0;
    }
    return waiting > 0 && waiting + unplaced > 1 && unplaced < kMostUnplaced;
}

void JobWatch::take_room(KubeRoom room) {
    const std::lock_guard guard(mutex_);
    room_ = std::move(room);
    in_room_.clear();
    room_is_full_ = false;
}

// Of what runs, or is about to, the pods that had no node when the room was read.
void JobWatch::take_what_began() {
    for (const auto& [operation, gang] : gangs_) {
        if (!gang.there || gang.over || gang.job.suspended || !gang.pod || in_room_.count(operation) > 0) continue;
        in_room_.insert(operation);
        int missing = gang.shape.pods;
        for (const auto& each : gang.pods)
            if (each.second.view.over() || room_.has(each.second.view.name)) --missing;
        const bool fits = missing <= 0 || room_.take(*gang.pod, missing);
        if (!fits && gang.shape.pods > 1) room_is_full_ = true;  // one pod holds no part
    }
}

// One gang at a time may hold a part of what it needs, or two would wait for each other: but for as many as there is
// sure to be room for. The first is admitted also where there seems to be none: an autoscaler brings nodes for pods
// that wait, and the scheduler knows better why they do.
std::set<const JobWatch::Gang*> JobWatch::next_admitted(Time now, const std::vector<Gang*>& unplaced) {
    std::vector<Gang*> waiting;
    for (auto& [operation, gang] : gangs_)
        if (waits_for_turn(gang) && gang.job.suspended && now >= gang.retry_at) waiting.push_back(&gang);
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Gang* a, const Gang* b) { return a->retry_at < b->retry_at; });
    std::set<const Gang*> turn;
    if (waiting.empty()) return turn;
    if (!room_is_full_) take_what_began();
    bool others = std::none_of(unplaced.begin(), unplaced.end(), [](const Gang* gang) { return gang->alone; });
    for (Gang* gang : waiting) {
        const bool first = unplaced.empty() && turn.empty();
        if (!first && (!others || gang->alone || unplaced.size() + turn.size() >= kMostUnplaced)) break;
        const bool fits = !room_is_full_ && gang->pod && room_.take(*gang->pod, gang->shape.pods);
        if (fits)
            in_room_.insert(gang->job.operation);
        else
            room_is_full_ = true;
        if (!fits && !first) break;
        turn.insert(gang);
        others = others && fits && !gang->alone;
    }
    return turn;
}

std::vector<Chore> JobWatch::chores() {
    const std::lock_guard guard(mutex_);
    const auto now = Clock::now();
    std::vector<Chore> chores;
    std::vector<Gang*> unplaced;
    for (auto& [operation, gang] : gangs_) {
        if (!waits_for_turn(gang) || gang.job.suspended) continue;
        look_at_places(gang, now);
        if (gang.placed < static_cast<std::size_t>(gang.shape.pods)) unplaced.push_back(&gang);
    }
    // Of those that hold each other up the last gives back what it has, and is tried by itself later.
    Gang* gives_back = nullptr;
    const bool stands = std::all_of(unplaced.begin(), unplaced.end(),
                                    [&](const Gang* gang) { return now > gang->placed_at + standstill_; });
    if (unplaced.size() > 1 && stands) {
        gives_back = *std::max_element(unplaced.begin(), unplaced.end(), [](const Gang* a, const Gang* b) {
            return a->admitted.value_or(Time{}) < b->admitted.value_or(Time{});
        });
        gives_back->alone = true;
        for (Gang* gang : unplaced) gang->placed_at = now;  // what it held is theirs to take
    }
    const auto turn = next_admitted(now, unplaced);
    for (auto& [operation, gang] : gangs_)
        if (gang.there && is_mine(operation)) add_chores(gang, now, turn.count(&gang) > 0, &gang == gives_back, chores);
    return chores;
}

std::vector<LogSource> JobWatch::logs_to_copy() const {
    const std::lock_guard guard(mutex_);
    std::vector<LogSource> sources;
    for (const auto& each : gangs_) {
        const auto& operation = each.first;
        const auto& gang = each.second;
        if (!gang.there || gang.over || !is_mine(operation)) continue;
        for (const auto& one : gang.pods) {
            const auto& pod = one.second;
            if (pod.gone || (gang.shape.told && !may_begin(gang, pod.view))) continue;
            const int first = pod.view.index * gang.shape.per_pod;
            const auto add = [&](const std::string& container, int rank) {
                const GangSpec& spec = gang.order.gang;
                sources.push_back({.operation = operation,
                                   .pod = pod.view.name,
                                   .container = container,
                                   .log_folder = spec.log_folder,
                                   .index = pod.view.index,
                                   .most_bytes = spec.max_log_bytes,
                                   .from = {.operation = operation,
                                            .measure = spec.measure,
                                            .log_folder = spec.log_folder,
                                            .node = pod.view.node,
                                            .first_rank = first,
                                            .ranks = gang.shape.per_pod,
                                            .rank = rank,
                                            .of_gang = static_cast<int>(spec.ranks.size())}});
            };
            for (int local = 0; local < gang.shape.per_pod; ++local)
                if (has_started(container_of(pod.view, local))) add(container_name(local), first + local);
            if (gang.shape.looked_at && has_started(&pod.view.measures)) add(kMeasures, -1);
        }
    }
    return sources;
}

void JobWatch::tell_wait(const OperationId& operation, Cause cause, const std::string& detail) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end() || found->second.over || found->second.status.started) return;
    Gang& gang = found->second;
    if (gang.wait_cause == cause && gang.wait_detail == detail) return;
    gang.wait_cause = cause;
    gang.wait_detail = detail;
    tell({.kind = FactKind::waits,
          .operation = operation,
          .epoch = gang.order.gang.epoch,
          .at_us = wall_clock_us(),
          .cause = cause,
          .detail = printable(detail, kMaxDetailBytes)});
}

void JobWatch::backed_out(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end()) return;
    found->second.retry_at = Clock::now() + kBackOff;
    found->second.explain_at = {};
}

void JobWatch::logs_are_done(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end()) return;
    found->second.logs_done = true;
    judge(found->second);
}

void JobWatch::end_is_kept(const OperationId& operation, const std::string& end) {
    const std::lock_guard guard(mutex_);
    const auto found = gangs_.find(operation);
    if (found == gangs_.end()) return;
    found->second.job.end = end;
    if (!found->second.over) tell_end(found->second);
    changed();
}

}  // namespace stoker::kubernetes
