#include "app/render/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {

namespace {

std::string significant(double value) {
    const double magnitude = std::fabs(value);
    if (magnitude >= 100) return format_thousands(value);
    if (magnitude >= 10) return fmt::format("{:.1f}", value);
    return fmt::format("{:.2f}", value);
}

std::string interval(const Range& range, std::string (*text)(double)) {
    return fmt::format("{} ({} - {})", text(range.mid), text(range.low), text(range.high));
}

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
            parts.push_back({std::string(info(static_cast<Term>(i)).name), values[i], significant(values[i] / unit)});
        }
    }
    std::stable_sort(parts.begin(), parts.end(), [](const BarPart& a, const BarPart& b) { return a.value > b.value; });
    if (rest > 0.002 * total) parts.push_back({"rest", rest, significant(rest / unit)});
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
    std::string text = stacked_bar(style, bare, 56);
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

std::string unit_price(const Candidate& candidate) {
    return significant(candidate.prediction.usd_per_unit.mid);
}

std::string chosen_block(const Plan& plan, const Catalog& catalog, const Style& style) {
    const Candidate& best = plan.candidates.front();
    const Prediction& p = best.prediction;
    const bool service = best.replicas > 0 && plan.workload.kind == WorkloadKind::inference;
    std::string text;
    const Range usd = service && p.hours.mid > 0 ? p.usd * (1 / p.hours.mid) : p.usd;  // of a service: per hour
    const std::string money = best.priced ? interval(usd, money_text) : "unpriced";
    const std::string time = service ? std::string("per hour") : interval(p.hours, hours_text);
    const std::string title = candidate_title(best, catalog);
    const bool fits = title.size() + time.size() + money.size() + 8 <= static_cast<std::size_t>(style.width);
    text += fmt::format("  {}{}{}   {}\n", style.bold(title), fits ? "   " : "\n  ", time, style.bold(money));
    text += indented(layout_line(best, plan.workload, catalog), style, "  ", 2);
    text += "\n";
    constexpr std::size_t indent = 21;
    if (p.step_s.mid > 0) {
        const double unit = p.step_s.mid >= 1 ? 1.0 : 1e-3;
        text +=
            fmt::format("  step {:<13} {}\n",
                        p.step_s.mid >= 1 ? significant(p.step_s.mid) + " s" : significant(p.step_s.mid * 1e3) + " ms",
                        fitting_bar(style, bar_parts(p.seconds, p.step_s.mid, unit, TimeTerm::count), indent));
    }
    if (p.memory_bytes.mid > 0) {
        text +=
            fmt::format("  {} {:<13} {}\n",
                        catalog.node_types()[static_cast<std::size_t>(best.node_type)].has_gpu() ? "GPU " : "RAM ",
                        fmt::format("{}/{} GiB", significant(p.memory_bytes.mid / kGiB),
                                    significant(p.memory_capacity_bytes / kGiB)),
                        fitting_bar(style, bar_parts(p.bytes, p.memory_bytes.mid, kGiB, MemoryTerm::count), indent));
    }
    std::vector<std::string> facts;
    if (p.mfu > 0) facts.push_back(fmt::format("MFU {:.0f} %", p.mfu * 100));
    if (p.tokens_per_s > 0)
        facts.push_back(fmt::format("{} {}/s", format_thousands(p.tokens_per_s),
                                    service ? "output tokens" : plan.workload.model.sample_unit + "s"));
    facts.push_back(fmt::format("bound by {}", to_string(p.bottleneck)));
    if (service) facts.push_back(fmt::format("prefill bound by {}", to_string(p.prefill_bound)));
    if (p.fit_probability < 0.98 && p.memory_bytes.mid > 0)
        facts.push_back(fmt::format("{:.0f} % likely to fit", p.fit_probability * 100));
    if (p.kwh.mid > 0) facts.push_back(fmt::format("{} kWh", significant(p.kwh.mid)));
    if (p.checkpoint.interval_s > 0)
        facts.push_back(fmt::format("checkpoint every {}", format_seconds(Seconds(p.checkpoint.interval_s))));
    text += indented(fmt::format("{}", fmt::join(facts, " · ")), style, "  ", 2);
    if (service && p.ttft_p95_s.mid > 0) {
        text += indented(
            fmt::format(
                "TTFT p95 {:.0f} ms ({:.0f} - {:.0f}) · TPOT p95 {:.1f} ms ({:.1f} - {:.1f}) · one replica holds {} "
                "requests/s",
                p.ttft_p95_s.mid * 1e3, p.ttft_p95_s.low * 1e3, p.ttft_p95_s.high * 1e3, p.tpot_p95_s.mid * 1e3,
                p.tpot_p95_s.low * 1e3, p.tpot_p95_s.high * 1e3, significant(p.knee_requests_per_s)),
            style, "  ", 2);
    }
    return text;
}

std::string candidate_table(const Plan& plan, const std::vector<Candidate>& list, const Catalog& catalog,
                            const Style& style, bool chosen_first) {
    const bool service = plan.workload.kind == WorkloadKind::inference;
    const std::string unit =
        list.empty() || list[0].prediction.unit_name.empty() ? "unit" : list[0].prediction.unit_name;
    std::vector<Column> columns = {{"", Align::left},
                                   {"nodes", Align::right},
                                   {service ? "replicas" : "time", Align::right},
                                   {service ? "$/h" : "cost", Align::right},
                                   {"$/" + unit, Align::right},
                                   {"kWh", Align::right},
                                   {"why not first", Align::left}};
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Candidate& c = list[i];
        std::string name = node_name(c, catalog);
        if (name.starts_with("Standard_")) name = name.substr(9);
        if (c.pricing != Pricing::on_demand) name += " " + std::string(to_string(c.pricing));
        if (!c.region.empty()) name += " " + c.region;
        rows.push_back(
            {name, std::to_string(c.nodes), service ? std::to_string(c.replicas) : hours_text(c.prediction.hours.mid),
             c.priced ? money_text(c.prediction.usd.mid / (service ? std::max(c.prediction.hours.mid, 1e-9) : 1))
                      : "unpriced",
             c.priced ? unit_price(c) : "-", c.prediction.kwh.mid > 0 ? significant(c.prediction.kwh.mid) : "-",
             chosen_first && i == 0 ? "chosen" : c.why_not_first});
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
        const std::string mark = advice.severity == Severity::error     ? style.bad("x")
                                 : advice.severity == Severity::warning ? style.warn("!")
                                                                        : style.dim("i");
        std::string line = advice.text;
        if (!advice.remedy.empty()) line += (line.ends_with('.') ? " " : ". ") + advice.remedy;
        text += indented(line, style, "   " + mark + " ", 5);
    }
    if (shown == 0) text.clear();
    if (const std::size_t more = plan.advice.size() - shown; more > 0)
        text += style.dim(fmt::format("{}     {} more: --show advice", shown == 0 ? "\n" : "", more)) + "\n";
    return text;
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

std::string footer(const Plan& plan, const Style& style, const RenderOptions& options) {
    std::string line = fmt::format(
        "{} candidates, {} refused{} · catalogue {} of {}", format_thousands(static_cast<double>(plan.considered)),
        format_thousands(static_cast<double>(plan.refused)), options.show == "rejected" ? "" : " (--show rejected)",
        plan.catalog_version, plan.catalog_as_of);
    if (plan.feasible()) {
        const Candidate& best = plan.candidates.front();
        if (best.priced) {
            line = fmt::format("price: {}, {}, {} {}{} as of {}, {} · ", best.region.empty() ? "-" : best.region,
                               plan.workload.where.os, money_text(best.node_per_hour.dollars()), "per node and hour",
                               best.price_is_estimate ? " (estimate)" : "", best.price_provenance.as_of,
                               best.price_provenance.source) +
                   line;
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

std::string hours_text(double hours) {
    if (hours >= 48) return fmt::format("{:.1f} d", hours / 24);
    if (hours >= 10) return fmt::format("{:.0f} h", hours);
    if (hours >= 2) return fmt::format("{:.1f} h", hours);
    if (hours * 60 >= 10) return fmt::format("{:.0f} min", hours * 60);
    return fmt::format("{:.1f} min", hours * 60);
}

std::string money_text(double usd) {
    if (std::fabs(usd) >= 100) return "$" + format_thousands(usd);
    return std::fabs(usd) >= 0.1 || usd == 0 ? fmt::format("${:.2f}", usd) : fmt::format("${:.4f}", usd);
}

std::string candidate_title(const Candidate& candidate, const Catalog& catalog) {
    std::string text = fmt::format("{} x {}", candidate.nodes, node_name(candidate, catalog));
    if (!candidate.region.empty()) text += ", " + candidate.region;
    if (candidate.pricing != Pricing::on_demand) text += ", " + std::string(to_string(candidate.pricing));
    return text;
}

std::string layout_line(const Candidate& candidate, const Workload& workload, const Catalog& catalog) {
    std::vector<std::string> parts;
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(candidate.node_type)];
    if (node.has_gpu()) {
        const std::string& gpu = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name;
        const double count = candidate.nodes * node.accelerators;
        parts.push_back(count >= 1 ? fmt::format("{:.0f} {}", count, gpu) : fmt::format("1/{:.0f} {}", 1 / count, gpu));
    } else {
        parts.push_back(fmt::format("{} vCPU", candidate.nodes * node.vcpus));
    }
    if (is_training(workload.kind)) {
        parts.push_back(describe(candidate.layout));
    } else if (candidate.replicas > 0) {
        parts.push_back(fmt::format(
            "{} replica{} of {} device{}{}", candidate.replicas, candidate.replicas == 1 ? "" : "s",
            candidate.replica.gpus(), candidate.replica.gpus() == 1 ? "" : "s",
            candidate.replica.tensor > 1 ? fmt::format(", tensor parallel {}", candidate.replica.tensor) : ""));
    }
    if (workload.model_known) parts.push_back(std::string(to_string(workload.precision)));
    if (!candidate.framework.empty()) parts.push_back(candidate.framework);
    if (candidate.orchestrator != Orchestrator::none) parts.push_back(std::string(to_string(candidate.orchestrator)));
    return fmt::format("{}", fmt::join(parts, " · "));
}

std::string render_plan(const Plan& plan, const Catalog& catalog, const Style& style, const RenderOptions& options) {
    std::string text = indented(plan.verdict, style, "", 0) + "\n";
    if (!plan.feasible()) {
        text += indented("No plan: " + plan.infeasible_because, style, "  ", 4);
        if (!plan.nearest.empty())
            text += "\n  " + style.bold("What comes nearest") + "\n" +
                    candidate_table(plan, plan.nearest, catalog, style, false);
    } else {
        text += chosen_block(plan, catalog, style);
        text += "\n" + candidate_table(plan, plan.candidates, catalog, style, true);
        if (!plan.reasons.empty()) {
            text += "\n  " + style.bold("Why") + "\n";
            for (const std::string& reason : plan.reasons) text += indented(reason, style, "   - ", 5);
        }
        text += platform_block(plan, style);
    }
    text += advice_block(plan, style, options.show == "advice" || options.show == "all");
    if (!plan.workload.assumptions.empty()) {
        text += "\n  " + style.bold("Taken for granted") + "\n";
        for (const std::string& assumption : plan.workload.assumptions) text += indented(assumption, style, "   - ", 5);
    }
    if (!plan.what_if.empty()) {
        text += "\n  " + style.bold("It would change if") + "\n";
        for (const WhatIf& what : plan.what_if) {
            text += indented(
                fmt::format("{} -> {}", what.change, what.changes_choice ? what.outcome : "the same: " + what.outcome),
                style, "   - ", 5);
        }
    }
    if (options.show == "rejected" || options.show == "all") text += rejected_block(plan, catalog, style);
    return text + footer(plan, style, options);
}

std::string render_estimate(const Workload& workload, const Candidate& candidate, const Catalog& catalog,
                            const Style& style) {
    const Prediction& p = candidate.prediction;
    std::string text = indented(workload.title(), style, "", 0);
    text += fmt::format("\n  {}   {}   {}\n", style.bold(candidate_title(candidate, catalog)),
                        interval(p.hours, hours_text), candidate.priced ? interval(p.usd, money_text) : "unpriced");
    text += indented(layout_line(candidate, workload, catalog), style, "  ", 2);
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
    if (p.gradient_bytes + p.tensor_bytes + p.pipeline_bytes > 0) {
        text += fmt::format(
            "\n  sent by each GPU in a step: gradients and parameters {:.2f} GB, tensor parallel {:.2f} GB, pipeline "
            "{:.2f} GB\n",
            p.gradient_bytes / 1e9, p.tensor_bytes / 1e9, p.pipeline_bytes / 1e9);
    }
    if (p.checkpoint.interval_s > 0) {
        text += fmt::format(
            "  checkpoint {:.1f} GB every {} (Daly 2006), goodput {:.2f} %, {:.2f} failures and {:.2f} evictions "
            "expected\n",
            p.checkpoint.bytes / 1e9, format_seconds(Seconds(p.checkpoint.interval_s)), 100 * p.checkpoint.goodput,
            p.checkpoint.expected_failures, p.checkpoint.expected_evictions);
    }
    for (const std::string& assumption : workload.assumptions) text += indented(assumption, style, "  - ", 4);
    for (const std::string& note : candidate.notes) text += indented(note, style, "  - ", 4);
    return text;
}

}  // namespace stoker
