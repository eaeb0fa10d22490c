#include "app/commands/compare_runs.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/spec_differences.h"
#include "app/client/typed.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "server/views.h"

namespace stoker {

namespace {

constexpr std::size_t kMostRuns = 1000, kMostMetrics = 6, kMostPaths = 8;

struct Order {
    std::string metric;
    bool highest = false;
};

Result<Order> order_of(const Args& args) {
    const std::string by = args.get_or("by", "");
    const std::size_t colon = by.rfind(':');
    Order order{.metric = by.substr(0, colon)};
    if (colon == std::string::npos) return order;
    const std::string end = by.substr(colon + 1);
    if (end != "min" && end != "max")
        return Error(ErrorKind::invalid, fmt::format("--by {} ends in ':{}'", printable(by, 40), printable(end, 20)),
                     {}, "expected METRIC, METRIC:min or METRIC:max");
    order.highest = end == "max";
    return order;
}

Result<std::vector<api::RunView>> views_of(Client& client, const std::vector<std::string>& words) {
    std::vector<api::RunView> views;
    const auto add = [&](const std::string& run) -> Status {
        if (views.size() == kMostRuns)
            return Error(ErrorKind::exhausted, fmt::format("more than {} runs", kMostRuns), {}, "name fewer");
        TRY(api::RunView view, get<api::RunView>(client, "/api/v1/runs/" + run));
        views.push_back(std::move(view));
        return done();
    };
    for (const std::string& word : words) {
        TRY_VOID(add(word));
        if (views.back().steps.empty()) continue;
        const std::vector<api::StepView> steps = std::move(views.back().steps);
        views.pop_back();
        for (const api::StepView& step : steps) TRY_VOID(add(step.run.text()));
    }
    return views;
}

std::string value_text(const std::map<std::string, double>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "-" : fmt::format("{:.4g}", found->second);
}

}  // namespace

bool are_runs(const std::vector<std::string>& words) {
    return !words.empty() && std::all_of(words.begin(), words.end(),
                                         [](const std::string& word) { return RunId::parse(word).has_value(); });
}

Result<CommandOutput> compare_runs(Session& session, const Args& args) {
    TRY(const Order order, order_of(args));
    TRY(const auto client, connect_to_look(args));
    TRY(std::vector<api::RunView> views, views_of(*client, args.positional));
    std::set<std::string> parameters, metrics;
    for (const api::RunView& view : views) {
        for (const auto& [name, value] : view.run.parameters) parameters.insert(name);
        for (const auto& [name, value] : view.metrics) metrics.insert(name);
    }
    if (!order.metric.empty()) {
        if (!metrics.contains(order.metric)) {
            const auto near = nearest(order.metric, {metrics.begin(), metrics.end()});
            return Error(ErrorKind::not_found,
                         fmt::format("none of them told a metric {}{}", printable(order.metric, 40),
                                     near ? fmt::format(" (did you mean {}?)", *near) : ""),
                         {},
                         metrics.empty() ? "runs tell metrics in STOKER_METRICS_FILE"
                                         : "they told " + join({metrics.begin(), metrics.end()}, ", "));
        }
        // Those that told nothing come last.
        const auto key = [&](const api::RunView& view) {
            const auto found = view.metrics.find(order.metric);
            const bool none = found == view.metrics.end();
            return std::pair(none, none ? 0.0 : order.highest ? -found->second : found->second);
        };
        std::stable_sort(views.begin(), views.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    }
    if (session.format != Format::text) {
        Json list = Json::array();
        for (const api::RunView& view : views) list.push(codec::write(view));
        return CommandOutput{dump(session, list)};
    }
    std::vector<std::string> shown;
    if (!order.metric.empty()) shown.push_back(order.metric);
    for (const char* usual : {"loss", "accuracy", "step", "step_s"})
        if (metrics.contains(usual) && usual != order.metric) shown.emplace_back(usual);
    for (const std::string& name : metrics)
        if (shown.size() < kMostMetrics && std::find(shown.begin(), shown.end(), name) == shown.end())
            shown.push_back(name);
    std::vector<Column> columns{{"run"}, {"name"}};
    for (const std::string& name : parameters) columns.push_back({name});
    columns.push_back({"state"});
    for (const std::string& name : shown) columns.push_back({name, Align::right});
    columns.push_back({"ran", Align::right});
    columns.push_back({"cost", Align::right});
    std::vector<std::vector<std::string>> rows;
    for (const api::RunView& view : views) {
        std::vector<std::string> row{view.run.id.text(), cut(printable(view.run.name), 24)};
        for (const std::string& name : parameters) {
            const auto found = view.run.parameters.find(name);
            row.push_back(found == view.run.parameters.end() ? "-" : printable(found->second, 20));
        }
        row.emplace_back(to_string(view.run.state));
        for (const std::string& name : shown) row.push_back(value_text(view.metrics, name));
        row.push_back(view.run.used_s > 0 ? format_seconds(Seconds(view.run.used_s)) : "-");
        row.push_back(view.cost_microusd ? money_text(*view.cost_microusd) : "-");
        rows.push_back(std::move(row));
    }
    std::string text = table_text(session.style, columns, rows, 0);
    if (!order.metric.empty() && views.front().metrics.contains(order.metric))
        text += fmt::format("best by {}: {}\n", order.metric, views.front().run.id.text());
    std::vector<const RunSpec*> specs;
    for (const api::RunView& view : views) specs.push_back(&view.spec);
    std::vector<std::string> paths;
    for (const Difference& each : spec_differences(specs, {"name", "parameters"}))
        paths.push_back(printable(each.path, 60));
    if (paths.size() > kMostPaths) {
        paths.resize(kMostPaths);
        paths.emplace_back("...");
    }
    if (!paths.empty())
        text += session.style.dim("their specs differ in " + join(paths, ", ") + " (-o json has all of them)") + "\n";
    return CommandOutput{text};
}

}  // namespace stoker
