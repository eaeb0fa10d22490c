#include "app/render/evidence_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "app/render/plan_text.h"
#include "base/text.h"

namespace stoker {

namespace {

// From where to where a figure goes when a constant goes through its spread: "-4 .. +6 %".
std::string moved_text(double low, double high) {
    if (std::abs(low) < 5e-4 && std::abs(high) < 5e-4) return "-";
    const auto percent = [](double share) {
        const double p = 100 * share;
        return std::abs(p) >= 9.95 ? fmt::format("{:+.0f}", p) : fmt::format("{:+.1f}", p);
    };
    return fmt::format("{} {} %", percent(low), percent(high));
}

}  // namespace

std::vector<std::string> because_lines(const Plan& plan) {
    constexpr std::size_t kShown = 15;
    std::vector<std::string> lines;
    for (const ConstantEffect& e : plan.because) {
        if (lines.size() == kShown) {
            lines.push_back(fmt::format("{} more in -o json", plan.because.size() - kShown));
            break;
        }
        const auto &low = e.when_low, &high = e.when_high;
        std::vector<std::string> moves;
        for (const auto& [what, at_low, at_high] :
             {std::tuple{"step", low.step, high.step}, std::tuple{"TTFT", low.ttft, high.ttft},
              std::tuple{"TPOT", low.tpot, high.tpot}, std::tuple{"memory", low.memory, high.memory},
              std::tuple{"cost", low.usd, high.usd}}) {
            if (const std::string text = moved_text(at_low, at_high); text != "-")
                moves.push_back(fmt::format("{} {}", what, text));
        }
        const bool unknown = e.spread.starts_with("not known");
        lines.push_back(fmt::format("{} {:.4g} ({:.4g} - {:.4g}{}): {} [{}]", e.name, e.value, e.low, e.high,
                                    unknown ? ", 10 % taken, spread not known" : "", fmt::join(moves, ", "),
                                    e.source.substr(0, e.source.find(';'))));
    }
    return lines;
}

std::string metric_text(std::string_view metric, double value) {
    if (metric == "step_s") return format_seconds(Seconds(value)) + " per step";
    if (metric == "ttft_ms") return format_seconds(Seconds(value * 1e-3)) + " to the first token";
    if (metric == "tpot_ms") return format_seconds(Seconds(value * 1e-3)) + " per output token";
    if (metric == "tokens_per_s_per_gpu") return figure_text(value) + " tokens/s per GPU";
    if (metric == "out_tokens_per_s") return figure_text(value) + " output tokens/s";
    if (metric == "tokens_per_s_total") return figure_text(value) + " tokens/s in and out";
    if (metric == "samples_per_s") return figure_text(value) + " samples/s";
    return fmt::format("{} {}", figure_text(value), metric);
}

bool far_off(const PublishedRun& run) {
    return std::fabs(run.predicted / run.measured - 1) >= 0.3;
}

std::string off_text(const PublishedRun& run) {
    const double off = std::fabs(run.predicted / run.measured - 1);
    if (off < 0.015) return "within 1 %";
    const double slower = run.slower();
    std::string text = fmt::format("{:.0f} % off", 100 * off);
    if (!far_off(run)) return text;
    const std::string_view what = run.metric == "ttft_ms" ? "its first token" : "it";
    text += slower > 1 ? fmt::format(": {} took {:.1f} x as long", what, slower)
                       : fmt::format(": {} was {:.1f} x as fast", what, 1 / slower);
    if (run.other_sources > 0)
        text += fmt::format("; together with {} other source{} near it {:.1f} x", run.other_sources,
                            run.other_sources > 1 ? "s" : "",
                            slower > 1 ? run.slower_together() : 1 / run.slower_together());
    return text;
}

std::string unlike_text(const PublishedRun& run) {
    constexpr std::size_t kMost = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(kMost, run.unlike.size()); ++i) text += (i == 0 ? ": " : ", ") + run.unlike[i];
    return text;
}

std::vector<std::string> evidence_lines(const PublishedEvidence& evidence) {
    std::vector<std::string> lines;
    if (!evidence.missing.empty()) lines.push_back(evidence.missing);
    if (evidence.closest) {
        const PublishedRun& run = *evidence.closest;
        lines.push_back(
            fmt::format("{} of {} published runs lie near; closest: {}: measured {}, we predict {} ({:+.0f} %) [{}: "
                        "{}; {:.1f} doublings "
                        "away{}]",
                        format_thousands(static_cast<double>(evidence.runs_near)),
                        format_thousands(static_cast<double>(evidence.runs)), run.title,
                        metric_text(run.metric, run.measured), metric_text(run.metric, run.predicted),
                        100 * (run.predicted / run.measured - 1), run.id, run.source, run.distance, unlike_text(run)));
    } else if (evidence.runs > 0) {
        lines.push_back(fmt::format("none of {} published runs is anything like this",
                                    format_thousands(static_cast<double>(evidence.runs))));
    }
    return lines;
}

}  // namespace stoker
