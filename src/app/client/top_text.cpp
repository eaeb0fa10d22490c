#include "app/client/top_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

// Steps may be longer than a second, so their last values count however old they are; of what is measured every
// second, the last five.
std::optional<double> lately(const api::RankSeriesView& series) {
    constexpr std::size_t kPoints = 5;
    double sum = 0, weight = 0;
    const std::size_t from = series.points.size() > kPoints ? series.points.size() - kPoints : 0;
    for (std::size_t i = from; i < series.points.size(); ++i) {
        const std::vector<double>& point = series.points[i];
        if (point.size() < 5) continue;
        sum += point[2] * point[4];
        weight += point[4];
    }
    return weight > 0 ? std::optional(sum / weight) : std::nullopt;
}

std::string number(const std::optional<double>& value, int decimals) {
    return value ? format_thousands(*value, decimals) : "-";
}

std::string share(const std::optional<double>& value) {
    return value ? fmt::format("{:.0f} %", 100 * *value) : "-";
}

}  // namespace

const std::vector<std::string>& top_measures() {
    static const std::vector<std::string> names = {"step_s",       "wait_s", "allreduce_s", "samples_per_s",
                                                   "tokens_per_s", "cpu",    "rss"};
    return names;
}

std::vector<TopRow> top_rows(const api::RunView& view, const api::SeriesPage& page) {
    std::map<int, std::map<std::string, double>> ranks;
    for (const api::RankSeriesView& series : page.series)
        if (const auto value = lately(series)) ranks[series.rank][series.metric] = *value;
    if (ranks.empty()) ranks[0];
    std::vector<TopRow> rows;
    for (const auto& [rank, seen] : ranks) {
        const auto get = [&values = seen](const char* name) -> std::optional<double> {
            const auto found = values.find(name);
            return found == values.end() ? std::nullopt : std::optional(found->second);
        };
        TopRow& row = rows.emplace_back(TopRow{.run = view.run.id, .name = view.run.name, .rank = rank});
        row.first = rows.size() == 1;
        // The metrics file of the run is that of rank 0.
        if (const auto step = view.metrics.find("step"); rank == 0 && step != view.metrics.end())
            row.step = step->second;
        row.step_s = get("step_s");
        row.samples_per_s = get("samples_per_s");
        row.tokens_per_s = get("tokens_per_s");
        row.cpu = get("cpu");
        row.rss_bytes = get("rss");
        if (view.spec.prediction && view.spec.prediction->step_s > 0) {
            row.plan_s = view.spec.prediction->step_s;
            row.plan_high_s = view.spec.prediction->step_high_s;
        }
        const auto wait = get("wait_s"), collectives = get("allreduce_s");
        if (row.step_s && *row.step_s > 0 && wait) row.input_share = *wait / *row.step_s;
        if (row.step_s && *row.step_s > 0 && collectives) row.collectives_share = *collectives / *row.step_s;
    }
    return rows;
}

std::string top_text(const std::vector<TopRow>& rows, const Style& style) {
    if (rows.empty()) return "no run is running\n";
    std::vector<std::vector<std::string>> table;
    for (const TopRow& row : rows) {
        std::string plan = "-";
        if (row.step_s && row.plan_s) {
            plan = fmt::format("{:.2f} x", *row.step_s / *row.plan_s);
            if (row.plan_high_s && *row.step_s > *row.plan_high_s) plan = style.bad(plan);
        }
        table.push_back({row.first ? row.run.text() : "", row.first ? cut(printable(row.name), 20) : "",
                         std::to_string(row.rank), number(row.step, 0),
                         row.step_s ? format_seconds(Seconds(*row.step_s)) : "-", plan, number(row.samples_per_s, 1),
                         number(row.tokens_per_s, 0), row.cpu ? fmt::format("{:.2f}", *row.cpu) : "-",
                         row.rss_bytes ? format_bytes_gib(Bytes(*row.rss_bytes)) : "-", share(row.input_share),
                         share(row.collectives_share)});
    }
    return table_text(style,
                      {{"run"},
                       {"name"},
                       {"rank", Align::right},
                       {"step", Align::right},
                       {"time", Align::right},
                       {"of plan", Align::right},
                       {"samples/s", Align::right},
                       {"tokens/s", Align::right},
                       {"cores", Align::right},
                       {"memory", Align::right},
                       {"input", Align::right},
                       {"coll.", Align::right}},
                      table, 0);
}

Json top_json(const std::vector<TopRow>& rows) {
    Json list = Json::array();
    for (const TopRow& row : rows) {
        Json one = Json::object().set("run", row.run.text()).set("name", row.name).set("rank", row.rank);
        const auto put = [&one](const char* key, const std::optional<double>& value) {
            if (value) one.set(key, *value);
        };
        put("step", row.step);
        put("step_s", row.step_s);
        put("plan_step_s", row.plan_s);
        put("samples_per_s", row.samples_per_s);
        put("tokens_per_s", row.tokens_per_s);
        put("cpu", row.cpu);
        put("rss_bytes", row.rss_bytes);
        put("input_share", row.input_share);
        put("collectives_share", row.collectives_share);
        list.push(std::move(one));
    }
    return list;
}

}  // namespace stoker
