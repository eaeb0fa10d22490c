#include "observe/gpu/gpu_fleet.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "io/clock.h"

namespace stoker {

namespace {

constexpr double kForgetS = 86'400;  // after a day of silence, when others want the place
constexpr double kTidyEveryS = 600, kLeastSilenceS = 30;

bool is_silent(const GpuReport& report, double age_s) {
    return age_s > std::max(kLeastSilenceS, 3 * report.every_s);
}

struct Several {
    double sum = 0, count = 0;
    void add(const std::optional<double>& value) {
        if (value) sum += *value, ++count;
    }
    std::optional<double> total() const { return count > 0 ? std::optional(sum) : std::nullopt; }
    std::optional<double> mean() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
};

GpuSums sums_of(const GpuView& view, const GpuReport& report) {
    using M = GpuMetric;
    GpuSums sums;
    Several busy, tensor, used, size, power;
    for (std::size_t i = 0; i < view.devices.size(); ++i) {
        const GpuDevice& board = view.devices[i];
        if (!board.whole()) continue;
        busy.add(board.at(M::utilization)), tensor.add(board.at(M::tensor_active));
        used.add(board.at(M::memory_used)), size.add(board.at(M::memory_size));
        power.add(board.at(M::power_instant) ? board.at(M::power_instant) : board.at(M::power_average));
        if (const auto hot = board.at(M::temperature_gpu))
            sums.hottest_c = std::max(sums.hottest_c.value_or(*hot), *hot);
        if (const std::string& as = report.boards[i].used_as; !as.empty()) ++sums.used_as[printable(as, 40)];
    }
    sums.busy = busy.mean(), sums.tensor = tensor.mean(), sums.memory_used_bytes = used.total();
    sums.memory_bytes = size.total(), sums.power_w = power.total();
    if (!view.up() && !view.without_nvidia()) sums.down = in_words(view.down);
    return sums;
}

}  // namespace

struct GpuFleet::Node {
    mutable std::mutex mutex;  // guards what follows; held while points are written
    std::shared_ptr<const GpuReport> report;
    double told_s = 0;
    std::int64_t told_us = 0, through = 0;
    std::vector<HealthCheck> not_well;
    GpuSums sums;
    FailingGpus failing;
};

FleetMoment FleetMoment::now() {
    return {.mono_s = monotonic_seconds(), .wall_us = wall_clock_us()};
}

GpuFleet::GpuFleet(std::unique_ptr<SeriesStore> series, GpuHealthPolicy policy, std::size_t most_nodes)
    : series_(std::move(series)), policy_(std::move(policy)), most_nodes_(most_nodes) {}

void GpuFleet::on_worse(std::function<void(const std::string&, const HealthReport&)> tell) {
    const std::lock_guard lock(mutex_);
    on_worse_ = std::move(tell);
}

std::shared_ptr<GpuFleet::Node> GpuFleet::node_of(const std::string& name, const FleetMoment& now, bool make,
                                                  bool& full) {
    const std::lock_guard lock(mutex_);
    if (const auto found = nodes_.find(name); found != nodes_.end()) return found->second;
    if (!make) return nullptr;
    if (nodes_.size() >= most_nodes_)
        std::erase_if(nodes_, [&](const auto& each) {
            const std::lock_guard its(each.second->mutex);
            return each.second->report && now.mono_s - each.second->told_s > kForgetS;
        });
    full = nodes_.size() >= most_nodes_;
    return full ? nullptr : nodes_.emplace(name, std::make_shared<Node>()).first->second;
}

Result<std::int64_t> GpuFleet::take(const std::string& name, GpuReport report, const FleetMoment& now) {
    if (!is_series_name(name))
        return Error(ErrorKind::invalid, printable(name, 80) + " is no name of a node", {},
                     "64 letters, digits, dots, dashes and underscores at most: stoker agent --node NAME");
    bool full = false;
    const std::shared_ptr<Node> node = node_of(name, now, true, full);
    if (full)
        return Error(ErrorKind::exhausted, fmt::format("agents of {} nodes tell of their GPUs already", most_nodes_));
    std::vector<HealthCheck> fresh;
    std::int64_t through = 0;
    {
        const std::lock_guard lock(node->mutex);
        const bool another = !node->report || node->report->agent != report.agent;
        if (another && node->report && report.began_us < node->report->began_us)
            return Error(ErrorKind::conflict, "another agent, which began later, tells of the GPUs of " + name, {},
                         "one agent a node; if these are two machines, give each its own name: stoker agent --node");
        if (another) node->through = 0;
        for (const ReportedPoint& point : report.points) {
            if (point.number <= node->through) continue;  // its answer was lost
            node->through = point.number;
            if (!series_) continue;
            const double at_s = static_cast<double>(now.wall_us) * 1e-6 - std::max(0.0, point.ago_s);
            for (const ReportedFigures& board : point.boards)
                for (const auto& [measure, value] : board.values)
                    if (const auto known = fleet_measures();
                        std::find(known.begin(), known.end(), measure) != known.end())
                        series_->add(name, static_cast<int>(board.index), measure, at_s, value);
        }
        through = node->through;
        report.points.clear();
        report.points.shrink_to_fit();
        const GpuView view = view_of_report(report);
        node->sums = sums_of(view, report);
        node->not_well = judge_gpus(view, policy_, name);
        std::erase_if(node->not_well, [](const HealthCheck& check) { return check.verdict == HealthVerdict::pass; });
        fresh = node->failing.look(node->not_well);
        node->report = std::make_shared<const GpuReport>(std::move(report));
        node->told_s = now.mono_s, node->told_us = now.wall_us;
    }
    std::function<void(const std::string&, const HealthReport&)> tell;
    bool tidy = false;
    {
        const std::lock_guard lock(mutex_);
        ++counts_.taken;
        if (!fresh.empty()) tell = on_worse_;
        tidy = series_ && now.mono_s - tidied_s_ >= kTidyEveryS;
        if (tidy) tidied_s_ = now.mono_s;
    }
    if (tell) tell(name, {.checks = std::move(fresh)});
    if (tidy) series_->tidy(now.wall_us / 1'000'000);
    return through;
}

void GpuFleet::count_refused() {
    const std::lock_guard lock(mutex_);
    ++counts_.refused;
}

FleetCounts GpuFleet::counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
}

NodeGpusNow GpuFleet::now_of(const std::string& name, const Node& node, const FleetMoment& now) const {
    const std::lock_guard lock(node.mutex);
    NodeGpusNow told{.node = name, .report = node.report, .told_us = node.told_us};
    told.not_well = node.not_well, told.sums = node.sums;
    if (!node.report) return told;
    told.age_s = std::max(0.0, now.mono_s - node.told_s);
    told.clock_ahead_s = static_cast<double>(node.report->sent_us - node.told_us) * 1e-6;
    told.silent = is_silent(*node.report, told.age_s);
    return told;
}

std::vector<NodeGpusNow> GpuFleet::nodes(const FleetMoment& now) const {
    std::vector<std::pair<std::string, std::shared_ptr<Node>>> all;
    {
        const std::lock_guard lock(mutex_);
        all.assign(nodes_.begin(), nodes_.end());
    }
    std::vector<NodeGpusNow> told;
    told.reserve(all.size());
    for (const auto& [name, node] : all)
        if (auto one = now_of(name, *node, now); one.report) told.push_back(std::move(one));
    return told;
}

std::optional<NodeGpusNow> GpuFleet::find(const std::string& name, const FleetMoment& now) const {
    std::shared_ptr<Node> node;
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = nodes_.find(name); found != nodes_.end()) node = found->second;
    }
    if (!node) return std::nullopt;
    auto told = now_of(name, *node, now);
    return told.report ? std::optional(std::move(told)) : std::nullopt;
}

std::vector<HealthCheck> GpuFleet::check(const std::string& node, const FleetMoment& now) const {
    const auto told = find(node, now);
    if (!told) return {};
    if (!told->silent) return judge_gpus(view_of_report(*told->report, told->age_s), policy_, node);
    HealthCheck silent{.layer = HealthLayer::device, .name = "gpu-agent", .node = node};
    silent.verdict = HealthVerdict::warn;
    silent.detail =
        fmt::format("its agent has told nothing for {:.0f} s, and how its GPUs are is not known", told->age_s);
    silent.fix = "on the node: is stoker agent running, and does it reach this server?";
    return {silent};
}

Result<std::vector<RankSeries>> GpuFleet::series(const SeriesQuery& query) const {
    if (!series_) return std::vector<RankSeries>();
    return series_->query(query);
}

}  // namespace stoker
