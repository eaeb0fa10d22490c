#include "run/decide/next_step.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "run/decide/schedule.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

using Step = std::optional<RecordBody>;

bool operation_is_open(const State& state, const OperationId& id) {
    return state.operations.contains(id);
}

// Lifetime and lease are over, whatever else happened.
Cause exhausted(const Run& run, std::int64_t now_us) {
    const Lease& lease = run.lease;
    if ((lease.stop_at_us > 0 && now_us >= lease.stop_at_us) ||
        (lease.hard_max_at_us > 0 && now_us >= lease.hard_max_at_us))
        return Cause::lease;
    if (run.spec.timeout_s > 0 && used_us(run, now_us) >= run.spec.timeout_s * kSecondUs) return Cause::timeout;
    return Cause::none;
}

std::string rank_detail(const Attempt& attempt, const RankFailure& failure) {
    if (failure.rank < 0) return {};
    const RankStatus& rank = attempt.ranks[static_cast<std::size_t>(failure.rank)];
    // An engine that accepted it and could not start it says why.
    if (!rank.started && !attempt.detail.empty()) return attempt.detail;
    const std::string& node = attempt.places[static_cast<std::size_t>(failure.rank)].node;
    std::string text = fmt::format("rank {} on {}", failure.rank, node.empty() ? "no node yet" : node);
    if (rank.signal) return text + fmt::format(" was ended by signal {}", *rank.signal);
    if (rank.exit_code) return text + fmt::format(" left with {}", *rank.exit_code);
    return attempt.detail.empty() ? text : text + ": " + attempt.detail;
}

// Nobody asked it to leave: no notice was given, none was heard, or it had left before.
bool left_by_itself(const Attempt& attempt) {
    if (attempt.notice == Cause::none || attempt.unheard) return true;
    return std::all_of(attempt.ranks.begin(), attempt.ranks.end(),
                       [&](const RankStatus& rank) { return rank.ended && rank.ended_us < attempt.noticed_us; });
}

std::string late_ranks(const Attempt& attempt) {
    std::string names;
    std::size_t started = 0, named = 0;
    for (std::size_t i = 0; i < attempt.ranks.size(); ++i) {
        if (attempt.ranks[i].started)
            ++started;
        else if (named++ < 8)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", i);
    }
    return fmt::format("{} of {} ranks started, and {} s later not: {}{}", started, attempt.ranks.size(),
                       kGangStartUs / kSecondUs, names, named > 8 ? ", ..." : "");
}

// Why the attempt has to end now; none: it goes on.
struct EndReason {
    Cause cause = Cause::none;
    std::string detail;
};
EndReason end_reason(const State& state, const Run& run, const Attempt& attempt, std::int64_t now_us,
                     bool done_marker) {
    for (const RankPlace& place : attempt.places) {
        const auto node = state.nodes.find(place.node);
        if (node != state.nodes.end() && node->second.state == NodeState::lost)
            return {Cause::node_lost, place.node + " is gone"};
    }
    const RankFailure failure = first_failure(attempt);
    // After a notice, leaving is what was asked for.
    if (failure.rank >= 0 && attempt.notice != Cause::none && !attempt.unheard &&
        evidence(failure.cause) < evidence(attempt.notice))
        return {attempt.notice, rank_detail(attempt, failure)};
    if (run.state == RunState::cancelling && !(failure.rank < 0 && all_ranks_ended(attempt)))
        return {Cause::cancelled, {}};
    if (failure.rank >= 0) return {failure.cause, rank_detail(attempt, failure)};
    if (all_ranks_ended(attempt)) {
        if (left_by_itself(attempt) || done_marker) return {Cause::ok, {}};
        return {attempt.notice, "left with 0 after the notice, without its done marker"};
    }
    if (run.spec.timeout_s > 0 && used_us(run, now_us) >= run.spec.timeout_s * kSecondUs)
        return {Cause::timeout, fmt::format("ran for its {} s", run.spec.timeout_s)};
    if (run.lease.hard_max_at_us > 0 && now_us >= run.lease.hard_max_at_us)
        return {Cause::lease, fmt::format("its lease ends for good after {} s", run.spec.lease.hard_max_s)};
    if (const std::int64_t end = gang_start_end_us(attempt); end > 0 && now_us >= end)
        return {Cause::no_capacity, late_ranks(attempt)};
    if (const std::int64_t end = queue_end_us(run); end > 0 && now_us >= end && waits_at_engine(run))
        return {Cause::no_capacity, fmt::format("not started within its queue_timeout_s of {} s; the engine: {}",
                                                *run.spec.queue_timeout_s, attempt.engine_wait->detail)};
    // Nobody will write a checkpoint; what handles TERM may use the grace for it. The time of a lease was promised.
    if (attempt.unheard && attempt.notice != Cause::lease)
        return {attempt.notice, "nothing in it handles the signal of the notice"};
    if (attempt.deadline_us > 0 && now_us >= attempt.deadline_us)
        return {attempt.notice,
                attempt.notice == Cause::lease ? "its lease is over" : "the time of the notice is over"};
    return {};
}

Step step_of_running(const State& state, const Run& run, const Attempt& attempt, std::int64_t now_us,
                     bool done_marker) {
    const AttemptId id{run.id, attempt.number};
    if (attempt.state == AttemptState::launching &&
        (attempt.launched == Answer::rejected || attempt.launched == Answer::absent)) {
        const Cause cause = run.state == RunState::cancelling ? Cause::cancelled
                            : attempt.cause == Cause::none    ? Cause::platform
                                                              : attempt.cause;
        return AttemptMoved{id, AttemptEvent::refuse, cause, attempt.detail};
    }
    if (EndReason reason = end_reason(state, run, attempt, now_us, done_marker); reason.cause != Cause::none)
        return AttemptMoved{id, AttemptEvent::end, reason.cause, std::move(reason.detail)};
    const bool all_started =
        std::all_of(attempt.ranks.begin(), attempt.ranks.end(), [](const RankStatus& rank) { return rank.started; });
    if (attempt.state == AttemptState::launching && (attempt.launched == Answer::confirmed || all_started))
        return AttemptMoved{id, AttemptEvent::all_ready, Cause::none, {}};
    if (attempt.notice != Cause::none && !attempt.notified && !operation_is_open(state, attempt.launch))
        return OperationIntended{.verb = Verb::notify, .attempt = id, .target = attempt.launch, .signal = SIGUSR1};
    if (const std::int64_t at = lease_notice_us(run); at > 0 && now_us >= at && attempt.notice != Cause::lease) {
        // Stopped when the lease ends. If that has passed, because no server ran, it still gets its time.
        const std::int64_t end = lease_end_us(run);
        const std::int64_t deadline = now_us <= end ? end : now_us + (end - at);
        // An earlier deadline for another reason stays; then this notice adds nothing.
        if (attempt.deadline_us == 0 || deadline < attempt.deadline_us) return NoticeGiven{id, deadline, Cause::lease};
    } else if (const std::int64_t warn = lease_warning_us(run); warn > 0 && now_us >= warn && !run.lease.warned) {
        return LeaseMoved{run.id, run.lease.stop_at_us, true};
    }
    return {};
}

// Every rank had left with 0 before we asked it to: what we decided to end was done.
bool was_done_before(const Attempt& attempt) {
    const bool ours = attempt.cause == Cause::cancelled || attempt.cause == Cause::timeout ||
                      (attempt.notice != Cause::none && attempt.cause == attempt.notice);
    return ours && left_by_itself(attempt) &&
           std::all_of(attempt.ranks.begin(), attempt.ranks.end(), [&](const RankStatus& rank) {
               return rank.ended && rank.cause == Cause::ok && rank.ended_us <= attempt.end_us;
           });
}

Step step_of_ending(const State& state, const Run& run, const Attempt& attempt, std::int64_t now_us) {
    const AttemptId id{run.id, attempt.number};
    if (attempt.gone && !operation_is_open(state, attempt.launch)) {
        if (was_done_before(attempt)) return AttemptMoved{id, AttemptEvent::gone, Cause::ok, {}};
        return AttemptMoved{id, AttemptEvent::gone, attempt.cause, attempt.detail};
    }
    // A launch that is still being answered could come after the cancel, and would then run for nobody.
    if (attempt.gone || attempt.cancelling || operation_is_open(state, attempt.launch)) return {};
    if (attempt.cause == Cause::ok && now_us < attempt.end_us + kLingerUs) return {};
    return OperationIntended{
        .verb = Verb::cancel, .attempt = id, .target = attempt.launch, .grace_s = run.spec.grace_s};
}

// The attempt is over: what becomes of the run.
Step step_after_attempt(const Run& run, const Attempt& last, std::int64_t now_us) {
    const auto move = [&](RunEvent event, Cause cause) -> Step {
        return RunMoved{.run = run.id, .event = event, .cause = cause, .detail = last.detail};
    };
    if (last.cause == Cause::ok) return move(RunEvent::succeed, Cause::ok);
    if (run.state == RunState::cancelling) return move(RunEvent::attempt_ended, Cause::cancelled);
    if (last.cause == Cause::timeout || last.cause == Cause::lease) return move(RunEvent::exhaust, last.cause);
    if (const Cause over = exhausted(run, now_us); over != Cause::none) return move(RunEvent::exhaust, over);
    if (const std::int64_t end = queue_end_us(run); end > 0 && now_us >= end && run.started_us == 0)
        return move(RunEvent::exhaust, Cause::no_capacity);
    const bool none_left = run.attempts.size() >= static_cast<std::size_t>(run.spec.max_attempts) ||
                           (counts_as_restart(run) && run.counted_failures >= run.spec.max_restarts);
    if (none_left) return move(RunEvent::give_up, last.cause);
    if (!run.held && looks_poisonous(run)) return RunHeld{run.id, true};
    return RunMoved{.run = run.id,
                    .event = RunEvent::retry,
                    .cause = last.cause,
                    .detail = last.detail,
                    .not_before_us = has_back_off(last.cause) ? now_us + back_off_us(run.failures_in_row) : now_us};
}

Step step_of_waiting(const State& state, const Run& run, std::int64_t now_us) {
    if (const Cause over = exhausted(run, now_us); over != Cause::none)
        return RunMoved{.run = run.id, .event = RunEvent::exhaust, .cause = over};
    if (const std::int64_t end = queue_end_us(run); end > 0 && now_us >= end && run.started_us == 0)
        return RunMoved{.run = run.id,
                        .event = RunEvent::exhaust,
                        .cause = Cause::no_capacity,
                        .detail = fmt::format("not started within its queue_timeout_s of {} s; {} runs wait, {} run",
                                              *run.spec.queue_timeout_s, state.queue.size(), state.live.size())};
    if (run.state == RunState::requeued)
        return now_us >= run.not_before_us
                   ? Step(RunMoved{.run = run.id, .event = RunEvent::back_off_over, .cause = run.cause})
                   : Step();
    for (const RunId id : run.needs) {
        if (need_state(state, run, id) != NeedState::failed) continue;
        const Run* need = state.find(id);
        return RunMoved{
            .run = run.id,
            .event = RunEvent::dependency_failed,
            .cause = Cause::dependency,
            .detail = fmt::format("{} {}", need->step.empty() ? id.text() : need->step, to_string(need->state))};
    }
    return {};
}

// A graph follows its steps.
Step step_of_graph(const State& state, const Run& run) {
    const auto steps = state.steps.find(run.id);
    if (steps == state.steps.end()) return {};
    bool all_ended = true, any_began = false, failed = false;
    std::string detail;
    for (std::size_t i = 0; i < steps->second.size(); ++i) {
        const Run& step = *state.find(steps->second[i]);
        all_ended = all_ended && is_terminal(step.state);
        any_began = any_began || !step.attempts.empty();
        if (!is_terminal(step.state) || step.state == RunState::succeeded) continue;
        if (on_failure_of(state, step) == OnFailure::ignore) continue;
        if (!failed) detail = fmt::format("step {} {}", step.step, to_string(step.state));
        failed = true;
    }
    if (all_ended) {
        if (run.state == RunState::cancelling)
            return RunMoved{.run = run.id, .event = RunEvent::attempt_ended, .cause = Cause::cancelled};
        if (failed)
            return RunMoved{.run = run.id, .event = RunEvent::give_up, .cause = Cause::dependency, .detail = detail};
        return RunMoved{.run = run.id, .event = RunEvent::succeed, .cause = Cause::ok};
    }
    if (run.state == RunState::queued && any_began) return RunMoved{.run = run.id, .event = RunEvent::all_ready};
    return {};
}

// A step whose graph is being cancelled, or has a failed step that ends the whole.
Step step_of_member(const State& state, const Run& run) {
    const Run* graph = state.find(run.parent);
    if (graph == nullptr || is_terminal(run.state) || run.state == RunState::cancelling) return {};
    if (graph->state == RunState::cancelling || graph->state == RunState::cancelled)
        return RunMoved{
            .run = run.id, .event = RunEvent::cancel, .cause = Cause::cancelled, .detail = "with its graph"};
    if (run.state != RunState::queued) return {};
    const auto steps = state.steps.find(run.parent);
    for (const RunId id : steps->second) {
        const Run& other = *state.find(id);
        if (other.state != RunState::failed && other.state != RunState::expired) continue;
        if (on_failure_of(state, other) == OnFailure::fail)
            return RunMoved{.run = run.id,
                            .event = RunEvent::dependency_failed,
                            .cause = Cause::dependency,
                            .detail = fmt::format("step {} {}", other.step, to_string(other.state))};
    }
    return {};
}

}  // namespace

bool wants_done_marker(const Run& run) {
    const Attempt* attempt = run.live_attempt();
    return attempt != nullptr && attempt->end_us == 0 && !left_by_itself(*attempt) && all_ranks_ended(*attempt) &&
           first_failure(*attempt).rank < 0;
}

std::optional<RecordBody> next_step(const State& state, const Run& run, std::int64_t now_us, bool done_marker) {
    if (!run.attempts.empty()) {
        const Attempt& last = run.attempts.back();
        if (last.state == AttemptState::ended && !last.releasing)
            return OperationIntended{.verb = Verb::release, .attempt = {run.id, last.number}, .target = last.launch};
    }
    if (is_terminal(run.state)) return {};
    if (run.spec.kind == RunKind::graph) return step_of_graph(state, run);
    if (run.parent) {
        if (Step step = step_of_member(state, run)) return step;
    }
    if (run.state == RunState::queued || run.state == RunState::requeued) return step_of_waiting(state, run, now_us);
    const Attempt& last = run.attempts.back();
    switch (last.state) {
        case AttemptState::launching:
        case AttemptState::running: return step_of_running(state, run, last, now_us, done_marker);
        case AttemptState::ending: return step_of_ending(state, run, last, now_us);
        case AttemptState::ended: return step_after_attempt(run, last, now_us);
    }
    return {};
}

}  // namespace stoker
