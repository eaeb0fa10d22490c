#include "app/render/plan_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/render/evidence_text.h"
#include "app/render/fallback_text.h"
#include "base/text.h"

namespace stoker {
namespace {

std::string node_name(const Candidate& candidate, const Catalog& catalog) {
    return candidate.node_type < 0 ? "?" : catalog.node_types()[static_cast<std::size_t>(candidate.node_type)].name;
}

// The parts worth a block of the bar: everything above 2 %, the rest gathered.
template <std::size_t N, typename Term>
std::vector<BarPart> bar_parts(const std::array<double, N>& values, double total, double unit, Term) {
    std::vector<BarPart> parts;
    double rest = 0;
    for (std::size_t i = 0; i < N; ++i) {
        if (values[i] <= 0) continue;
        if (values[i] < 0.02 * total) {
            rest += values[i];
        } else {
            parts.push_back({std::string(info(static_cast<Term>(i)).name), values[i], figure_text(values[i] / unit)});
        }
    }
    std::stable_sort(parts.begin(), parts.end(), [](const BarPart& a, const BarPart& b) { return a.value > b.value; });
    if (rest > 0.002 * total) parts.push_back({"rest", rest, figure_text(rest / unit)});
    return parts;
}

// Blocks with their names inside when the line is wide enough; else the blocks alone and the names below.
std::string fitting_bar(const Style& style, const std::vector<BarPart>& parts, std::size_t indent) {
    const std::size_t room = static_cast<std::size_t>(style.width) - indent;
    Style plain = style;
    plain.colour = false;
    for (int cells = 36; cells >= 24; cells -= 2) {
        if (display_width(stacked_bar(plain, parts, cells)) <= room) return stacked_bar(style, parts, cells);
    }
    std::vector<BarPart> bare;
    std::vector<std::string> names;
    for (const BarPart& part : parts) {
        bare.push_back({"", part.value, ""});
        names.push_back(fmt::format("{} {}", part.name, part.label));
    }
    const int cells = std::clamp(static_cast<int>(room) - 2 * static_cast<int>(parts.size()), 8, 56);
    std::string text = stacked_bar(style, bare, cells);
    for (const std::string& line : wrap(fmt::format("{}", fmt::join(names, " · ")), room))
        text += "\n" + std::string(indent, ' ') + line;
    return text;
}

std::string indented(std::string_view text, const Style& style, std::string_view first, std::size_t indent) {
    const std::vector<std::string> lines = wrap(text, static_cast<std::size_t>(style.width) - indent);
    std::string out;
    for (std::size_t i = 0; i < lines.size(); ++i)
        out += (i == 0 ? std::string(first) : std::string(indent, ' ')) + lines[i] + "\n";
    return out;
}

std::string seconds_text(double seconds) {
    return format_seconds(Seconds(seconds));
}

std::string list_block(std::string_view title, const std::vector<std::string>& items, const Style& style) {
    if (items.empty()) return {};
    std::string text = "\n  " + style.bold(title) + "\n";
    for (const std::string& item : items) text += indented(item, style, "   - ", 5);
    return text;
}

// What `tokens_per_s` counts: requests where a request is one example, else the model's samples.
std::string sample_name(const Workload& workload, const Prediction& p) {
    return runs_by_the_hour(p) ? "requests" : workload.model.sample_unit + "s";
}

// The machines, the time and the money on one line where there is room, else one below the other.
std::string chosen_line(const Candidate& best, const Catalog& catalog, const Style& style) {
    const Prediction& p = best.prediction;
    const std::string money = best.priced ? range_text(usd_shown(p), money_text) : "unpriced";
    const std::string time = runs_by_the_hour(p) ? std::string() : range_text(p.hours, hours_text);
    std::string cost = money + (runs_by_the_hour(p) ? " per hour" : "");
    if (runs_by_the_hour(p) && best.priced && p.hours.mid > 1)
        cost += fmt::format(", {} for {}", money_text(p.usd.mid), hours_text(p.hours.mid));
    const std::string title = candidate_title(best, catalog);
    const bool fits =
        display_width(title) + display_width(time) + display_width(cost) + 8 <= static_cast<std::size_t>(style.width);
    std::string text = fits ? "  " + style.bold(title) : indented(style.bold(title), style, "  ", 2);
    if (!fits) text.pop_back();
    if (!time.empty()) text += (fits ? "   " : "\n  ") + time;
    return text + (fits ? "   " : "\n  ") + style.bold(cost) + "\n";
}

std::string unit_price(const Candidate& candidate) {
    return figure_text(candidate.prediction.usd_per_unit.mid);
}

std::string latency_line(const Prediction& p, const Style& style) {
    if (!(p.ttft_p95_s.mid > 0)) return {};
    // An image or an embedding is one answer: there is no next token to wait for.
    const std::string waits = p.tpot_p95_s.mid > 0
                                  ? fmt::format("TTFT p95 {} · TPOT p95 {}", range_text(p.ttft_p95_s, seconds_text),
                                                range_text(p.tpot_p95_s, seconds_text))
                                  : fmt::format("answer p95 {}", range_text(p.ttft_p95_s, seconds_text));
    return indented(fmt::format("{} · one replica holds {}", waits,
                                p.knee_requests_per_s < 0.1 ? rate_text(p.knee_requests_per_s, "request", 3)
                                                            : figure_text(p.knee_requests_per_s) + " requests/s"),
                    style, "  ", 2);
}

std::string chosen_block(const Plan& plan, const Catalog& catalog, const Style& style) {
    const Candidate& best = plan.candidates.front();
    const Prediction& p = best.prediction;
    const bool service = best.replicas > 0 && plan.workload.kind == WorkloadKind::inference;
    std::string text = chosen_line(best, catalog, style);
    text += indented(layout_line(best, plan.workload, catalog), style, "  ", 2);
    text += "\n";
    const auto bar_line = [&](std::string_view what, const std::string& figure, const std::vector<BarPart>& parts) {
        if (style.width >= 64)
            text += fmt::format("  {} {:<13} {}\n", what, figure, fitting_bar(style, parts, 21));
        else
            text += fmt::format("  {} {}\n  {}\n", trim(what), figure, fitting_bar(style, parts, 2));
    };
    if (p.step_s.mid > 0) {
        const bool long_step = p.step_s.mid >= 1;
        bar_line("step", long_step ? figure_text(p.step_s.mid) + " s" : figure_text(p.step_s.mid * 1e3) + " ms",
                 bar_parts(p.seconds, p.step_s.mid, long_step ? 1.0 : 1e-3, TimeTerm::count));
    }
    const bool has_memory_terms = std::any_of(p.bytes.begin(), p.bytes.end(), [](double v) { return v > 0; });
    if (p.memory_bytes.mid > 0 && has_memory_terms) {
        bar_line(catalog.node_types()[static_cast<std::size_t>(best.node_type)].has_gpu() ? "GPU " : "RAM ",
                 fmt::format("{}/{} GiB", figure_text(p.memory_bytes.mid / kGiB),
                             figure_text(p.memory_capacity_bytes / kGiB)),
                 bar_parts(p.bytes, p.memory_bytes.mid, kGiB, MemoryTerm::count));
    }
    std::vector<std::string> facts;
    if (p.mfu > 0) facts.push_back(fmt::format("MFU {:.0f} %", p.mfu * 100));
    if (p.tokens_per_s > 0) {
        const std::string unit = !p.rate_unit.empty() ? p.rate_unit
                                 : service            ? std::string("output tokens")
                                                      : sample_name(plan.workload, p);
        constexpr double kWhole = 10;  // a second: fewer are told with their fractions
        facts.push_back(p.tokens_per_s < kWhole ? rate_text(p.tokens_per_s, unit, 3)
                                                : fmt::format("{} {}/s", format_thousands(p.tokens_per_s), unit));
    }
    const bool decodes = service && p.tpot_p95_s.mid > 0;
    if (plan.workload.kind != WorkloadKind::notebook)
        facts.push_back(fmt::format("{}bound by {}", decodes ? "decode " : "", to_string(p.bottleneck)));
    if (decodes) facts.push_back(fmt::format("prefill bound by {}", to_string(p.prefill_bound)));
    if (p.fit_probability < 0.98 && p.memory_bytes.mid > 0)
        facts.push_back(fmt::format("{:.0f} % likely to fit", p.fit_probability * 100));
    if (p.kwh.mid > 0)
        facts.push_back(fmt::format("{} {}", figure_text(kwh_shown(p)), runs_by_the_hour(p) ? "kW" : "kWh"));
    if (p.checkpoint.interval_s > 0 && is_training(plan.workload.kind))
        facts.push_back(fmt::format("checkpoint every {}", format_seconds(Seconds(p.checkpoint.interval_s))));
    text += indented(fmt::format("{}", fmt::join(facts, " · ")), style, "  ", 2);
    if (service) text += latency_line(p, style);
    return text;
}

// Of the money, what is paid while machines wait: for each other, for requests, or because one may be lost.
std::string idle_text(const Candidate& c) {
    const double used = c.prediction.utilisation;
    const bool known = c.prediction.step_s.mid > 0 || runs_by_the_hour(c.prediction);
    return known && used > 0 ? fmt::format("{:.0f} %", 100 * (1 - std::min(used, 1.0))) : "-";
}

// One candidate below the other, for a terminal that is too narrow for the table.
std::string candidate_cards(const std::vector<Candidate>& list, const Catalog& catalog, const Style& style,
                            bool chosen_first, std::string_view unit) {
    std::string text;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Candidate& c = list[i];
        const Prediction& p = c.prediction;
        const bool service = runs_by_the_hour(p);
        std::string title = replace_all(candidate_title(c, catalog), "Standard_", "");
        if (service) title += fmt::format(", {} replica{}", c.replicas, c.replicas == 1 ? "" : "s");
        text += indented(i == 0 && chosen_first ? style.bold(title) : title, style, fmt::format("  {:<2} ", i + 1), 5);
        std::vector<std::string> figures;
        if (!service) figures.push_back(hours_text(p.hours.mid));
        figures.push_back(c.priced ? money_text(usd_shown(p).mid) + (service ? "/h" : "") : "unpriced");
        if (c.priced && p.usd_per_unit.mid > 0) figures.push_back(fmt::format("${}/{}", unit_price(c), unit));
        if (p.kwh.mid > 0) figures.push_back(fmt::format("{} {}", figure_text(kwh_shown(p)), service ? "kW" : "kWh"));
        if (const std::string idle = idle_text(c); idle != "-") figures.push_back("idle " + idle);
        text += indented(join(figures, " · "), style, "     ", 5);
        if (!c.why_not_first.empty())
            text += indented(replace_all(c.why_not_first, "->", style.unicode ? "→" : "->"), style, "     ", 5);
    }
    return text;
}

std::string candidate_table(const std::vector<Candidate>& list, const Catalog& catalog, const Style& style,
                            bool chosen_first) {
    const bool service = !list.empty() && runs_by_the_hour(list[0].prediction);
    const std::string unit =
        list.empty() || list[0].prediction.unit_name.empty() ? "unit" : list[0].prediction.unit_name;
    constexpr int kRoomForTable = 94;  // below it the reasons would be columns of two words
    if (style.width < kRoomForTable) return candidate_cards(list, catalog, style, chosen_first, unit);
    std::vector<Column> columns = {{"", Align::left},
                                   {"nodes", Align::right},
                                   {service ? "replicas" : "time", Align::right},
                                   {service ? "$/h" : "cost", Align::right},
                                   {"$/" + unit, Align::right},
                                   {service ? "kW" : "kWh", Align::right},
                                   {"idle", Align::right},
                                   {chosen_first ? "why not first" : "what would have to give", Align::left}};
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Candidate& c = list[i];
        std::string name = node_name(c, catalog);
        if (name.starts_with("Standard_")) name = name.substr(9);
        if (c.pricing != Pricing::on_demand) name += " " + std::string(to_string(c.pricing));
        if (!c.region.empty()) name += " " + c.region;
        rows.push_back(
            {name, std::to_string(c.nodes), service ? std::to_string(c.replicas) : hours_text(c.prediction.hours.mid),
             c.priced ? money_text(usd_shown(c.prediction).mid) : "unpriced", c.priced ? unit_price(c) : "-",
             c.prediction.kwh.mid > 0 ? figure_text(kwh_shown(c.prediction)) : "-", idle_text(c),
             chosen_first && i == 0 ? "chosen" : replace_all(c.why_not_first, "->", style.unicode ? "→" : "->")});
    }
    return table_text(style, columns, rows);
}

// The most important first; background and what exceeds a page only on request.
std::string advice_block(const Plan& plan, const Style& style, bool all) {
    constexpr std::size_t kShown = 12;
    if (plan.advice.empty()) return {};
    std::string text = "\n  " + style.bold("Watch out") + "\n";
    std::size_t shown = 0;
    for (const Advice& advice : plan.advice) {
        if (!all && (advice.background || shown >= kShown)) continue;
        ++shown;
        const std::string mark = advice.severity == AdviceSeverity::error     ? style.bad("x")
                                 : advice.severity == AdviceSeverity::warning ? style.warn("!")
                                                                              : style.dim("i");
        std::string line = advice.text;
        if (!advice.remedy.empty()) {
            if (line.ends_with('.')) line.pop_back();
            const std::string_view arrow = style.unicode ? "→" : "->";
            line += fmt::format(" {} {}", arrow, replace_all(advice.remedy, "->", arrow));
        }
        text += indented(line, style, "   " + mark + " ", 5);
    }
    if (shown == 0) text.clear();
    if (const std::size_t more = plan.advice.size() - shown; more > 0)
        text += style.dim(fmt::format("{}     {} more: --show advice", shown == 0 ? "\n" : "", more)) + "\n";
    return text;
}

std::string measured_block(const Plan& plan, const Style& style) {
    if (!plan.evidence.asked) return {};
    return list_block("Measured elsewhere", evidence_lines(plan.evidence), style);
}

std::string rejected_block(const Plan& plan, const Catalog& catalog, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const Rejection& r : plan.rejected) {
        std::string where = r.region.empty() ? "" : " " + r.region;
        rows.push_back(
            {(r.node_type < 0 ? std::string("-") : catalog.node_types()[static_cast<std::size_t>(r.node_type)].name) +
                 where,
             r.nodes > 0 ? std::to_string(r.nodes) : "", std::string(code(r.reason)),
             format_thousands(static_cast<double>(r.count)), r.text});
    }
    return "\n  " + style.bold("Refused") + "\n" +
           table_text(style,
                      {{"size", Align::left},
                       {"nodes", Align::right},
                       {"reason", Align::left},
                       {"cases", Align::right},
                       {"in numbers", Align::left}},
                      rows);
}

std::string footer(const Plan& plan, const Catalog& catalog, const Style& style, const RenderOptions& options) {
    std::string line = fmt::format(
        "{} candidates, {} refused{} · catalogue {} of {}", format_thousands(static_cast<double>(plan.considered)),
        format_thousands(static_cast<double>(plan.refused)), options.show == "rejected" ? "" : " (--show rejected)",
        plan.catalog_version, plan.catalog_as_of);
    if (plan.feasible()) {
        const Candidate& best = plan.candidates.front();
        const NodeType& node = catalog.node_types()[static_cast<std::size_t>(best.node_type)];
        if (best.priced) {
            const std::string pages = join(verify_pages(node.cloud, plan.workload.where.os), " and ");
            line = price_source(best, plan.workload) + (pages.empty() ? "" : " · verify on " + pages) + " · " + line;
        }
    }
    if (options.elapsed_s >= 0) line += fmt::format(" · {:.2f} s", options.elapsed_s);
    std::string text = "\n";
    for (const std::string& part : wrap(line, static_cast<std::size_t>(style.width) - 2))
        text += "  " + style.dim(part) + "\n";
    return text;
}

std::string platform_block(const Plan& plan, const Style& style) {
    const PlatformChoice& platform = plan.platform;
    if (platform.name.empty()) return {};
    std::string text =
        "\n" + indented(fmt::format("Run it on {} ({}): {}", platform.name, platform.complexity, platform.reason),
                        style, "  ", 4);
    for (const std::string& other : platform.alternatives) text += indented(other, style, "    or ", 7);
    if (!platform.paas.empty()) text += indented(platform.paas, style, "  ", 4);
    if (!platform.image.empty())
        text += indented(fmt::format("Image {}: {}", platform.image, platform.image_reason), style, "  ", 4);
    return text;
}

}  // namespace

std::string figure_text(double value) {
    const double magnitude = std::fabs(value);
    if (magnitude >= 100) return format_thousands(value);
    if (magnitude >= 10) return fmt::format("{:.1f}", value);
    if (magnitude >= 0.1 || value == 0) return fmt::format("{:.2f}", value);
    return fmt::format("{:.2g}", value);
}

std::string hours_text(double hours) {
    return format_seconds(Seconds(hours * 3600));
}

std::string money_text(double usd) {
    return format_usd(Usd::from_double(usd));
}

std::string range_text(const Range& range, std::string (*text)(double)) {
    const std::string low = text(range.low), high = text(range.high);
    return low == high ? text(range.mid) : fmt::format("{} ({} - {})", text(range.mid), low, high);
}

bool runs_by_the_hour(const Prediction& prediction) {
    return prediction.latency.requests_per_s > 0;
}

Range usd_shown(const Prediction& prediction) {
    const bool hourly = runs_by_the_hour(prediction) && prediction.hours.mid > 0;
    return hourly ? prediction.usd * (1 / prediction.hours.mid) : prediction.usd;
}

double kwh_shown(const Prediction& prediction) {
    const bool hourly = runs_by_the_hour(prediction) && prediction.hours.mid > 0;
    return prediction.kwh.mid / (hourly ? prediction.hours.mid : 1);
}

std::string task_of(const Plan& plan, const Catalog& catalog) {
    const std::string cut = plan.feasible() ? fmt::format(": {} x {}", plan.candidates.front().nodes,
                                                          node_name(plan.candidates.front(), catalog))
                                            : ". " + plan.infeasible_because;
    std::string task = plan.verdict.substr(0, std::min(plan.verdict.find(cut), plan.verdict.size()));
    while (task.ends_with('.')) task.pop_back();
    return task;
}

std::vector<std::string> what_changes(const Plan& plan, bool changes_choice, std::string_view arrow) {
    constexpr std::string_view kSame = "the same choice, ";
    std::vector<std::string> lines;
    for (const PlanWhatIf& what : plan.what_if) {
        if (what.changes_choice != changes_choice) continue;
        std::string_view outcome = what.outcome;
        if (outcome.starts_with(kSame)) outcome.remove_prefix(kSame.size());
        lines.push_back(fmt::format("{}: {}", replace_all(what.change, "->", arrow), outcome));
    }
    return lines;
}

std::string candidate_title(const Candidate& candidate, const Catalog& catalog) {
    std::string text = fmt::format("{} x {}", candidate.nodes, node_name(candidate, catalog));
    if (!candidate.region.empty()) text += ", " + candidate.region;
    if (candidate.pricing != Pricing::on_demand) text += ", " + std::string(to_string(candidate.pricing));
    return text;
}

std::string machine_parts(const Candidate& candidate, const Catalog& catalog) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(candidate.node_type)];
    const int vcpus = candidate.nodes * node.vcpus;
    if (!node.has_gpu()) return fmt::format("{} vCPU{}", format_thousands(vcpus), vcpus == 1 ? "" : "s");
    const std::string& gpu = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name;
    const double count = candidate.nodes * node.accelerators;
    if (node.accelerators >= 1) return fmt::format("{} {}", format_thousands(count), gpu);
    // A part of a GPU each: three halves are not two.
    const std::string part = node.mig ? fmt::format("{} of {}", node.mig->profile, gpu)
                                      : fmt::format("1/{:.0f} {}", 1 / node.accelerators, gpu);
    return candidate.nodes == 1 ? part : fmt::format("{} x {}", candidate.nodes, part);
}

std::string layout_line(const Candidate& candidate, const Workload& workload, const Catalog& catalog) {
    std::vector<std::string> parts = layout_parts(candidate, workload);
    parts.insert(parts.begin(), machine_parts(candidate, catalog));
    return join(parts, " · ");
}

std::string render_plan(const Plan& plan, const Catalog& catalog, const Style& style, const RenderOptions& options) {
    std::string text = indented(task_of(plan, catalog) + (plan.feasible() ? ":" : "."), style, "", 0) + "\n";
    if (!plan.feasible()) {
        text += indented("No plan: " + plan.infeasible_because, style, "  ", 4);
        if (!plan.nearest.empty())
            text +=
                "\n  " + style.bold("What comes nearest") + "\n" + candidate_table(plan.nearest, catalog, style, false);
    } else {
        text += chosen_block(plan, catalog, style);
        text += "\n" + candidate_table(plan.candidates, catalog, style, true);
        text += measured_block(plan, style);
        text += list_block("Because: what the figures change by at the low and the high end of each spread",
                           because_lines(plan), style);
        text += list_block("Why", plan.reasons, style);
        text += platform_block(plan, style);
    }
    text += advice_block(plan, style, options.show == "advice" || options.show == "all");
    text += list_block("If it is not to be had", fallback_lines(plan, catalog), style);
    text += list_block("Taken for granted", plan.workload.assumptions, style);
    const std::string_view arrow = style.unicode ? "→" : "->";
    text += list_block("It would change if", what_changes(plan, true, arrow), style);
    text += list_block("It stays the same if", what_changes(plan, false, arrow), style);
    if (options.show == "rejected" || options.show == "all") text += rejected_block(plan, catalog, style);
    return text + footer(plan, catalog, style, options);
}

std::string render_estimate(const Workload& workload, const Candidate& candidate, const Catalog& catalog,
                            const Style& style) {
    const Prediction& p = candidate.prediction;
    std::string text = indented(workload.title(), style, "", 0);
    text += "\n" + chosen_line(candidate, catalog, style);
    text += indented(layout_line(candidate, workload, catalog), style, "  ", 2);
    if (runs_by_the_hour(p)) text += latency_line(p, style);
    if (candidate.refused != Reason::none)
        text += indented(fmt::format("cannot run ({}): {}", code(candidate.refused), candidate.refusal), style,
                         "  " + style.bad("x") + " ", 4);
    std::vector<std::vector<std::string>> rows;
    for (int i = 0; i < kTimeTerms; ++i) {
        const double value = p.seconds[static_cast<std::size_t>(i)];
        if (value <= 0) continue;
        const TermInfo& term = info(static_cast<TimeTerm>(i));
        rows.push_back({std::string(term.name), fmt::format("{:.4g} s", value),
                        fmt::format("{:.1f} %", 100 * value / p.step_s.mid),
                        fmt::format("{} [{}]", term.formula, term.source)});
    }
    if (!rows.empty()) {
        rows.push_back({"step", fmt::format("{:.4g} s", p.step_s.mid), "100 %",
                        fmt::format("80 % interval {:.4g} - {:.4g} s; MFU {:.1f} %, HFU {:.1f} %", p.step_s.low,
                                    p.step_s.high, 100 * p.mfu, 100 * p.hfu)});
        text += "\n" + table_text(style,
                                  {{"time term", Align::left},
                                   {"per step", Align::right},
                                   {"share", Align::right},
                                   {"formula [source]", Align::left}},
                                  rows);
    }
    rows.clear();
    for (int i = 0; i < kMemoryTerms; ++i) {
        const double value = p.bytes[static_cast<std::size_t>(i)];
        if (value <= 0) continue;
        const TermInfo& term = info(static_cast<MemoryTerm>(i));
        rows.push_back({std::string(term.name), fmt::format("{:.3f} GiB", value / kGiB),
                        fmt::format("{:.1f} %", 100 * value / p.memory_bytes.mid),
                        fmt::format("{} [{}]", term.formula, term.source)});
    }
    if (!rows.empty()) {
        rows.push_back({"memory", fmt::format("{:.3f} GiB", p.memory_bytes.mid / kGiB), "100 %",
                        fmt::format("80 % interval {:.2f} - {:.2f} GiB of {:.2f}; {:.0f} % likely to fit",
                                    p.memory_bytes.low / kGiB, p.memory_bytes.high / kGiB,
                                    p.memory_capacity_bytes / kGiB, 100 * p.fit_probability)});
        text += "\n" + table_text(style,
                                  {{"memory term", Align::left},
                                   {"fullest device", Align::right},
                                   {"share", Align::right},
                                   {"formula [source]", Align::left}},
                                  rows);
    }
    std::vector<std::string> sent;
    for (const auto& [what, bytes] : {std::pair{"gradients and parameters", p.gradient_bytes},
                                      {"tensor parallel", p.tensor_bytes},
                                      {"pipeline", p.pipeline_bytes}}) {
        if (bytes > 0) sent.push_back(fmt::format("{} {} GB", what, figure_text(bytes / 1e9)));
    }
    if (!sent.empty()) text += "\n" + indented("sent by each GPU in a step: " + join(sent, ", "), style, "  ", 4);
    if (p.checkpoint.interval_s > 0) {
        text += indented(
            fmt::format("checkpoint {} GB every {} (Daly 2006), goodput {:.2f} %, {} failures and {} "
                        "evictions expected",
                        figure_text(p.checkpoint.bytes / 1e9), format_seconds(Seconds(p.checkpoint.interval_s)),
                        100 * p.checkpoint.goodput, figure_text(p.checkpoint.expected_failures),
                        figure_text(p.checkpoint.expected_evictions)),
            style, "  ", 4);
    }
    for (const std::string& assumption : workload.assumptions) text += indented(assumption, style, "  - ", 4);
    for (const PlanNote& note : candidate.notes) text += indented(note.text, style, "  - ", 4);
    return text;
}

}  // namespace stoker
