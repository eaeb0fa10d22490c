#include "run/state/rules.h"

#include <algorithm>

namespace stoker {
namespace {

void keep_earlier(std::int64_t& due, std::int64_t at) {
    if (at > 0 && (due == 0 || at < due)) due = at;
}

}  // namespace

int evidence(Cause cause) {
    switch (cause) {
        case Cause::node_lost:
        case Cause::device_fault:
        case Cause::evicted: return 5;
        case Cause::oom: return 4;
        case Cause::cancelled:
        case Cause::timeout:
        case Cause::lease:
        case Cause::preempted:
        case Cause::quota:
        case Cause::budget: return 3;
        case Cause::lost_contact: return 2;
        case Cause::none:
        case Cause::ok: return 0;
        default: return 1;
    }
}

RankFailure first_failure(const Attempt& attempt) {
    RankFailure first;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < attempt.ranks.size(); ++i) {
        const RankStatus& rank = attempt.ranks[i];
        if (!rank.ended || rank.cause == Cause::ok) continue;
        const int stronger = evidence(rank.cause) - evidence(first.cause);
        if (first.rank >= 0 && (stronger < 0 || (stronger == 0 && rank.ended_us >= at))) continue;
        first = {.cause = rank.cause, .rank = static_cast<int>(i)};
        at = rank.ended_us;
    }
    return first;
}

bool all_ranks_ended(const Attempt& attempt) {
    return std::all_of(attempt.ranks.begin(), attempt.ranks.end(), [](const RankStatus& rank) { return rank.ended; });
}

bool ended_transiently(const Run& run) {
    if (run.attempts.empty() || run.attempts.back().cause != Cause::user_error) return false;
    const RankFailure failure = first_failure(run.attempts.back());
    if (failure.rank < 0) return false;
    const auto code = run.attempts.back().ranks[static_cast<std::size_t>(failure.rank)].exit_code;
    const auto& transient = run.spec.transient_exit_codes;
    return code && std::find(transient.begin(), transient.end(), *code) != transient.end();
}

bool counts_as_restart(const Run& run) {
    if (run.attempts.empty()) return false;
    const Cause cause = run.attempts.back().cause;
    return cause == Cause::oom || (cause == Cause::user_error && !ended_transiently(run));
}

std::int64_t queue_end_us(const Run& run) {
    if (run.spec.queue_timeout_s.value_or(0) == 0) return 0;
    return std::max(run.submitted_us, run.spec.begin_at_us.value_or(0)) + *run.spec.queue_timeout_s * kSecondUs;
}

bool waits_at_engine(const Run& run) {
    const Attempt* attempt = run.live_attempt();
    return attempt != nullptr && attempt->state == AttemptState::launching && attempt->engine_wait &&
           attempt->engine_wait->began_us == 0;
}

std::int64_t gang_start_end_us(const Attempt& attempt) {
    if (attempt.state != AttemptState::launching || !attempt.engine_wait || attempt.engine_wait->began_us == 0)
        return 0;
    return attempt.engine_wait->began_us + kGangStartUs;
}

bool looks_poisonous(const Run& run) {
    constexpr std::size_t kInARow = 3;
    constexpr std::int64_t kWithinUs = 300 * kSecondUs;
    if (run.attempts.size() < kInARow) return false;
    // One that goes on from a newer checkpoint each time gets somewhere: whatever takes it down, it is no loop.
    const std::string& from = run.attempts.back().resume_from;
    return std::all_of(run.attempts.end() - kInARow, run.attempts.end(), [&](const Attempt& attempt) {
        if (attempt.resume_from != from) return false;
        const bool taken = attempt.cause == Cause::node_lost || attempt.cause == Cause::lost_contact ||
                           attempt.cause == Cause::platform;
        return taken && attempt.running_us > 0 && attempt.worked_us(attempt.end_us) < kWithinUs;
    });
}

bool has_back_off(Cause cause) {
    return cause != Cause::evicted && cause != Cause::preempted && cause != Cause::node_lost && cause != Cause::budget;
}

std::int64_t back_off_us(int failures_in_row) {
    return std::min(std::int64_t{600}, std::int64_t{10} << std::clamp(failures_in_row, 0, 6)) * kSecondUs;
}

std::int64_t operation_back_off_us(int tries) {
    return std::min(std::int64_t{60}, std::int64_t{1} << std::clamp(tries - 1, 0, 6)) * kSecondUs;
}

std::int64_t used_us(const Run& run, std::int64_t now_us) {
    const Attempt* attempt = run.live_attempt();
    return run.used_us + (attempt == nullptr ? 0 : attempt->worked_us(now_us));
}

std::int64_t latest_end_us(const Run& run) {
    std::int64_t end = 0;
    const Attempt* attempt = run.live_attempt();
    if (attempt != nullptr && run.spec.timeout_s > 0 && attempt->began_us() > 0)
        keep_earlier(end, attempt->began_us() + run.spec.timeout_s * kSecondUs - run.used_us);
    keep_earlier(end, run.lease.hard_max_at_us);
    keep_earlier(end, run.lease.stop_at_us);
    return end;
}

std::int64_t lease_warning_us(const Run& run) {
    if (run.lease.stop_at_us == 0) return 0;
    return run.lease.stop_at_us - std::min(900 * kSecondUs, run.spec.lease.stop_after_s * kSecondUs / 10);
}

std::int64_t lease_end_us(const Run& run) {
    std::int64_t end = run.lease.stop_at_us;
    keep_earlier(end, run.lease.hard_max_at_us);
    return end;
}

std::int64_t lease_notice_us(const Run& run) {
    const std::int64_t end = lease_end_us(run);
    if (end == 0) return 0;
    const std::int64_t whole = std::max<std::int64_t>(end - run.started_us, 0);
    return end - std::min(run.spec.grace_s * kSecondUs, whole / 10);
}

bool next_is_due(const Run& run) {
    if (!run.spec.repeat || run.parent || run.next_in_row) return false;
    const RepeatSpec& repeat = *run.spec.repeat;
    if (repeat.times && repeat.number >= *repeat.times) return false;
    return run.started_us != 0 || (is_terminal(run.state) && run.state != RunState::cancelled);
}

std::int64_t fair_weight_milli(const RunSpec& spec) {
    const QuotaDemand demand = quota_demand(spec);
    return std::max(demand.gpu_milli, demand.cpu_milli / 8);
}

QuotaDemand quota_demand(const RunSpec& spec) {
    const RankNeeds& needs = spec.per_rank;
    QuotaDemand demand{.cpu_milli = spec.ranks * needs.cpu_milli,
                       .gpu_milli = std::int64_t{spec.ranks} * needs.gpus * needs.gpu_milli};
    if (!needs.gpu_model.empty() && demand.gpu_milli > 0) demand.gpu_milli_of[needs.gpu_model] = demand.gpu_milli;
    return demand;
}

std::int64_t next_due(const Run& run) {
    std::int64_t due = 0;
    if (is_terminal(run.state)) return due;
    if (run.state == RunState::queued || run.state == RunState::requeued) {
        keep_earlier(due, lease_end_us(run));
        if (run.started_us == 0) keep_earlier(due, queue_end_us(run));
        if (run.state == RunState::requeued) keep_earlier(due, std::max<std::int64_t>(run.not_before_us, 1));
        return due;
    }
    const Attempt* attempt = run.live_attempt();
    if (attempt == nullptr) return due;
    if (attempt->state == AttemptState::ending) {
        // Until the launch is answered, time alone brings nothing.
        const bool lingers = attempt->cause == Cause::ok && attempt->launched != Answer::unknown;
        if (lingers && !attempt->gone && !attempt->cancelling) keep_earlier(due, attempt->end_us + kLingerUs);
        return due;
    }
    if (run.spec.timeout_s > 0 && attempt->began_us() > 0)
        keep_earlier(due,
                     std::max<std::int64_t>(1, attempt->began_us() + run.spec.timeout_s * kSecondUs - run.used_us));
    if (run.started_us == 0) keep_earlier(due, queue_end_us(run));
    keep_earlier(due, gang_start_end_us(*attempt));
    keep_earlier(due, run.lease.hard_max_at_us);
    if (attempt->notice != Cause::lease) keep_earlier(due, lease_notice_us(run));
    if (!run.lease.warned) keep_earlier(due, lease_warning_us(run));
    keep_earlier(due, attempt->deadline_us);
    return due;
}

}  // namespace stoker
