#include "run/engine/engine_effects.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/secret_files.h"
#include "io/worker.h"
#include "run/engine/checkpoints.h"
#include "run/engine/upload_manifest.h"
#include "run/spec/secrets.h"

namespace stoker {
namespace {

// Of several engines, the first that does not answer, for whoever looks after the server.
std::string fault_of(const std::vector<EngineState>& engines) {
    for (const EngineState& each : engines)
        if (!each.fault.empty()) return fmt::format("the engine {} does not answer: {}", each.name, each.fault);
    return {};
}

using EffectClock = std::chrono::steady_clock;

// A cancel is told to the driver again and again rather than left waiting for its grace: so many cancels wait on few
// threads, and a server stops without waiting for them. Longer while nobody else waits for the thread.
constexpr double kCancelSliceS = 1, kBusyCancelSliceS = 0.1;
constexpr double kReleaseRejectedS = 2;
// Of one pruning. A launch into the same folder waits for it.
constexpr double kPruneLimitS = 20;
constexpr std::size_t kMostPrunesWaiting = 1000;
// More than the runs that a server takes: the core asks for few calls of each, and for the next when one is answered.
constexpr std::size_t kMostCallsWaiting = 200'000;

// For a file system that is slow; one that hangs leaves the thread behind.
constexpr double kLookLimitS = 60;
// Looks at folders that wait for a file system, at most; the others wait for one of them, as many as there may be runs.
constexpr std::size_t kMostLooks = 32, kMostLooksWaiting = 100'000;

constexpr auto kRestoreNoteEvery = std::chrono::milliseconds(500);
// Making the folders of a run takes a millisecond, on a file system that answers.
constexpr double kFoldersLimitS = 15;
// Calls that were left behind with a file system that does not answer; more are refused at once.
constexpr std::size_t kMostLeftBehind = 64;

// A folder that hangs may not hold a lane.
Outcome on_a_folder(Deadline deadline, const std::string& what, std::function<Outcome()> call) {
    static WithinDeadline calls({.name = "stoker-folders", .most = kMostLeftBehind});
    auto outcome = calls.run<Outcome>(deadline, std::move(call));
    if (outcome) return std::move(*outcome);
    if (outcome.error().kind() == ErrorKind::exhausted)
        return {Certainty::rejected, Cause::platform,
                std::to_string(kMostLeftBehind) + " calls wait for file systems that do not answer"};
    return {Certainty::rejected, Cause::platform, what + " are on a file system that does not answer"};
}

// A quick check takes about two seconds and a full one some minutes; the rest is for a node that hardly answers.
constexpr double kQuickCheckLimitS = 30, kFullCheckLimitS = 900, kStopChecksS = 10;

std::size_t part(std::size_t whole, std::size_t eighths) {
    return std::max<std::size_t>(1, whole * eighths / 8);
}

}  // namespace

// Shared with threads that outlive the engine when their file system does not answer.
struct EngineEffects::Looks {
    explicit Looks(std::shared_ptr<Driver> of) : driver(std::move(of)) {}

    struct Job {
        Look look;
        std::string folder;
        std::vector<std::string> stores;  // where a checkpoint may be when there is none in the folder
        bool must = false;                // one of them has one, or is said to
    };
    const std::shared_ptr<Driver> driver;  // lives as long as a question to it
    std::mutex mutex;
    Deliver deliver;                  // none: stopped
    std::set<std::string> restoring;  // folders
    std::set<RunId> cancelled;        // while something is fetched for them

    void work(const Job& job) {
        std::optional<CheckpointView> view = read(job.folder);
        if (view && view->newest.empty() && !view->done && !job.stores.empty()) view = restore(job, *view);
        const std::lock_guard guard(mutex);
        if (deliver)
            deliver({.what = SawCheckpoints{job.look.run, job.look.asked, std::move(view)},
                     .actor = Actor::part("driver")});
    }

    // None: it cannot be read. Where the engine cannot tell of any, none is taken for there.
    std::optional<CheckpointView> read(const std::string& folder) const {
        if (folder.empty()) return CheckpointView{};
        const auto all = driver->list_checkpoints(folder, after(kLookLimitS));
        if (all) return view_of_checkpoints(*all);
        return all.error().kind() == ErrorKind::unsupported ? std::optional(CheckpointView{}) : std::nullopt;
    }

    void say(const Job& job, RestoreNote note) {
        const std::lock_guard guard(mutex);
        if (deliver)
            deliver(
                {.what = SawRestore{job.look.run, job.look.asked, std::move(note)}, .actor = Actor::part("driver")});
    }

    // None: it is looked at again later, and the run waits.
    std::optional<CheckpointView> restore(const Job& job, const CheckpointView& empty) {
        {
            const std::lock_guard guard(mutex);
            if (!restoring.insert(job.folder).second) return std::nullopt;  // for a run that shares the folder
            cancelled.erase(job.look.run);
        }
        auto last = EffectClock::time_point();
        const auto progress = [&](const RestoreProgress& now) {
            if (EffectClock::now() < last + kRestoreNoteEvery && now.bytes < now.total) return;
            last = EffectClock::now();
            constexpr double kMib = 1 << 20;
            say(job, {.text = fmt::format("its checkpoint {} is being fetched: {:.1f} of {:.1f} MiB from {}", now.name,
                                          static_cast<double>(now.bytes) / kMib, static_cast<double>(now.total) / kMib,
                                          job.stores.front()),
                      .bytes = now.bytes,
                      .total = now.total});
        };
        const auto stop = [&] {
            const std::lock_guard guard(mutex);
            return !deliver || cancelled.contains(job.look.run);
        };
        const auto restored = restore_checkpoint(job.stores, job.folder, progress, stop);
        std::optional<CheckpointView> view;
        if (restored && *restored) {
            view = read(job.folder);
            if (view && view->newest.empty()) {
                say(job,
                    {.text = (*restored)->name + " was fetched and is no complete checkpoint: its own manifest.json "
                                                 "does not fit its files"});
                view.reset();
            }
        } else if (restored && !job.must) {
            view = empty;
        } else {
            const Error error =
                restored ? Error(ErrorKind::not_found, "there is no complete checkpoint at " + job.stores.back())
                         : restored.error();
            std::string text = "its checkpoint cannot be fetched, and it does not start from the beginning instead: " +
                               error.message();
            if (const std::string& remedy = error.problems().front().remedy; !remedy.empty()) text += "; " + remedy;
            say(job, {.text = text + ". It is tried again every half minute"});
        }
        const std::lock_guard guard(mutex);
        restoring.erase(job.folder);
        cancelled.erase(job.look.run);
        return view;
    }
};

EngineEffects::EngineEffects(std::shared_ptr<Driver> driver, const EngineOptions& options, Deliver deliver)
    : driver_(*driver),
      options_(options),
      deliver_(std::move(deliver)),
      looks_(std::make_shared<Looks>(std::move(driver))),
      looking_({.name = "stoker-look-at", .threads = kMostLooks, .most_waiting = kMostLooksWaiting}),
      launches_({"stoker-launch", part(options.max_effects, 3), kMostCallsWaiting}),
      cancels_({"stoker-cancel", part(options.max_effects, 3), kMostCallsWaiting}),
      quick_({"stoker-notify", part(options.max_effects, 2), kMostCallsWaiting}),
      surveys_({"stoker-survey", 2, kMostCallsWaiting}),
      prunes_({"stoker-prune", 1, kMostPrunesWaiting}),
      checks_({"stoker-check", std::max<std::size_t>(1, health_policy().at_once), kMostCallsWaiting}) {
    looks_->deliver = deliver_;
}

void EngineEffects::look(const Look& look, const State& state) {
    const Run* run = state.find(look.run);
    if (run == nullptr) return;
    Looks::Job job{look, run_folder(options_.folder, run->id).checkpoints(run->spec)};
    // Its own first: they are newer than what it began with. Of a run that is waited for, not of one that ends.
    if (run->live_attempt() == nullptr) {
        if (run->stored) job.stores.push_back(run->stored->url);
        if (!run->spec.checkpoint.restore_from.empty()) job.stores.push_back(run->spec.checkpoint.restore_from);
        job.must = !run->spec.checkpoint.restore_from.empty() || (run->stored && run->stored->step >= 0);
    }
    // One that is refused is as one that was never answered: it is asked for again.
    looking_.post([looks = looks_, job = std::move(job)] { looks->work(job); });
}

void EngineEffects::answer(const Effect& effect, Outcome outcome) {
    deliver_({.what = Answered{effect.operation, std::move(outcome)}, .actor = Actor::part("driver")});
}

void EngineEffects::tell_driver(WorkerPool& threads, const std::shared_ptr<const Effect>& effect,
                                std::function<void()> call) {
    // Unknown, as whatever was not answered: the core looks for it and tells it again.
    if (!threads.post(std::move(call)))
        answer(*effect, {.certainty = Certainty::unknown,
                         .cause = Cause::platform,
                         .detail = std::to_string(kMostCallsWaiting) + " calls of the engine wait already"});
}

void EngineEffects::carry_out(Effect effect, const State& state) {
    const auto shared = std::make_shared<const Effect>(std::move(effect));
    switch (shared->verb) {
        case Verb::launch: {
            const Run& run = *state.find(shared->attempt.run);
            const RunFolder folder = run_folder(options_.folder, run.id);
            const bool own = run.spec.checkpoint.folder.starts_with('/');
            tell_driver(launches_, shared, [this, shared, folder, checkpoints = folder.checkpoints(run.spec), own] {
                launch(*shared, folder, checkpoints, own ? Cause::user_error : Cause::platform);
            });
            break;
        }
        case Verb::cancel:
            tell_driver(cancels_, shared, [this, shared] {
                cancel(shared, after(static_cast<double>(shared->grace_s) + options_.cancel_margin_s));
            });
            break;
        case Verb::notify:
            tell_driver(quick_, shared, [this, shared] {
                answer(*shared,
                       driver_.notify(shared->target, shared->epoch, shared->signal, after(options_.call_timeout_s)));
            });
            break;
        case Verb::release:
            tell_driver(quick_, shared, [this, shared] {
                answer(*shared, driver_.release(shared->target, after(options_.call_timeout_s)));
            });
            break;
    }
}

void EngineEffects::launch(const Effect& effect, const RunFolder& folder, const std::string& checkpoints,
                           Cause cause_of_folder) {
    if (!checkpoints.empty()) {
        std::unique_lock lock(mutex_);
        pruned_.wait_for(lock, std::chrono::duration<double>(2 * kPruneLimitS),
                         [&] { return stopping_ || !pruning_.contains(checkpoints); });
        if (stopping_) return;
    }
    // What the steps of a graph share, too.
    std::string shared;
    if (!effect.gang.ranks.empty()) {
        const auto& environment = effect.gang.ranks.front().environment;
        if (const auto found = environment.find("STOKER_GRAPH_DIR"); found != environment.end()) shared = found->second;
    }
    const Outcome folders = on_a_folder(after(kFoldersLimitS), "the folders of the run", [=] {
        if (const Status made = make_run_folder(folder, {}); !made)
            return Outcome{Certainty::rejected, Cause::platform, made.error().message()};
        std::error_code ignored;  // a program that cannot write there says so itself
        if (!shared.empty()) std::filesystem::create_directories(shared, ignored);
        if (const Status made = make_run_folder(folder, checkpoints); !made)
            return Outcome{Certainty::rejected, cause_of_folder, made.error().message()};
        return Outcome{.certainty = Certainty::confirmed};
    });
    if (folders.certainty != Certainty::confirmed) return answer(effect, folders);
    GangSpec gang = effect.gang;
    // Elsewhere a file of ours is not to be seen.
    const bool takes_files = driver_.capabilities().ranks_here && gang.engine.empty() && gang.image.empty();
    for (RankSpec& rank : gang.ranks) {
        std::string files;
        for (auto& [variable, value] : rank.environment) {
            if (!is_secret_reference(value)) continue;
            if (is_secret_file(value)) {
                if (!takes_files)
                    return answer(effect,
                                  {Certainty::rejected, Cause::user_error,
                                   variable + ": a secret as a file (#file) is for work on this machine, outside of "
                                              "images; leave #file out there"});
                files += (files.empty() ? "" : ",") + variable;
            }
            auto secret = read_secret(options_.folder, value);
            if (!secret)
                return answer(effect,
                              {Certainty::rejected, Cause::user_error, variable + ": " + secret.error().message()});
            value = std::move(*secret);
        }
        if (!files.empty()) rank.environment[std::string(kSecretFiles)] = std::move(files);
    }
    Outcome outcome = driver_.launch(effect.operation, gang, after(options_.launch_timeout_s));
    // One of several that does not answer gets nothing more, as soon as that is known.
    if (outcome.certainty == Certainty::unknown && !gang.engine.empty()) discover();
    // What a refused launch leaves explains itself in the outcome; nobody comes back for it.
    if (outcome.certainty == Certainty::rejected) (void)driver_.release(effect.operation, after(kReleaseRejectedS));
    answer(effect, std::move(outcome));
}

void EngineEffects::cancel(std::shared_ptr<const Effect> effect, Deadline deadline) {
    const double slice = cancels_.waiting() > 0 ? kBusyCancelSliceS : kCancelSliceS;
    const Deadline until = std::min(deadline, after(slice));
    Outcome outcome = driver_.cancel(effect->target, effect->epoch, static_cast<double>(effect->grace_s), until);
    // It was waiting for the end, not refused: again, behind the others. What names a cause is told first.
    if (outcome.certainty == Certainty::unknown && outcome.cause == Cause::none && EffectClock::now() >= until &&
        until < deadline) {
        tell_driver(cancels_, effect, [this, effect, deadline] { cancel(effect, deadline); });
        return;
    }
    answer(*effect, std::move(outcome));
}

void EngineEffects::list(std::uint64_t asked_seq) {
    surveys_.post([this, asked_seq] {
        Result<OursListing> ours = driver_.list_ours("", after(options_.call_timeout_s));
        {
            const std::lock_guard guard(mutex_);
            driver_error_ = ours ? fault_of(driver_.engines()) : ours.error().message();
        }
        Listing listing{.asked_seq = asked_seq, .ours = {.items = {}, .complete = false}};
        if (ours) listing.ours = std::move(*ours);
        deliver_({.what = Listed{std::move(listing)}, .actor = Actor::part("driver")});
    });
}

void EngineEffects::prepare(std::string image) {
    quick_.post([this, image = std::move(image)] {
        Outcome outcome = driver_.prepare(image, after(options_.call_timeout_s));
        deliver_({.what = SawImage{image, std::move(outcome)}, .actor = Actor::part("driver")});
    });
}

void EngineEffects::check(CheckWanted check) {
    checks_.post([this, check = std::move(check)] {
        {
            const std::lock_guard guard(mutex_);
            if (stopping_) return;
        }
        const double limit = check.level == HealthLevel::full ? kFullCheckLimitS : kQuickCheckLimitS;
        HealthReport report = driver_.check(check.node, check.level, after(limit));
        deliver_({.what = SawHealth{check, std::move(report)}, .actor = Actor::part("driver")});
    });
}

void EngineEffects::discover() {
    {
        const std::lock_guard guard(mutex_);
        if (std::exchange(discovering_, true)) {
            discover_again_ = true;
            return;
        }
    }
    surveys_.post([this] {
        bool again = false;
        Result<std::vector<NodeInfo>> nodes = driver_.discover(after(options_.call_timeout_s));
        {
            const std::lock_guard guard(mutex_);
            discovering_ = false;
            again = std::exchange(discover_again_, false);
            driver_error_ = nodes ? fault_of(driver_.engines()) : nodes.error().message();
        }
        if (nodes) deliver_({.what = SawNodes{std::move(*nodes), driver_.engines()}, .actor = Actor::part("driver")});
        if (again) discover();
    });
}

void EngineEffects::prune_after(std::span<const Record> records, const State& state) {
    for (const Record& record : records) {
        if (const auto* run_moved = std::get_if<RunMoved>(&record.body); run_moved != nullptr) {
            const std::lock_guard guard(looks_->mutex);
            if (!looks_->restoring.empty() && run_moved->event != RunEvent::back_off_over &&
                run_moved->event != RunEvent::admit)
                looks_->cancelled.insert(run_moved->run);
        }
        const auto* moved = std::get_if<AttemptMoved>(&record.body);
        const Attempt* attempt = moved == nullptr ? nullptr : state.find(moved->attempt);
        if (attempt == nullptr || attempt->live()) continue;
        const Run& run = *state.find(moved->attempt.run);
        const std::string folder = run_folder(options_.folder, run.id).checkpoints(run.spec);
        if (folder.empty()) continue;
        const bool in_use = std::any_of(state.live.begin(), state.live.end(), [&](RunId id) {
            return run_folder(options_.folder, id).checkpoints(state.find(id)->spec) == folder;
        });
        if (in_use) continue;
        {
            const std::lock_guard guard(mutex_);
            if (!pruning_.insert(folder).second) continue;
        }
        if (prunes_.post([this, folder, keep = run.spec.checkpoint.keep] { prune(folder, keep); })) continue;
        const std::lock_guard guard(mutex_);
        pruning_.erase(folder);  // it is looked at again after the next attempt
    }
}

void EngineEffects::prune(const std::string& folder, int keep) {
    const Deadline deadline = after(kPruneLimitS);
    const auto stopping = [&] {
        const std::lock_guard guard(mutex_);
        return stopping_;
    };
    if (const auto checkpoints = driver_.list_checkpoints(folder, deadline)) {
        for (const std::string& each : checkpoints_to_prune(checkpoints->items, keep)) {
            if (EffectClock::now() >= deadline || stopping()) break;
            (void)driver_.remove_checkpoint(each, deadline);  // what is left is looked at after the next attempt
        }
    }
    {
        const std::lock_guard guard(mutex_);
        pruning_.erase(folder);
    }
    pruned_.notify_all();
}

void EngineEffects::stop() {
    {
        // A server that ends with its run would otherwise never remove what the run has left over.
        std::unique_lock lock(mutex_);
        pruned_.wait_for(lock, std::chrono::seconds(2), [&] { return pruning_.empty(); });
        stopping_ = true;
    }
    pruned_.notify_all();
    {
        const std::lock_guard guard(looks_->mutex);
        looks_->deliver = nullptr;
    }
    looking_.stop(EffectClock::now());
    // A thorough check takes minutes; the next server asks for it again.
    const Deadline patience = after(kStopChecksS);
    while (checks_.running() > 0 && EffectClock::now() < patience) {
        driver_.interrupt();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (WorkerPool* each : {&launches_, &cancels_, &quick_, &surveys_, &prunes_, &checks_}) each->stop();
}

void EngineEffects::count(EngineStats& stats) const {
    for (const WorkerPool* each : {&launches_, &cancels_, &quick_}) {
        stats.waiting_effects += each->waiting();
        stats.running_effects += each->running();
    }
    const std::lock_guard guard(mutex_);
    stats.driver_error = driver_error_;
}

}  // namespace stoker
