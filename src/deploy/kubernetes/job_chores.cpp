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

}  // namespace

void JobWatch::add_chores(Gang& gang, Time now, const Gang* admitted, std::vector<Chore>& chores) {
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
        if (ours && job.suspended && admitted == nullptr && now >= gang.retry_at) {
            chore(ChoreKind::admit);
            return;
        }
        if (ours && gang.admitted && placed < gang.shape.pods &&
            now > *gang.admitted +
                      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gang_wait_s_)))
            chore(ChoreKind::back_out).pods = alive;
    }
    if (now >= gang.explain_at) {
        gang.explain_at = now + kExplainAgain;
        chore(ChoreKind::explain).pods = std::move(alive);
    }
}

std::vector<Chore> JobWatch::chores() {
    const std::lock_guard guard(mutex_);
    const auto now = Clock::now();
    std::vector<Chore> chores;
    // One gang at a time may hold a part of what it needs: two would wait for each other.
    const Gang* admitted = nullptr;
    Gang* next = nullptr;
    for (auto& [operation, gang] : gangs_) {
        if (!is_mine(operation) || !gang.there || gang.over || gang.shape.pods == 1 || gang.job.queued ||
            gang.job.begun || gang.job.called_off)
            continue;
        if (!gang.job.suspended) {
            const auto pods = current(gang);
            const bool placed = std::all_of(pods.begin(), pods.end(), [](const KnownPod* pod) {
                return pod != nullptr && !pod->gone && pod->view.scheduled;
            });
            if (!placed) admitted = &gang;
        } else if (now >= gang.retry_at && (next == nullptr || gang.retry_at < next->retry_at)) {
            next = &gang;
        }
    }
    for (auto& [operation, gang] : gangs_) {
        if (!gang.there || !is_mine(operation)) continue;
        const bool its_turn = &gang == next && admitted == nullptr;
        add_chores(gang, now, its_turn || !gang.job.suspended ? nullptr : (admitted != nullptr ? admitted : next),
                   chores);
    }
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
