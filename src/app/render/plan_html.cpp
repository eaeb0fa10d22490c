#include "app/render/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/render/evidence_text.h"
#include "app/render/pareto_svg.h"
#include "app/render/plan_text.h"
#include "app/render/short_answer.h"
#include "base/text.h"
#include "base/version.h"
#include "formats/xml_text.h"

namespace stoker {

namespace {

// Everything that comes from a file or a table passes here before it reaches the page.
std::string escape(std::string_view text) {
    return xml_escaped(text, kHtml);
}

constexpr const char* kStyle = R"(
:root{--back:#fff;--text:#1b1f24;--soft:#57606a;--line:#d0d7de;--card:#f6f8fa;--mark:#0969da;--front:#5a7fb5;--good:#1a7f37;--warn:#8a5a00;--bad:#c01f2a;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--soft:#9aa4af;--line:#30363d;--card:#161b22;--mark:#58a6ff;--front:#7d9cc9;--good:#3fb950;--warn:#d9a334;--bad:#ff7b72}}
*{box-sizing:border-box}body{margin:0 auto;max-width:62rem;padding:2rem 1.25rem;background:var(--back);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:break-word}
h1{font-size:1.5rem;line-height:1.3;margin:0 0 1rem}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}p{margin:.4rem 0}a{color:var(--mark)}.soft{color:var(--soft)}small,.small{font-size:.875rem}
.chosen{border:1px solid var(--line);border-left:4px solid var(--mark);border-radius:8px;background:var(--card);padding:1rem 1.25rem}.chosen strong{font-size:1.05rem}
.figures{display:flex;flex-wrap:wrap;gap:.2rem 2.5rem;margin:.6rem 0}.figures b{display:block;font-size:1.5rem;line-height:1.2}.figures span{color:var(--soft);font-size:.875rem}
.bar{display:flex;height:1.75rem;border-radius:4px;overflow:hidden;gap:1px}.bar i{min-width:2px}.legend{display:flex;flex-wrap:wrap;gap:.15rem 1.25rem;margin:.5rem 0 0;padding:0;list-style:none;font-size:.875rem}
.legend i{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.4rem}.legend li{margin:0}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.925rem}th{text-align:left;color:var(--soft);font-weight:500;vertical-align:bottom}th,td{padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line)}td{vertical-align:top}
.n{text-align:right;white-space:nowrap}tr.first td{background:var(--card)}ul.plain{padding-left:1.2rem}li{margin:.3rem 0}
.notes{list-style:none;padding:0}.notes li{border-left:3px solid var(--line);padding-left:.75rem;margin:.6rem 0}.notes li.warning{border-color:var(--warn)}.notes li.error{border-color:var(--bad)}.notes b{text-transform:capitalize}.error b,.no{color:var(--bad)}.warning b{color:var(--warn)}
svg{width:100%;height:auto;margin:.4rem 0}svg.wide{display:block}svg.narrow{display:none}svg text{fill:var(--text);font:13px system-ui,sans-serif}svg .soft,svg .axis{fill:var(--soft)}svg .name{font-weight:600;paint-order:stroke;stroke:var(--back);stroke-width:4px}
svg .grid{stroke:var(--line)}svg .front{fill:none;stroke:var(--front);stroke-width:1.5}svg circle{stroke:var(--back);stroke-width:1}svg circle:hover{stroke:var(--text);stroke-width:2}
svg .dot{fill:var(--soft)}svg .on-front{fill:var(--front)}svg .best{fill:var(--mark)}.key span{display:inline-block;margin-right:1.5rem;font-size:.875rem}.key i{display:inline-block;width:.7rem;height:.7rem;border-radius:50%;margin-right:.4rem}i.dot{background:var(--soft)}i.on-front{background:var(--front)}i.best{background:var(--mark)}
summary{cursor:pointer;padding:.3rem 0;color:var(--mark)}footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.6rem;color:var(--soft);font-size:.875rem}
@media(max-width:44rem){body{padding:1.25rem 1rem}h1{font-size:1.25rem}svg.wide{display:none}svg.narrow{display:block}
.best thead{display:none}.best,.best tbody,.best tr,.best td{display:block;width:100%}.best tr{padding:.6rem 0;border-bottom:1px solid var(--line)}.best tr.first{background:var(--card)}.best td{border:0;padding:.1rem 0;text-align:left}.best td[data-label]::before{content:attr(data-label) ": ";color:var(--soft)}}
@media print{:root{--back:#fff;--text:#000;--soft:#444;--line:#bbb;--card:#f4f4f4;--mark:#0050b3;--front:#5a7fb5;--warn:#7a5000;--bad:#a00;color-scheme:light}body{max-width:none;padding:0;font-size:10pt}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
section,tr,li,.chosen{break-inside:avoid}h2{break-after:avoid}summary{color:inherit}.refused{display:none}}
)";

constexpr const char* kColours[] = {"#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2",
                                    "#b279a2", "#eeca3b", "#9d755d", "#ff9da6", "#79706e"};

struct Part {
    std::string name;
    double value = 0;
};

// A bar and its legend; parts of no value are left out. The legend says all that the colours do.
std::string bar_html(std::string_view title, std::string_view total_text, std::vector<Part> parts,
                     std::string_view unit) {
    double total = 0;
    for (const Part& part : parts) total += part.value;
    if (!(total > 0)) return {};
    std::erase_if(parts, [&](const Part& part) { return part.value < 0.002 * total; });
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.value > b.value; });
    std::string bar, legend;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string label = escape(fmt::format("{} {} {} ({:.0f} %)", parts[i].name, figure_text(parts[i].value),
                                                     unit, 100 * parts[i].value / total));
        bar += fmt::format("<i style=\"flex:{:.4f};background:{}\" title=\"{}\"></i>", parts[i].value / total,
                           kColours[i % 10], label);
        legend += fmt::format("<li><i style=\"background:{}\"></i>{}</li>", kColours[i % 10], label);
    }
    return fmt::format(
        "<section><h2>{}: {}</h2>\n<div class=\"bar\" aria-hidden=\"true\">{}</div><ul class=\"legend\">{}</ul>"
        "</section>\n",
        escape(title), escape(total_text), bar, legend);
}

std::string bars(const Prediction& p, bool has_gpu) {
    std::vector<Part> parts;
    const double unit = p.step_s.mid >= 1 ? 1 : 1e-3;
    const std::string_view unit_name = p.step_s.mid >= 1 ? "s" : "ms";
    for (int i = 0; i < kTimeTerms; ++i)
        parts.push_back(
            {std::string(info(static_cast<TimeTerm>(i)).name), p.seconds[static_cast<std::size_t>(i)] / unit});
    std::string out =
        bar_html("One step", fmt::format("{} {}", figure_text(p.step_s.mid / unit), unit_name), parts, unit_name);
    parts.clear();
    for (int i = 0; i < kMemoryTerms; ++i)
        parts.push_back(
            {std::string(info(static_cast<MemoryTerm>(i)).name), p.bytes[static_cast<std::size_t>(i)] / kGiB});
    return out + bar_html(has_gpu ? "Memory of the fullest GPU" : "Memory of the fullest machine",
                          fmt::format("{} of {} GiB", figure_text(p.memory_bytes.mid / kGiB),
                                      figure_text(p.memory_capacity_bytes / kGiB)),
                          parts, "GiB");
}

std::string list_html(std::string_view title, const std::vector<std::string>& items) {
    if (items.empty()) return {};
    std::string out = fmt::format("<section><h2>{}</h2>\n<ul class=\"plain\">\n", escape(title));
    for (const std::string& item : items) out += "<li>" + escape(item) + "</li>\n";
    return out + "</ul></section>\n";
}

std::string table_html(std::string_view title, const std::vector<Candidate>& list, const Plan& plan,
                       const Catalog& catalog, bool chosen_first) {
    if (list.empty()) return {};
    const bool service = runs_by_the_hour(list[0].prediction);
    const std::string unit = list[0].prediction.unit_name.empty() ? "unit" : list[0].prediction.unit_name;
    const std::string heads[] = {
        "machines",      service ? "replicas" : "time", service ? "$ per hour" : "cost",
        "$ per " + unit, service ? "kW" : "kWh",        chosen_first ? "why not first" : "what would have to give"};
    std::string out =
        fmt::format("<section><h2>{}</h2>\n<div class=\"scroll\"><table class=\"best\"><thead><tr>", escape(title));
    for (std::size_t i = 0; i < std::size(heads); ++i)
        out += fmt::format("<th{}>{}</th>", i == 0 || i == 5 ? "" : " class=\"n\"", escape(heads[i]));
    out += "</tr></thead><tbody>\n";
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Candidate& c = list[i];
        const Prediction& p = c.prediction;
        const bool chosen = chosen_first && i == 0;
        const std::string cells[] = {service ? std::to_string(c.replicas) : hours_text(p.hours.mid),
                                     c.priced ? money_text(usd_shown(p).mid) : "unpriced",
                                     c.priced ? figure_text(p.usd_per_unit.mid) : "-",
                                     p.kwh.mid > 0 ? figure_text(kwh_shown(p)) : "-"};
        out +=
            fmt::format("<tr{}><td>{}<br><span class=\"soft small\">{}</span></td>", chosen ? " class=\"first\"" : "",
                        escape(candidate_title(c, catalog)), escape(layout_line(c, plan.workload, catalog)));
        for (std::size_t k = 0; k < std::size(cells); ++k)
            out += fmt::format("<td class=\"n\" data-label=\"{}\">{}</td>", escape(heads[k + 1]), escape(cells[k]));
        out += chosen ? "<td>chosen</td></tr>\n"
                      : fmt::format("<td data-label=\"{}\">{}</td></tr>\n", escape(heads[5]),
                                    escape(replace_all(c.why_not_first, "->", "→")));
    }
    return out + "</tbody></table></div></section>\n";
}

std::string figure_html(std::string_view value, std::string_view label) {
    return fmt::format("<div><b>{}</b><span>{}</span></div>", escape(value), escape(label));
}

std::string milliseconds(double seconds) {
    return format_seconds(Seconds(seconds));
}

// "80 % between $3,900 and $9,196", or what the figure is, where there is no interval to tell.
std::string interval_label(const Range& range, std::string (*text)(double), std::string_view otherwise) {
    const std::string low = text(range.low), high = text(range.high);
    return low == high ? std::string(otherwise) : fmt::format("{}, 80 % between {} and {}", otherwise, low, high);
}

std::string chosen_html(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    const Prediction& p = best.prediction;
    const bool service = runs_by_the_hour(p);
    std::string out = fmt::format("<div class=\"chosen\"><strong>{}</strong><div class=\"figures\">",
                                  escape(candidate_title(best, catalog)));
    if (!service) out += figure_html(hours_text(p.hours.mid), interval_label(p.hours, hours_text, "time"));
    out += best.priced ? figure_html(money_text(usd_shown(p).mid),
                                     interval_label(usd_shown(p), money_text, service ? "per hour" : "cost"))
                       : figure_html("unpriced", "no price is known, which is not free");
    if (service && best.priced)
        out += figure_html(rounded_money(usd_shown(p).mid * kHoursOfMonth), "a month of 730 hours");
    if (p.ttft_p95_s.mid > 0)
        out += figure_html(milliseconds(p.ttft_p95_s.mid),
                           interval_label(p.ttft_p95_s, milliseconds, "to the first token, p95"));
    if (p.tpot_p95_s.mid > 0)
        out += figure_html(milliseconds(p.tpot_p95_s.mid),
                           interval_label(p.tpot_p95_s, milliseconds, "per token after it, p95"));
    out += fmt::format("</div><p class=\"soft\">{}</p>", escape(layout_line(best, plan.workload, catalog)));
    std::vector<std::string> facts;
    if (p.mfu > 0) facts.push_back(fmt::format("MFU {:.0f} %", 100 * p.mfu));
    if (plan.workload.kind != WorkloadKind::notebook)
        facts.push_back(fmt::format("bound by {}", to_string(p.bottleneck)));
    if (p.fit_probability < 0.98 && p.memory_bytes.mid > 0)
        facts.push_back(fmt::format("{:.0f} % likely to fit in memory", 100 * p.fit_probability));
    if (p.kwh.mid > 0) facts.push_back(fmt::format("{} {}", figure_text(kwh_shown(p)), service ? "kW" : "kWh"));
    if (p.checkpoint.interval_s > 0 && is_training(plan.workload.kind))
        facts.push_back(fmt::format("checkpoint every {}", format_seconds(Seconds(p.checkpoint.interval_s))));
    return out + "<p>" + escape(join(facts, " · ")) + "</p></div>\n";
}

std::string advice_html(const Plan& plan) {
    if (plan.advice.empty()) return {};
    std::string out = "<section><h2>Watch out</h2>\n<ul class=\"notes\">\n";
    for (const Advice& a : plan.advice) {
        const char* severity = a.severity == AdviceSeverity::error     ? "error"
                               : a.severity == AdviceSeverity::warning ? "warning"
                                                                       : "note";
        std::string_view text = a.text;
        if (!a.remedy.empty() && text.ends_with('.')) text.remove_suffix(1);
        out += fmt::format("<li class=\"{0}\"><b>{0}:</b> {1}", severity, escape(text));
        if (!a.remedy.empty()) out += " → " + escape(replace_all(a.remedy, "->", "→"));
        if (!a.source.empty()) out += " <span class=\"soft small\">(" + escape(a.source) + ")</span>";
        out += "</li>\n";
    }
    return out + "</ul></section>\n";
}

std::string rejected_html(const Plan& plan, const Catalog& catalog) {
    if (plan.rejected.empty()) return {};
    std::string out = fmt::format(
        "<section class=\"refused\"><h2>Refused</h2>\n<details><summary>{} of {} candidates, with "
        "reasons</summary><div "
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
    return out + "</tbody></table></div></details></section>\n";
}

std::string footer_html(const Plan& plan, const Catalog& catalog) {
    std::string out = "<footer>";
    if (plan.feasible() && plan.candidates.front().priced) {
        const Candidate& best = plan.candidates.front();
        std::string source = price_source(best, plan.workload);
        source[0] = 'P';
        out += escape(source) + ". ";
        const NodeType& node = catalog.node_types()[static_cast<std::size_t>(best.node_type)];
        std::vector<std::string> links;
        for (const std::string& page : verify_pages(node.cloud, plan.workload.where.os))
            links.push_back(fmt::format("<a href=\"https://{}\">{}</a>", page, page));
        if (!links.empty()) out += fmt::format("Verify it on {}. ", join(links, " and "));
    }
    return out + fmt::format("Catalogue {} of {}, Stoker {}.</footer>\n", escape(plan.catalog_version),
                             escape(plan.catalog_as_of), version().number);
}

}  // namespace

std::string plan_html(const Plan& plan, const Catalog& catalog) {
    std::string body;
    const std::string& name = plan.workload.name;
    if (!name.empty()) body += "<p class=\"soft\">" + escape(name) + "</p>\n";
    body += "<h1>" + escape(task_of(plan, catalog)) + "</h1>\n";
    if (plan.feasible()) {
        const Candidate& best = plan.candidates.front();
        const bool has_gpu =
            best.node_type >= 0 && catalog.node_types()[static_cast<std::size_t>(best.node_type)].has_gpu();
        body += chosen_html(plan, catalog) + bars(best.prediction, has_gpu) +
                table_html("The best of each kind", plan.candidates, plan, catalog, true) + pareto_html(plan, catalog);
    } else {
        body += "<p><strong class=\"no\">No plan:</strong> " + escape(plan.infeasible_because) + "</p>\n" +
                table_html("What comes nearest", plan.nearest, plan, catalog, false);
    }
    body += list_html("Measured elsewhere", evidence_lines(plan.evidence)) + list_html("Because", because_lines(plan)) +
            list_html("Why", plan.reasons);
    const PlatformChoice& platform = plan.platform;
    if (!platform.name.empty()) {
        std::vector<std::string> lines = {
            fmt::format("{} ({}): {}", platform.name, platform.complexity, platform.reason)};
        for (const std::string& other : platform.alternatives) lines.push_back("or " + other);
        if (!platform.paas.empty()) lines.push_back(platform.paas);
        if (!platform.image.empty())
            lines.push_back(fmt::format("image {}: {}", platform.image, platform.image_reason));
        body += list_html("Run it on", lines);
    }
    body += advice_html(plan) + list_html("Taken for granted", plan.workload.assumptions);
    body += list_html("It would change if", what_changes(plan, true, "→")) +
            list_html("It stays the same if", what_changes(plan, false, "→")) + rejected_html(plan, catalog);
    const std::string title = name.empty() ? plan.workload.title() : name;
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\"><meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\"><meta name=\"description\" content=\"{}\"><title>{} - "
        "Stoker plan</title><style>{}</style></head>\n<body>\n<main>\n{}</main>\n{}</body></html>\n",
        escape(plan.verdict), escape(title), kStyle, body, footer_html(plan, catalog));
}

}  // namespace stoker
