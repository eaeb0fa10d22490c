#include "simulation.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "run/decide/why.h"
#include "run/state/load_state.h"
#include "run/state/rules.h"

namespace stoker::sim {
namespace {

// Memory, where there is a file system for it: what is simulated is the order of writes, not the disk.
std::string make_folder() {
    std::string pattern =
        std::filesystem::is_directory("/dev/shm") ? "/dev/shm/stoker-sim-XXXXXX" : "/tmp/stoker-sim-XXXXXX";
    const char* made = ::mkdtemp(pattern.data());
    CHECK(made != nullptr);
    return made;
}

std::int64_t microseconds(double seconds) {
    return static_cast<std::int64_t>(seconds * 1e6);
}

}  // namespace

std::vector<NodeInfo> make_nodes(int count, int gpus) {
    std::vector<NodeInfo> nodes;
    for (int i = 0; i < count; ++i) {
        NodeInfo node{
            .name = fmt::format("n{:03}", i + 1), .cpu_milli = 64'000, .memory_bytes = std::int64_t{512} << 30};
        for (int g = 0; g < gpus; ++g)
            node.devices.push_back({.id = std::to_string(g), .model = "H100", .memory_bytes = std::int64_t{80} << 30});
        nodes.push_back(std::move(node));
    }
    return nodes;
}

namespace {

std::unique_ptr<FakeDriver> make_room(const SimulationOptions& options) {
    std::vector<NodeInfo> nodes = options.nodes.empty() ? make_nodes(4, 4) : options.nodes;
    if (options.beside)
        return std::make_unique<TwoRooms>(options.seed, options.faults, std::move(nodes), *options.beside, kStartUs);
    return std::make_unique<FakeDriver>(options.seed, options.faults, std::move(nodes), kStartUs);
}

}  // namespace

Simulation::Simulation(SimulationOptions options)
    : options_(std::move(options)),
      random_(SplitMix::mix(options_.seed ^ 0x51)),
      room_(make_room(options_)),
      driver_(*room_),
      folder_(make_folder()) {
    start_server();
}

Simulation::~Simulation() {
    core_.reset();
    journal_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

void Simulation::broken(std::string what) {
    if (problems_.size() < 20)
        problems_.push_back(fmt::format("t={:.3f}: {}", static_cast<double>(now_us_ - kStartUs) / 1e6, what));
}

std::string Simulation::replay_command(const std::string& test) const {
    return fmt::format("replay: STOKER_SIM_SEED={} build/dev/sim_test --gtest_filter={}", options_.seed, test);
}

void Simulation::after(double seconds, std::function<void()> action) {
    events_.emplace(now_us_ + microseconds(seconds), std::move(action));
}

void Simulation::in_this_life(double seconds, std::function<void()> action) {
    after(seconds, [this, life = life_, action = std::move(action)] {
        if (life == life_) action();
    });
}

void Simulation::start_server() {
    ++life_;
    auto journal = Journal::open(folder_, {});
    if (!journal) std::fprintf(stderr, "%s\n", journal.error().text().c_str());
    CHECK(journal.ok());
    journal_ = std::move(*journal);
    CoreOptions core_options{.site = "sim22",
                             .log_root = "/logs",
                             .snapshot_every = options_.snapshot_every,
                             .snapshot_piece_bytes = options_.snapshot_piece_bytes,
                             .max_ended = options_.max_ended};
    core_options.scheduler.health.level = options_.health_gate;
    auto core = Core::open(*journal_, std::move(core_options), now_us_);
    if (!core) std::fprintf(stderr, "%s\n", core.error().text().c_str());
    CHECK(core.ok());
    core_ = std::move(*core);
    driver_.new_server();
    for (const auto& [operation, attempt] : core_->state().launches)
        driver_.belongs(operation, core_->state().find(attempt)->engine);
    core_->drives("", driver_.capabilities().binds, driver_.engines());
    ++commits_;
    turn_planned_ = observing_ = false;
    wake_us_ = 0;
    waiting_.clear();
    being_checked_.clear();  // they end with the server that asked
    observed_ = 0;
    for (const RunId run : acknowledged_)
        if (core_->state().find(run) == nullptr) broken(run.text() + " was acknowledged and is lost");
    for (std::size_t i = 0; i < submissions_.size(); ++i)
        if (!submissions_[i].run && submissions_[i].at_us <= now_us_)
            in_this_life(1, [this, i] { deliver_submission(i); });
    in_this_life(0, [this] { discover(); });
    in_this_life(0, [this] { take_turn(); });
    watch_facts();
}

void Simulation::kill() {
    ++kills_;
    dies_next_ = false;
    core_.reset();
    journal_.reset();
    ++life_;  // what was in flight finds nobody
    after(options_.downtime_s * random_.uniform(), [this] { start_server(); });
}

void Simulation::submit_at(double at_s, RunSpec spec, Actor actor) {
    const std::size_t index = submissions_.size();
    const std::int64_t at_us = kStartUs + microseconds(at_s);
    submissions_.push_back({.spec = std::move(spec),
                            .key = fmt::format("key-{}", index),
                            .at_us = at_us,
                            .run = {},
                            .actor = std::move(actor)});
    events_.emplace(at_us, [this, index] { deliver_submission(index); });
}

void Simulation::at(double at_s, std::function<void(Simulation&)> action) {
    events_.emplace(kStartUs + microseconds(at_s), [this, action = std::move(action)] {
        if (core_) return action(*this);
        after(options_.downtime_s + 1, [this, action] {
            if (core_) action(*this);
        });
    });
}

void Simulation::deliver_submission(std::size_t at) {
    const Submission& submission = submissions_[at];
    if (submission.run || !core_) return;
    in_turn_.push_back(at);
    enqueue({.what = Submit{.spec = submission.spec, .key = submission.key}, .actor = submission.actor});
}

void Simulation::enqueue(Command command) {
    waiting_.push_back(std::move(command));
    if (turn_planned_) return;
    turn_planned_ = true;
    in_this_life(static_cast<double>(options_.batch_us) * 1e-6, [this] { take_turn(); });
}

Result<Ack> Simulation::command(Command command) {
    waiting_.push_back(std::move(command));
    const std::size_t at = waiting_.size() - 1;
    const auto acks = take_turn();
    if (acks.empty()) return Error(ErrorKind::unavailable, "the server is gone");
    return acks[at];
}

std::vector<Result<Ack>> Simulation::take_turn() {
    if (!core_) return {};
    turn_planned_ = false;
    const std::vector<Command> all = std::exchange(waiting_, {});
    const std::vector<std::size_t> submissions = std::exchange(in_turn_, {});
    // Before the commit: as if the transaction had been torn, nothing of it is in the file.
    if (dies_next_) {
        kill();
        return {};
    }
    auto turn = core_->turn(all, now_us_);
    if (!turn) {
        broken(turn.error().text());
        return {};
    }
    records_ += turn->records.size();
    if (!turn->records.empty() && options_.kill_at.contains(++commits_)) {
        // After the commit, before anything left the process; or at the next one.
        if (random_.below(2) == 0) {
            kill();
            return {};
        }
        dies_next_ = true;
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!std::holds_alternative<Submit>(all[i].what)) continue;
        const std::size_t index = submissions.at(next++);
        if (!turn->acks[i]) {
            broken("a submission was refused: " + turn->acks[i].error().text());
            continue;
        }
        submissions_[index].run = turn->acks[i]->run;
        acknowledged_.insert(turn->acks[i]->run);
    }
    check_placements(*turn);
    check_turn(*turn);
    for (const CheckWanted& each : turn->checks) check(each);
    for (const Effect& effect : turn->effects) send(effect);
    for (const Look& each : turn->looks) look(each);
    if (turn->list) list(*turn->list);
    wake_us_ = turn->wake_us;
    return std::move(turn->acks);
}

// A call of the driver: it takes effect after a while and answers later; the server may be dead by either.
void Simulation::send(const Effect& effect) {
    auto outcome = std::make_shared<std::optional<Outcome>>();
    const auto carry_out = [this, effect, outcome] {
        const Deadline deadline{};
        switch (effect.verb) {
            case Verb::launch: *outcome = driver_.launch(effect.operation, effect.gang, deadline); break;
            case Verb::notify: *outcome = driver_.notify(effect.target, effect.epoch, effect.signal, deadline); break;
            case Verb::cancel:
                *outcome = driver_.cancel(effect.target, effect.epoch, static_cast<double>(effect.grace_s), deadline);
                break;
            case Verb::release: *outcome = driver_.release(effect.target, deadline); break;
        }
        watch_facts();
    };
    const double begins = latency(), answers = begins + latency();
    in_this_life(begins, carry_out);
    in_this_life(answers, [this, effect, outcome] {
        if (*outcome) enqueue({.what = Answered{effect.operation, **outcome}, .actor = Actor::part("driver/fake")});
    });
}

void Simulation::check(const CheckWanted& check) {
    ++checks_;
    if (!being_checked_.insert(check.node).second) broken(check.node + " is checked twice at once");
    for (const RunId id : core_->state().live)
        for (const RankPlace& place : core_->state().find(id)->attempts.back().places)
            if (place.node == check.node) broken(check.node + " is checked while " + id.text() + " runs there");
    in_this_life(2 + 60 * random_.uniform(), [this, check] {
        being_checked_.erase(check.node);
        enqueue({.what = SawHealth{check, driver_.check(check.node, check.level, {})},
                 .actor = Actor::part("driver/fake")});
    });
}

// With the gate on, no gang over nodes of which one did not pass, and none where a check failed or goes on.
void Simulation::check_placements(const Turn& turn) {
    for (const Record& record : turn.records) {
        const auto* created = std::get_if<AttemptCreated>(&record.body);
        if (created == nullptr) continue;
        std::set<std::string> nodes;
        for (const RankPlace& place : created->places) nodes.insert(place.node);
        wide_gangs_ += nodes.size() > 1 ? 1 : 0;
        if (!options_.health_gate) continue;
        for (const std::string& name : nodes) {
            const NodeStatus& node = core_->state().nodes.at(name);
            const std::string what = created->attempt.text() + " was placed on " + name + ", which ";
            if (being_checked_.contains(name)) broken(what + "is being checked");
            if (node.state == NodeState::quarantined) broken(what + "is quarantined");
            if (node.cause == Cause::node_override || created->places.size() == 1) continue;
            if (!is_checked(node, options_.health_gate))
                broken(what + "was not checked");
            else if (node.health->last->verdict == HealthVerdict::fail)
                broken(what + "failed its check");
            else if (nodes.size() > 1 && node.health->last->verdict != HealthVerdict::pass)
                broken(what + "did not pass its check");
            else if (nodes.size() > 1 && node.state == NodeState::suspect)
                broken(what + "is suspect");
        }
    }
}

// Now and then the folder cannot be read, or answers long after it was given up.
void Simulation::look(const Look& look) {
    const bool slow = random_.uniform() < options_.faults.folder_slow;
    in_this_life(latency() + (slow ? 20 * random_.uniform() : 0), [this, look] {
        SawCheckpoints saw{.run = look.run, .asked = look.asked, .view = {}};
        if (random_.uniform() >= options_.faults.folder_slow) saw.view = driver_.look_at_checkpoints(look.run);
        enqueue({.what = std::move(saw), .actor = Actor::part("driver/fake")});
    });
}

void Simulation::list(std::uint64_t seq) {
    auto listing = std::make_shared<OursListing>();
    const double begins = latency();
    in_this_life(begins, [this, listing] { *listing = *driver_.list_ours("sim22", {}); });
    in_this_life(begins + latency(), [this, listing, seq] {
        enqueue({.what = Listed{{.asked_seq = seq, .ours = *listing}}, .actor = Actor::part("driver/fake")});
    });
}

void Simulation::discover() {
    if (!core_) return;
    enqueue({.what = SawNodes{*driver_.discover({}), driver_.engines()}, .actor = Actor::part("driver/fake")});
    in_this_life(options_.discover_every_s, [this] { discover(); });
}

void Simulation::watch_facts() {
    if (!core_ || observing_ || driver_.last_cursor() <= observed_) return;
    observing_ = true;
    in_this_life(latency(), [this] {
        observing_ = false;
        const auto facts = *driver_.observe(core_->state().cursor, {});
        observed_ = driver_.last_cursor();
        for (const Fact& fact : facts) enqueue({.what = SawFact{fact}, .actor = Actor::part("driver/fake")});
        // A fact of another life of the server must change nothing.
        if (!facts.empty() && random_.below(50) == 0) {
            Fact stale = facts.back();
            if (stale.epoch > 1) {
                stale.epoch = 0;
                stale.kind = FactKind::gang_ended;
                stale.cursor = 0;
                if (stale.operation.seq > 0) enqueue({.what = SawFact{stale}, .actor = Actor::part("driver/fake")});
            }
        }
    });
}

bool Simulation::all_ended() const {
    if (!core_ || !waiting_.empty()) return false;
    const State& state = core_->state();
    if (!state.operations.empty() || !state.live.empty() || !state.launches.empty() || !state.queue.empty())
        return false;
    return std::all_of(submissions_.begin(), submissions_.end(),
                       [](const Submission& each) { return bool(each.run); }) &&
           std::all_of(state.runs.begin(), state.runs.end(),
                       [](const auto& each) { return is_terminal(each.second.state); });
}

bool Simulation::run_until_done(double limit_s) {
    const std::int64_t limit = kStartUs + microseconds(limit_s);
    while (!all_ended())
        if (!next_moment(limit)) return false;
    return true;
}

bool Simulation::settle_for(double seconds) {
    const std::int64_t limit = now_us_ + microseconds(seconds);
    while (next_moment(limit)) {
    }
    return all_ended();
}

// False: nothing happens any more before the limit.
bool Simulation::next_moment(std::int64_t limit_us) {
    std::int64_t next = events_.empty() ? 0 : events_.begin()->first;
    const auto by = [&](std::int64_t at) {
        if (at > 0 && (next == 0 || at < next)) next = at;
    };
    by(driver_.next_event_us());
    if (core_) by(wake_us_);
    if (next == 0 || next > limit_us) return false;
    // The server asks to be woken again and again, and nothing comes of it.
    moments_here_ = next > now_us_ ? 0 : moments_here_ + 1;
    if (moments_here_ > 10'000) {
        broken(fmt::format("time stands still: next event {}, driver {}, wake {}", next - now_us_,
                           driver_.next_event_us() - now_us_, wake_us_ - now_us_));
        return false;
    }
    now_us_ = std::max(now_us_, next);
    driver_.advance(now_us_);
    watch_facts();
    while (!events_.empty() && events_.begin()->first <= now_us_) {
        const auto action = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        action();
    }
    if (core_ && wake_us_ > 0 && wake_us_ <= now_us_) {
        wake_us_ = 0;
        take_turn();
    }
    return true;
}

void Simulation::check_turn(const Turn& turn) {
    if (!options_.check_each_turn) return;
    const State& state = core_->state();
    // Everything that goes out was written down before it does.
    for (const Effect& effect : turn.effects)
        if (effect.operation.seq > journal_->head().seq) broken(effect.operation.text() + " is not in the journal");
    // The same state and clock: the same decisions.
    const Decisions once = schedule(state, now_us_), again = schedule(state, now_us_);
    if (once.admit.size() != again.admit.size() || once.waiting.size() != again.waiting.size())
        broken("two passes over one state differ");
    for (std::size_t i = 0; i < once.admit.size(); ++i)
        if (once.admit[i].run != again.admit[i].run || once.admit[i].places != again.admit[i].places)
            broken("two passes over one state differ");
    // Every run that waits has a reason, and the same one for whoever asks.
    if (!once.waiting.empty() && random_.below(20) == 0) {
        const Waiting& any = once.waiting[random_.below(once.waiting.size())];
        if (const Why answer = why(state, any.run, now_us_); answer.code != any.cause || answer.text.empty())
            broken(any.run.text() + " waits for another reason than it is told");
    }
    if (once.admit.size() + once.waiting.size() != state.queue.size()) broken("a queued run without a reason");
    for (const auto& [id, run] : state.runs) {
        if (is_terminal(run.state) && run.cause == Cause::none) broken(id.text() + " ended without a cause");
        std::size_t live = 0;
        for (const Attempt& attempt : run.attempts) live += attempt.live() ? 1 : 0;
        if (live > 1) broken(id.text() + " has two live attempts");
        if (is_terminal(run.state) && live > 0) broken(id.text() + " ended before its attempt");
    }
    if (random_.below(100) == 0) check_replay("in between");
}

// The journal alone, and a snapshot with what came after it, give the state that the server has.
void Simulation::check_replay(const char* when) {
    const State& live = core_->state();
    State replayed;
    const std::uint64_t cut = random_.below(live.seq + 1);
    State from_snapshot;
    bool in_snapshot = false;
    const auto read = journal_->read(0, [&](const JournalRecord& entry) -> Result<bool> {
        if (in_snapshot) TRY_VOID(apply_entry(from_snapshot, entry));
        TRY_VOID(apply_entry(replayed, entry));
        if (entry.seq == cut) {
            TRY(from_snapshot, decode_state(encode_state(replayed)));
            in_snapshot = true;
        }
        return true;
    });
    if (!read) return broken(std::string("replay ") + when + ": " + read.error().text());
    if (digest(replayed) != digest(live)) broken(std::string("the journal gives another state, ") + when);
    if (in_snapshot && digest(from_snapshot) != digest(live))
        broken(fmt::format("a snapshot at record {} and the rest give another state, {}", cut, when));
    if (in_snapshot && (from_snapshot.queue != live.queue || from_snapshot.live != live.live ||
                        from_snapshot.launches != live.launches || from_snapshot.timers != live.timers ||
                        from_snapshot.keys != live.keys || from_snapshot.ended != live.ended))
        broken(fmt::format("a snapshot at record {} gives other indexes, {}", cut, when));
}

std::map<std::string, std::string> Simulation::outcomes() const {
    std::map<std::string, std::string> outcomes;
    for (const auto& [id, run] : core_->state().runs)
        outcomes[run.spec.name] = fmt::format("{} {}", to_string(run.state), to_string(run.cause));
    return outcomes;
}

std::string Simulation::unfinished() const {
    if (!core_) return "the server is down\n";
    std::string text = core_->recovering() ? "recovering\n" : "";
    for (const std::string& problem : problems_) text += problem + "\n";
    for (const auto& [id, run] : core_->state().runs) {
        if (is_terminal(run.state)) continue;
        text += fmt::format("{} {} {} cause {}, {} attempts", id.text(), run.spec.name, to_string(run.state),
                            to_string(run.cause), run.attempts.size());
        if (!run.attempts.empty())
            text += fmt::format(", last {} {} launched {} gone {} cancelling {}", to_string(run.attempts.back().state),
                                to_string(run.attempts.back().cause), to_string(run.attempts.back().launched),
                                run.attempts.back().gone, run.attempts.back().cancelling);
        text += "; " + why(core_->state(), id, now_us_).text + "\n";
    }
    for (const auto& [id, operation] : core_->state().operations)
        text += fmt::format("{} {} of {} {} tries {}\n", id.text(), to_string(operation.verb), operation.attempt.text(),
                            operation.unknown ? "unknown" : "sent", operation.tries);
    for (const auto& [name, node] : core_->state().nodes)
        text += fmt::format("{} {} {}\n", name, to_string(node.state), to_string(node.cause));
    return text;
}

std::vector<std::string> Simulation::problems() {
    std::vector<std::string> all = problems_;
    for (const std::string& each : driver_.violations()) all.push_back("machine room: " + each);
    if (driver_.alive() != 0) all.push_back(fmt::format("{} gangs still run", driver_.alive()));
    if (driver_.remembered() != 0) all.push_back(fmt::format("{} gangs were never released", driver_.remembered()));
    if (!core_) {
        all.push_back("the server is down");
        return all;
    }
    if (!core_->state().operations.empty())
        all.push_back(fmt::format("{} operations are open", core_->state().operations.size()));
    for (const Submission& submission : submissions_) {
        const Run* run = submission.run ? core_->state().find(submission.run) : nullptr;
        if (submission.run && (run == nullptr || digest(run->spec) != digest(submission.spec)))
            all.push_back(submission.key + " was acknowledged and is not what was submitted");
    }
    // Time is counted while ranks run: not while the engine lets them wait, and not until somebody reads of the end.
    // Where nobody told of it, the listing that misses it comes at most so late.
    constexpr std::int64_t kLateUs = 400 * kSecondUs;
    const auto& ran = driver_.ran();
    for (const auto& [id, run] : core_->state().runs)
        for (const Attempt& attempt : run.attempts) {
            const auto found = ran.find(attempt.launch);
            if (found != ran.end() && attempt.over_us && attempt.ended_us > found->second.to_us)
                all.push_back(fmt::format("{} is counted {:.3f} s after its end", id.text(),
                                          static_cast<double>(attempt.ended_us - found->second.to_us) / 1e6));
        }
    for (const auto& [id, run] : core_->state().runs) {
        if (!driver_.queues()) break;
        std::int64_t ran_us = 0;
        for (const Attempt& attempt : run.attempts) {
            const auto found = ran.find(attempt.launch);
            if (found == ran.end()) {
                if (attempt.began_us() != 0 && attempt.engine_wait)
                    all.push_back(id.text() + " is said to have begun, and never ran");
                continue;
            }
            ran_us += found->second.to_us - found->second.from_us;
            if (attempt.engine_wait && attempt.began_us() != 0 && attempt.began_us() < found->second.from_us)
                all.push_back(id.text() + " is counted before its ranks ran");
        }
        if (run.used_us > ran_us + static_cast<std::int64_t>(run.attempts.size()) * kLateUs)
            all.push_back(fmt::format("{} is counted {} s, and ran {} s", id.text(), run.used_us / kSecondUs,
                                      ran_us / kSecondUs));
    }
    const std::size_t before = problems_.size();
    check_replay("at the end");
    for (std::size_t i = before; i < problems_.size(); ++i) all.push_back(problems_[i]);
    return all;
}

}  // namespace stoker::sim
