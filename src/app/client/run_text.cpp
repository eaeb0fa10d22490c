#include "app/client/run_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/client/follow.h"
#include "app/server/api_time.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

std::string bytes_text(std::int64_t bytes) {
    const double v = static_cast<double>(bytes);
    return v >= 0.1 * kGiB ? format_bytes_gib(Bytes(v)) : fmt::format("{:.1f} MiB", v / kMiB);
}

std::string seconds_text(double seconds) {
    return format_seconds(Seconds(seconds));
}

std::int64_t peak_memory(const api::RunView& view) {
    std::int64_t peak = 0;
    for (const api::AttemptView& attempt : view.attempts)
        for (const api::RankView& rank : attempt.ranks) peak = std::max(peak, rank.peak_memory_bytes);
    return peak;
}

// "label     text", wrapped below itself.
class Lines {
public:
    explicit Lines(int width) : width_(static_cast<std::size_t>(std::max(40, width))) {}
    void add(std::string_view label, std::string_view text) {
        if (text.empty()) return;
        bool first = true;
        for (const std::string& line : wrap(text, width_ - 14)) {
            out_ += fmt::format("  {}{}\n", pad_right(first ? label : "", 12), line);
            first = false;
        }
    }
    void head(std::string_view text) { out_ += fmt::format("\n{}\n", text); }
    std::string out_;

private:
    std::size_t width_;
};

std::string command_text(const std::vector<std::string>& command) {
    std::string text;
    for (const std::string& word : command) {
        const bool plain = !word.empty() && word.find_first_of(" \t\n\"'$&|;<>()*?[]#~`\\") == std::string::npos;
        text += (text.empty() ? "" : " ") + (plain ? printable(word, 400) : "'" + printable(word, 400) + "'");
    }
    return text;
}

std::string rank_line(const api::RankView& rank) {
    std::string text = fmt::format("rank {} on {}", rank.rank, printable(rank.node));
    if (!rank.devices.empty()) text += ", GPU " + join(rank.devices, ",");
    if (rank.exit_code) text += fmt::format(", exit {}", *rank.exit_code);
    if (rank.signal) text += fmt::format(", signal {}", *rank.signal);
    if (rank.cause != Cause::none && rank.cause != Cause::ok) text += fmt::format(" ({})", to_string(rank.cause));
    if (rank.peak_memory_bytes > 0) text += ", peak " + bytes_text(rank.peak_memory_bytes);
    if (!rank.ended && rank.pid > 0) text += fmt::format(", pid {}", rank.pid);
    return text;
}

void add_attempts(const api::RunView& view, const Style& style, Lines& lines) {
    constexpr std::size_t kMost = 10, kMostRanks = 16;
    if (view.attempts.empty()) return;
    lines.head("Attempts");
    const std::size_t first = view.attempts.size() > kMost ? view.attempts.size() - kMost : 0;
    if (first > 0) lines.add("", fmt::format("{} earlier ones left out (-o json has them)", first));
    for (std::size_t i = first; i < view.attempts.size(); ++i) {
        const api::AttemptView& attempt = view.attempts[i];
        std::string text(to_string(attempt.state));
        if (attempt.cause != Cause::none) text += fmt::format(" ({})", to_string(attempt.cause));
        if (attempt.resume_step > 0) text += fmt::format(", resumed from step {}", attempt.resume_step);
        if (!attempt.detail.empty()) text += ": " + printable(attempt.detail, 300);
        lines.add(attempt.id.text(), text);
        if (i + 1 < view.attempts.size() && attempt.ranks.size() > 2) continue;
        for (std::size_t rank = 0; rank < std::min(attempt.ranks.size(), kMostRanks); ++rank)
            lines.add("", style.dim(rank_line(attempt.ranks[rank])));
    }
}

void add_prediction(const api::RunView& view, Lines& lines, std::int64_t now_us) {
    if (!view.spec.prediction) return;
    const PredictionSpec& plan = *view.spec.prediction;
    lines.head("Against the plan");
    const auto row = [&](std::string_view name, std::string_view measured, std::string_view predicted) {
        lines.add(name, fmt::format("{} measured, {} predicted", measured, predicted));
    };
    const auto metric = [&](const char* name) {
        const auto found = view.metrics.find(name);
        return found == view.metrics.end() ? 0.0 : found->second;
    };
    if (plan.step_s > 0)
        row("step", metric("step_s") > 0 ? seconds_text(metric("step_s")) : "not",
            fmt::format("{} ({} - {})", seconds_text(plan.step_s), seconds_text(plan.step_low_s),
                        seconds_text(plan.step_high_s)));
    if (plan.memory_bytes > 0)
        row("memory", peak_memory(view) > 0 ? bytes_text(peak_memory(view)) : "not yet", bytes_text(plan.memory_bytes));
    if (plan.run_s > 0) {
        double used = view.run.used_s;
        (void)now_us;
        row("time", seconds_text(used),
            fmt::format("{} ({} - {})", seconds_text(plan.run_s), seconds_text(plan.run_low_s),
                        seconds_text(plan.run_high_s)));
    }
    if (plan.cost_microusd > 0 || view.cost_microusd.value_or(0) > 0)
        row("cost", view.cost_microusd ? money_text(*view.cost_microusd) : "no price", money_text(plan.cost_microusd));
}

}  // namespace

std::string money_text(std::int64_t microusd) {
    return format_usd(Usd::micro(microusd));
}

std::string ago_text(const std::string& time, std::int64_t now_us) {
    const auto at = parse_rfc3339(time);
    if (!at) return "-";
    return seconds_text(std::max(0.0, static_cast<double>(now_us - *at) / 1e6));
}

std::string describe_text(const api::RunView& view, const Style& style, std::int64_t now_us) {
    const api::RunItem& run = view.run;
    Lines lines(style.width);
    lines.out_ = fmt::format("{} {}  {}", style.bold(run.id.text()), printable(run.name), state_text(style, run));
    if (is_terminal(run.state) && run.cause != Cause::none && run.cause != Cause::ok)
        lines.out_ += fmt::format(" ({})", to_string(run.cause));
    lines.out_ += "\n";
    if (!run.detail.empty()) lines.add("detail", printable(run.detail, 2000));
    if (view.why) {
        lines.add("waits", view.why->text);
        for (const std::string& unblock : view.why->unblock) lines.add("", "would start it: " + unblock);
    }
    if (view.eta && !is_terminal(run.state) && run.state == RunState::queued) {
        if (view.eta->p50_s)
            lines.add("starts", fmt::format("in {} (half of the futures), {} (nine of ten)",
                                            seconds_text(*view.eta->p50_s), seconds_text(view.eta->p90_s.value_or(0))));
        else
            lines.add("starts", view.eta->text);
    }
    if (run.held) lines.add("held", "yes");
    const std::string progress = progress_text(view, nullptr);
    if (!progress.empty()) lines.add("progress", progress);
    lines.add("kind", fmt::format("{}, {} rank{}{}, class {}, priority {}", to_string(run.kind), run.ranks,
                                  run.ranks == 1 ? "" : "s", run.gpus > 0 ? fmt::format(", {} GPUs", run.gpus) : "",
                                  to_string(run.run_class), run.priority));
    lines.add("submitted", fmt::format("{} ago by {} for {}", ago_text(run.submitted_at, now_us), printable(run.user),
                                       printable(run.project)));
    if (!run.nodes.empty()) lines.add("nodes", join(run.nodes, ", "));
    if (run.used_s > 0) lines.add("on machines", seconds_text(run.used_s));
    if (view.cost_microusd) lines.add("cost", money_text(*view.cost_microusd));
    if (view.lease && !view.lease->stop_at.empty())
        lines.add("lease", fmt::format("until {}{}", view.lease->stop_at, view.lease->warned ? ", warned" : ""));
    lines.add("command", command_text(view.spec.command));
    if (!view.spec.folder.empty()) lines.add("in", view.spec.folder);
    if (!view.folder.empty()) lines.add("keeps", view.folder);
    if (view.spec.source && !view.spec.source->commit.empty())
        lines.add("commit", view.spec.source->commit.substr(0, 12) +
                                (view.spec.source->dirty_sha256.empty()
                                     ? ""
                                     : " with changes " + view.spec.source->dirty_sha256.substr(0, 12)));
    lines.add("digest", view.digest.substr(0, 16));
    for (const auto& [name, value] : run.parameters) lines.add("parameter", name + "=" + printable(value));
    if (view.checkpoints && !view.checkpoints->folder.empty()) {
        lines.add("checkpoints",
                  view.checkpoints->newest
                      ? fmt::format("{} complete, newest of step {}{}", view.checkpoints->complete,
                                    view.checkpoints->newest->step,
                                    view.checkpoints->torn > 0 ? fmt::format(", {} torn", view.checkpoints->torn) : "")
                      : std::string("none yet"));
        lines.add("", view.checkpoints->folder);
    }
    if (!view.steps.empty()) {
        lines.head("Steps");
        for (const api::StepView& step : view.steps) {
            std::string text = fmt::format("{} {}", step.run.text(), to_string(step.state));
            if (step.cause != Cause::none && step.cause != Cause::ok)
                text += fmt::format(" ({})", to_string(step.cause));
            lines.add(step.step, text);
        }
    }
    add_attempts(view, style, lines);
    add_prediction(view, lines, now_us);
    return lines.out_;
}

std::string outcome_text(const api::RunView& view, std::int64_t now_us) {
    (void)now_us;
    const api::RunItem& run = view.run;
    std::string text(to_string(run.state));
    if (run.state != RunState::succeeded && run.cause != Cause::none)
        text += fmt::format(" ({})", to_string(run.cause));
    if (run.used_s > 0) text += " after " + seconds_text(run.used_s);
    if (run.attempts > 1) text += fmt::format(", {} attempts", run.attempts);
    if (!run.detail.empty() && run.state != RunState::succeeded) text += ": " + printable(run.detail, 300);
    const auto step = view.metrics.find("step_s");
    if (step != view.metrics.end() && step->second > 0) {
        text += "; step " + seconds_text(step->second);
        if (view.spec.prediction && view.spec.prediction->step_s > 0)
            text += fmt::format(" ({} predicted)", seconds_text(view.spec.prediction->step_s));
    }
    if (const std::int64_t peak = peak_memory(view); peak > 0) {
        text += "; memory " + bytes_text(peak);
        if (view.spec.prediction && view.spec.prediction->memory_bytes > 0)
            text += fmt::format(" ({} predicted)", bytes_text(view.spec.prediction->memory_bytes));
    }
    if (view.cost_microusd) text += "; cost " + money_text(*view.cost_microusd);
    return text;
}

}  // namespace stoker
