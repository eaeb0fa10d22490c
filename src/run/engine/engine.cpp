// Longer than 500 lines because one object's members tell the whole story of its threads, and what guards what.
#include "run/engine/engine.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <shared_mutex>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/process.h"
#include "io/worker.h"
#include "run/engine/engine_effects.h"
#include "run/engine/engine_site.h"
#include "run/spec/secrets.h"
#include "run/state/run_clock.h"

namespace stoker {
namespace {

using SteadyClock = std::chrono::steady_clock;

// So many durations of commits are kept for the percentiles.
constexpr std::size_t kKeptCommits = 1024;
constexpr double kSlowCommitS = 1;
// Facts that wait for the core, at most; the driver keeps the rest.
constexpr std::size_t kMostWaitingFacts = 4096;
constexpr auto kObserveFor = std::chrono::seconds(10);
// Submissions are refused below this much free space, so that the records that end and release what runs still fit:
// a twentieth of a small disk, and never more than this.
constexpr std::uint64_t kReserveBytes = std::uint64_t{64} << 20;
constexpr std::int64_t kLookAtDiskEveryUs =
    2000;  // a burst of submissions fills a disk quickly, and looking costs 1 us

std::int64_t steady_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now().time_since_epoch()).count();
}

std::chrono::microseconds microseconds_of(double seconds) {
    return std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

struct Pending {
    Command command;
    Engine::Answer answer;
    bool posted = false;  // else of the driver
};

// Records go to it until its handle is gone. The mutex makes the handle's end wait for a call that is under way; a
// watcher may drop its own handle.
struct Watch {
    std::recursive_mutex mutex;
    bool ended = false;
    Engine::Watcher watcher;
};

// Many readers and one writer. A reader that comes while the writer waits goes after it, so that no number of readers
// holds it up.
class ReadersLock {
public:
    std::shared_lock<std::shared_mutex> read() {
        const std::lock_guard next(turnstile_);
        return std::shared_lock(lock_);
    }
    std::unique_lock<std::shared_mutex> write() {
        const std::lock_guard next(turnstile_);
        return std::unique_lock(lock_);
    }

private:
    std::mutex turnstile_;
    std::shared_mutex lock_;
};

class EngineThreads final : public Engine {
public:
    explicit EngineThreads(EngineOptions options) : options_(std::move(options)) {
        if (!options_.wall_us) options_.wall_us = wall_clock_us;
        if (!options_.monotonic_us) {
            options_.monotonic_us = steady_us;
            boot_id_ = boot_id();
        }
    }
    ~EngineThreads() override { stop(); }

    Status start() {
        std::error_code code;
        const std::filesystem::path absolute = std::filesystem::absolute(options_.folder, code).lexically_normal();
        if (code || options_.folder.empty())
            return Error(ErrorKind::invalid, "the engine needs a folder: " + printable(options_.folder));
        options_.folder = absolute.string();
        while (options_.folder.size() > 1 && options_.folder.back() == '/') options_.folder.pop_back();
        TRY(journal_,
            Journal::open(options_.folder, {.accept_loss = options_.accept_loss, .home = options_.journal_home.get()}));
        const std::string runs = options_.folder + "/runs";
        std::filesystem::create_directories(runs, code);
        ::chmod(runs.c_str(), 0700);  // what runs print may be as secret as what they are given
        TRY(std::string site, site_of(*journal_, options_.folder));
        CoreOptions core{.site = std::move(site),
                         .log_root = options_.folder + "/runs",
                         .engine = options_.engine,
                         .boot_id = boot_id_,
                         .monotonic_us = options_.monotonic_us(),
                         .scheduler = options_.scheduler,
                         .snapshot_every = options_.snapshot_every,
                         .max_queued = options_.max_queued,
                         .max_ended = options_.max_ended,
                         .keep_ended_s = options_.keep_ended_s,
                         .on_bug = options_.on_bug};
        core.on_loaded = [this](const State& state, std::string& of) -> Result<std::optional<JournalLost>> {
            if (options_.choose) {
                TRY(options_.engine, options_.choose(state));
            }
            TRY(driver_, options_.make_driver(options_.folder));
            capabilities_ = driver_->capabilities();
            for (const auto& [operation, attempt] : state.launches)
                driver_->belongs(operation, state.find(attempt)->engine);
            return look_for_loss(*journal_, *driver_, state, options_, of);
        };
        TRY(core_, Core::open(*journal_, std::move(core), options_.wall_us()));
        core_->drives(options_.engine, capabilities_.binds, driver_->engines());
        if (options_.configure) {
            TRY(const CoreLimits limits, options_.configure(core_->state()));
            core_->set_limits(limits);
        }
        clock_.emplace(core_->clock());
        std::set<std::string> secrets;
        for (const auto& [id, run] : core_->state().runs) collect_secrets(run.spec, secrets);
        forget_secrets(options_.folder, secrets);
        shown_ = core_->state();
        show({});
        // Numbered anew: a driver's own cursors begin at its clock, and that may have been set back.
        fact_cursor_ = core_->state().cursor;
        effects_ = std::make_unique<EngineEffects>(driver_, options_,
                                                   [this](Command command) { deliver(std::move(command)); });
        core_thread_ = masked_thread("stoker-core", [this] { run_core(); });
        observer_ = masked_thread("stoker-observe", [this] { observe(); });
        return done();
    }

    Status post(Command command, Answer answer) override {
        const bool submits = std::holds_alternative<Submit>(command.what);
        if (submits && disk_is_full())
            return Error(ErrorKind::exhausted, "the disk of " + printable(options_.folder) + " is nearly full", {},
                         "free some space; what runs goes on, and what is left is kept for writing down how it ends");
        {
            const std::lock_guard guard(mutex_);
            TRY_VOID(accepting());
            if (waiting_posts_ >= options_.max_waiting)
                return Error(ErrorKind::exhausted, fmt::format("{} commands wait already", waiting_posts_), {},
                             "try again in a second");
            ++waiting_posts_;
            commands_.push_back({std::move(command), std::move(answer), true});
        }
        wake_.notify_one();
        return done();
    }

    Status read(const std::function<void(const EngineView&)>& look) override {
        {
            const std::lock_guard guard(mutex_);
            TRY_VOID(accepting());
        }
        const auto lock = shown_lock_.read();
        look({shown_, now_us(), nullptr, shown_scheduler_, shown_recovering_, options_.folder});
        return done();
    }

    Status read_journal(std::function<void(const EngineView&)> look) override {
        {
            const std::lock_guard guard(mutex_);
            TRY_VOID(accepting());
            if (reads_.size() >= options_.max_waiting)
                return Error(ErrorKind::exhausted, fmt::format("{} readers wait already", reads_.size()), {},
                             "try again in a second");
            reads_.push_back(std::move(look));
        }
        wake_.notify_one();
        return done();
    }

    std::shared_ptr<void> watch(Watcher watcher) override {
        auto watch = std::make_shared<Watch>();
        watch->watcher = std::move(watcher);
        const std::lock_guard guard(watches_mutex_);
        std::erase_if(watches_, [](const auto& each) { return each.expired(); });
        watches_.push_back(watch);
        return {watch.get(), [watch](void*) mutable {
                    {
                        const std::lock_guard ending(watch->mutex);
                        watch->ended = true;
                    }
                    watch.reset();
                }};
    }

    void discover() override {
        {
            const std::lock_guard guard(mutex_);
            discover_ = true;
        }
        wake_.notify_one();
    }

    EngineStats stats() const override {
        EngineStats stats;
        std::vector<double> commits;
        {
            const std::lock_guard guard(mutex_);
            stats = stats_;
            stats.waiting_commands = commands_.size();
            commits = commits_;
        }
        if (effects_) effects_->count(stats);
        if (!commits.empty()) {
            std::sort(commits.begin(), commits.end());
            stats.commit_p50_s = commits[commits.size() / 2];
            stats.commit_p99_s = commits[commits.size() * 99 / 100];
        }
        if (clock_)
            stats.clock_jump_s =
                static_cast<double>(clock_->jump_us(options_.wall_us(), options_.monotonic_us())) * 1e-6;
        for (const char* file : {"/stoker.db", "/stoker.db-wal"}) {
            struct stat status {};
            if (::stat((options_.folder + file).c_str(), &status) == 0) stats.journal_bytes += status.st_size;
        }
        return stats;
    }

    const Capabilities& capabilities() const override { return capabilities_; }
    std::vector<EngineState> engines() const override {
        std::shared_ptr<Driver> driver;
        {
            const std::lock_guard guard(mutex_);
            driver = driver_;
        }
        return driver ? driver->engines() : std::vector<EngineState>();
    }
    std::shared_ptr<const Questions> questions() const override {
        const std::lock_guard guard(mutex_);
        return driver_ ? std::shared_ptr<const Questions>(driver_) : std::make_shared<Questions>();
    }
    const std::string& folder() const override { return options_.folder; }

    void stop() override {
        const std::lock_guard once(stop_mutex_);
        {
            const std::lock_guard guard(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        taken_.notify_all();
        if (driver_) driver_->interrupt();
        if (core_thread_.joinable()) core_thread_.join();
        if (observer_.joinable()) observer_.join();
        if (effects_) effects_->stop();
        core_.reset();
        {
            const std::lock_guard guard(mutex_);
            driver_.reset();
        }
        journal_.reset();
    }

private:
    // With mutex_ held.
    Status accepting() const {
        if (failure_)
            return Error(ErrorKind::unavailable, "nothing is accepted any more: " + failure_->message(), {},
                         "restart the server when the disk is well again; what was acknowledged is safe");
        if (stopping_) return Error(ErrorKind::unavailable, "the server is stopping");
        return done();
    }

    // From the driver's threads: always taken, since their number is bounded by what the core asked for.
    void deliver(Command command) {
        {
            const std::lock_guard guard(mutex_);
            if (stopping_ || failure_) return;
            commands_.push_back({std::move(command), {}});
        }
        wake_.notify_one();
    }

    bool disk_is_full() {
        const std::int64_t now = steady_us();
        if (now - looked_at_disk_us_.load() >= kLookAtDiskEveryUs) {
            looked_at_disk_us_ = now;
            struct statvfs disk {};
            if (::statvfs(options_.folder.c_str(), &disk) == 0) {
                const std::uint64_t total = disk.f_blocks * disk.f_frsize, left = disk.f_bavail * disk.f_frsize;
                disk_full_ = left < std::min(total / 20, kReserveBytes);
            }
        }
        return disk_full_;
    }

    // ---- the core's thread
    struct Batch {
        std::vector<Pending> commands;
        std::vector<std::function<void(const EngineView&)>> reads;
        bool stopping = false, discover = false;
    };

    void run_core() {
        std::int64_t wake_us = 1;  // the first turn asks for the first listing
        for (;;) {
            Batch batch = next_batch(wake_us);
            // Between two turns nothing is ahead of the disk.
            const EngineView view{core_->state(),      now_us(),       journal_.get(), core_->scheduler(),
                                  core_->recovering(), options_.folder};
            for (const auto& look : batch.reads) look(view);
            if (batch.stopping) return refuse(batch.commands, Error(ErrorKind::unavailable, "the server is stopping"));
            if (batch.discover || now_us() >= next_discover_us_) {
                effects_->discover();
                next_discover_us_ = now_us() + microseconds_of(std::max(options_.discover_every_s, 0.01)).count();
            }
            if (batch.commands.empty() && (wake_us == 0 || now_us() < wake_us)) continue;
            if (!take_turn(batch.commands, wake_us)) return;
        }
    }

    // An engine that is elsewhere has the wall clock only; what ours was moved by meanwhile, it was not.
    std::optional<std::int64_t> moment_of(const Fact& fact) const {
        if (fact.monotonic_us != 0 && !boot_id_.empty()) return clock_->at_us(fact.monotonic_us);
        if (fact.at_us == 0) return std::nullopt;
        return fact.at_us - clock_->jump_us(options_.wall_us(), options_.monotonic_us());
    }
    std::int64_t now_us() const { return clock_->now_us(options_.monotonic_us()); }

    Batch next_batch(std::int64_t wake_us) {
        std::unique_lock lock(mutex_);
        const auto anything = [&] { return stopping_ || discover_ || !commands_.empty() || !reads_.empty(); };
        const std::int64_t due = wake_us == 0 ? next_discover_us_ : std::min(wake_us, next_discover_us_);
        // The steady clock for the wait, ours for what is due: they differ in tests only.
        const std::int64_t wait = std::clamp<std::int64_t>(due - now_us(), 0, 60'000'000);
        wake_.wait_for(lock, std::chrono::microseconds(wait), anything);
        Batch batch;
        batch.stopping = stopping_;
        batch.discover = std::exchange(discover_, false);
        batch.reads.swap(reads_);
        const std::size_t most = stopping_ ? commands_.size() : options_.max_batch;
        while (!commands_.empty() && batch.commands.size() < most) {
            Pending& next = commands_.front();
            if (next.posted)
                --waiting_posts_;
            else if (std::holds_alternative<SawFact>(next.command.what))
                --waiting_facts_;
            batch.commands.push_back(std::move(next));
            commands_.pop_front();
        }
        lock.unlock();
        taken_.notify_all();
        return batch;
    }

    bool take_turn(std::vector<Pending>& batch, std::int64_t& wake_us) {
        std::vector<Command> commands;
        commands.reserve(batch.size());
        for (Pending& each : batch) commands.push_back(std::move(each.command));
        if (options_.before_turn) options_.before_turn();
        const auto began = SteadyClock::now();
        Result<Turn> turn = core_->turn(commands, now_us());
        if (!turn) {
            fail(batch, turn.error());
            return false;
        }
        count(*turn, commands, std::chrono::duration<double>(SteadyClock::now() - began).count());
        show(turn->records);
        for (std::size_t i = 0; i < batch.size(); ++i)
            if (batch[i].answer) batch[i].answer(std::move(turn->acks[i]));
        if (!turn->records.empty()) tell_watchers(turn->records);
        effects_->prune_after(turn->records, core_->state());
        for (Effect& effect : turn->effects) effects_->carry_out(std::move(effect), core_->state());
        for (const Look& look : turn->looks) effects_->look(look, core_->state());
        for (std::string& image : turn->images) effects_->prepare(std::move(image));
        for (CheckWanted& check : turn->checks) effects_->check(std::move(check));
        if (turn->list) effects_->list(*turn->list);
        wake_us = turn->wake_us;
        return true;
    }

    // What was committed, to readers. A run that changed is one object with the core's again, so nothing is kept twice.
    void show(std::span<const Record> records) {
        if (records.empty() && shown_recovering_ == core_->recovering() && shown_scheduler_ == core_->scheduler())
            return;
        const auto lock = shown_lock_.write();
        std::vector<RunId> changed;
        changed.reserve(records.size());
        for (const Record& record : records) {
            if (record.seq <= shown_.seq) continue;  // of the start: the first turn tells it
            changed.push_back(shown_.run_of(record.body));
            CHECK(shown_.apply(record).ok());
        }
        for (const RunId run : changed)
            if (run) shown_.runs.share(run, core_->state().runs);
        shown_scheduler_ = core_->scheduler();
        shown_recovering_ = core_->recovering();
    }

    void count(const Turn& turn, const std::vector<Command>& commands, double seconds) {
        const std::lock_guard guard(mutex_);
        ++stats_.turns;
        stats_.commands += commands.size();
        stats_.records += turn.records.size();
        stats_.effects += turn.effects.size();
        for (const Command& each : commands) stats_.facts += std::holds_alternative<SawFact>(each.what) ? 1 : 0;
        if (turn.records.empty()) return;
        ++stats_.commits;
        stats_.commit_sum_s += seconds;
        if (seconds > kSlowCommitS) {
            ++stats_.slow_commits;
            stats_.last_slow_commit_s = seconds;
        }
        if (commits_.size() < kKeptCommits)
            commits_.push_back(seconds);
        else
            commits_[next_commit_++ % kKeptCommits] = seconds;
    }

    void tell_watchers(std::span<const Record> records) {
        std::vector<std::shared_ptr<Watch>> watches;
        {
            const std::lock_guard guard(watches_mutex_);
            for (const auto& each : watches_)
                if (auto watch = each.lock()) watches.push_back(std::move(watch));
        }
        for (const auto& watch : watches) {
            const std::lock_guard guard(watch->mutex);
            if (!watch->ended) watch->watcher(records);
        }
    }

    static void refuse(std::vector<Pending>& commands, const Error& error) {
        for (Pending& each : commands)
            if (each.answer) each.answer(error);
    }

    // Nothing of the batch was acknowledged, and nothing is accepted from here on.
    void fail(std::vector<Pending>& batch, const Error& error) {
        std::deque<Pending> rest;
        std::vector<std::function<void(const EngineView&)>> reads;
        {
            const std::lock_guard guard(mutex_);
            failure_ = error;
            rest.swap(commands_);
            reads.swap(reads_);
            waiting_posts_ = 0;
        }
        taken_.notify_all();
        const Error refusal(ErrorKind::unavailable, "not written down: " + error.message(), {},
                            "restart the server when the disk is well again, then send it again");
        refuse(batch, refusal);
        for (Pending& each : rest)
            if (each.answer) each.answer(refusal);
        if (options_.on_failure) options_.on_failure(error);
    }

    // ---- the observer's thread
    void observe() {
        std::uint64_t cursor = 0;
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                taken_.wait(lock, [&] { return stopping_ || failure_ || waiting_facts_ < kMostWaitingFacts; });
                if (stopping_ || failure_) return;
            }
            Result<std::vector<Fact>> facts = driver_->observe(cursor, SteadyClock::now() + kObserveFor);
            std::unique_lock lock(mutex_);
            if (stopping_ || failure_) return;
            if (!facts) {
                // What is broken is not asked again at once.
                taken_.wait_for(lock, std::chrono::seconds(1), [&] { return stopping_; });
                continue;
            }
            for (Fact& fact : *facts) {
                cursor = std::max(cursor, fact.cursor);
                fact.cursor = ++fact_cursor_;
                fact.run_us = moment_of(fact);
                commands_.push_back({{.what = SawFact{std::move(fact)}, .actor = Actor::part("driver")}, {}});
                ++waiting_facts_;
            }
            lock.unlock();
            if (!facts->empty()) wake_.notify_one();
        }
    }

    EngineOptions options_;
    Capabilities capabilities_;
    std::string boot_id_;  // empty: the monotonic clock is one of a test
    std::unique_ptr<Journal> journal_;
    std::shared_ptr<Driver> driver_;
    std::unique_ptr<Core> core_;
    std::unique_ptr<EngineEffects> effects_;
    std::optional<RunClock> clock_;
    ReadersLock shown_lock_;  // guards what follows
    State shown_;
    SchedulerOptions shown_scheduler_;
    bool shown_recovering_ = true;

    std::int64_t next_discover_us_ = 0;
    std::uint64_t fact_cursor_ = 0;
    std::thread core_thread_, observer_;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable wake_, taken_;
    std::deque<Pending> commands_;
    std::vector<std::function<void(const EngineView&)>> reads_;
    std::size_t waiting_posts_ = 0, waiting_facts_ = 0;
    bool stopping_ = false, discover_ = false;
    std::optional<Error> failure_;
    EngineStats stats_;
    std::vector<double> commits_;
    std::size_t next_commit_ = 0;

    std::mutex watches_mutex_, stop_mutex_;
    std::vector<std::weak_ptr<Watch>> watches_;
    std::atomic<std::int64_t> looked_at_disk_us_ = 0;
    std::atomic<bool> disk_full_ = false;
};

// A result that is waited for: by a caller that may have gone, from a thread that may never come.
template <class T>
struct Awaited {
    std::mutex mutex;
    std::condition_variable come;
    std::optional<T> value;

    void put(T what) {
        {
            const std::lock_guard guard(mutex);
            value = std::move(what);
        }
        come.notify_all();
    }
};

Error too_late(double timeout_s) {
    return Error(ErrorKind::timed_out, fmt::format("no answer in {:.0f} s", timeout_s), {},
                 "the server is busy or its disk is slow; what was asked may still be done");
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
    auto engine = std::make_unique<EngineThreads>(std::move(options));
    TRY_VOID(engine->start());
    return std::unique_ptr<Engine>(std::move(engine));
}

Result<Ack> call(Engine& engine, Command command, double timeout_s) {
    auto awaited = std::make_shared<Awaited<Result<Ack>>>();
    TRY_VOID(engine.post(std::move(command), [awaited](Result<Ack> ack) { awaited->put(std::move(ack)); }));
    std::unique_lock lock(awaited->mutex);
    if (!awaited->come.wait_for(lock, microseconds_of(timeout_s), [&] { return awaited->value.has_value(); }))
        return too_late(timeout_s);
    return std::move(*awaited->value);
}

}  // namespace stoker
