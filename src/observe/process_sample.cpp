#include "observe/process_sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "io/process.h"

namespace stoker {
namespace {

// Files of /proc have no size. 64 KiB holds each of those read here, mountinfo of a busy host included.
std::string read_kernel_file(const std::string& path, std::size_t most = 64 << 10) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text;
    if (!file) return text;
    std::array<char, 4096> block{};
    while (text.size() < most) {
        const ssize_t got = ::read(file.get(), block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(block.data(), static_cast<std::size_t>(got));
        if (static_cast<std::size_t>(got) < block.size() / 2) break;  // short: that was all, and saves one call
    }
    return text;
}

template <class Use>
void each_number_in(const std::string& folder, const Use& use) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    if (!dir) return;
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        pid_t number = 0;
        const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (code == std::errc() && end == name.data() + name.size() && !use(number)) return;
    }
}

std::string link_of(const std::string& path) {
    std::array<char, 128> target{};
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

const double kTicksPerSecond = static_cast<double>(std::max<long>(1, ::sysconf(_SC_CLK_TCK)));
const std::int64_t kPageBytes = std::max<long>(1, ::sysconf(_SC_PAGESIZE));

// Which counters last_ keeps of a process or thread.
enum : int { kTimes, kIo, kThread };

}  // namespace

ProcessTable ProcessTable::scan(const ProcRoots& roots) {
    ProcessTable table;
    table.network_ = parse_net_dev(read_kernel_file(roots.proc + "/self/net/dev"));
    table.machine_ = parse_machine_stat(read_kernel_file(roots.proc + "/stat", 1 << 17));
    each_number_in(roots.proc, [&](pid_t pid) {
        const auto stat = parse_proc_stat(read_kernel_file(roots.proc + "/" + std::to_string(pid) + "/stat", 4096));
        if (stat && stat->pid == pid) {
            table.children_[stat->parent].push_back(pid);
            table.processes_.emplace(pid, *stat);
        }
        return table.processes_.size() < 100'000;
    });
    return table;
}

std::vector<ProcStat> ProcessTable::tree(pid_t root, std::uint64_t start_ticks) const {
    std::vector<ProcStat> found;
    const auto first = processes_.find(root);
    if (first == processes_.end() || (start_ticks != 0 && first->second.start_ticks != start_ticks)) return found;
    found.push_back(first->second);
    // Processes come and go while they are listed: a cycle of parents is possible, hence the bound.
    for (std::size_t i = 0; i < found.size() && found.size() <= processes_.size(); ++i) {
        const auto below = children_.find(found[i].pid);
        if (below == children_.end()) continue;
        for (const pid_t pid : below->second)
            if (pid != root) found.push_back(processes_.at(pid));
    }
    return found;
}

RankSampler::RankSampler(ProcRoots roots, pid_t root, std::uint64_t start_ticks, SampleOptions options)
    : roots_(std::move(roots)), root_(root), start_ticks_(start_ticks), options_(options) {}

void RankSampler::grow(Key key, std::uint64_t start_ticks, std::vector<std::int64_t>& totals,
                       std::vector<std::int64_t> now) {
    Last& last = last_[key];
    const bool same = last.counters.size() == now.size() && last.start_ticks == start_ticks;
    totals.resize(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
        const std::int64_t before = same && last.counters[i] <= now[i] ? last.counters[i] : 0;
        totals[i] += now[i] - before;
    }
    last = {.start_ticks = start_ticks, .counters = std::move(now), .seen = count_};
}

void RankSampler::add_threads(pid_t pid, std::uint64_t start_ticks) {
    const std::string folder = roots_.proc + "/" + std::to_string(pid) + "/task";
    each_number_in(folder, [&](pid_t thread) {
        if (threads_left_ == 0) return false;
        --threads_left_;
        const std::string place = folder + "/" + std::to_string(thread);
        const ProcStatus status = parse_proc_status(read_kernel_file(place + "/status"));
        if (status.state == 'D') ++blocked_;
        if (const auto times = parse_schedstat(read_kernel_file(place + "/schedstat", 4096))) {
            if (!last_.contains({thread, kThread}) && thread != pid) {
                young_.ran_ns += times->ran_ns;
                young_.waited_ns += times->waited_ns;
            }
            // A thread that began later with the number of another has smaller counters, which grow() takes as new.
            grow({thread, kThread}, start_ticks, waits_, {times->waited_ns, times->ran_ns});
        }
        if (status.voluntary_switches && status.involuntary_switches)
            grow({-thread, kThread}, start_ticks, switches_,
                 {*status.voluntary_switches, *status.involuntary_switches});
        return true;
    });
}

// A program that starts its threads anew in each step: hardly one of them is there at a look, and what they waited is
// gone with them. Their processor time is not, and the young ones that a look meets say how long such threads wait for
// it.
void RankSampler::add_ended_threads(double cpu_s) {
    constexpr double kLeastUnseen = 0.3, kLeastYoungNs = 5e6, kLeastS = 0.05;
    if (waits_.empty()) return;
    const double ran_s = static_cast<double>(waits_[1]) / 1e9;
    const double used = cpu_s - cpu_at_look_s_, unseen = used - (ran_s - ran_at_look_s_);
    cpu_at_look_s_ = cpu_s;
    ran_at_look_s_ = ran_s;
    if (unseen < kLeastS || unseen < kLeastUnseen * used || static_cast<double>(young_.ran_ns) < kLeastYoungNs) return;
    ended_wait_s_ += unseen * static_cast<double>(young_.waited_ns) / static_cast<double>(young_.ran_ns);
}

void RankSampler::find_groups() {
    const std::string own = roots_.proc + "/" + std::to_string(root_);
    const auto lines = parse_proc_cgroup(read_kernel_file(own + "/cgroup"));
    // Our own mounts: a rank in a container names its groups as we see them, and we read them where we see them.
    const auto mounts = parse_mountinfo(read_kernel_file(roots_.proc + "/self/mountinfo", 1 << 20));
    const CgroupChain cpu = cgroup_chain(mounts, lines, "cpu"), memory = cgroup_chain(mounts, lines, "memory");
    cpu_ = {.unified = cpu.unified, .folders = {}};
    cpu_limit_.reset();
    memory_limit_.reset();
    for (const std::string& folder : cpu.folders) {
        const std::string place = roots_.prefix + folder;
        const auto limit = parse_cpu_max(cpu.unified ? read_kernel_file(place + "/cpu.max")
                                                     : read_kernel_file(place + "/cpu.cfs_quota_us") + " " +
                                                           read_kernel_file(place + "/cpu.cfs_period_us"));
        if (!limit) continue;
        cpu_.folders.push_back(place);
        cpu_limit_ = std::min(cpu_limit_.value_or(*limit), *limit);
    }
    memory_unified_ = memory.unified;
    for (const std::string& folder : memory.folders) {
        const std::string place = roots_.prefix + folder;
        const auto limit =
            parse_limit(read_kernel_file(place + (memory.unified ? "/memory.max" : "/memory.limit_in_bytes")));
        if (!limit || (memory_limit_ && *memory_limit_ <= *limit)) continue;
        memory_limit_ = limit;
        memory_ = place;
    }
    const std::string network = link_of(own + "/ns/net");
    own_network_ = !network.empty() && network != link_of(roots_.proc + "/self/ns/net");
}

void RankSampler::add_groups(ProcessSample& sample) const {
    sample.cpu_limit = cpu_limit_;
    sample.memory_limit_bytes = memory_limit_;
    for (const std::string& place : cpu_.folders) {
        const std::string text = read_kernel_file(place + "/cpu.stat");
        const auto periods = flat_value(text, "nr_periods"), count = flat_value(text, "nr_throttled");
        // Microseconds in version 2, nanoseconds in version 1.
        const auto time = flat_value(text, cpu_.unified ? "throttled_usec" : "throttled_time");
        if (!time || !count || !periods) continue;
        const double seconds = static_cast<double>(*time) / (cpu_.unified ? 1e6 : 1e9);
        if (sample.throttled_s && seconds <= *sample.throttled_s) continue;
        sample.throttled_s = seconds;
        sample.throttled_periods = *count;
        sample.periods = *periods;
    }
    if (!memory_limit_) return;
    sample.memory_used_bytes =
        parse_limit(read_kernel_file(memory_ + (memory_unified_ ? "/memory.current" : "/memory.usage_in_bytes")));
    if (memory_unified_) {
        const std::string events = read_kernel_file(memory_ + "/memory.events");
        sample.memory_limit_hits = flat_value(events, "max");
        sample.oom_kills = flat_value(events, "oom_kill");
    } else {
        sample.memory_limit_hits = parse_limit(read_kernel_file(memory_ + "/memory.failcnt"));
        sample.oom_kills = flat_value(read_kernel_file(memory_ + "/memory.oom_control"), "oom_kill");
    }
}

std::optional<ProcessSample> RankSampler::sample(const ProcessTable& table, std::int64_t at_us) {
    std::vector<ProcStat> members = table.tree(root_, start_ticks_);
    if (members.empty()) return std::nullopt;
    if (members.size() > options_.max_processes) members.resize(options_.max_processes);
    if (start_ticks_ == 0) start_ticks_ = members.front().start_ticks;
    const bool look_at_threads = count_ % static_cast<std::uint64_t>(std::max(1, options_.threads_every)) == 0;
    if (count_ % static_cast<std::uint64_t>(std::max(1, options_.groups_again_every)) == 0) find_groups();
    ++count_;
    if (look_at_threads) {
        blocked_ = 0;
        cpus_allowed_.reset();
        threads_left_ = options_.max_threads;
    }

    ProcessSample sample{.at_us = at_us, .processes = static_cast<int>(members.size()), .own_network = own_network_};
    const auto add = [](std::optional<std::int64_t>& to, const std::optional<std::int64_t>& value) {
        if (value) to = to.value_or(0) + *value;
    };
    for (const ProcStat& member : members) {
        sample.threads += static_cast<int>(std::clamp<std::int64_t>(member.threads, 0, 1'000'000));
        if (member.state == 'D' && !look_at_threads) ++sample.blocked;
        if (member.state == 'T' || member.state == 't') ++sample.stopped;
        sample.rss_bytes += std::max<std::int64_t>(0, member.rss_pages) * kPageBytes;
        grow({member.pid, kTimes}, member.start_ticks, times_,
             {member.user_ticks, member.system_ticks, member.minor_faults, member.major_faults});
        if (member.state == 'Z') continue;
        const std::string place = roots_.proc + "/" + std::to_string(member.pid);
        if (look_at_threads) {
            const ProcStatus status = parse_proc_status(read_kernel_file(place + "/status"));
            peak_ = std::max(peak_, status.peak_bytes.value_or(0));
            if (status.cpus_allowed && (!cpus_allowed_ || *status.cpus_allowed < *cpus_allowed_)) {
                cpus_allowed_ = status.cpus_allowed;
                first_cpu_ = status.first_cpu;
            }
            add(sample.anonymous_bytes, status.anonymous_bytes);
            add(sample.swap_bytes, status.swap_bytes);
            add_threads(member.pid, member.start_ticks);
        }
        if (const auto io = parse_proc_io(read_kernel_file(place + "/io", 4096)))
            grow({member.pid, kIo}, member.start_ticks, io_,
                 {io->read_bytes, io->write_bytes, io->read_calls, io->call_read_bytes});
    }
    if (look_at_threads) sample.blocked = blocked_;
    if (look_at_threads) {
        sample.cpus_allowed = cpus_allowed_;
        sample.first_cpu = first_cpu_;
    }
    peak_ = std::max(peak_, sample.rss_bytes);
    sample.peak_bytes = peak_;
    sample.user_s = static_cast<double>(times_[0]) / kTicksPerSecond;
    sample.system_s = static_cast<double>(times_[1]) / kTicksPerSecond;
    sample.minor_faults = times_[2];
    sample.major_faults = times_[3];
    if (!io_.empty()) {
        sample.read_bytes = io_[0];
        sample.write_bytes = io_[1];
        sample.read_calls = io_[2];
        sample.call_read_bytes = io_[3];
    }
    // Absent in between, so that no rate is computed from a value that was not looked at.
    if (look_at_threads && !waits_.empty()) {
        add_ended_threads(sample.user_s + sample.system_s);
        sample.run_wait_s = static_cast<double>(waits_[0]) / 1e9 + ended_wait_s_;
    }
    if (look_at_threads && !switches_.empty()) {
        sample.voluntary_switches = switches_[0];
        sample.involuntary_switches = switches_[1];
    }
    add_groups(sample);
    sample.network = own_network_
                         ? parse_net_dev(read_kernel_file(roots_.proc + "/" + std::to_string(root_) + "/net/dev"))
                         : table.network();
    if (look_at_threads) std::erase_if(last_, [&](const auto& each) { return each.second.seen + 2 < count_; });
    return sample;
}

std::optional<ProcessRates> rates_between(const ProcessSample& before, const ProcessSample& after) {
    const double seconds = static_cast<double>(after.at_us - before.at_us) / 1e6;
    if (seconds <= 0) return std::nullopt;
    const auto rate = [seconds](auto a, auto b) { return static_cast<double>(b >= a ? b - a : b) / seconds; };
    const auto maybe = [&](const auto& a, const auto& b) {
        return a && b ? std::optional<double>(rate(*a, *b)) : std::nullopt;
    };
    ProcessRates rates{.seconds = seconds,
                       .user = rate(before.user_s, after.user_s),
                       .system = rate(before.system_s, after.system_s),
                       .minor_faults = rate(before.minor_faults, after.minor_faults),
                       .major_faults = rate(before.major_faults, after.major_faults),
                       .run_wait = maybe(before.run_wait_s, after.run_wait_s),
                       .voluntary_switches = maybe(before.voluntary_switches, after.voluntary_switches),
                       .involuntary_switches = maybe(before.involuntary_switches, after.involuntary_switches),
                       .read_bytes = maybe(before.read_bytes, after.read_bytes),
                       .write_bytes = maybe(before.write_bytes, after.write_bytes),
                       .read_calls = maybe(before.read_calls, after.read_calls),
                       .call_read_bytes = maybe(before.call_read_bytes, after.call_read_bytes),
                       .throttled = maybe(before.throttled_s, after.throttled_s)};
    if (before.network && after.network && before.own_network == after.own_network) {
        rates.received = rate(before.network->received, after.network->received);
        rates.sent = rate(before.network->sent, after.network->sent);
        rates.loopback = rate(before.network->loopback, after.network->loopback);
        for (const auto& [device, sent] : after.network->sent_by)
            for (const auto& [earlier, sent_before] : before.network->sent_by)
                if (device == earlier) rates.sent_by.emplace_back(device, rate(sent_before, sent));
    }
    return rates;
}

}  // namespace stoker
