#include "deploy/kubernetes/pod_measures.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/api_time.h"
#include "base/text.h"
#include "observe/gang_meter.h"

namespace stoker::kubernetes {
namespace {

constexpr double kTicksPerSecond = 100;  // USER_HZ of Linux
constexpr double kMostAwayS = 86'400;    // a step that says to have been further away says nothing about when it was
constexpr std::int64_t kFileBytes = 256 << 10;  // of a rank, some minutes: whoever asks does so every second

template <class Number>
std::optional<Number> least_zero(std::string_view text) {
    Number value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::optional<std::int64_t> count_of(std::string_view text) {
    return least_zero<std::int64_t>(text);
}

StepReader reader_of(StepSource::Kind kind, const std::string& pattern = {}) {
    StepSource source{.kind = kind, .path = {}, .pattern = {}};
    if (!pattern.empty())
        if (auto parsed = StepPattern::parse(pattern)) source.pattern = std::move(*parsed);
    return StepReader(std::move(source));
}

// "eth0:RECEIVED:SENT,lo:..."
NetBytes network_of(std::string_view text) {
    NetBytes all;
    for (const std::string_view device : split(text, ',')) {
        const auto words = split(device, ':');
        if (words.size() != 3) continue;
        const auto received = count_of(words[1]), sent = count_of(words[2]);
        if (!received || !sent) continue;
        if (words[0] == "lo") {
            all.loopback += *sent;
            continue;
        }
        all.received += *received;
        all.sent += *sent;
        all.sent_by.emplace_back(words[0], *sent);
    }
    return all;
}

}  // namespace

std::optional<ProcessSample> read_pod_sample(std::string_view words) {
    std::map<std::string_view, std::string_view> values;
    for (const std::string_view word : split_words(words))
        if (const std::size_t equals = word.find('='); equals != std::string_view::npos)
            values[word.substr(0, equals)] = word.substr(equals + 1);
    const auto count = [&](const char* key) { return count_of(values[key]); };
    const auto parts = [&](const char* key) { return split(values[key], ':'); };
    const auto up = least_zero<double>(values["up"]);
    const auto page_kb = count("page"), pages = count("pages"), processes = count("processes"),
               threads = count("threads"), user = count("user"), system = count("system");
    if (!up || !page_kb || !pages || !processes || !threads || !user || !system) return std::nullopt;
    // The largest page there is has 64 KiB.
    if (*page_kb > 64 || *pages > (std::int64_t{1} << 40) || *processes > 1'000'000 || *threads > 1'000'000)
        return std::nullopt;
    ProcessSample sample{.at_us = std::llround(std::min(*up, 1e12) * 1e6),
                         .processes = static_cast<int>(*processes),
                         .threads = static_cast<int>(*threads),
                         .own_network = true};
    sample.blocked = static_cast<int>(std::min<std::int64_t>(count("blocked").value_or(0), *processes));
    sample.stopped = static_cast<int>(std::min<std::int64_t>(count("stopped").value_or(0), *processes));
    sample.user_s = static_cast<double>(*user) / kTicksPerSecond;
    sample.system_s = static_cast<double>(*system) / kTicksPerSecond;
    sample.minor_faults = count("minor").value_or(0);
    sample.major_faults = count("major").value_or(0);
    sample.rss_bytes = *pages * *page_kb * 1024;
    if (const auto io = parts("io"); io.size() == 4) {
        sample.read_bytes = count_of(io[0]);
        sample.write_bytes = count_of(io[1]);
        sample.read_calls = count_of(io[2]);
        sample.call_read_bytes = count_of(io[3]);
    }
    // "USED:max:HITS" without a limit.
    if (const auto memory = parts("memory"); memory.size() == 3) {
        sample.memory_limit_bytes = count_of(memory[1]);
        sample.memory_used_bytes = count_of(memory[0]);
        sample.memory_limit_hits = count_of(memory[2]);
    }
    if (const auto cpu = parts("cpu"); cpu.size() == 2) {
        const auto quota = count_of(cpu[0]), period = count_of(cpu[1]);
        if (quota && period && *period > 0)
            sample.cpu_limit = static_cast<double>(*quota) / static_cast<double>(*period);
    }
    if (const auto throttled = count("throttled")) sample.throttled_s = static_cast<double>(*throttled) / 1e6;
    if (!values["net"].empty()) sample.network = network_of(values["net"]);
    return sample;
}

PodMeasures::PodMeasures(const MeasureSpec& spec, int first_rank, int ranks, std::string node)
    : first_rank_(first_rank), node_(std::move(node)), interface_(spec.interface) {
    for (int i = 0; i < ranks; ++i)
        ranks_.push_back({.lines = reader_of(StepSource::Kind::lines),
                          .beats = reader_of(StepSource::Kind::heartbeat),
                          .output = reader_of(StepSource::Kind::output, spec.step_pattern),
                          .last = {}});
}

std::vector<MeasureLine> PodMeasures::steps(int rank, std::vector<StepLine> found, double at_s) const {
    std::vector<MeasureLine> lines;
    for (StepLine& each : found) {
        const int whose = each.rank.value_or(rank);
        const bool says_when = each.time_s && std::abs(*each.time_s - at_s) < kMostAwayS;
        lines.push_back({.rank = whose,
                         .node = whose == rank ? node_ : "",
                         .at_s = says_when ? std::min(*each.time_s, at_s) : at_s,
                         .step = each.step,
                         .values = std::move(each.values)});
    }
    return lines;
}

std::vector<MeasureLine> PodMeasures::used(int rank, std::string_view words, double at_s) {
    Rank& its = ranks_[static_cast<std::size_t>(rank - first_rank_)];
    auto sample = read_pod_sample(words);
    if (!sample) return {};
    its.peak_bytes = std::max(its.peak_bytes, sample->rss_bytes);
    sample->peak_bytes = its.peak_bytes;
    std::vector<MeasureLine> lines;
    if (its.last) {
        lines.push_back({.rank = rank, .node = node_, .at_s = at_s, .step = std::nullopt, .values = {}});
        for (const auto& [name, value] : measures_of(*its.last, *sample, nullptr, interface_))
            lines.back().values.emplace_back(name, value);
    }
    its.last = std::move(sample);
    return lines;
}

std::vector<MeasureLine> PodMeasures::told(std::string_view line, double at_s) {
    const auto word = [&] {
        const std::size_t blank = std::min(line.find(' '), line.size());
        const std::string_view first = line.substr(0, blank);
        line.remove_prefix(std::min(blank + 1, line.size()));
        return first;
    };
    std::string_view kind = word();
    if (kind == "M") kind = word();
    const auto local = least_zero<int>(word());
    if (!local || static_cast<std::size_t>(*local) >= ranks_.size()) return {};
    const int rank = first_rank_ + *local;
    Rank& its = ranks_[static_cast<std::size_t>(*local)];
    if (kind == "P") return used(rank, line, at_s);
    if (kind == "B") return steps(rank, its.beats.take({std::string(line)}, at_s), at_s);
    if (kind == "S") return steps(rank, its.lines.take({std::string(line)}, at_s), at_s);
    return {};
}

std::vector<MeasureLine> PodMeasures::printed(int rank, std::string_view line, double at_s) {
    const int local = rank - first_rank_;
    if (local < 0 || static_cast<std::size_t>(local) >= ranks_.size()) return {};
    return steps(rank, ranks_[static_cast<std::size_t>(local)].output.take({std::string(line)}, at_s), at_s);
}

void MeasureBook::add(const MeasuredContainer& from, const std::vector<LogLine>& lines) {
    const std::lock_guard guard(mutex_);
    Gang& gang = gangs_[from.operation];
    if (!gang.file) gang.file = std::make_unique<MeasureFile>(from.log_folder, kFileBytes * from.of_gang);
    PodMeasures& pod =
        gang.pods.try_emplace(from.first_rank, from.measure, from.first_rank, from.ranks, from.node).first->second;
    std::string text;
    for (const LogLine& line : lines) {
        const auto at_us = parse_rfc3339(line.time + "Z");
        if (!at_us) continue;
        const double at_s = static_cast<double>(*at_us) / 1e6;
        for (const MeasureLine& each :
             from.rank < 0 ? pod.told(line.text, at_s) : pod.printed(from.rank, line.text, at_s))
            text += text_of_line(each);
    }
    gang.file->add(text);
}

void MeasureBook::forget(const OperationId& operation) {
    const std::lock_guard guard(mutex_);
    gangs_.erase(operation);
}

}  // namespace stoker::kubernetes
