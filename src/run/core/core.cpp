#include "run/core/core.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "io/sha256.h"
#include "run/decide/launch.h"
#include "run/state/load_state.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

// Live work is compared with the engine's listing this often, in case a fact was lost.
constexpr std::int64_t kRelistUs = 60 * kSecondUs;
// A pass over the queue costs about a microsecond a run; in a storm of submissions passes take a tenth of the time.
constexpr std::int64_t kPassUs = 1000, kPassUsPerRun = 10;
// A checkpoint folder is expected to answer within this; after it, others go first, or the run counts as not done.
constexpr std::int64_t kLookLimitUs = 10 * kSecondUs;
// How long an answer is good for: others may share the folder.
constexpr std::int64_t kLookKeptUs = 30 * kSecondUs;
constexpr std::int64_t kImageAgainUs = kSecondUs, kImageKeptUs = 600 * kSecondUs;
constexpr std::int64_t kLookAgainUs = 30 * kSecondUs;  // at one that could not be read
// Between two pieces of a snapshot, so that it takes a part of the time only.
constexpr std::int64_t kPieceEveryUs = 20'000;
constexpr std::size_t kMostForgotten = 64;   // in one turn
constexpr std::size_t kLeastRunBytes = 600;  // of a run in a snapshot

}  // namespace

CommandBody::CommandBody() = default;
CommandBody::CommandBody(const CommandBody&) = default;
CommandBody::CommandBody(CommandBody&&) noexcept = default;
CommandBody& CommandBody::operator=(const CommandBody&) = default;
CommandBody& CommandBody::operator=(CommandBody&&) noexcept = default;
CommandBody::~CommandBody() = default;

Result<std::unique_ptr<Core>> Core::open(Journal& journal, CoreOptions options, std::int64_t now_us) {
    std::unique_ptr<Core> core(new Core(journal, std::move(options)));
    TRY(core->snapshot_seq_, load_state(journal, core->state_));
    std::optional<JournalLost> lost;
    if (core->options_.on_loaded) {
        TRY(lost, core->options_.on_loaded(core->state_, core->options_.site));
    }
    const CoreOptions& told = core->options_;
    const bool same_boot = !told.boot_id.empty() && core->state_.clock.boot_id == told.boot_id;
    core->clock_.emplace(now_us, told.monotonic_us, core->state_.at_us, same_boot ? core->state_.clock : ClockMark{});
    core->now_us_ = core->clock_->now_us(told.monotonic_us);
    const std::uint64_t epoch = std::max(journal.epoch(), core->state_.epoch) + 1;
    journal.set_epoch(epoch);
    CoreStarted started{.site = told.site, .epoch = epoch, .boot_id = told.boot_id};
    if (!told.boot_id.empty()) started.monotonic_us = told.monotonic_us;
    core->emit(std::move(started));
    if (lost) core->emit(std::move(*lost));
    // The gate may have been opened, closed or tightened since.
    std::vector<std::string> nodes;
    for (const auto& [name, node] : core->state_.nodes) nodes.push_back(name);
    for (const std::string& name : nodes)
        if (core->state_.nodes.at(name).cause != Cause::node_override) core->judge(name);
    for (const RunId run : core->state_.live) core->look_again(run);
    TRY_VOID(core->commit());
    return core;
}

namespace {

// What a record of an attempt means for its run, when that has another state for it.
std::optional<RunEvent> move_of_run(const RecordBody& body) {
    if (std::holds_alternative<AttemptCreated>(body)) return RunEvent::admit;
    if (const auto* moved = std::get_if<AttemptMoved>(&body); moved != nullptr)
        return moved->event == AttemptEvent::all_ready ? std::optional(RunEvent::all_ready) : std::nullopt;
    if (std::holds_alternative<NoticeGiven>(body)) return RunEvent::notice;
    if (std::holds_alternative<NoticeWithdrawn>(body)) return RunEvent::withdraw;
    return std::nullopt;
}

}  // namespace

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
    if (snapshot_) {
        snapshot_->before_change(state_, run);
        if (const auto* next = std::get_if<RunSubmitted>(&record.body); next != nullptr && next->spec.repeat)
            snapshot_->before_change(state_, RunId::parse(next->spec.repeat->previous).value_or(RunId{}));
    }
    JournalEntry entry{
        .kind = kind_of(record.body),
        .format = 1,
        .object = state_.object_of(record.body),
        .version = state_.version_of(record.body),
        .actor = actor_text_,
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
    const std::uint32_t kind = entry.kind;
    if (kind == NodeSeen::kKind || kind == NodeMoved::kKind || kind == NodeChecked::kKind ||
        kind == AttemptMoved::kKind)
        health_changed_ = true;
    const std::optional<RunEvent> told_apart = move_of_run(record.body);
    const Run* moving = told_apart ? state_.find(run) : nullptr;
    const RunState before = moving == nullptr ? RunState::queued : moving->state;
    const Status applied = state_.apply(record);
    if (!applied && options_.on_bug) options_.on_bug(applied.error());
    CHECK(applied.ok());
    entries_.push_back(std::move(entry));
    batch_.push_back(std::move(record));
    if (run && state_.find(run) != nullptr) look_again(run);
    // What runs has changed, and so has what it will use.
    if (run && !state_.tenants.budgets.empty()) next_budget_us_ = std::min(next_budget_us_, now_us_ + kSecondUs);
    if (moving != nullptr && state_.find(run)->state != before) emit(RunMoved{.run = run, .event = *told_apart});
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
        const Run* found = state_.find(id);
        if (found == nullptr) continue;
        const Run& run = *found;
        if (next_is_due(run)) {
            submit_next(run);
            continue;  // it is looked at again, as every run that was told something
        }
        bool done_marker = false;
        if (wants_done_marker(run) && !run.spec.checkpoint.folder.empty()) {
            const CheckpointView* view = checkpoints_of(run);
            // Without an answer it counts as not done: it runs again, from its newest checkpoint.
            if (view == nullptr && now_us_ < looked_[id].asked_us + kLookLimitUs) continue;
            done_marker = view != nullptr && view->done;
        }
        const std::size_t before = state_.live.size();
        if (auto record = next_step(state_, run, now_us_, done_marker))
            emit(std::move(*record));
        else
            charge(id);
        if (state_.live.size() < before) changed_ = true;
    }
}

// What lies in the folder of the run; nothing until that is known, and it has been asked for.
const CheckpointView* Core::checkpoints_of(const Run& run) {
    const bool leaving = run.live_attempt() != nullptr;
    Looked& looked = looked_[run.id];
    const bool same = looked.asked != 0 && looked.attempts == run.attempts.size() && looked.leaving == leaving;
    if (same && looked.answered_us == 0) return nullptr;  // under way
    if (same && looked.view && now_us_ < looked.answered_us + kLookKeptUs) return &*looked.view;
    if (same && !looked.view && now_us_ < looked.answered_us + kLookAgainUs) return nullptr;
    // What was asked before comes back in vain.
    const std::int64_t since = same && !looked.view ? looked.asked_us : now_us_;
    looked = {.asked = ++looks_made_, .asked_us = since, .attempts = run.attempts.size(), .leaving = leaving};
    looks_.push_back({run.id, looked.asked});
    return nullptr;
}

Result<Ack> Core::on(const SawCheckpoints& saw) {
    const auto found = looked_.find(saw.run);
    if (found == looked_.end() || found->second.asked != saw.asked) return Ack{.repeated = true};
    found->second.answered_us = now_us_;
    found->second.view = saw.view;
    if (saw.view) no_longer_unreadable(saw.run);
    to_settle_.insert(saw.run);
    changed_ = true;
    return Ack{};
}

void Core::fire_timers() {
    // Folders that did not answer, and answers that nobody wanted after all.
    for (auto at = looked_.begin(); at != looked_.end();) {
        const RunId id = at->first;
        const Looked& looked = at->second;
        const Run* run = state_.find(id);
        const bool wanted = run != nullptr && (run->state == RunState::queued || wants_done_marker(*run));
        if (!wanted || (looked.view && now_us_ >= looked.answered_us + kLookKeptUs)) {
            no_longer_unreadable(id);
            at = looked_.erase(at);
            changed_ = true;
            continue;
        }
        ++at;
        if (looked.view || now_us_ < looked.asked_us + kLookLimitUs) continue;
        to_settle_.insert(id);
        if (run->state != RunState::queued) continue;
        auto& unreadable = options_.scheduler.unreadable;
        if (const auto place = std::lower_bound(unreadable.begin(), unreadable.end(), id);
            place == unreadable.end() || *place != id) {
            unreadable.insert(place, id);
            changed_ = true;
        }
        if (looked.answered_us != 0) (void)checkpoints_of(*run);
    }
    for (auto at = state_.timers.begin(); at != state_.timers.end() && at->first <= now_us_; ++at)
        to_settle_.insert(at->second);
    settle();
    ask_for_images();
}

void Core::start_runs() {
    if (begins_us_ > 0 && now_us_ >= begins_us_) changed_ = true;
    if (recovering_ || !changed_ || state_.queue.empty() || now_us_ < next_pass_us_) return;
    changed_ = false;
    next_pass_us_ = now_us_ + kPassUs + kPassUsPerRun * static_cast<std::int64_t>(state_.queue.size());
    if (awaits_prices()) return;
    guard_budgets();
    Decisions decisions = schedule(state_, now_us_, options_.scheduler);
    for (const Reclaim& each : decisions.reclaim)
        emit(NoticeGiven{.attempt = {each.victim, state_.find(each.victim)->live_attempt()->number},
                         .deadline_us = now_us_ + kReclaimNoticeS * kSecondUs,
                         .cause = Cause::preempted});
    begins_us_ = decisions.begins_us;
    for (const std::string& image : decisions.images) asked_images_.try_emplace(image);
    std::erase_if(asked_images_, [&](const auto& each) {
        if (each.second.under_way || decisions.images.contains(each.first)) return false;
        options_.scheduler.images.erase(each.first);
        return true;
    });
    ask_for_images();
    for (Admission& admission : decisions.admit) {
        const Run& run = *state_.find(admission.run);
        CheckpointView checkpoint;
        if (!run.spec.checkpoint.folder.empty()) {
            // Its place is kept for it in this pass; the answer brings the next one.
            const CheckpointView* view = checkpoints_of(run);
            if (view == nullptr) continue;
            checkpoint = *view;
            looked_.erase(run.id);
        }
        emit(AttemptCreated{.attempt = {run.id, static_cast<std::uint32_t>(run.attempts.size() + 1)},
                            .places = std::move(admission.places),
                            .resume_from = std::move(checkpoint.newest),
                            .resume_step = checkpoint.step,
                            .engine = std::move(admission.engine),
                            .chosen = std::move(admission.chosen)});
    }
    changed_ = false;
    settle();
}

// One that is not here is asked for every second, which also shows how far it is; one that is, before it could have
// been removed for want of use.
void Core::ask_for_images() {
    if (state_.queue.empty()) {
        asked_images_.clear();
        options_.scheduler.images.clear();
    }
    for (auto& [image, asked] : asked_images_) {
        const auto known = options_.scheduler.images.find(image);
        const bool ready = known != options_.scheduler.images.end() && known->second.ready;
        if (asked.under_way || now_us_ < asked.answered_us + (ready ? kImageKeptUs : kImageAgainUs)) continue;
        asked.under_way = true;
        images_.push_back(image);
    }
}

Result<Ack> Core::on(const SawImage& saw) {
    const auto found = asked_images_.find(saw.image);
    if (found == asked_images_.end()) return Ack{.repeated = true};
    found->second = {.answered_us = now_us_};
    ImageView& view = options_.scheduler.images[saw.image];
    const bool ready = saw.outcome.certainty != Certainty::unknown;
    if (ready != view.ready) changed_ = true;
    view = {.ready = ready, .detail = saw.outcome.detail};
    return Ack{};
}

// The oldest first; a few at a time.
void Core::forget_runs() {
    auto at = state_.ended.begin();
    std::vector<RunId> forget;
    std::size_t left = state_.ended.size();
    for (std::size_t i = 0; i < 2 * kMostForgotten && at != state_.ended.end() && forget.size() < kMostForgotten;
         ++i, ++at) {
        const bool old = options_.keep_ended_s > 0 && at->first + options_.keep_ended_s * kSecondUs <= now_us_;
        if (!old && (options_.max_ended == 0 || left <= options_.max_ended)) break;
        if (!can_forget(state_, *state_.find(at->second))) continue;
        forget.push_back(at->second);
        --left;
    }
    for (const RunId run : forget) emit(RunForgotten{run});
}

// The next piece of the snapshot that is being written, with what else is to be written.
Status Core::write_snapshot() {
    const auto piece = snapshot_->next(state_, options_.snapshot_piece_bytes);
    const std::uint64_t seq = snapshot_->seq();
    if (!piece) {
        TRY_VOID(journal_.finish_snapshot(seq, kStateFormat, piece_digests_));
        snapshot_.reset();
        return done();
    }
    TRY_VOID(journal_.add_snapshot_piece(seq, piece_digests_.size(), *piece));
    piece_digests_.push_back(sha256(*piece));
    next_piece_us_ = now_us_ + kPieceEveryUs;
    return done();
}

Status Core::commit() {
    const bool piece = snapshot_.has_value() && now_us_ >= next_piece_us_;
    if (!entries_.empty() || piece) {
        std::function<Status(Database&, std::uint64_t)> project;
        if (piece) project = [this](Database&, std::uint64_t) { return write_snapshot(); };
        journal_.set_owner(state_.site, state_.runs_made);
        Status status = journal_.append(entries_, std::max(now_us_, state_.at_us), project);
        entries_.clear();
        if (!status) {
            failed_ = true;
            return status;
        }
    }
    // A snapshot holds everything and costs about 15 us a run: with many runs it is made less often, so that it takes a
    // small part of the time; replaying four records takes about as long. A large one is written piece by piece.
    const std::uint64_t every = std::max<std::uint64_t>(options_.snapshot_every, 4 * state_.runs.size());
    if (snapshot_ || state_.seq - snapshot_seq_ < every) return done();
    snapshot_seq_ = state_.seq;
    piece_digests_.clear();
    next_piece_us_ = 0;
    snapshot_.emplace(state_);
    // A small one at once, and whole.
    if (state_.runs.size() * kLeastRunBytes > options_.snapshot_piece_bytes) return done();
    Status status = journal_.save_snapshot({.seq = state_.seq, .format = kStateFormat, .state = encode_state(state_)});
    snapshot_.reset();
    failed_ = !status;
    return status;
}

Result<Turn> Core::turn(std::span<const Command> commands, std::int64_t now_us) {
    if (failed_)
        return Error(ErrorKind::unavailable, "a commit failed; nothing more is accepted", {}, "restart the server");
    now_us_ = std::max(now_us, state_.at_us);
    Turn turn;
    turn.acks.reserve(commands.size());
    for (const Command& command : commands) {
        acts(command.actor, command.trace);
        turn.acks.push_back(handle(command));
    }
    acts({}, {});
    settle();
    fire_timers();
    charge_what_runs();
    if (next_budget_us_ <= now_us_) guard_budgets();
    start_runs();
    ask_for_checks();
    forget_runs();
    TRY_VOID(commit());
    for (const OperationId& id : to_start_) {
        const auto found = state_.operations.find(id);
        if (found != state_.operations.end() && !found->second.unknown)
            turn.effects.push_back(effect_of(id, found->second));
    }
    to_start_.clear();
    turn.looks = std::exchange(looks_, {});
    turn.images = std::exchange(images_, {});
    turn.checks = std::exchange(checks_, {});
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
        if (options_.scheduler.binds)
            effect.gang.avoid = nodes_to_avoid(state_, run.spec, options_.scheduler.health, now_us_);
    }
    return effect;
}

void Core::order_listing(Turn& turn) {
    if (listing_ || now_us_ < next_list_us_) return;
    const std::int64_t lost = listing_due_us(state_, memory_);
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
        if (const std::int64_t lost = listing_due_us(state_, memory_); lost > 0) by(std::max(lost, next_list_us_));
        if (recovering_) by(std::max<std::int64_t>(next_list_us_, 1));
        // With nothing running the comparison finds orphans only, which can wait for the next command.
        if (!state_.live.empty() || !memory_.orphan_since.empty()) by(last_list_us_ + kRelistUs);
    }
    if (snapshot_) by(std::max(next_piece_us_, now_us_ + 1));
    for (const auto& [id, looked] : looked_) {
        if (looked.view)
            by(looked.answered_us + kLookKeptUs);
        else if (now_us_ < looked.asked_us + kLookLimitUs)
            by(looked.asked_us + kLookLimitUs);
        else if (looked.answered_us != 0)
            by(looked.answered_us + kLookAgainUs);
    }
    for (const auto& [image, asked] : asked_images_) {
        const auto known = options_.scheduler.images.find(image);
        const bool ready = known != options_.scheduler.images.end() && known->second.ready;
        if (!asked.under_way) by(asked.answered_us + (ready ? kImageKeptUs : kImageAgainUs));
    }
    if (may_check()) {
        if (health_changed_) by(std::max(checks_after_us_, now_us_ + 1));
        if (next_check_us_ > 0) by(std::max(next_check_us_, checks_after_us_));
    }
    // More are to be forgotten than fit into this turn.
    if (options_.max_ended > 0 && state_.ended.size() > options_.max_ended + kMostForgotten) by(now_us_ + kSecondUs);
    if (options_.keep_ended_s > 0 && !state_.ended.empty())
        by(std::max(state_.ended.begin()->first + options_.keep_ended_s * kSecondUs, now_us_ + kSecondUs));
    if (bills() && !state_.live.empty()) by(std::max(next_charge_us_, now_us_ + 1));
    if (!state_.tenants.budgets.empty() && next_budget_us_ > 0) by(std::max(next_budget_us_, now_us_ + kSecondUs / 10));
    if (changed_ && !recovering_ && !state_.queue.empty()) by(next_pass_us_);
    if (begins_us_ > 0 && !recovering_) by(std::max(begins_us_, next_pass_us_));
    return wake;
}

}  // namespace stoker
