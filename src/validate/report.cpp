#include "validate/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker::validate {
namespace {

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

std::string percent(double share) {
    return fmt::format("{:.1f}", 100 * share);
}

std::string word_count(std::size_t n, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", n, n == 1 ? one : many);
}

Json group_json(const GroupScore& g) {
    Json worst = Json::array();
    for (const Line* line : g.worst)
        worst.push(Json::object()
                       .set("id", line->id)
                       .set("metric", line->metric)
                       .set("predicted", line->value)
                       .set("measured", line->measured ? Json(*line->measured) : Json())
                       .set("error", line->error()));
    const bool any = g.scored > 0;
    const auto of = [any](double value) { return any ? Json(value) : Json(); };
    return Json::object()
        .set("group", g.name)
        .set("lines", g.lines)
        .set("n", g.scored)
        .set("refused", g.refused)
        .set("refused_although_able", g.refused_able)
        .set("median_ape", of(g.median))
        .set("mean_ape", of(g.mean))
        .set("p90_ape", of(g.p90))
        .set("median_signed_error", of(g.median_signed))
        .set("coverage", of(g.coverage()))
        .set("median_width", of(g.width))
        .set("worst", std::move(worst));
}

Json tallies_json(const std::vector<Tally>& tallies) {
    Json out = Json::array();
    for (const Tally& t : tallies) {
        Json ids = Json::array();
        for (const std::string& id : t.ids) ids.push(id);
        out.push(Json::object().set("what", t.text).set("lines", t.lines).set("first_ids", std::move(ids)));
    }
    return out;
}

// Refusals by their code, for a table of one screen.
std::vector<std::vector<std::string>> refusal_rows(const std::vector<Tally>& refusals, std::size_t most) {
    std::vector<std::vector<std::string>> rows;
    std::size_t others = 0, kinds = 0;
    for (const Tally& t : refusals) {
        if (rows.size() < most) {
            rows.push_back({std::to_string(t.lines), printable(t.text, 60), t.ids.empty() ? "" : t.ids.front()});
        } else {
            others += t.lines;
            ++kinds;
        }
    }
    if (others > 0) rows.push_back({std::to_string(others), fmt::format("{} more reasons", kinds), "-o json"});
    return rows;
}

std::string confusion_text(const Score& s, const Style& style) {
    const Confusion& c = s.confusion;
    const auto share = [](std::size_t part, std::size_t whole) {
        return whole > 0 ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole))
                         : std::string("-");
    };
    std::string out = fmt::format("  ran and called fitting      {} of {}, {}\n", c.fit_called_fit, c.fit,
                                  share(c.fit_called_fit, c.fit));
    out +=
        fmt::format("  out of memory and flagged   {} of {}, {}\n", c.oom_flagged, c.oom, share(c.oom_flagged, c.oom));
    out += fmt::format("  failed, cause mixed, flagged {} of {}, {}\n", c.mixed_flagged, c.mixed,
                       share(c.mixed_flagged, c.mixed));
    if (c.without > 0) out += fmt::format("  without a verdict           {}: the row contradicts itself\n", c.without);
    if (c.base_rate > 0)
        out += fmt::format("  of the base rate alone      {}: nothing of the model is known\n", c.base_rate);
    std::vector<Column> columns{{"out of memory if fitting is below"}};
    std::vector<std::string> fit{"ran and called fitting %"}, failed{"out of memory or failed, flagged %"};
    const auto percent_of = [](std::size_t part, std::size_t whole) {
        return whole > 0 ? percent(static_cast<double>(part) / static_cast<double>(whole)) : std::string("-");
    };
    for (const VerdictPoint& p : s.verdicts) {
        columns.push_back({fmt::format("{:.0f} %", 100 * p.threshold), Align::right});
        fit.push_back(percent_of(p.fit_called_fit, c.fit));
        failed.push_back(percent_of(p.failed_flagged, c.oom + c.mixed));
    }
    if (c.fit + c.oom + c.mixed > 0) out += "\n" + table_text(style, columns, {fit, failed});
    return out;
}

Json figures_json(const RegretFigures& f) {
    return Json::object().set("median", f.median).set("mean", f.mean).set("max", f.max);
}

}  // namespace

std::string predictions_csv(const std::vector<Line>& lines) {
    std::string out = "id,metric,predicted,low,high,refused_reason,outcome\n";
    for (const Line& line : lines) {
        out += csv_cell(line.id) + "," + line.metric + ",";
        if (line.predicted) {
            out += fmt::format("{:.6g},{:.6g},{:.6g},,", line.value, line.low, line.high);
        } else {
            out += ",,," + csv_cell(line.refused) + ",";
        }
        out += line.outcome + "\n";
    }
    return out;
}

Json report_json(RowKind kind, const std::string& file, const Score& s, const std::vector<Line>& lines) {
    Json groups = Json::array();
    for (const GroupScore& g : s.groups) groups.push(group_json(g));
    Json headline = Json::object();
    headline.set("median_of_group_medians", s.median_of_medians)
        .set("worst_group_median", s.worst_group.empty() ? Json() : Json(s.worst_median))
        .set("worst_group", s.worst_group.empty() ? Json() : Json(s.worst_group))
        .set("coverage", s.all.coverage())
        .set("median_width", s.all.width)
        .set("lines", s.all.lines)
        .set("scored", s.all.scored)
        .set("rows", s.rows)
        .set("rows_missing", s.rows_missing)
        .set("lines_refused", s.all.refused)
        .set("lines_refused_although_able", s.all.refused_able);
    if (s.apart.scored > 0)
        headline.set("kept_apart", Json::object()
                                       .set("median_of_group_medians", s.apart_median_of_medians)
                                       .set("coverage", s.apart.coverage())
                                       .set("scored", s.apart.scored));
    if (s.widths) headline.set("widths", widths_json(*s.widths));
    Json out = Json::object();
    out.set("kind", to_string(kind)).set("file", file).set("constants", "fitted");
    out.set("headline", std::move(headline)).set("groups", std::move(groups));
    if (kind == RowKind::memory) {
        const Confusion& c = s.confusion;
        out.set("confusion", Json::object()
                                 .set("fit", c.fit)
                                 .set("fit_called_fit", c.fit_called_fit)
                                 .set("oom", c.oom)
                                 .set("oom_flagged", c.oom_flagged)
                                 .set("failed_mixed", c.mixed)
                                 .set("failed_mixed_flagged", c.mixed_flagged)
                                 .set("without_verdict", c.without)
                                 .set("base_rate_alone", c.base_rate));
        Json points = Json::array();
        for (const VerdictPoint& p : s.verdicts)
            points.push(Json::object()
                            .set("threshold", p.threshold)
                            .set("fit_called_fit", p.fit_called_fit)
                            .set("failed_flagged", p.failed_flagged));
        Json likely = Json::array();
        for (const Line& line : lines)
            if (line.fits) likely.push(Json::object().set("id", line.id).set("fit_probability", *line.fits));
        out.set("verdicts_by_threshold", std::move(points)).set("fit_probabilities", std::move(likely));
    }
    if (kind == RowKind::inference) out.set("said_not_to_fit", s.unfit);
    out.set("refusals", tallies_json(s.refusals)).set("assumptions", tallies_json(s.assumptions));
    Json assumed = Json::array();
    std::string last;
    for (const Line& line : lines) {
        if (line.assumed.empty() || line.id == last) continue;
        last = line.id;
        Json words = Json::array();
        for (const std::string& text : line.assumed) words.push(text);
        assumed.push(Json::object().set("id", line.id).set("assumed", std::move(words)));
    }
    out.set("rows_with_assumptions", std::move(assumed));
    return out;
}

std::string report_text(RowKind kind, const std::string& file, const Score& s, const Style& style) {
    std::string out = fmt::format("{}: {}, {}, constants of data/calibration\n\n", printable(file, 60),
                                  word_count(s.rows, "row", "rows"), to_string(kind));
    std::vector<std::vector<std::string>> rows, worst;
    for (const GroupScore& g : s.groups) {
        const bool any = g.scored > 0;
        rows.push_back({cut(g.name, 34), std::to_string(g.scored), std::to_string(g.refused),
                        any ? percent(g.median) : "-", any ? percent(g.mean) : "-", any ? percent(g.p90) : "-",
                        any ? fmt::format("{:+.1f}", 100 * g.median_signed) : "-", any ? percent(g.coverage()) : "-"});
        if (!any) continue;
        std::vector<std::string> ids;
        for (const Line* line : g.worst) ids.push_back(cut(line->id, 16));
        worst.push_back({cut(g.name, 34), join(ids, " ")});
    }
    out += table_text(style,
                      {{"error in %, group"},
                       {"n", Align::right},
                       {"refused", Align::right},
                       {"median", Align::right},
                       {"mean", Align::right},
                       {"p90", Align::right},
                       {"bias", Align::right},
                       {"in 80 %", Align::right}},
                      rows);
    out += fmt::format("\n  median of the group medians {} %", percent(s.median_of_medians));
    if (!s.worst_group.empty())
        out += fmt::format("; worst of groups with 9 and more {} % ({})", percent(s.worst_median), s.worst_group);
    out += fmt::format("\n  {} of {} inside the interval, {} %; half of the intervals are wider than x {:.2f}\n",
                       s.all.covered, s.all.scored, percent(s.all.coverage()), s.all.width);
    if (s.apart.scored > 0)
        out += fmt::format("  sources that no constant was fitted on: {} %, {} of {} inside, {} %\n",
                           percent(s.apart_median_of_medians), s.apart.covered, s.apart.scored,
                           percent(s.apart.coverage()));
    if (s.widths) {
        const Widths& w = *s.widths;
        out += fmt::format("  each source held against the width that all others choose: {} % inside, mean over {}",
                           percent(w.inside), w.sources.size());
        if (w.apart_sources > 0)
            out += fmt::format("; kept apart {} %, {} of {} rows", percent(w.apart_inside), w.apart_rows_inside,
                               w.apart_rows);
        out += " (--widths)\n";
    }
    out += fmt::format("  {}, {} refused, {} of them although the row has what is needed; rows missing {}\n",
                       word_count(s.all.lines, "line", "lines"), s.all.refused, s.all.refused_able, s.rows_missing);
    if (kind == RowKind::memory) out += "\n" + confusion_text(s, style);
    if (kind == RowKind::inference) out += fmt::format("  said not to fit, although every row ran: {}\n", s.unfit);
    if (!s.refusals.empty()) {
        out += "\n" + table_text(style, {{"lines", Align::right}, {"refused because of"}, {"such as"}},
                                 refusal_rows(s.refusals, 14));
    }
    if (!worst.empty()) out += "\n" + table_text(style, {{"group"}, {"farthest off"}}, worst);
    out += "\n  bias: median of predicted over measured, less 1. What was assumed for blank cells: -o json\n";
    return out;
}

Json regret_json(const std::string& file, const Regret& r) {
    Json groups = Json::array();
    for (const RegretGroup& g : r.groups)
        groups.push(Json::object()
                        .set("group", g.source)
                        .set("model", g.model)
                        .set("gpu_model", g.device)
                        .set("gpus", g.gpus)
                        .set("layouts", g.layouts)
                        .set("best_s", g.best_s)
                        .set("chosen", g.chosen)
                        .set("regret", g.model_choice)
                        .set("regret_most_common_layout", g.common)
                        .set("regret_flops_alone", g.flops)
                        .set("regret_random", g.random));
    return Json::object()
        .set("file", file)
        .set("groups", r.groups.size())
        .set("rows_left_out", r.left_out)
        .set("regret", figures_json(r.model_choice))
        .set("most_common_layout", figures_json(r.common))
        .set("flops_alone", figures_json(r.flops))
        .set("random", figures_json(r.random))
        .set("by_group", std::move(groups));
}

std::string regret_text(const std::string& file, const Regret& r, const Style& style) {
    std::string out = fmt::format("{}: regret over {}\n\n", printable(file, 60),
                                  word_count(r.groups.size(), "group", "groups of measured layouts"));
    const auto row = [](std::string name, const RegretFigures& f) {
        return std::vector<std::string>{std::move(name), percent(f.median), percent(f.mean), percent(f.max)};
    };
    out += table_text(
        style, {{"what is taken"}, {"median %", Align::right}, {"mean %", Align::right}, {"worst %", Align::right}},
        {row("the layout this model ranks first", r.model_choice),
         row("the most common layout of the source", r.common), row("the fewest FLOPs (ties: the worst)", r.flops),
         row("any of them, on average", r.random)});
    std::vector<const RegretGroup*> worst;
    for (const RegretGroup& g : r.groups) worst.push_back(&g);
    std::stable_sort(worst.begin(), worst.end(),
                     [](const RegretGroup* a, const RegretGroup* b) { return a->model_choice > b->model_choice; });
    if (worst.size() > 10) worst.resize(10);
    std::vector<std::vector<std::string>> rows;
    for (const RegretGroup* g : worst)
        rows.push_back({cut(g->source, 18), cut(g->model, 24), fmt::format("{:g} x {}", g->gpus, cut(g->device, 12)),
                        std::to_string(g->layouts), percent(g->model_choice), g->chosen});
    if (!rows.empty()) {
        out +=
            "\n" +
            table_text(
                style,
                {{"worst"}, {"model"}, {"devices"}, {"layouts", Align::right}, {"regret %", Align::right}, {"taken"}},
                rows);
    }
    out += fmt::format("\n  groups have at least {} measured layouts; {} with a step time left out: refused\n",
                       kLeastLayouts, word_count(r.left_out, "row", "rows"));
    return out;
}

}  // namespace stoker::validate
