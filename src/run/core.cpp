#include "run/core.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "run/launch.h"
#include "run/load_state.h"
#include "run/rules.h"

namespace stoker {
namespace {

// Live work is compared with the engine's listing this often, in case a fact was lost.
constexpr std::int64_t kRelistUs = 60 * kSecondUs;
// A pass over the queue costs about a microsecond a run; in a storm of submissions passes take a tenth of the time.
constexpr std::int64_t kPassUs = 1000, kPassUsPerRun = 10;

}  // namespace

Result<std::unique_ptr<Core>> Core::open(Journal& journal, CoreOptions options, std::int64_t now_us) {
    std::unique_ptr<Core> core(new Core(journal, std::move(options)));
    TRY(core->snapshot_seq_, load_state(journal, core->state_));
    core->now_us_ = std::max(now_us, core->state_.at_us);
    core->actor_ = "core";
    const std::uint64_t epoch = std::max(journal.epoch(), core->state_.epoch) + 1;
    journal.set_epoch(epoch);
    core->emit(CoreStarted{.site = core->options_.site, .epoch = epoch});
    for (const RunId run : core->state_.live) core->look_again(run);
    TRY_VOID(core->commit());
    return core;
}

// Applied at once, so that what is decided next sees it; written with the batch.
void Core::emit(RecordBody body) {
    Record record{.seq = state_.seq + 1,
                  .at_us = std::max(now_us_, state_.at_us),
                  .epoch = journal_.epoch(),
                  .actor = actor_,
                  .trace = trace_,
                  .body = std::move(body)};
    const OperationId intended{.site = state_.site, .seq = record.seq};
    const RunId run = state_.run_of(record.body);
    JournalEntry entry{
        .kind = kind_of(record.body),
        .format = 1,
        .object = state_.object_of(record.body),
        .version = state_.version_of(record.body),
        .actor = actor_,
        .cause = std::string(cause_of(record.body) == Cause::none ? "" : to_string(cause_of(record.body))),
        .operation = "",
        .trace = trace_,
        .body = encode_body(record.body)};
    if (std::holds_alternative<AttemptCreated>(record.body) || std::holds_alternative<OperationIntended>(record.body)) {
        to_start_.insert(intended);
        entry.operation = intended.text();
    } else if (const auto* resent = std::get_if<OperationResent>(&record.body)) {
        to_start_.insert(resent->operation);
        entry.operation = resent->operation.text();
    } else if (const auto* answered = std::get_if<OperationAnswered>(&record.body)) {
        entry.operation = answered->operation.text();
    } else if (const auto* seen = std::get_if<FactSeen>(&record.body);
               seen != nullptr && seen->fact.operation.seq > 0) {
        entry.operation = seen->fact.operation.text();
    }
    const Status applied = state_.apply(record);
    if (!applied) std::fprintf(stderr, "%s\n", applied.error().text().c_str());
    CHECK(applied.ok());
    entries_.push_back(std::move(entry));
    batch_.push_back(std::move(record));
    if (run) look_again(run);
}

// The run, and whoever waits for it.
void Core::look_again(RunId id) {
    to_settle_.insert(id);
    const Run& run = *state_.find(id);
    if (run.parent) to_settle_.insert(run.parent);
    if (run.state == RunState::queued || is_terminal(run.state)) changed_ = true;
    if (is_terminal(run.state)) {
        if (const auto found = state_.dependents.find(id); found != state_.dependents.end())
            to_settle_.insert(found->second.begin(), found->second.end());
        // A step that failed ends its siblings as well.
        const auto siblings = run.parent ? state_.steps.find(run.parent) : state_.steps.end();
        if (siblings != state_.steps.end() && run.state != RunState::succeeded)
            to_settle_.insert(siblings->second.begin(), siblings->second.end());
    }
    if (run.spec.kind == RunKind::graph && (run.state == RunState::cancelling || is_terminal(run.state)))
        if (const auto found = state_.steps.find(id); found != state_.steps.end())
            to_settle_.insert(found->second.begin(), found->second.end());
}

void Core::settle() {
    while (!to_settle_.empty()) {
        const RunId id = *to_settle_.begin();
        to_settle_.erase(to_settle_.begin());
        const Run& run = *state_.find(id);
        const bool done_marker =
            wants_done_marker(run) && options_.look_at_checkpoints && options_.look_at_checkpoints(run).done;
        const std::size_t before = state_.live.size();
        if (auto record = next_step(state_, run, now_us_, done_marker)) emit(std::move(*record));
        if (state_.live.size() < before) changed_ = true;
    }
}

void Core::fire_timers() {
    for (auto at = state_.timers.begin(); at != state_.timers.end() && at->first <= now_us_; ++at)
        to_settle_.insert(at->second);
    settle();
}

void Core::start_runs() {
    if (recovering_ || !changed_ || state_.queue.empty() || now_us_ < next_pass_us_) return;
    changed_ = false;
    next_pass_us_ = now_us_ + kPassUs + kPassUsPerRun * static_cast<std::int64_t>(state_.queue.size());
    Decisions decisions = schedule(state_, now_us_, options_.scheduler);
    for (Admission& admission : decisions.admit) {
        const Run& run = *state_.find(admission.run);
        CheckpointView checkpoint;
        if (!run.spec.checkpoint.folder.empty() && options_.look_at_checkpoints)
            checkpoint = options_.look_at_checkpoints(run);
        emit(AttemptCreated{.attempt = {run.id, static_cast<std::uint32_t>(run.attempts.size() + 1)},
                            .places = std::move(admission.places),
                            .resume_from = std::move(checkpoint.newest),
                            .resume_step = checkpoint.step});
    }
    changed_ = false;
    settle();
}

Status Core::commit() {
    if (!entries_.empty()) {
        Status status = journal_.append(entries_, std::max(now_us_, batch_.front().at_us));
        entries_.clear();
        if (!status) {
            failed_ = true;
            return status;
        }
    }
    // A snapshot holds everything and costs about 15 us a run: with many runs it is made less often, so that it takes a
    // small part of the time; replaying four records takes about as long.
    if (state_.seq - snapshot_seq_ >= std::max<std::uint64_t>(options_.snapshot_every, 4 * state_.runs.size())) {
        Status status =
            journal_.save_snapshot({.seq = state_.seq, .format = kStateFormat, .state = encode_state(state_)});
        if (!status) {
            failed_ = true;
            return status;
        }
        snapshot_seq_ = state_.seq;
    }
    return done();
}

Result<Turn> Core::turn(std::span<const Command> commands, std::int64_t now_us) {
    if (failed_)
        return Error(ErrorKind::unavailable, "a commit failed; nothing more is accepted", {}, "restart the server");
    now_us_ = std::max(now_us, state_.at_us);
    Turn turn;
    turn.acks.reserve(commands.size());
    for (const Command& command : commands) {
        actor_ = command.actor;
        trace_ = command.trace;
        turn.acks.push_back(handle(command));
    }
    actor_ = "core";
    trace_.clear();
    settle();
    fire_timers();
    start_runs();
    TRY_VOID(commit());
    for (const OperationId& id : to_start_) {
        const auto found = state_.operations.find(id);
        if (found != state_.operations.end() && !found->second.unknown)
            turn.effects.push_back(effect_of(id, found->second));
    }
    to_start_.clear();
    turn.records = std::move(batch_);
    batch_.clear();
    order_listing(turn);
    turn.wake_us = wake_us();
    return turn;
}

Effect Core::effect_of(const OperationId& id, const Operation& operation) const {
    Effect effect{.operation = id,
                  .verb = operation.verb,
                  .attempt = operation.attempt,
                  .target = operation.target,
                  .epoch = state_.epoch,
                  .signal = operation.signal,
                  .grace_s = operation.grace_s};
    if (operation.verb == Verb::launch) {
        const Run& run = *state_.find(operation.attempt.run);
        effect.gang = gang_spec(state_, run, *state_.find(operation.attempt), options_.log_root);
    }
    return effect;
}

void Core::order_listing(Turn& turn) {
    if (listing_ || now_us_ < next_list_us_) return;
    const std::int64_t lost = listing_due_us(state_);
    const bool due = recovering_ || (lost > 0 && lost <= now_us_) || now_us_ >= last_list_us_ + kRelistUs;
    if (!due) return;
    listing_ = true;
    last_list_us_ = now_us_;
    turn.list = state_.seq;
}

std::int64_t Core::wake_us() const {
    std::int64_t wake = 0;
    const auto by = [&](std::int64_t at) {
        if (at > 0 && (wake == 0 || at < wake)) wake = at;
    };
    // A timer that is up and brought nothing waits for something else; it may not keep the server spinning.
    if (!state_.timers.empty()) by(std::max(state_.timers.begin()->first, now_us_ + kSecondUs / 10));
    if (!listing_) {
        if (const std::int64_t lost = listing_due_us(state_); lost > 0) by(std::max(lost, next_list_us_));
        if (recovering_) by(std::max<std::int64_t>(next_list_us_, 1));
        // With nothing running the comparison finds orphans only, which can wait for the next command.
        if (!state_.live.empty() || !memory_.orphan_since.empty()) by(last_list_us_ + kRelistUs);
    }
    if (changed_ && !recovering_ && !state_.queue.empty()) by(next_pass_us_);
    return wake;
}

}  // namespace stoker
