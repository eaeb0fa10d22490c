#include "app/render/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/render/plan_text.h"
#include "app/version.h"
#include "base/text.h"

namespace stoker {

namespace {

// Everything that comes from a file or a table passes here before it reaches the page.
std::string escape(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default:  // control characters have no place in HTML
                if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
        }
    }
    return out;
}

constexpr const char* kStyle = R"(
:root{--back:#fff;--text:#1b1f24;--soft:#57606a;--line:#d0d7de;--card:#f6f8fa;--mark:#0969da;--good:#1a7f37;--warn:#9a6700;--bad:#cf222e;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--soft:#8d96a0;--line:#30363d;--card:#161b22;--mark:#4493f8;--good:#3fb950;--warn:#d29922;--bad:#f85149}}
*{box-sizing:border-box}body{margin:0 auto;max-width:64rem;padding:2rem 1.25rem;background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.35rem;margin:0 0 1rem}h2{font-size:1.05rem;margin:2rem 0 .6rem}p{margin:.4rem 0}.soft{color:var(--soft)}.numbers{font-size:1.2rem}
.chosen{border:1px solid var(--line);border-radius:8px;background:var(--card);padding:1rem 1.25rem}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th{text-align:left;color:var(--soft);font-weight:500}th,td{padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;white-space:nowrap}li{margin:.25rem 0}.error{color:var(--bad)}.warning{color:var(--warn)}
svg{display:block;width:100%;height:auto;margin:.4rem 0}svg text{fill:var(--text);font:12px system-ui,sans-serif}svg .soft{fill:var(--soft)}svg .grid{stroke:var(--line)}svg .dot{fill:var(--soft)}svg .best{fill:var(--mark)}svg .front{fill:none;stroke:var(--mark);stroke-dasharray:4 3}
footer{margin-top:2rem;border-top:1px solid var(--line);padding-top:.6rem;color:var(--soft);font-size:.85rem}
)";

constexpr const char* kColours[] = {"#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2",
                                    "#b279a2", "#eeca3b", "#9d755d", "#ff9da6", "#79706e"};

std::string short_number(double value) {
    if (value >= 100) return format_thousands(value);
    return fmt::format("{:.3g}", value);
}

struct Part {
    std::string name;
    double value = 0;
};

// One bar of 1000 units with its legend; parts of no value are left out.
std::string bar_svg(std::string_view title, std::vector<Part> parts, std::string_view unit) {
    double total = 0;
    for (const Part& part : parts) total += part.value;
    if (!(total > 0)) return {};
    std::erase_if(parts, [&](const Part& part) { return part.value < 0.002 * total; });
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.value > b.value; });
    const std::size_t lines = (parts.size() + 3) / 4;
    std::string svg =
        fmt::format("<svg viewBox=\"0 0 1000 {}\" role=\"img\" aria-label=\"{}\">", 34 + 20 * lines, escape(title));
    double x = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const double width = parts[i].value / total * 1000;
        const std::string label = fmt::format("{} {} {} ({:.0f} %)", parts[i].name, short_number(parts[i].value), unit,
                                              100 * parts[i].value / total);
        svg += fmt::format(
            "<rect x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"22\" fill=\"{}\"><title>{}</title></rect>", x,
            std::max(1.0, width - 1), kColours[i % 10], escape(label));
        const double left = 250.0 * static_cast<double>(i % 4), top = 34 + 20.0 * static_cast<double>(i / 4);
        svg += fmt::format(
            "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.0f}\" "
            "y=\"{:.0f}\">{}</text>",
            left, top, kColours[i % 10], left + 15, top + 10,
            escape(fmt::format("{} {} {}", parts[i].name, short_number(parts[i].value), unit)));
        x += width;
    }
    return svg + "</svg>\n";
}

std::string bars(const Prediction& p) {
    std::string out;
    std::vector<Part> parts;
    const double unit = p.step_s.mid >= 1 ? 1 : 1e-3;
    for (int i = 0; i < kTimeTerms; ++i)
        parts.push_back(
            {std::string(info(static_cast<TimeTerm>(i)).name), p.seconds[static_cast<std::size_t>(i)] / unit});
    if (const std::string svg = bar_svg("time of one step", parts, unit == 1 ? "s" : "ms"); !svg.empty()) {
        out +=
            fmt::format("<h2>One step: {} {}</h2>\n{}", short_number(p.step_s.mid / unit), unit == 1 ? "s" : "ms", svg);
    }
    parts.clear();
    for (int i = 0; i < kMemoryTerms; ++i)
        parts.push_back(
            {std::string(info(static_cast<MemoryTerm>(i)).name), p.bytes[static_cast<std::size_t>(i)] / kGiB});
    if (const std::string svg = bar_svg("memory of the fullest device", parts, "GiB"); !svg.empty()) {
        out += fmt::format("<h2>Memory of the fullest device: {} of {} GiB</h2>\n{}",
                           short_number(p.memory_bytes.mid / kGiB), short_number(p.memory_capacity_bytes / kGiB), svg);
    }
    return out;
}

// A logarithmic axis whose marks are 1, 2 and 5 times powers of ten.
struct Axis {
    double low = 1, high = 10, from = 0, to = 100;
    double at(double value) const {
        return from + (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) * (to - from);
    }
    std::vector<double> marks() const {
        std::vector<double> found;
        for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
            for (const double step : {1.0, 2.0, 5.0}) {
                if (decade * step >= low && decade * step <= high) found.push_back(decade * step);
            }
        }
        if (found.size() <= 8) return found;
        std::vector<double> fewer;  // whole decades are enough
        for (const double mark : found) {
            if (std::fabs(std::log10(mark) - std::round(std::log10(mark))) < 1e-9) fewer.push_back(mark);
        }
        return fewer;
    }
};

Axis axis_over(const std::vector<double>& values, double from, double to) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return {*low / 1.25, *high * 1.25, from, to};
}

struct Point {
    const Candidate* candidate = nullptr;
    bool best = false, front = false;
};

std::string marks_svg(const Axis& x, const Axis& y) {
    std::string svg;
    for (const double mark : x.marks()) {
        svg += fmt::format(
            "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/><text class=\"soft\" "
            "x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>",
            x.at(mark), y.to, y.from, y.from + 18, hours_text(mark));
    }
    for (const double mark : y.marks()) {
        svg += fmt::format(
            "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/><text class=\"soft\" x=\"{3}\" "
            "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>",
            x.from, y.at(mark), x.to, x.from - 6, y.at(mark) + 4, money_text(mark));
    }
    return svg;
}

// Time against cost, both on logarithmic axes; the dashed line joins what nothing beats in both.
std::string pareto_svg(const Plan& plan, const Catalog& catalog) {
    std::vector<Point> points;
    const auto add = [&](const Candidate& c, bool best, bool front) {
        if (c.priced && c.prediction.usd.mid > 0 && c.prediction.hours.mid > 0) points.push_back({&c, best, front});
    };
    for (const Candidate& c : plan.pareto) add(c, false, true);
    for (std::size_t i = plan.candidates.size(); i-- > 0;)
        add(plan.candidates[i], i == 0, false);  // the chosen one last: on top
    if (points.size() < 2) return {};
    std::vector<double> hours, usd;
    for (const Point& point : points) {
        hours.push_back(point.candidate->prediction.hours.mid);
        usd.push_back(point.candidate->prediction.usd.mid);
    }
    const Axis x = axis_over(hours, 90, 960), y = axis_over(usd, 350, 20);
    std::string svg = "<svg viewBox=\"0 0 1000 400\" role=\"img\" aria-label=\"time against cost\">" + marks_svg(x, y);
    std::vector<const Candidate*> front;
    for (const Point& point : points) {
        if (point.front) front.push_back(point.candidate);
    }
    std::stable_sort(front.begin(), front.end(), [](const Candidate* a, const Candidate* b) {
        return a->prediction.hours.mid < b->prediction.hours.mid;
    });
    std::string path;
    for (const Candidate* c : front)
        path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x.at(c->prediction.hours.mid),
                            y.at(c->prediction.usd.mid));
    if (front.size() > 1) svg += fmt::format("<polyline class=\"front\" points=\"{}\"/>", path);
    for (const Point& point : points) {
        const Candidate& c = *point.candidate;
        const std::string title = fmt::format("{}: {}, {}", candidate_title(c, catalog),
                                              hours_text(c.prediction.hours.mid), money_text(c.prediction.usd.mid));
        const double left = x.at(c.prediction.hours.mid), top = y.at(c.prediction.usd.mid);
        svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>",
                           point.best ? "best" : "dot", left, top, point.best ? 8 : 5, escape(title));
        if (point.best)
            svg +=
                fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", left > 600 ? left - 12 : left + 12, top - 9,
                            left > 600 ? " text-anchor=\"end\"" : "", escape("chosen: " + candidate_title(c, catalog)));
    }
    svg +=
        "<text class=\"soft\" x=\"525\" y=\"392\" text-anchor=\"middle\">time</text><text class=\"soft\" x=\"14\" "
        "y=\"14\">cost</text></svg>\n";
    return "<h2>Time against cost</h2>\n" + svg +
           "<p class=\"soft\">Logarithmic axes. The dashed line joins the plans that no other beats in both. Point at "
           "a dot for its name.</p>\n";
}

std::string list_html(std::string_view title, const std::vector<std::string>& items) {
    if (items.empty()) return {};
    std::string out = fmt::format("<h2>{}</h2>\n<ul>\n", escape(title));
    for (const std::string& item : items) out += "<li>" + escape(item) + "</li>\n";
    return out + "</ul>\n";
}

std::string range_html(const Range& range, std::string (*text)(double)) {
    return fmt::format("{} <span class=\"soft\">({} - {})</span>", text(range.mid), text(range.low), text(range.high));
}

std::string table_html(const std::vector<Candidate>& list, const Plan& plan, const Catalog& catalog,
                       bool chosen_first) {
    const bool service = plan.workload.kind == WorkloadKind::inference;
    std::string out = fmt::format(
        "<div class=\"scroll\"><table><thead><tr><th>machines</th><th class=\"n\">{}</th><th class=\"n\">{}</th><th "
        "class=\"n\">$ per {}</th><th class=\"n\">kWh</th><th>why not first</th></tr></thead><tbody>\n",
        service ? "replicas" : "time", service ? "$ per hour" : "cost",
        escape(list.empty() ? "unit" : list[0].prediction.unit_name));
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Candidate& c = list[i];
        const Prediction& p = c.prediction;
        out += fmt::format(
            "<tr><td>{}<br><span class=\"soft\">{}</span></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
            "class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
            escape(candidate_title(c, catalog)), escape(layout_line(c, plan.workload, catalog)),
            service ? std::to_string(c.replicas) : hours_text(p.hours.mid),
            c.priced ? money_text(p.usd.mid) : "unpriced", c.priced ? short_number(p.usd_per_unit.mid) : "-",
            p.kwh.mid > 0 ? short_number(p.kwh.mid) : "-", chosen_first && i == 0 ? "chosen" : escape(c.why_not_first));
    }
    return out + "</tbody></table></div>\n";
}

std::string chosen_html(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    const Prediction& p = best.prediction;
    const bool service = plan.workload.kind == WorkloadKind::inference;
    std::string out = fmt::format(
        "<div class=\"chosen\"><strong>{}</strong><p class=\"numbers\">{} &nbsp; {}</p><p class=\"soft\">{}</p>",
        escape(candidate_title(best, catalog)), service ? "per hour" : range_html(p.hours, hours_text),
        best.priced ? range_html(p.usd, money_text) : "unpriced", escape(layout_line(best, plan.workload, catalog)));
    std::vector<std::string> facts;
    if (p.mfu > 0) facts.push_back(fmt::format("MFU {:.0f} %", 100 * p.mfu));
    facts.push_back(fmt::format("bound by {}", to_string(p.bottleneck)));
    if (p.kwh.mid > 0) facts.push_back(fmt::format("{} kWh", short_number(p.kwh.mid)));
    if (p.ttft_p95_s.mid > 0)
        facts.push_back(
            fmt::format("TTFT p95 {:.0f} ms, TPOT p95 {:.1f} ms", p.ttft_p95_s.mid * 1e3, p.tpot_p95_s.mid * 1e3));
    return out + "<p>" + escape(join(facts, " · ")) + "</p></div>\n";
}

std::string advice_html(const Plan& plan) {
    if (plan.advice.empty()) return {};
    std::string out = "<h2>Watch out</h2>\n<ul>\n";
    for (const Advice& a : plan.advice) {
        const char* severity = a.severity == Severity::error     ? "error"
                               : a.severity == Severity::warning ? "warning"
                                                                 : "info";
        out += fmt::format("<li><strong class=\"{0}\">{0}</strong> {1} {2}{3}</li>\n", severity, escape(a.text),
                           escape(a.remedy),
                           a.source.empty() ? "" : " <span class=\"soft\">" + escape(a.source) + "</span>");
    }
    return out + "</ul>\n";
}

std::string rejected_html(const Plan& plan, const Catalog& catalog) {
    if (plan.rejected.empty()) return {};
    std::string out = fmt::format(
        "<h2>Refused</h2>\n<details><summary>{} of {} candidates, with reasons</summary><div "
        "class=\"scroll\"><table><thead><tr><th>size</th><th>reason</th><th class=\"n\">cases</th><th>in "
        "numbers</th></tr></thead><tbody>\n",
        format_thousands(static_cast<double>(plan.refused)), format_thousands(static_cast<double>(plan.considered)));
    for (const Rejection& r : plan.rejected) {
        const std::string name =
            r.node_type < 0 ? "-" : catalog.node_types()[static_cast<std::size_t>(r.node_type)].name;
        out += fmt::format("<tr><td>{} {}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", escape(name),
                           escape(r.region), code(r.reason), format_thousands(static_cast<double>(r.count)),
                           escape(r.text));
    }
    return out + "</tbody></table></div></details>\n";
}

std::string footer_html(const Plan& plan) {
    std::string out = fmt::format("<footer>Catalogue {} of {}, Stoker {}.", escape(plan.catalog_version),
                                  escape(plan.catalog_as_of), version().number);
    if (plan.feasible() && plan.candidates.front().priced) {
        const Candidate& best = plan.candidates.front();
        out += fmt::format(" Price: {}, {}, {} per node and hour{}, as of {}, {}.", escape(best.region),
                           escape(plan.workload.where.os), money_text(best.node_per_hour.dollars()),
                           best.price_is_estimate ? " (estimate)" : "", escape(best.price_provenance.as_of),
                           escape(best.price_provenance.source));
    }
    return out +
           " Verify at the <a href=\"https://azure.microsoft.com/pricing/calculator/\">Azure pricing calculator</a> or "
           "your provider's price page.</footer>\n";
}

}  // namespace

std::string plan_html(const Plan& plan, const Catalog& catalog) {
    std::string body = "<h1>" + escape(plan.verdict) + "</h1>\n";
    if (plan.feasible()) {
        body += chosen_html(plan, catalog) + bars(plan.candidates.front().prediction) + "<h2>The best</h2>\n" +
                table_html(plan.candidates, plan, catalog, true) + pareto_svg(plan, catalog);
    } else {
        body += "<p class=\"error\">No plan: " + escape(plan.infeasible_because) + "</p>\n";
        if (!plan.nearest.empty())
            body += "<h2>What comes nearest</h2>\n" + table_html(plan.nearest, plan, catalog, false);
    }
    body += list_html("Why", plan.reasons);
    const PlatformChoice& platform = plan.platform;
    if (!platform.name.empty()) {
        std::vector<std::string> lines = {
            fmt::format("{} ({}): {}", platform.name, platform.complexity, platform.reason)};
        lines.insert(lines.end(), platform.alternatives.begin(), platform.alternatives.end());
        if (!platform.paas.empty()) lines.push_back(platform.paas);
        if (!platform.image.empty())
            lines.push_back(fmt::format("image {}: {}", platform.image, platform.image_reason));
        body += list_html("Run it on", lines);
    }
    body += advice_html(plan) + list_html("Taken for granted", plan.workload.assumptions);
    std::vector<std::string> changes;
    for (const WhatIf& what : plan.what_if)
        changes.push_back(fmt::format("{} → {}{}", what.change, what.changes_choice ? "" : "the same: ", what.outcome));
    body += list_html("It would change if", changes) + rejected_html(plan, catalog) + footer_html(plan);
    const std::string title = plan.workload.name.empty() ? plan.workload.title() : plan.workload.name;
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width, "
        "initial-scale=1\"><title>{}</title><style>{}</style></head>\n<body>\n{}</body></html>\n",
        escape(title), kStyle, body);
}

}  // namespace stoker
