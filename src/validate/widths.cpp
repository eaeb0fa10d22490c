#include "validate/widths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace stoker::validate {
namespace {

// By what an interval would have to be scaled, with its growth by distance, to just hold what was measured; by source.
// Of some sources only the rows of one device are kept apart: they are judged on their own.
using SourceKey = std::pair<std::string, bool>;
using Needs = std::map<SourceKey, std::vector<double>>;

struct Weighted {
    double need = 0, weight = 0;
};

// The least scale that holds the share that is wanted of all sources but one, in the mean over them.
double scale_of(const Needs& needs, std::string_view left_out, double wanted) {
    std::vector<Weighted> all;
    double sources = 0;
    for (const auto& [key, own] : needs) {
        if (key.first == left_out) continue;
        ++sources;
        for (const double need : own) all.push_back({need, 1 / static_cast<double>(own.size())});
    }
    std::sort(all.begin(), all.end(), [](const Weighted& a, const Weighted& b) { return a.need < b.need; });
    constexpr double kRounding = 1e-9;
    double held = 0;
    for (const Weighted& one : all)
        if ((held += one.weight) >= wanted * sources - kRounding) return one.need;
    return all.empty() ? 0 : all.back().need;
}

double need_of(const Line& line, double slope, double most) {
    const double error = std::log(*line.measured / line.value);
    const double end = error > 0 ? std::log(line.high / line.value) : std::log(line.value / line.low);
    constexpr double kNothing = 1e-9;
    return std::abs(error) / std::max(end, kNothing) * line.growth / (1 + slope * std::min(line.distance, most));
}

std::string percent(double share) {
    return fmt::format("{:.1f}", 100 * share);
}

}  // namespace

std::optional<Widths> widths_left_out(const std::vector<Line>& lines, const Catalog& catalog, MeasuredWork work) {
    Widths out;
    out.used = catalog.constant_or_die(fmt::format("interval_known_{}", to_string(work)));
    out.slope = catalog.constant_or_die(fmt::format("interval_known_distance_{}", to_string(work)));
    const double most = catalog.constant_or_die("interval_distance_most");
    Needs needs;
    for (const Line& line : lines) {
        if (!line.predicted || !line.counted || !line.measured || !(*line.measured > 0)) continue;
        needs[{line.source, line.kept_apart}].push_back(need_of(line, out.slope, most));
    }
    constexpr std::size_t kFewest = 3;
    if (needs.size() < kFewest) return std::nullopt;
    out.chosen = scale_of(needs, "", out.wanted);
    for (const auto& [key, own] : needs) {
        SourceWidth one{.source = key.first, .kept_apart = key.second, .rows = own.size()};
        one.scale = scale_of(needs, one.source, out.wanted);
        one.needed = scale_of({{key, own}}, "", out.wanted);
        one.inside = static_cast<std::size_t>(
            std::count_if(own.begin(), own.end(), [&](double need) { return need <= one.scale; }));
        const double share = static_cast<double>(one.inside) / static_cast<double>(one.rows);
        out.inside += share;
        if (one.kept_apart) {
            ++out.apart_sources;
            out.apart_inside += share;
            out.apart_rows += one.rows;
            out.apart_rows_inside += one.inside;
        }
        out.sources.push_back(std::move(one));
    }
    out.inside /= static_cast<double>(out.sources.size());
    if (out.apart_sources > 0) out.apart_inside /= static_cast<double>(out.apart_sources);
    return out;
}

std::string widths_text(const std::string& name, const Widths& w) {
    std::string text = fmt::format(
        "{}: 80 % intervals, each source judged by the width that all others choose\n\n"
        "  {:<36} {:>5}  {:>8}  {:>6}  {:>6}\n",
        name, "source", "rows", "inside %", "width", "needed");
    for (const SourceWidth& one : w.sources)
        text += fmt::format(
            "  {:<36} {:>5}  {:>8}  {:>6.2f}  {:>6.2f}\n", one.source + (one.kept_apart ? " (kept apart)" : ""),
            one.rows, percent(static_cast<double>(one.inside) / static_cast<double>(one.rows)), one.scale, one.needed);
    text += fmt::format("\n  mean over {} sources, each left out: {} % inside\n", w.sources.size(), percent(w.inside));
    if (w.apart_sources > 0)
        text += fmt::format("  of these, {} sources that no constant was fitted on: {} %; {} of {} rows, {} %\n",
                            w.apart_sources, percent(w.apart_inside), w.apart_rows_inside, w.apart_rows,
                            percent(static_cast<double>(w.apart_rows_inside) / static_cast<double>(w.apart_rows)));
    text += fmt::format(
        "  all sources together choose {:.2f} x (1 + {:g} x distance); intervals have {:g}\n\n"
        "  width: what the logarithms of an interval's ends are multiplied by at a distance of 0.\n"
        "  needed: what would hold 80 % of the source's own rows.\n",
        w.chosen, w.slope, w.used);
    return text;
}

Json widths_json(const Widths& w) {
    Json sources = Json::array();
    for (const SourceWidth& one : w.sources)
        sources.push(Json::object()
                         .set("source", one.source)
                         .set("kept_apart", one.kept_apart)
                         .set("rows", one.rows)
                         .set("inside", one.inside)
                         .set("width", one.scale)
                         .set("needed", one.needed));
    Json out = Json::object();
    out.set("wanted", w.wanted)
        .set("inside_mean_over_sources", w.inside)
        .set("chosen", w.chosen)
        .set("used", w.used)
        .set("growth_per_distance", w.slope);
    if (w.apart_sources > 0)
        out.set("kept_apart", Json::object()
                                  .set("sources", w.apart_sources)
                                  .set("inside_mean_over_sources", w.apart_inside)
                                  .set("rows", w.apart_rows)
                                  .set("rows_inside", w.apart_rows_inside));
    out.set("sources", std::move(sources));
    return out;
}

}  // namespace stoker::validate
