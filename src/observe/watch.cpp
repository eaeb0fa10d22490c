#include "observe/watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "io/process.h"
#include "io/processor_time.h"

namespace stoker {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Of one gang in one look; what is left comes with the next.
constexpr int kMostTurns = 4;
// What a gang that has ended wrote last is at most what its engine keeps of it.
constexpr int kMostLastTurns = 64;

double seconds_since(SteadyClock::time_point begin) {
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

constexpr double kStandsOut = 2;  // times as long as the shortest

using GangKey = std::pair<std::string, int>;  // run and attempt
using RankKey = std::tuple<std::string, int, int>;

}  // namespace

// Owned by the thread and by the Observer, whichever lives longer.
struct Observer::Shared {
    ObserverOptions options;

    std::mutex mutex;  // guards what follows, up to the next blank line
    std::condition_variable changed;
    std::vector<WatchedGang> wanted;
    std::map<RankKey, RankNow> latest;
    ObserverStats stats;
    SteadyClock::time_point look_began;
    bool looking = false, stop = false;

    // What the series of a second, which keep means, would not tell of the steps in it: how far they got, and the
    // shortest and the longest of them, without what they waited for.
    struct StepsOfSecond {
        double at_s = 0, step = 0, shortest_s = 0, longest_s = 0, longest_step = 0;
        bool seen = false, timed = false;

        void see(const MeasureLine& line) {
            at_s = line.at_s;
            step = *line.step;
            seen = true;
            const auto named = [&](std::string_view name) {
                return std::find_if(line.values.begin(), line.values.end(),
                                    [&](const auto& each) { return each.first == name; });
            };
            auto found = named("compute_s");
            if (found == line.values.end()) found = named("step_s");
            if (found == line.values.end()) return;
            shortest_s = timed ? std::min(shortest_s, found->second) : found->second;
            if (!timed || found->second > longest_s) longest_s = found->second, longest_step = *line.step;
            timed = true;
        }
        std::vector<std::pair<std::string, double>> values() const {
            std::vector<std::pair<std::string, double>> all{{"step", step}};
            if (timed) all.insert(all.end(), {{"shortest_s", shortest_s}, {"longest_s", longest_s}});
            // Of steps that are alike it says nothing.
            if (timed && longest_s > kStandsOut * shortest_s) all.emplace_back("longest_step", longest_step);
            return all;
        }
    };

    // Of the thread alone.
    struct Watched {
        WatchedGang gang;
        std::string cursor;
        double from_s = 0;                   // what is older is in the series already
        bool mute = false;                   // its engine cannot tell
        std::map<int, std::int64_t> lost_s;  // by rank, the second in which it was told last that a loss is not finite
        // By rank, of the second that goes on: a look sees a part of it, and of two longest steps one is the longest.
        std::map<int, StepsOfSecond> steps;
    };
    std::map<GangKey, Watched> watched;
    std::set<std::string> runs;
    double tidied_s = 0;
    std::uint64_t gaps = 0;
    std::string error;

    double wall_s() const { return options.wall_s ? options.wall_s() : static_cast<double>(wall_clock_us()) / 1e6; }

    // How many ranks found no room.
    std::size_t take(const std::vector<WatchedGang>& gangs) {
        std::set<GangKey> keys;
        std::set<std::string> live;
        std::size_t ranks = 0, left = 0;
        for (const WatchedGang& gang : gangs) {
            if (ranks + gang.live.size() > options.max_ranks) {
                left += gang.live.size();
                continue;
            }
            ranks += gang.live.size();
            const GangKey key{gang.run, gang.attempt};
            keys.insert(key);
            live.insert(gang.run);
            const auto [found, fresh] = watched.try_emplace(key);
            found->second.gang = gang;
            if (!fresh || options.series == nullptr) continue;
            if (const auto newest = options.series->newest(gang.run))
                found->second.from_s = static_cast<double>(*newest);
        }
        for (auto it = watched.begin(); it != watched.end();) {
            if (keys.contains(it->first)) {
                ++it;
                continue;
            }
            it->second.gang.live.clear();
            read(it->second, kMostLastTurns, nullptr);
            for (const auto& [rank, steps] : it->second.steps) keep(it->second.gang.run, rank, steps);
            it = watched.erase(it);
        }
        for (const std::string& run : runs)
            if (!live.contains(run) && options.series != nullptr) options.series->end(run);
        runs = std::move(live);
        return left;
    }

    void keep(const std::string& run, int rank, const StepsOfSecond& steps) const {
        if (options.series == nullptr || !steps.seen) return;
        for (const auto& [name, value] : steps.values()) options.series->add(run, rank, name, steps.at_s, value);
    }

    // What is told of the ranks of `now` goes there too.
    void read(Watched& one, int turns, std::map<RankKey, RankNow>* now) {
        const WatchedGang& gang = one.gang;
        bool more = !one.mute && gang.read != nullptr;
        for (int turn = 0; more && turn < turns; ++turn) {
            const auto answer = gang.read(gang.live, {.cursor = one.cursor, .from_s = one.from_s});
            if (!answer) {
                one.mute = answer.error().kind() == ErrorKind::unsupported;
                if (!one.mute) error = gang.run + ": " + answer.error().message();
                return;
            }
            if (answer->gap && !one.cursor.empty()) ++gaps;
            one.cursor = answer->next;
            for (const MeasureLine& line : answer->lines) {
                if (line.step && (one.steps.contains(line.rank) || one.steps.size() < options.max_ranks)) {
                    StepsOfSecond& steps = one.steps[line.rank];
                    if (std::floor(steps.at_s) != std::floor(line.at_s))
                        keep(gang.run, line.rank, std::exchange(steps, {}));
                    steps.see(line);
                }
                if (options.series != nullptr)
                    for (const auto& [name, value] : line.values) {
                        // The first of a second says since which step: a mean of two would say neither.
                        if (name == "not_finite") {
                            const auto second = static_cast<std::int64_t>(std::floor(line.at_s));
                            if (std::exchange(one.lost_s[line.rank], second) == second) continue;
                        }
                        options.series->add(gang.run, line.rank, name, line.at_s, value);
                    }
                if (now == nullptr) continue;
                const auto found = now->find({gang.run, gang.attempt, line.rank});
                if (found == now->end()) continue;
                RankNow& rank = found->second;
                rank.at_s = std::max(rank.at_s, line.at_s);
                if (line.step) rank.step = line.step;
                for (const auto& [name, value] : line.values) rank.values[name] = value;
            }
            more = answer->more;
        }
        constexpr double kOverS = 2;  // lines of a second come that late
        for (auto& [rank, steps] : one.steps)
            if (wall_s() - steps.at_s > kOverS) keep(gang.run, rank, std::exchange(steps, {}));
    }

    // How many ranks it looked at.
    std::size_t look() {
        const double now_s = wall_s();
        std::map<RankKey, RankNow> now;
        {
            const std::lock_guard lock(mutex);
            now = latest;
        }
        std::set<RankKey> there;
        for (const auto& [key, one] : watched)
            for (const LiveRank& rank : one.gang.live) {
                const RankKey name{key.first, key.second, rank.rank};
                there.insert(name);
                const auto [found, fresh] = now.try_emplace(name);
                if (fresh || found->second.rank != rank)
                    found->second = {.run = key.first,
                                     .attempt = key.second,
                                     .rank = rank,
                                     .at_s = now_s,
                                     .step = std::nullopt,
                                     .values = {}};
            }
        std::erase_if(now, [&](const auto& each) { return !there.contains(each.first); });
        error.clear();
        for (auto& [key, one] : watched) read(one, kMostTurns, &now);
        {
            const std::lock_guard lock(mutex);
            latest = std::move(now);
        }
        if (options.series != nullptr && std::abs(now_s - tidied_s) >= options.tidy_every_s) {
            options.series->tidy(static_cast<std::int64_t>(now_s));
            tidied_s = now_s;
        }
        return there.size();
    }

    void run() {
        const auto period =
            std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(options.period_s));
        auto next = SteadyClock::now();
        std::unique_lock lock(mutex);
        while (!stop) {
            const auto began = SteadyClock::now();
            looking = true;
            look_began = began;
            stats.worst_late_s = std::max(stats.worst_late_s, std::chrono::duration<double>(began - next).count());
            lock.unlock();
            if (options.before_look) options.before_look();
            lock.lock();
            const std::vector<WatchedGang> gangs = wanted;
            lock.unlock();
            const std::size_t not_watched = take(gangs);
            const std::size_t ranks = look();
            const double cpu = processor_s_of_thread();
            lock.lock();
            looking = false;
            ++stats.ticks;
            stats.last_tick_s = seconds_since(began);
            stats.cpu_s = cpu;
            stats.ranks = ranks;
            stats.not_watched = not_watched;
            stats.gaps = gaps;
            stats.error = error;
            // Times are planned from the start, so that delays do not add up; what was missed is not made up for.
            next += period;
            while (next <= SteadyClock::now()) {
                next += period;
                ++stats.skipped;
            }
            changed.wait_until(lock, next, [&] { return stop; });
        }
        lock.unlock();
        take({});
    }
};

std::unique_ptr<Observer> Observer::start(ObserverOptions options) {
    options.period_s = std::clamp(options.period_s, 0.01, 3600.0);
    auto shared = std::make_shared<Shared>();
    shared->options = std::move(options);
    auto observer = std::unique_ptr<Observer>(new Observer(shared));
    observer->thread_.post([shared] { shared->run(); });
    return observer;
}

Observer::~Observer() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->stop = true;
        shared_->changed.notify_all();
    }
    thread_.stop(after(2));
}

void Observer::watch(std::vector<WatchedGang> gangs) {
    const std::lock_guard lock(shared_->mutex);
    shared_->wanted = std::move(gangs);
}

std::vector<RankNow> Observer::latest(const std::string& run) const {
    std::vector<RankNow> all;
    const std::lock_guard lock(shared_->mutex);
    for (const auto& [key, now] : shared_->latest)
        if (run.empty() || now.run == run) all.push_back(now);
    return all;
}

ObserverStats Observer::stats() const {
    const std::lock_guard lock(shared_->mutex);
    ObserverStats stats = shared_->stats;
    if (shared_->looking) stats.busy_for_s = seconds_since(shared_->look_began);
    return stats;
}

}  // namespace stoker
