#include "observe/gang_meter.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "observe/tracker_file.h"

namespace stoker {
namespace {

// A step that says to have been at another time than about now says nothing about when it was.
constexpr double kMostAwayS = 86'400;
// Whoever tells steps has told one by then, after the first that its output counts.
constexpr double kSettledS = 3;
// What series have written out by then is not added to: steps that a tracker tells later count as of now.
constexpr double kBlockS = 60;
constexpr int kTurns = 4;  // of reading one file; the rest comes with the next look

std::optional<double> least_room(const std::vector<std::string>& folders) {
    std::optional<double> least;
    for (const std::string& folder : folders) {
        struct statvfs status {};
        if (::statvfs(folder.c_str(), &status) != 0) continue;
        const double room = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
        least = std::min(least.value_or(room), room);
    }
    return least;
}

// Ports that are up, and what they have carried: RDMA passes the kernel's network devices by.
struct FabricCount {
    int ports = 0;
    double bytes = 0;
};
std::optional<FabricCount> fabric_count(const std::string& sys) {
    namespace fs = std::filesystem;
    const auto word_of = [](const fs::path& path) {
        std::string word;
        std::ifstream(path) >> word;
        return word;
    };
    std::optional<FabricCount> count;
    std::error_code code;
    for (fs::directory_iterator device(sys + "/class/infiniband", code), end; !code && device != end;
         device.increment(code)) {
        std::error_code inner;
        for (fs::directory_iterator port(device->path() / "ports", inner), last; !inner && port != last;
             port.increment(inner)) {
            // A virtual adapter of Azure's Ethernet (mana, or an mlx5 in Ethernet mode) is listed here too, and is
            // none.
            if (word_of(port->path() / "link_layer") == "Ethernet") continue;
            if (word_of(port->path() / "state") != "4:") continue;  // "4: ACTIVE"
            FabricCount& sum = count ? *count : count.emplace();
            ++sum.ports;
            for (const char* counter : {"port_xmit_data", "port_rcv_data"})  // in words of four bytes
                sum.bytes += 4 * std::strtod(word_of(port->path() / "counters" / counter).c_str(), nullptr);
        }
    }
    return count;
}

std::string visible_devices(const std::string& proc, std::int64_t pid) {
    std::ifstream file(proc + "/" + std::to_string(pid) + "/environ", std::ios::binary);
    for (std::string entry; std::getline(file, entry, '\0');)
        if (entry.starts_with("CUDA_VISIBLE_DEVICES=")) return entry.substr(entry.find('=') + 1);
    return "";
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
        {"step", "", "number of the step that was told last"},
        {"shortest_s", "s", "the shortest step of a second, without what it waited for"},
        {"longest_s", "s", "the longest"},
        {"longest_step", "", "its number, where it took twice as long as the shortest"},
        {"inferred", "", "steps are counted in what the program prints: 1 steps, 2 a bar, 3 epochs, 4 reports"},
        {"rhythm_s", "s", "what a rank that tells no steps does comes back after so long"},
        {"rhythm_beats", "", "so often it was seen to"},
        {"not_finite", "", "number of a step whose loss was nan or inf"},
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
        {"ib_ports", "", "InfiniBand ports of the machine that are up"},
        {"ib_bytes", "bytes/s", "over them, both ways"},
    };
    static const std::vector<MeasureInfo> with_gpus = [] {
        std::vector<MeasureInfo> both = all;
        for (const GpuMeasure& each : gpu_measures()) both.push_back({each.name, each.unit, each.meaning});
        return both;
    }();
    return with_gpus;
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
    // What has ended and was not waited for yet has none, which says nothing of what it had.
    if (now.rss_bytes > 0) out.emplace_back("rss", static_cast<double>(now.rss_bytes));
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

std::vector<StepReader> GangMeter::readers_of(int rank) {
    std::vector<StepReader> readers;
    if (!spec_.lines.empty())
        readers.emplace_back(
            StepSource{.kind = StepSource::Kind::lines, .path = rank_metrics_file(spec_.lines, rank), .pattern = {}});
    if (!spec_.heartbeat.empty())
        readers.emplace_back(
            StepSource{.kind = StepSource::Kind::heartbeat,
                       .path = spec_.heartbeat + (rank > 0 ? ".rank-" + std::to_string(rank) : std::string()),
                       .pattern = {}});
    const std::string output = log_folder_ + "/rank-" + std::to_string(rank) + ".out";
    const bool named = !spec_.step_pattern.empty();
    if ((named || spec_.heartbeat.empty()) && clock_ == nullptr) clock_ = LineClock::shared();
    if (auto pattern = StepPattern::parse(spec_.step_pattern); pattern && named)
        readers.emplace_back(StepSource{
            .kind = StepSource::Kind::output, .path = output, .pattern = std::move(*pattern), .clock = clock_});
    else if (spec_.heartbeat.empty())
        readers.emplace_back(
            StepSource{.kind = StepSource::Kind::counted, .path = output, .pattern = {}, .clock = clock_});
    return readers;
}

void GangMeter::begin(int rank) {
    auto& readers = begun_[rank] = readers_of(rank);
    for (StepReader& reader : readers) reader.skip_to_end();
}

// Of a rank that tells its steps otherwise: a loss that is no number stands in its output alone, as often as not.
void GangMeter::read_losses(const Rank& rank, StepReader& reader, double now_s, std::vector<MeasureLine>& lines) {
    reader.forget_times();
    for (const StepLine& line : reader.poll(now_s))
        for (const auto& [name, value] : line.values)
            if (name == "not_finite")
                lines.push_back({.rank = rank.who.rank,
                                 .node = rank.who.node,
                                 .at_s = now_s,
                                 .step = std::nullopt,
                                 .values = {{"not_finite", value}}});
}

void GangMeter::read_steps(Rank& rank, bool gone, double now_s, std::vector<MeasureLine>& lines) {
    const double from_s = rank.first ? options_.from_s : 0;
    for (StepReader& reader : rank.readers) {
        const bool tracked = reader.kind() == StepSource::Kind::tracker;
        const bool counts = tracked || reader.kind() == StepSource::Kind::counted;
        // One of the two, the first that has steps.
        if (counts && !told_ && rank.inferred_from && *rank.inferred_from != reader.kind()) continue;
        if (counts && told_) {
            if (!tracked) read_losses(rank, reader, now_s, lines);
            continue;
        }
        std::vector<MeasureLine>& to = counts ? rank.held : lines;
        for (int turn = 0; turn < kTurns && to.size() < options_.most_lines; ++turn) {
            for (StepLine& line : reader.poll(now_s)) {
                double at = now_s;
                if (line.time_s && std::abs(*line.time_s - now_s) < kMostAwayS)
                    at = std::min(*line.time_s, now_s);
                else if (from_s > 0)
                    continue;
                if (at < from_s) continue;
                told_ = told_ || (!counts && line.step);
                rank.has_steps = rank.has_steps || line.step;
                if (counts) rank.inferred_from = reader.kind();
                if (tracked) at = std::max(at, std::floor(now_s / kBlockS) * kBlockS);
                to.push_back({.rank = line.rank.value_or(rank.who.rank),
                              .node = line.rank.value_or(rank.who.rank) == rank.who.rank ? rank.who.node : "",
                              .at_s = at,
                              .step = line.step,
                              .values = std::move(line.values)});
            }
            if (!reader.tail().more()) break;
        }
    }
    rank.first = false;
    if (told_) {
        rank.held.clear();
        std::erase_if(rank.readers, [](const StepReader& each) { return each.kind() == StepSource::Kind::tracker; });
    } else if (!rank.held.empty() && (rank.settled || gone || now_s - rank.held.front().at_s >= kSettledS)) {
        rank.settled = true;
        lines.insert(lines.end(), std::make_move_iterator(rank.held.begin()), std::make_move_iterator(rank.held.end()));
        rank.held.clear();
    }
}

// Of the first rank, where no step is seen after a while, and then once in some minutes.
void GangMeter::take_pulse(Rank& rank, const ProcessTable& table, double now_s, std::vector<MeasureLine>& lines) const {
    constexpr int kFirst = 6, kAgain = 240;
    if (rank.pulse != nullptr && rank.pulse->over()) {
        if (const auto found = rank.pulse->rhythm())
            lines.push_back({.rank = rank.who.rank,
                             .node = rank.who.node,
                             .at_s = now_s,
                             .step = std::nullopt,
                             .values = {{"rhythm_s", found->period_s}, {"rhythm_beats", found->beats}}});
        rank.pulse.reset();
    }
    if (rank.has_steps || told_) rank.pulse.reset();
    if (rank.has_steps || told_ || rank.who.rank != 0 || rank.pulse != nullptr || rank.looks % kAgain != kFirst) return;
    const std::vector<ProcStat> tree = table.tree(static_cast<pid_t>(rank.who.pid), 0);
    // A shell in front of it does nothing.
    const auto busiest = std::max_element(tree.begin(), tree.end(), [](const ProcStat& a, const ProcStat& b) {
        return a.user_ticks + a.system_ticks < b.user_ticks + b.system_ticks;
    });
    if (busiest != tree.end())
        rank.pulse = std::make_shared<Pulse>(busiest->pid, PulseOptions{.proc = options_.roots.proc, .look = {}});
}

// Of a rank whose output counts nothing, now and then until one is found.
void GangMeter::look_for_tracker(Rank& rank, const ProcessTable& table, double now_s) const {
    constexpr int kEvery = 3, kMostLooks = 300;
    if (rank.seen_s == 0) rank.seen_s = now_s;
    const int look = rank.looks++;
    if (told_ || rank.inferred_from || look % kEvery != kEvery - 1 || look > kMostLooks || !spec_.heartbeat.empty() ||
        !spec_.step_pattern.empty())
        return;
    const auto has = [](const StepReader& each) { return each.kind() == StepSource::Kind::tracker; };
    if (std::any_of(rank.readers.begin(), rank.readers.end(), has)) return;
    std::vector<pid_t> pids;
    for (const ProcStat& each : table.tree(static_cast<pid_t>(rank.who.pid), 0)) pids.push_back(each.pid);
    constexpr double kBeforeS = 2;  // it may have been there before its first look
    const auto path = find_tracker_file(options_.roots.proc, pids, rank.seen_s - kBeforeS);
    if (path)
        rank.readers.emplace_back(
            StepSource{.kind = StepSource::Kind::tracker, .path = *path, .pattern = {}, .clock = {}});
}

std::int64_t GangMeter::ticks_of_ours(const ProcessTable& table) const {
    std::int64_t ticks = 0;
    for (const ProcStat& each : table.tree(options_.ours, 0)) ticks += each.user_ticks + each.system_ticks;
    return ticks;
}

// Who else uses the machine, and where the gang writes: told with one rank, since it is the same for all that are here.
void GangMeter::tell_machine(const ProcessTable& table, std::int64_t at_us, double used, MeasureLine* line) {
    const std::optional<MachineStat> before = std::exchange(machine_, table.machine());
    const double seconds = static_cast<double>(at_us - std::exchange(machine_us_, at_us)) / 1e6;
    const std::int64_t our_ticks = options_.ours == 0 ? 0 : ticks_of_ours(table);
    const std::int64_t our_new_ticks = std::max<std::int64_t>(0, our_ticks - std::exchange(our_ticks_, our_ticks));
    if (line == nullptr || !before || !machine_ || seconds <= 0 || machine_->busy_ticks < before->busy_ticks) return;
    const auto cores = [&](std::int64_t ticks) {
        return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)) / seconds;
    };
    const double busy = cores(machine_->busy_ticks - before->busy_ticks);
    if (options_.ours != 0) used = cores(our_new_ticks);
    line->values.emplace_back("foreign_cpu", std::max(0.0, busy - used));
    line->values.emplace_back("steal", cores(std::max<std::int64_t>(0, machine_->steal_ticks - before->steal_ticks)));
    line->values.emplace_back("machine_cpus", machine_->cpus);
    if (const auto fabric = fabric_count(options_.roots.sys)) {
        line->values.emplace_back("ib_ports", fabric->ports);
        if (fabric_bytes_ && fabric->bytes >= *fabric_bytes_)
            line->values.emplace_back("ib_bytes", (fabric->bytes - *fabric_bytes_) / seconds);
        fabric_bytes_ = fabric->bytes;
    }
    if (const auto room = least_room(spec_.folders)) line->values.emplace_back("disk_free", *room);
}

// Which boards the processes of each rank are on, and what those do.
void GangMeter::tell_gpus(const ProcessTable& table, const std::vector<LiveRank>& live,
                          std::vector<std::pair<int, std::size_t>> told, std::vector<MeasureLine>& lines) {
    const std::vector<GpuReading> boards = options_.gpus->read();
    if (boards.empty()) return;
    std::map<int, std::vector<std::int64_t>> own;
    std::vector<std::int64_t> all;
    for (const LiveRank& each : live)
        for (const ProcStat& process : table.tree(static_cast<pid_t>(each.pid), 0)) {
            own[each.rank].push_back(process.pid);
            all.push_back(process.pid);
        }
    // Of a host that looks at one rank of several here, the others are the run's, too.
    if (options_.ours != 0)
        for (const ProcStat& process : table.tree(options_.ours, 0)) all.push_back(process.pid);
    for (const auto& line : told) {
        Rank& rank = ranks_.at(line.first);
        if (!rank.visible) rank.visible = visible_devices(options_.roots.proc, rank.who.pid);
        for (const auto& [name, value] : gpu_values_of(boards, own[line.first], all, *rank.visible))
            lines[line.second].values.emplace_back(name, value);
    }
}

std::vector<MeasureLine> GangMeter::look(const ProcessTable& table, std::int64_t at_us,
                                         const std::vector<LiveRank>& live, double now_s) {
    std::vector<MeasureLine> lines;
    std::set<int> there;
    for (const LiveRank& each : live) {
        there.insert(each.rank);
        const auto found = ranks_.find(each.rank);
        if (found != ranks_.end() && found->second.who.pid == each.pid) continue;
        if (found != ranks_.end()) ranks_.erase(found);
        const auto begun = begun_.extract(each.rank);
        ranks_.emplace(each.rank,
                       Rank{.who = each,
                            .sampler = RankSampler(options_.roots, static_cast<pid_t>(each.pid), 0, options_.sample),
                            .readers = begun.empty() ? readers_of(each.rank) : begun.mapped(),
                            .held = {},
                            .last = {},
                            .last_threads = {},
                            .first = begun.empty()});
    }
    double used = 0;
    std::optional<std::size_t> told;  // the line that the machine is told with
    std::vector<std::pair<int, std::size_t>> lines_of_ranks;
    for (auto& [number, rank] : ranks_) {
        read_steps(rank, !there.contains(number), now_s, lines);
        if (!there.contains(number) || rank.gone || (rank.last && rank.last->at_us == at_us)) continue;
        const auto sample = rank.sampler.sample(table, at_us);
        if (!sample) {
            rank.gone = rank.last.has_value();
            continue;
        }
        look_for_tracker(rank, table, now_s);
        take_pulse(rank, table, now_s, lines);
        if (rank.last) {
            MeasureLine line{.rank = number, .node = rank.who.node, .at_s = now_s, .step = std::nullopt, .values = {}};
            const ProcessSample* threads = sample->run_wait_s && rank.last_threads ? &*rank.last_threads : nullptr;
            for (const auto& [name, value] : measures_of(*rank.last, *sample, threads, spec_.interface)) {
                if (name == "cpu") used += value;
                line.values.emplace_back(name, value);
            }
            if (!told) told = lines.size();
            lines_of_ranks.emplace_back(number, lines.size());
            lines.push_back(std::move(line));
        }
        if (sample->run_wait_s) rank.last_threads = sample;
        rank.last = sample;
    }
    if (options_.tells_machine) tell_machine(table, at_us, used, told ? &lines[*told] : nullptr);
    if (options_.gpus) tell_gpus(table, live, std::move(lines_of_ranks), lines);
    std::erase_if(ranks_, [&](const auto& each) { return !there.contains(each.first); });
    return lines;
}

}  // namespace stoker
