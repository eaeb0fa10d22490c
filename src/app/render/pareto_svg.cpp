#include "app/render/pareto_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "app/render/plan_text.h"
#include "base/text.h"
#include "formats/xml_text.h"

namespace stoker {

namespace {

// A job is placed by its hours, a service by the time of a whole request, which its front is drawn over.
enum class Across : std::uint8_t { hours, latency };

std::string_view axis_name(Across across) {
    return across == Across::hours ? "time per job" : "time per request, p95";
}

double seconds_of(const Candidate& c, Across across) {
    switch (across) {
        case Across::hours: return c.prediction.hours.mid * 3600;
        case Across::latency: return c.prediction.latency.e2e_p95;
    }
    return 0;
}

struct PlottedPlan {
    const Candidate* candidate = nullptr;
    double seconds = 0, usd = 0;
    bool best = false, front = false;
};

std::vector<PlottedPlan> points_of(const Plan& plan, Across across) {
    std::vector<PlottedPlan> points;
    const auto add = [&](const Candidate& c, bool best, bool front) {
        const PlottedPlan point{&c, seconds_of(c, across), usd_shown(c.prediction).mid, best, front};
        if (c.priced && point.usd > 0 && std::isfinite(point.usd) && point.seconds > 0 && std::isfinite(point.seconds))
            points.push_back(point);
    };
    for (const Candidate& c : plan.pareto) add(c, false, true);
    for (std::size_t i = plan.candidates.size(); i-- > 0;)
        add(plan.candidates[i], i == 0, false);  // the chosen one last: on top
    return points;
}

Across across_of(const Plan& plan) {
    return !plan.candidates.empty() && runs_by_the_hour(plan.candidates.front().prediction) ? Across::latency
                                                                                            : Across::hours;
}

// A logarithmic axis; its marks are figures that a person would choose.
struct Axis {
    double low = 1, high = 10, from = 0, to = 100;
    double at(double value) const {
        return from + (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) * (to - from);
    }
    // Of each ladder what lies on the axis, thinned to about `most`; the first ladder that leaves three is taken.
    std::vector<double> marks(const std::vector<std::vector<double>>& ladders, std::size_t most) const {
        std::vector<double> kept;
        for (const std::vector<double>& ladder : ladders) {
            kept.clear();
            double last = -1e9;
            for (const double step : ladder) {
                if (step < low || step > high || std::fabs(at(step) - last) < std::fabs(to - from) / double(most))
                    continue;
                kept.push_back(step);
                last = at(step);
            }
            if (kept.size() >= 3) break;
        }
        return kept;
    }
};

Axis axis_over(const std::vector<PlottedPlan>& points, double PlottedPlan::*value, double from, double to) {
    double low = points.front().*value, high = low;
    for (const PlottedPlan& point : points) {
        low = std::min(low, point.*value);
        high = std::max(high, point.*value);
    }
    const double room = std::max(1.15, std::pow(high / low, 0.06));
    return {low / room, high * room, from, to};
}

std::vector<double> decades(std::initializer_list<double> steps, int from, int to) {
    std::vector<double> ladder;
    for (int exponent = from; exponent <= to; ++exponent) {
        for (const double step : steps) ladder.push_back(step * std::pow(10, exponent));
    }
    return ladder;
}

const std::vector<std::vector<double>>& money_ladders() {
    static const std::vector<std::vector<double>> ladders = {decades({1, 2, 5}, -6, 12),
                                                             decades({1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}, -6, 12)};
    return ladders;
}

const std::vector<std::vector<double>>& time_ladders() {
    static const std::vector<std::vector<double>> ladders = [] {
        std::vector<double> coarse = decades({1, 2, 5}, -6, 0);
        std::vector<double> fine = decades({1, 1.2, 1.5, 2, 3, 4, 5, 6, 8}, -6, 0);
        for (const double seconds : {10., 20., 40.}) coarse.push_back(seconds);
        for (const double seconds : {10., 12., 15., 20., 30., 40., 50.}) fine.push_back(seconds);
        for (const double minutes : {1., 2., 5., 10., 20., 40.}) coarse.push_back(minutes * 60);
        for (const double minutes : {1., 2., 3., 4., 5., 6., 8., 10., 15., 20., 30., 40., 50.})
            fine.push_back(minutes * 60);
        for (const double hours : {1., 2., 4., 8., 16.}) coarse.push_back(hours * 3600);
        for (const double hours : {1., 1.5, 2., 3., 4., 5., 6., 8., 10., 12., 16., 20.}) fine.push_back(hours * 3600);
        for (const double days : {1., 2., 4., 7., 14., 30., 60., 120., 360., 1000., 3000., 10000.})
            coarse.push_back(days * 86400);
        for (const double days : {1., 1.5, 2., 3., 4., 5., 7., 10., 14., 20., 30., 45., 60., 90., 120., 180., 360.})
            fine.push_back(days * 86400);
        return std::vector{coarse, fine};
    }();
    return ladders;
}

std::string axis_money(double usd) {
    if (usd >= 1e6) return fmt::format("${:g}M", usd / 1e6);
    return usd >= 1e3 ? fmt::format("${:g}k", usd / 1e3) : fmt::format("${:g}", usd);
}

struct Canvas {
    double width = 0, height = 0, left = 0, right = 0, top = 0, bottom = 0;
    std::size_t marks_across = 8;
    const char* css = "";
};

std::string grid_svg(const Axis& x, const Axis& y, const Canvas& canvas, Across across) {
    std::string svg;
    for (const double mark : x.marks(time_ladders(), canvas.marks_across)) {
        svg += fmt::format(
            "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/><text class=\"soft\" "
            "x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>",
            x.at(mark), y.to, y.from, y.from + 18, format_seconds(Seconds(mark)));
    }
    for (const double mark : y.marks(money_ladders(), 8)) {
        svg += fmt::format(
            "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/><text class=\"soft\" x=\"{3}\" "
            "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>",
            x.from, y.at(mark), x.to, x.from - 6, y.at(mark) + 4, axis_money(mark));
    }
    return svg + fmt::format(
                     "<text class=\"axis\" x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>"
                     "<text class=\"axis\" x=\"{}\" y=\"14\">cost{}</text>",
                     (x.from + x.to) / 2, canvas.height - 4, axis_name(across), 2,
                     across == Across::hours ? "" : " per hour");
}

std::string point_title(const PlottedPlan& point, const Catalog& catalog) {
    return fmt::format("{}: {}, {}", candidate_title(*point.candidate, catalog), format_seconds(Seconds(point.seconds)),
                       money_text(point.usd));
}

std::string drawing(const std::vector<PlottedPlan>& points, const Catalog& catalog, const Canvas& canvas,
                    Across across) {
    const Axis x = axis_over(points, &PlottedPlan::seconds, canvas.left, canvas.width - canvas.right);
    const Axis y = axis_over(points, &PlottedPlan::usd, canvas.height - canvas.bottom, canvas.top);
    std::string svg = fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", canvas.css,
                                  canvas.width, canvas.height,
                                  xml_escaped(fmt::format("{} plans, {} against cost; chosen: {}", points.size(),
                                                          axis_name(across), point_title(points.back(), catalog)),
                                              kHtml));
    svg += grid_svg(x, y, canvas, across);
    std::vector<const PlottedPlan*> front;
    for (const PlottedPlan& point : points) {
        if (point.front) front.push_back(&point);
    }
    std::stable_sort(front.begin(), front.end(),
                     [](const PlottedPlan* a, const PlottedPlan* b) { return a->seconds < b->seconds; });
    std::string path;
    for (const PlottedPlan* point : front)
        path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x.at(point->seconds), y.at(point->usd));
    if (front.size() > 1) svg += fmt::format("<polyline class=\"front\" points=\"{}\"/>", path);
    for (const PlottedPlan& point : points) {
        svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>",
                           point.best    ? "best"
                           : point.front ? "on-front"
                                         : "dot",
                           x.at(point.seconds), y.at(point.usd), point.best ? 8 : 5,
                           xml_escaped(point_title(point, catalog), kHtml));
        if (!point.best) continue;
        // Nothing lies below and to the left of a plan on the front, so its name is free to stand there.
        const bool to_left = x.at(point.seconds) > (x.from + x.to) / 2;
        svg += fmt::format("<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\"{}>chosen</text>",
                           x.at(point.seconds) + (to_left ? -8 : 8), y.at(point.usd) + 22,
                           to_left ? " text-anchor=\"end\"" : "");
    }
    return svg + "</svg>\n";
}

std::string front_table(const std::vector<PlottedPlan>& points, const Catalog& catalog, Across across) {
    std::string rows;
    std::size_t count = 0;
    for (const PlottedPlan& point : points) {
        if (!point.front) continue;
        ++count;
        rows += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                            xml_escaped(candidate_title(*point.candidate, catalog), kHtml),
                            format_seconds(Seconds(point.seconds)), money_text(point.usd));
    }
    if (count < 2) return {};
    return fmt::format(
        "<details><summary>The {} plans on the line, as a table</summary><div class=\"scroll\"><table><thead><tr>"
        "<th>machines</th><th class=\"n\">{}</th><th class=\"n\">cost</th></tr></thead><tbody>\n{}</tbody></table>"
        "</div></details>\n",
        count, axis_name(across), rows);
}

}  // namespace

std::string pareto_html(const Plan& plan, const Catalog& catalog) {
    const Across across = across_of(plan);
    const std::vector<PlottedPlan> points = points_of(plan, across);
    if (points.size() < 2) return {};
    const auto [quickest, slowest] = std::minmax_element(
        points.begin(), points.end(), [](const PlottedPlan& a, const PlottedPlan& b) { return a.seconds < b.seconds; });
    if (slowest->seconds < 1.001 * quickest->seconds) return {};  // a notebook: no time to trade for money
    const std::string_view title = across == Across::hours ? "Time against cost" : "Latency against cost";
    return fmt::format(
        "<section><h2>{}</h2>\n{}{}<p class=\"key\"><span><i class=\"best\"></i>chosen</span><span><i "
        "class=\"on-front\"></i>no other is both faster and cheaper</span><span><i class=\"dot\"></i>the rest of the "
        "table</span></p><p class=\"soft\">Both axes are logarithmic. PlottedPlan at a dot for its "
        "name.</p>\n{}</section>\n",
        title, drawing(points, catalog, {920, 400, 70, 20, 26, 46, 8, "wide"}, across),
        drawing(points, catalog, {400, 320, 52, 14, 24, 44, 4, "narrow"}, across),
        front_table(points, catalog, across));
}

}  // namespace stoker
