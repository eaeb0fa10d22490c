#include "run/engine_effects.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "run/checkpoints.h"
#include "run/upload_manifest.h"

namespace stoker {
namespace {

using EffectClock = std::chrono::steady_clock;

Deadline after(double seconds) {
    return EffectClock::now() +
           std::chrono::duration_cast<EffectClock::duration>(std::chrono::duration<double>(seconds));
}

// A cancel is told to the driver again and again rather than left waiting for its grace: so many cancels wait on few
// threads, and a server stops without waiting for them. Longer while nobody else waits for the thread.
constexpr double kCancelSliceS = 1, kBusyCancelSliceS = 0.1;
constexpr double kReleaseRejectedS = 2;
// Of one pruning. A launch into the same folder waits for it.
constexpr double kPruneLimitS = 20;
constexpr std::size_t kMostPrunesWaiting = 1000;

// Looks at folders that wait for a file system, at most; the others wait for one of them.
constexpr std::size_t kMostLooks = 32;

constexpr auto kRestoreNoteEvery = std::chrono::milliseconds(500);
// Making the folders of a run takes a millisecond, on a file system that answers.
constexpr double kFoldersLimitS = 15;
// Calls that were left behind with a file system that does not answer; more are refused at once.
constexpr int kMostLeftBehind = 64;

// Done on a thread of its own, which is left behind when it is not back by the deadline: a folder that hangs may not
// hold a lane.
Outcome within(Deadline deadline, const std::string& what, std::function<Outcome()> call) {
    static std::atomic<int> out = 0;
    struct Shared {
        std::mutex mutex;
        std::condition_variable done;
        std::optional<Outcome> outcome;
    };
    if (++out > kMostLeftBehind) {
        --out;
        return {Certainty::rejected, Cause::platform,
                std::to_string(kMostLeftBehind) + " calls wait for file systems that do not answer"};
    }
    const auto shared = std::make_shared<Shared>();
    std::thread([shared, call = std::move(call)] {
        Outcome outcome = call();
        --out;
        const std::lock_guard guard(shared->mutex);
        shared->outcome = std::move(outcome);
        shared->done.notify_all();
    }).detach();
    std::unique_lock lock(shared->mutex);
    if (shared->done.wait_until(lock, deadline, [&] { return shared->outcome.has_value(); })) return *shared->outcome;
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
    struct Job {
        Look look;
        std::string folder;
        std::vector<std::string> stores;  // where a checkpoint may be when there is none in the folder
        bool must = false;                // one of them has one, or is said to
    };
    std::mutex mutex;
    Deliver deliver;  // none: stopped
    std::deque<Job> waiting;
    std::size_t running = 0;
    std::set<std::string> restoring;  // folders
    std::set<RunId> cancelled;        // while something is fetched for them

    static void work(const std::shared_ptr<Looks>& self) {
        std::unique_lock lock(self->mutex);
        while (self->deliver && !self->waiting.empty()) {
            const Job job = std::move(self->waiting.front());
            self->waiting.pop_front();
            lock.unlock();
            std::optional<CheckpointView> view = read_checkpoints(job.folder);
            if (view && view->newest.empty() && !view->done && !job.stores.empty()) view = self->restore(job, *view);
            lock.lock();
            if (self->deliver)
                self->deliver(
                    {.what = SawCheckpoints{job.look.run, job.look.asked, std::move(view)}, .actor = "driver"});
        }
        --self->running;
    }

    void say(const Job& job, RestoreNote note) {
        const std::lock_guard guard(mutex);
        if (deliver) deliver({.what = SawRestore{job.look.run, job.look.asked, std::move(note)}, .actor = "driver"});
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
            view = read_checkpoints(job.folder);
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

EngineEffects::EngineEffects(Driver& driver, const EngineOptions& options, Deliver deliver)
    : driver_(driver),
      options_(options),
      deliver_(std::move(deliver)),
      looks_(std::make_shared<Looks>()),
      launches_("stoker-launch", part(options.max_effects, 3)),
      cancels_("stoker-cancel", part(options.max_effects, 3)),
      quick_("stoker-notify", part(options.max_effects, 2)),
      surveys_("stoker-survey", 2),
      prunes_("stoker-prune", 1),
      checks_("stoker-check", std::max<std::size_t>(1, health_policy().at_once)) {
    looks_->deliver = deliver_;
}

void EngineEffects::look(const Look& look, const State& state) {
    const Run* run = state.find(look.run);
    if (run == nullptr) return;
    const std::lock_guard guard(looks_->mutex);
    Looks::Job job{look, run_folder(options_.folder, run->id).checkpoints(run->spec)};
    // Its own first: they are newer than what it began with. Of a run that is waited for, not of one that ends.
    if (run->live_attempt() == nullptr) {
        if (run->stored) job.stores.push_back(run->stored->url);
        if (!run->spec.checkpoint.restore_from.empty()) job.stores.push_back(run->spec.checkpoint.restore_from);
        job.must = !run->spec.checkpoint.restore_from.empty() || (run->stored && run->stored->step >= 0);
    }
    looks_->waiting.push_back(std::move(job));
    if (looks_->running >= kMostLooks) return;
    ++looks_->running;
    std::thread([looks = looks_] { Looks::work(looks); }).detach();
}

void EngineEffects::answer(const Effect& effect, Outcome outcome) {
    deliver_({.what = Answered{effect.operation, std::move(outcome)}, .actor = "driver"});
}

void EngineEffects::carry_out(Effect effect, const State& state) {
    const auto shared = std::make_shared<const Effect>(std::move(effect));
    switch (shared->verb) {
        case Verb::launch: {
            const Run& run = *state.find(shared->attempt.run);
            const RunFolder folder = run_folder(options_.folder, run.id);
            const bool own = run.spec.checkpoint.folder.starts_with('/');
            launches_.add([this, shared, folder, checkpoints = folder.checkpoints(run.spec), own] {
                launch(*shared, folder, checkpoints, own ? Cause::user_error : Cause::platform);
            });
            break;
        }
        case Verb::cancel:
            cancels_.add([this, shared] {
                cancel(shared, after(static_cast<double>(shared->grace_s) + options_.cancel_margin_s));
            });
            break;
        case Verb::notify:
            quick_.add([this, shared] {
                answer(*shared,
                       driver_.notify(shared->target, shared->epoch, shared->signal, after(options_.call_timeout_s)));
            });
            break;
        case Verb::release:
            quick_.add(
                [this, shared] { answer(*shared, driver_.release(shared->target, after(options_.call_timeout_s))); });
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
    const Outcome folders = within(after(kFoldersLimitS), "the folders of the run", [=] {
        if (const Status made = make_run_folder(folder, {}); !made)
            return Outcome{Certainty::rejected, Cause::platform, made.error().message()};
        std::error_code ignored;  // a program that cannot write there says so itself
        if (!shared.empty()) std::filesystem::create_directories(shared, ignored);
        if (const Status made = make_run_folder(folder, checkpoints); !made)
            return Outcome{Certainty::rejected, cause_of_folder, made.error().message()};
        return Outcome{.certainty = Certainty::confirmed};
    });
    if (folders.certainty != Certainty::confirmed) return answer(effect, folders);
    Outcome outcome = driver_.launch(effect.operation, effect.gang, after(options_.launch_timeout_s));
    // What a refused launch leaves explains itself in the outcome; nobody comes back for it.
    if (outcome.certainty == Certainty::rejected) (void)driver_.release(effect.operation, after(kReleaseRejectedS));
    answer(effect, std::move(outcome));
}

void EngineEffects::cancel(std::shared_ptr<const Effect> effect, Deadline deadline) {
    const double slice = cancels_.waiting() > 0 ? kBusyCancelSliceS : kCancelSliceS;
    const Deadline until = std::min(deadline, after(slice));
    Outcome outcome = driver_.cancel(effect->target, effect->epoch, static_cast<double>(effect->grace_s), until);
    // It was waiting for the end, not refused: again, behind the others.
    if (outcome.certainty == Certainty::unknown && EffectClock::now() >= until && until < deadline) {
        cancels_.add([this, effect, deadline] { cancel(effect, deadline); });
        return;
    }
    answer(*effect, std::move(outcome));
}

void EngineEffects::list(std::uint64_t asked_seq) {
    surveys_.add([this, asked_seq] {
        Result<OursListing> ours = driver_.list_ours("", after(options_.call_timeout_s));
        {
            const std::lock_guard guard(mutex_);
            driver_error_ = ours ? "" : ours.error().message();
        }
        Listing listing{.asked_seq = asked_seq, .ours = {.items = {}, .complete = false}};
        if (ours) listing.ours = std::move(*ours);
        deliver_({.what = Listed{std::move(listing)}, .actor = "driver"});
    });
}

void EngineEffects::prepare(std::string image) {
    quick_.add([this, image = std::move(image)] {
        Outcome outcome = driver_.prepare(image, after(options_.call_timeout_s));
        deliver_({.what = SawImage{image, std::move(outcome)}, .actor = "driver"});
    });
}

void EngineEffects::check(CheckWanted check) {
    checks_.add([this, check = std::move(check)] {
        {
            const std::lock_guard guard(mutex_);
            if (stopping_) return;
        }
        const double limit = check.level == HealthLevel::full ? kFullCheckLimitS : kQuickCheckLimitS;
        HealthReport report = driver_.check(check.node, check.level, after(limit));
        deliver_({.what = SawHealth{check, std::move(report)}, .actor = "driver"});
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
    surveys_.add([this] {
        bool again = false;
        Result<std::vector<NodeInfo>> nodes = driver_.discover(after(options_.call_timeout_s));
        {
            const std::lock_guard guard(mutex_);
            discovering_ = false;
            again = std::exchange(discover_again_, false);
            driver_error_ = nodes ? "" : nodes.error().message();
        }
        if (nodes) deliver_({.what = SawNodes{std::move(*nodes)}, .actor = "driver"});
        if (again) discover();
    });
}

void EngineEffects::prune_after(std::span<const Record> records, const State& state) {
    for (const Record& record : records) {
        if (const auto* run_moved = std::get_if<RunMoved>(&record.body); run_moved != nullptr) {
            const std::lock_guard guard(looks_->mutex);
            if (!looks_->restoring.empty() && run_moved->event != RunEvent::back_off_over)
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
        if (in_use || prunes_.waiting() >= kMostPrunesWaiting) continue;
        {
            const std::lock_guard guard(mutex_);
            if (!pruning_.insert(folder).second) continue;
        }
        prunes_.add([this, folder, keep = run.spec.checkpoint.keep] { prune(folder, keep); });
    }
}

void EngineEffects::prune(const std::string& folder, int keep) {
    const Deadline deadline = after(kPruneLimitS);
    const auto stopping = [&] {
        const std::lock_guard guard(mutex_);
        return stopping_;
    };
    if (const auto checkpoints = list_checkpoints(folder)) {
        for (const std::string& each : checkpoints_to_prune(*checkpoints, keep)) {
            if (EffectClock::now() >= deadline || stopping()) break;
            std::error_code ignored;  // it is looked at again after the next attempt
            std::filesystem::remove_all(each, ignored);
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
        looks_->waiting.clear();
    }
    // A thorough check takes minutes; the next server asks for it again.
    const Deadline patience = after(kStopChecksS);
    while (checks_.running() > 0 && EffectClock::now() < patience) {
        driver_.interrupt();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (Lane* lane : {&launches_, &cancels_, &quick_, &surveys_, &prunes_, &checks_}) lane->stop();
}

void EngineEffects::count(EngineStats& stats) const {
    for (const Lane* lane : {&launches_, &cancels_, &quick_}) {
        stats.waiting_effects += lane->waiting();
        stats.running_effects += lane->running();
    }
    const std::lock_guard guard(mutex_);
    stats.driver_error = driver_error_;
}

}  // namespace stoker
