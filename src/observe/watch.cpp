#include "observe/watch.h"

#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>

#include "io/process.h"

namespace stoker {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double thread_cpu_s() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

using RankKey = std::tuple<std::string, int, int, pid_t>;
RankKey key_of(const WatchedRank& rank) {
    return {rank.run, rank.attempt, rank.rank, rank.pid};
}

}  // namespace

const std::vector<MeasureInfo>& measures() {
    static const std::vector<MeasureInfo> all = {
        {"step_s", "s", "time of a step"},
        {"compute_s", "s", "of it, forward, backward and update"},
        {"wait_s", "s", "of it, waiting for input"},
        {"allreduce_s", "s", "of it, in collectives"},
        {"checkpoint_s", "s", "writing a checkpoint after the step"},
        {"tokens_per_s", "1/s", "tokens"},
        {"samples_per_s", "1/s", "samples"},
        {"cpu", "cores", "processor time per second"},
        {"cpu_system", "cores", "of it, in the kernel"},
        {"run_wait", "s/s", "threads ready to run without a processor"},
        {"switches", "1/s", "times that a thread gave its processor up, or waited"},
        {"preempted", "1/s", "times that a thread lost its processor"},
        {"minor_faults", "1/s", "page faults without a disk"},
        {"major_faults", "1/s", "page faults that read from a disk"},
        {"rss", "bytes", "resident memory; pages that processes share count in each"},
        {"peak_rss", "bytes", "the largest so far"},
        {"swap", "bytes", "swapped out"},
        {"memory_used", "bytes", "of the control group with the tightest limit, page cache included"},
        {"memory_limit", "bytes", "that limit"},
        {"limit_hits", "1/s", "times that the limit was reached"},
        {"disk_read", "bytes/s", "read from disks"},
        {"disk_write", "bytes/s", "written to disks"},
        {"read_calls", "1/s", "reads of files, pipes and sockets"},
        {"call_read", "bytes/s", "read by them, from the page cache too"},
        {"throttled", "s/s", "stopped by the processor limit of a control group"},
        {"cpu_limit", "cores", "that limit"},
        {"net_received", "bytes/s", "by the network namespace, which may be the machine's"},
        {"net_sent", "bytes/s", "the same, sent"},
        {"net_loopback", "bytes/s", "the same, within the machine"},
        {"net_named", "bytes/s", "sent over the devices that the environment names for collectives"},
        {"processes", "", "of the rank"},
        {"threads", "", "of the rank"},
        {"blocked", "", "threads that wait for a device (state D)"},
        {"stopped", "", "processes that a signal stopped (state T); left out when there are none"},
        {"cpus_allowed", "", "processors that the affinity allows"},
        {"first_cpu", "", "the first of them"},
        {"foreign_cpu", "cores", "used on the machine by what is no rank of the run"},
        {"steal", "cores", "taken from the machine by its hypervisor"},
        {"machine_cpus", "", "processors of the machine"},
        {"disk_free", "bytes", "least room where the run writes"},
    };
    return all;
}

std::string rank_metrics_file(const std::string& metrics_file, int rank) {
    if (rank == 0) return metrics_file;
    const std::size_t slash = metrics_file.rfind('/'), dot = metrics_file.rfind('.');
    const std::string part = ".rank-" + std::to_string(rank);
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash + 2) || dot == 0)
        return metrics_file + part;
    return metrics_file.substr(0, dot) + part + metrics_file.substr(dot);
}

std::vector<std::pair<std::string_view, double>> measures_of(const ProcessSample& before, const ProcessSample& now,
                                                             const ProcessSample* threads_before,
                                                             std::string_view interface) {
    std::vector<std::pair<std::string_view, double>> out;
    const auto put = [&](std::string_view name, const auto& value) {
        if (value) out.emplace_back(name, static_cast<double>(*value));
    };
    out.emplace_back("rss", static_cast<double>(now.rss_bytes));
    out.emplace_back("peak_rss", static_cast<double>(now.peak_bytes));
    out.emplace_back("processes", now.processes);
    out.emplace_back("threads", now.threads);
    out.emplace_back("blocked", now.blocked);
    if (now.stopped > 0) out.emplace_back("stopped", now.stopped);
    put("cpus_allowed", now.cpus_allowed);
    put("first_cpu", now.first_cpu);
    put("swap", now.swap_bytes);
    put("memory_used", now.memory_used_bytes);
    put("memory_limit", now.memory_limit_bytes);
    put("cpu_limit", now.cpu_limit);
    if (const auto rates = rates_between(before, now)) {
        out.emplace_back("cpu", rates->user + rates->system);
        out.emplace_back("cpu_system", rates->system);
        out.emplace_back("minor_faults", rates->minor_faults);
        out.emplace_back("major_faults", rates->major_faults);
        put("disk_read", rates->read_bytes);
        put("disk_write", rates->write_bytes);
        put("read_calls", rates->read_calls);
        put("call_read", rates->call_read_bytes);
        put("throttled", rates->throttled);
        put("net_received", rates->received);
        put("net_sent", rates->sent);
        put("net_loopback", rates->loopback);
        if (!interface.empty() && rates->sent) {
            double named = names_interface(interface, "lo") ? rates->loopback.value_or(0) : 0;
            for (const auto& [device, sent] : rates->sent_by)
                if (names_interface(interface, device)) named += sent;
            out.emplace_back("net_named", named);
        }
        if (before.memory_limit_hits && now.memory_limit_hits)
            out.emplace_back("limit_hits", static_cast<double>(std::max<std::int64_t>(
                                               0, *now.memory_limit_hits - *before.memory_limit_hits)) /
                                               rates->seconds);
    }
    if (threads_before != nullptr)
        if (const auto rates = rates_between(*threads_before, now)) {
            put("run_wait", rates->run_wait);
            put("switches", rates->voluntary_switches);
            put("preempted", rates->involuntary_switches);
        }
    return out;
}

// Owned by the thread and by the Observer, whichever lives longer.
struct Observer::Shared {
    ObserverOptions options;

    std::mutex mutex;  // guards what follows, up to the next blank line
    std::condition_variable changed;
    std::vector<WatchedRank> wanted;
    std::map<RankKey, RankNow> latest;
    ObserverStats stats;
    SteadyClock::time_point look_began;
    bool looking = false, stop = false;

    // Of the thread alone.
    struct Watched {
        WatchedRank rank;
        RankSampler sampler;
        std::vector<StepReader> readers;
        std::optional<ProcessSample> last, last_threads;
        std::optional<double> after_s;  // lines up to here are in the series already
        bool first = true, gone = false;
    };
    std::map<RankKey, Watched> watched;
    std::set<std::string> runs;
    double tidied_s = 0;
    std::optional<MachineStat> machine;  // at the last look
    std::int64_t machine_us = 0;

    double wall_s() const { return options.wall_s ? options.wall_s() : static_cast<double>(wall_clock_us()) / 1e6; }

    void take(const std::vector<WatchedRank>& ranks) {
        std::set<RankKey> keys;
        std::set<std::string> live;
        for (const WatchedRank& rank : ranks) {
            if (keys.size() >= options.max_ranks) break;
            const RankKey key = key_of(rank);
            keys.insert(key);
            live.insert(rank.run);
            if (watched.contains(key)) continue;
            Watched fresh{.rank = rank,
                          .sampler = RankSampler(options.roots, rank.pid, rank.start_ticks, options.sample),
                          .readers = {},
                          .last = {},
                          .last_threads = {},
                          .after_s = {}};
            for (const StepSource& source : rank.sources) fresh.readers.emplace_back(source);
            if (options.series != nullptr)
                if (const auto newest = options.series->newest(rank.run)) fresh.after_s = static_cast<double>(*newest);
            watched.emplace(key, std::move(fresh));
        }
        for (auto it = watched.begin(); it != watched.end();) {
            if (keys.contains(it->first)) {
                ++it;
                continue;
            }
            read_steps(it->second, wall_s(), nullptr);  // the last lines of a rank that has ended
            it = watched.erase(it);
        }
        for (const std::string& run : runs)
            if (!live.contains(run) && options.series != nullptr) options.series->end(run);
        runs = std::move(live);
    }

    void keep(const WatchedRank& rank, int number, std::string_view name, double at_s, double value, RankNow* now) {
        if (options.series != nullptr) options.series->add(rank.run, number, name, at_s, value);
        if (now != nullptr && number == rank.rank) now->values[std::string(name)] = value;
    }

    void read_steps(Watched& one, double now_s, RankNow* now) {
        for (StepReader& reader : one.readers) {
            for (int turn = 0; turn < 4; ++turn) {
                for (const StepLine& line : reader.poll(now_s)) {
                    // What was written before we looked for the first time is known already, unless it says when it
                    // was.
                    double at = now_s;
                    if (line.time_s && std::abs(*line.time_s - now_s) < 86'400)
                        at = std::min(*line.time_s, now_s);
                    else if (one.first && one.after_s)
                        continue;
                    if (one.first && one.after_s && at < *one.after_s) continue;
                    const int number = line.rank.value_or(one.rank.rank);
                    if (now != nullptr && line.step && number == one.rank.rank) now->step = line.step;
                    for (const auto& [name, value] : line.values) keep(one.rank, number, name, at, value, now);
                }
                if (!reader.tail().more()) break;
            }
        }
        one.first = false;
    }

    static std::optional<double> room_of(const WatchedRank& rank) {
        std::optional<double> least;
        for (const std::string& folder : rank.folders) {
            struct statvfs status {};
            if (::statvfs(folder.c_str(), &status) != 0) continue;
            const double room = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
            least = std::min(least.value_or(room), room);
        }
        return least;
    }

    // Who else uses the machine, and where it writes: told by one rank of each run, since it is the same for all.
    void tell_machine(const ProcessTable& table, std::int64_t at_us, double now_s,
                      const std::map<std::string, double>& used) {
        const std::optional<MachineStat> before = machine;
        const double seconds = static_cast<double>(at_us - machine_us) / 1e6;
        machine = table.machine();
        machine_us = at_us;
        if (!before || !machine || seconds <= 0 || machine->busy_ticks < before->busy_ticks) return;
        const auto cores = [&](std::int64_t ticks) {
            return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)) / seconds;
        };
        const double busy = cores(machine->busy_ticks - before->busy_ticks);
        const double steal = cores(std::max<std::int64_t>(0, machine->steal_ticks - before->steal_ticks));
        std::set<std::string> told;
        for (const auto& [key, one] : watched) {
            const auto own = used.find(one.rank.run);
            if (one.gone || own == used.end() || !told.insert(one.rank.run).second) continue;
            keep(one.rank, one.rank.rank, "foreign_cpu", now_s, std::max(0.0, busy - own->second), nullptr);
            keep(one.rank, one.rank.rank, "steal", now_s, steal, nullptr);
            keep(one.rank, one.rank.rank, "machine_cpus", now_s, machine->cpus, nullptr);
            if (const auto room = room_of(one.rank)) keep(one.rank, one.rank.rank, "disk_free", now_s, *room, nullptr);
        }
    }

    void look() {
        const double now_s = wall_s();
        if (!watched.empty()) {
            const ProcessTable table = ProcessTable::scan(options.roots);
            const std::int64_t at_us =
                std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now().time_since_epoch()).count();
            std::map<std::string, double> used;  // processors, by run
            for (auto& [key, one] : watched) {
                RankNow now;
                {
                    const std::lock_guard lock(mutex);
                    now = latest[key];
                }
                now.rank = one.rank;
                now.at_s = now_s;
                read_steps(one, now_s, &now);
                if (const auto sample = one.gone ? std::nullopt : one.sampler.sample(table, at_us)) {
                    if (one.last) {
                        const ProcessSample* threads =
                            sample->run_wait_s && one.last_threads ? &*one.last_threads : nullptr;
                        for (const auto& [name, value] : measures_of(*one.last, *sample, threads, one.rank.interface)) {
                            if (name == "cpu") used[one.rank.run] += value;
                            keep(one.rank, one.rank.rank, name, now_s, value, &now);
                        }
                    }
                    if (sample->run_wait_s) one.last_threads = sample;
                    one.last = sample;
                } else if (one.last) {
                    one.gone = true;  // its pid may become another's
                }
                const std::lock_guard lock(mutex);
                latest[key] = std::move(now);
            }
            tell_machine(table, at_us, now_s, used);
        }
        if (options.series != nullptr && std::abs(now_s - tidied_s) >= options.tidy_every_s) {
            options.series->tidy(static_cast<std::int64_t>(now_s));
            tidied_s = now_s;
        }
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
            const std::vector<WatchedRank> ranks = wanted;
            lock.unlock();
            take(ranks);
            look();
            const double cpu = thread_cpu_s();
            lock.lock();
            looking = false;
            std::erase_if(latest, [&](const auto& each) { return !watched.contains(each.first); });
            ++stats.ticks;
            stats.last_tick_s = seconds_since(began);
            stats.cpu_s = cpu;
            stats.ranks = watched.size();
            stats.not_watched = ranks.size() - std::min(ranks.size(), options.max_ranks);
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

void Observer::watch(std::vector<WatchedRank> ranks) {
    const std::lock_guard lock(shared_->mutex);
    shared_->wanted = std::move(ranks);
}

std::vector<RankNow> Observer::latest(const std::string& run) const {
    std::vector<RankNow> all;
    const std::lock_guard lock(shared_->mutex);
    for (const auto& [key, now] : shared_->latest)
        if (run.empty() || now.rank.run == run) all.push_back(now);
    return all;
}

ObserverStats Observer::stats() const {
    const std::lock_guard lock(shared_->mutex);
    ObserverStats stats = shared_->stats;
    if (shared_->looking) stats.busy_for_s = seconds_since(shared_->look_began);
    return stats;
}

}  // namespace stoker
