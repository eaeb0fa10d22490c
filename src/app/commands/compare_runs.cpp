#include "app/commands/compare_runs.h"

#include <algorithm>
#include <cmath>
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

constexpr std::size_t kMostRuns = 1000, kMostMetrics = 6, kMostPaths = 8, kMostPairRows = 60;

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

std::string change_text(double before, double after) {
    if (before == after) return "";
    if (!(std::abs(before) > 0)) return fmt::format("{:+.4g}", after - before);
    const double share = (after - before) / std::abs(before);
    if (std::abs(share) < 0.0005) return "";
    return std::abs(share) < 5 ? fmt::format("{:+.{}f} %", 100 * share, std::abs(share) < 0.1 ? 1 : 0)
                               : fmt::format("{:.1f} times", after / before);
}

// Parameters, metrics, time and cost of two runs, and what their specs differ in, value by value.
std::string pair_text(const api::RunView& a, const api::RunView& b, const std::set<std::string>& parameters,
                      const std::set<std::string>& metrics, const Style& style) {
    std::vector<std::vector<std::string>> rows{
        {"name", cut(printable(a.run.name), 32), cut(printable(b.run.name), 32), ""},
        {"state", std::string(to_string(a.run.state)), std::string(to_string(b.run.state)), ""}};
    const auto word = [](const auto& values, const std::string& name) {
        const auto found = values.find(name);
        return found == values.end() ? std::string("-") : printable(found->second, 32);
    };
    for (const std::string& name : parameters) {
        const std::string x = word(a.run.parameters, name), y = word(b.run.parameters, name);
        rows.push_back({name, x, y, x == y ? "" : "differs"});
    }
    for (const std::string& name : metrics) {
        if (name == "time") continue;  // when it was told
        const auto x = a.metrics.find(name), y = b.metrics.find(name);
        rows.push_back({name, value_text(a.metrics, name), value_text(b.metrics, name),
                        x != a.metrics.end() && y != b.metrics.end() ? change_text(x->second, y->second) : ""});
    }
    const auto ran = [](const api::RunView& view) {
        return view.run.used_s > 0 ? format_seconds(Seconds(view.run.used_s)) : std::string("-");
    };
    rows.push_back(
        {"ran", ran(a), ran(b), a.run.used_s > 0 && b.run.used_s > 0 ? change_text(a.run.used_s, b.run.used_s) : ""});
    const auto cost = [](const api::RunView& view) {
        return view.cost_microusd ? money_text(*view.cost_microusd) : std::string("-");
    };
    rows.push_back({"cost", cost(a), cost(b),
                    a.cost_microusd && b.cost_microusd
                        ? change_text(static_cast<double>(*a.cost_microusd), static_cast<double>(*b.cost_microusd))
                        : ""});
    std::size_t left_out = 0;
    for (const Difference& each : spec_differences({&a.spec, &b.spec}, {"name", "parameters"})) {
        if (rows.size() >= kMostPairRows) {
            ++left_out;
            continue;
        }
        // Of long ones that begin alike, what is not alike.
        const std::string &x = each.values[0], &y = each.values[1];
        std::size_t alike = 0;
        while (alike < x.size() && alike < y.size() && x[alike] == y[alike]) ++alike;
        const std::size_t from = alike > 16 && std::max(x.size(), y.size()) > 32 ? alike - 8 : 0;
        const auto shown = [&](std::size_t i) {
            const std::string& value = each.values[i];
            if (value.empty()) return std::string("-");
            return cut((from > 0 ? "..." : "") + printable(value.substr(std::min(from, value.size()))), 32);
        };
        rows.push_back({printable(each.path, 40), shown(0), shown(1), "differs"});
    }
    std::string text = table_text(style, {{""}, {a.run.id.text()}, {b.run.id.text()}, {"the second"}}, rows, 0);
    if (left_out > 0)
        text += fmt::format("and {} more differences of their specs (-o json has all of them)\n", left_out);
    return text +
           style.dim(
               fmt::format("why the one is slower: stoker explain {} --against {}", b.run.id.text(), a.run.id.text())) +
           "\n";
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
    // Two of them stand side by side, with what the one has more; many are a table.
    if (views.size() == 2 && order.metric.empty())
        return CommandOutput{pair_text(views[0], views[1], parameters, metrics, session.style)};
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
