// GPUs of nodes: taken from the agents there, and shown.
#include <algorithm>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "observe/gpu/gpu_fleet.h"
#include "server/handlers.h"
#include "server/views_gpus.h"

namespace stoker::api {
namespace {

constexpr std::int64_t kUsualGpuSeriesS = 3600;

const std::string& gpu_node_in_path(const ExchangePtr& exchange) {
    return exchange->parameters.path.find("node")->second;
}

Error no_agent(const std::string& node) {
    return Error(ErrorKind::not_found, "no agent tells of GPUs of a node " + printable(node, 80), {},
                 "on the node: stoker agent --server URL --token-file KEY");
}

}  // namespace

NodeGpusItem item_of(const NodeGpusNow& told) {
    NodeGpusItem item{.node = told.node, .told_at = rfc3339(told.told_us)};
    item.age_s = told.age_s, item.clock_ahead_s = told.clock_ahead_s, item.silent = told.silent;
    item.version = printable(told.report->version, 40), item.driver = printable(told.report->nvidia_driver, 40);
    item.down = told.sums.down;
    item.present = told.report->present, item.expected = told.report->expected;
    item.busy = told.sums.busy, item.tensor = told.sums.tensor, item.power_w = told.sums.power_w;
    item.memory_used_bytes = told.sums.memory_used_bytes, item.memory_bytes = told.sums.memory_bytes;
    item.hottest_c = told.sums.hottest_c, item.used_as = told.sums.used_as;
    for (const HealthCheck& check : told.not_well) item.not_well.push_back(check.name + ": " + check.detail);
    return item;
}

void report_gpus(Service& service, const ExchangePtr& exchange) {
    const auto& fleet = service.options().gpus;
    if (!fleet)
        return exchange->fail(Error(ErrorKind::unavailable, "this server takes no reports of GPUs", {},
                                    "stoker up does; what stoker run starts for itself does not"));
    if (const std::string& own = exchange->actor.node; !own.empty() && own != gpu_node_in_path(exchange)) {
        fleet->count_refused();
        return exchange->fail(
            Error(ErrorKind::denied, fmt::format("this key tells of node {}, and of no other", printable(own, 80)), {},
                  "start the agent with --node " + printable(own, 80) + ", or with a key of its own"));
    }
    const FleetMoment now = FleetMoment::now();
    auto report = read_report(exchange->request.body);
    if (!report) {
        fleet->count_refused();
        return exchange->fail(report.error());
    }
    const double ahead_s = static_cast<double>(report->sent_us - now.wall_us) * 1e-6;
    const auto through = fleet->take(gpu_node_in_path(exchange), std::move(*report), now);
    if (!through) {
        fleet->count_refused();
        return exchange->fail(through.error());
    }
    exchange->send(codec::write(GpuReportTaken{.through = *through, .clock_ahead_s = ahead_s}));
}

void list_gpus(Service& service, const ExchangePtr& exchange) {
    service.work_long(exchange, [&service, exchange] {
        FleetGpus list;
        if (const auto& fleet = service.options().gpus)
            for (const NodeGpusNow& told : fleet->nodes(FleetMoment::now())) list.items.push_back(item_of(told));
        exchange->send(codec::write(list));
    });
}

void get_node_gpus(Service& service, const ExchangePtr& exchange) {
    const std::string& node = gpu_node_in_path(exchange);
    const auto& fleet = service.options().gpus;
    const auto told = fleet ? fleet->find(node, FleetMoment::now()) : std::nullopt;
    if (!told) return exchange->fail(no_agent(node));
    exchange->send(codec::write(NodeGpusView{.node = node,
                                             .told_at = rfc3339(told->told_us),
                                             .age_s = told->age_s,
                                             .clock_ahead_s = told->clock_ahead_s,
                                             .silent = told->silent,
                                             .gpus = *told->report,
                                             .not_well = told->not_well}));
}

void get_gpu_series(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    const std::string& node = gpu_node_in_path(exchange);
    if (!is_series_name(node) || !service.options().gpus) return exchange->fail(no_agent(node));
    SeriesQuery query{.run = node, .metrics = {}, .rank = {}};
    const std::string metrics = p.text("metric");
    for (const std::string_view name : split(metrics, ','))
        if (!trim(name).empty()) query.metrics.emplace_back(trim(name));
    if (p.has("gpu")) query.rank = static_cast<int>(p.integer("gpu", 0));
    query.max_points = static_cast<std::size_t>(p.integer("max_points", 500));
    query.to_s = (p.has("to") ? *parse_rfc3339(p.text("to")) : FleetMoment::now().wall_us) / 1'000'000 + 1;
    query.from_s = p.has("from") ? *parse_rfc3339(p.text("from")) / 1'000'000 : query.to_s - kUsualGpuSeriesS;
    if (query.to_s <= query.from_s)
        return exchange->fail(Error(ErrorKind::invalid, "to is not after from", {"query", 0, 0}));
    service.work_long(exchange, [&service, exchange, query] {
        const auto series = service.options().gpus->series(query);
        if (!series) return exchange->fail(series.error());
        NodeGpuSeries page{.node = query.run,
                           .from = rfc3339(query.from_s * 1'000'000),
                           .to = rfc3339(query.to_s * 1'000'000),
                           .series = {}};
        for (const RankSeries& each : *series) {
            GpuSeriesView& out = page.series.emplace_back();
            out.gpu = each.rank, out.metric = each.metric, out.seconds = each.seconds;
            for (const SeriesPoint& point : each.points)
                out.points.push_back({static_cast<double>(point.at_s), point.min, point.mean, point.max,
                                      static_cast<double>(point.count)});
        }
        exchange->send(codec::write(page));
    });
}

// What the agents of the fleet say, in numbers that stay few however many boards there are: what each board does is
// scraped from its agent.
void add_gpu_metrics(const GpuFleet& fleet, MetricsText& out) {
    const std::vector<NodeGpusNow> nodes = fleet.nodes(FleetMoment::now());
    double silent = 0, answering = 0, not_well = 0;
    std::map<std::string, double> used_as;
    for (const NodeGpusNow& node : nodes) {
        silent += node.silent ? 1 : 0;
        if (node.silent) continue;
        not_well += node.not_well.empty() ? 0 : 1;
        answering += static_cast<double>(node.report->present);
        for (const auto& [state, boards] : node.sums.used_as) used_as[state] += static_cast<double>(boards);
    }
    const FleetCounts counts = fleet.counts();
    out.set(metric("stoker_gpu_agents"), "state", "telling", static_cast<double>(nodes.size()) - silent);
    out.set(metric("stoker_gpu_agents"), "state", "silent", silent);
    out.set(metric("stoker_gpu_nodes_unwell"), not_well);
    out.set(metric("stoker_gpu_reports_total"), "outcome", "taken", static_cast<double>(counts.taken));
    out.set(metric("stoker_gpu_reports_total"), "outcome", "refused", static_cast<double>(counts.refused));
    out.set(metric("stoker_fleet_gpus_answering"), answering);
    for (std::size_t i = 0; i < kAllocationStates; ++i) {
        const std::string state(to_string(static_cast<AllocationState>(i)));
        out.set(metric("stoker_fleet_gpus"), "used_as", state, used_as.contains(state) ? used_as[state] : 0);
    }
}

}  // namespace stoker::api
