#include "app/client/run_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/client/follow.h"
#include "app/client/typed.h"
#include "base/api_time.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"
#include "run/spec/repeat.h"

namespace stoker {
namespace {

std::string bytes_text(std::int64_t bytes) {
    const double v = static_cast<double>(bytes);
    return v >= 0.1 * kGiB ? format_bytes_gib(Bytes(v)) : fmt::format("{:.1f} MiB", v / kMiB);
}

std::string run_seconds_text(double seconds) {
    return format_seconds(Seconds(seconds));
}

std::int64_t peak_memory(const api::RunView& view) {
    std::int64_t peak = 0;
    for (const api::AttemptView& attempt : view.attempts)
        for (const api::RankView& rank : attempt.ranks) peak = std::max(peak, rank.peak_memory_bytes);
    return peak;
}

// What a run is said to have taken: of ranks that tell of a GPU the allocator's peak there, since a plan of such ranks
// says that as well; else that of the machine.
struct TakenMemory {
    double bytes = 0, of_bytes = 0;  // of: the board's
    bool on_gpu = false;
    std::string text() const {
        const std::string board = of_bytes > 0 ? fmt::format(" of {}", bytes_text(std::llround(of_bytes))) : "";
        return bytes_text(std::llround(bytes)) + board;
    }
};
TakenMemory taken_memory(const api::RunView& view) {
    const auto last = [&](const char* name) {
        const auto found = view.metrics.find(name);
        return found == view.metrics.end() ? 0.0 : found->second;
    };
    if (const double peak = last("cuda_peak"); peak > 0 && peak < 1e15)
        return {.bytes = peak, .of_bytes = std::clamp(last("cuda_size"), 0.0, 1e15), .on_gpu = true};
    return {.bytes = static_cast<double>(peak_memory(view))};
}

// "label     text", wrapped below itself.
class RunLines {
public:
    explicit RunLines(int width) : width_(static_cast<std::size_t>(std::max(40, width))) {}
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

// What people look for in one: what it runs, without comments, directives, and the line that an import put first.
std::string script_text(const std::string& script) {
    constexpr std::size_t kMostShown = 3;
    const auto lines = split_lines(script);
    std::vector<std::string> shown;
    bool more = false;
    for (const std::string_view each : lines) {
        const std::string_view line = trim(each);
        if (line.empty() || line.front() == '#' || line.starts_with("export SLURM_JOB_ID=")) continue;
        more = shown.size() == kMostShown;
        if (more) break;
        shown.push_back(printable(line, 160));
    }
    return fmt::format("(a script of {} lines: {}{})", lines.size(), join(shown, "; "), more ? "; ..." : "");
}

// As a shell reads it back.
std::string quoted_text(const std::string& word) {
    std::string text = "'";
    for (const char c : printable(word, 400)) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

std::string command_text(const std::vector<std::string>& command) {
    constexpr std::ptrdiff_t kLongScript = 3;
    std::string text;
    for (const std::string& word : command) {
        if (std::count(word.begin(), word.end(), '\n') > kLongScript) {
            text += (text.empty() ? "" : " ") + script_text(word);
            continue;
        }
        const bool plain = !word.empty() && word.find_first_of(" \t\n\"'$&|;<>()*?[]#~`\\") == std::string::npos;
        text += (text.empty() ? "" : " ") + (plain ? printable(word, 400) : quoted_text(word));
    }
    return text;
}

// A folder that does not count is told with why: whoever wrote it believes that it is a checkpoint.
std::string checkpoints_text(const api::CheckpointsView& checkpoints) {
    std::string text = checkpoints.newest     ? fmt::format("{} complete, newest of step {}", checkpoints.complete,
                                                            checkpoints.newest->step)
                       : checkpoints.torn > 0 ? "none complete"
                                              : "none yet";
    if (checkpoints.torn == 0) return text;
    text += fmt::format(", {} torn", checkpoints.torn);
    for (const api::CheckpointItem& each : checkpoints.items)
        if (!each.complete && !each.fault.empty())
            return text + fmt::format(" (of step {}: {})", each.step, printable(each.fault, 300));
    return text;
}

std::string rank_line(const api::RankView& rank) {
    std::string text =
        fmt::format("rank {} on {}", rank.rank, rank.node.empty() ? "no node yet" : printable(rank.node));
    if (!rank.devices.empty()) text += ", GPU " + join(rank.devices, ",");
    if (rank.exit_code) text += fmt::format(", exit {}", *rank.exit_code);
    if (rank.signal) text += fmt::format(", signal {}", *rank.signal);
    if (rank.cause != Cause::none && rank.cause != Cause::ok) text += fmt::format(" ({})", to_string(rank.cause));
    if (rank.peak_memory_bytes > 0) text += ", peak " + bytes_text(rank.peak_memory_bytes);
    if (!rank.ended && rank.pid > 0) text += fmt::format(", pid {}", rank.pid);
    return text;
}

void add_attempts(const api::RunView& view, const Style& style, RunLines& lines) {
    constexpr std::size_t kMost = 10, kMostRanks = 16;
    if (view.attempts.empty()) return;
    lines.head("Attempts");
    const std::size_t first = view.attempts.size() > kMost ? view.attempts.size() - kMost : 0;
    if (first > 0) lines.add("", fmt::format("{} earlier ones left out (-o json has them)", first));
    for (std::size_t i = first; i < view.attempts.size(); ++i) {
        const api::AttemptView& attempt = view.attempts[i];
        std::string text(to_string(attempt.state));
        if (attempt.engine_wait && attempt.engine_wait->began_at.empty() && attempt.ended_at.empty())
            text = fmt::format("waits at {} since {} ({})", attempt.engine.empty() ? "the engine" : attempt.engine,
                               attempt.engine_wait->since.substr(0, 19) + "Z", to_string(attempt.engine_wait->cause));
        else if (!attempt.engine.empty() && i + 1 < view.attempts.size())
            text += " on " + attempt.engine;
        if (attempt.cause != Cause::none) text += fmt::format(" ({})", to_string(attempt.cause));
        if (attempt.resume_step > 0) text += fmt::format(", resumed from step {}", attempt.resume_step);
        if (!attempt.detail.empty()) text += ": " + printable(attempt.detail, 300);
        lines.add(attempt.id.text(), text);
        if (i + 1 < view.attempts.size() && attempt.ranks.size() > 2) continue;
        for (std::size_t rank = 0; rank < std::min(attempt.ranks.size(), kMostRanks); ++rank)
            lines.add("", style.dim(rank_line(attempt.ranks[rank])));
    }
}

std::string with_verdict(const std::string& text, const std::string& verdict) {
    return verdict.empty() ? text : text + ": " + verdict;
}

// Of a run that was priced only where it ran: its own rate, for the time that was predicted.
double predicted_microusd(const api::RunView& view) {
    const PredictionSpec& plan = *view.spec.prediction;
    if (plan.cost_microusd > 0) return static_cast<double>(plan.cost_microusd);
    return view.run.used_s > 0 ? static_cast<double>(view.cost_microusd.value_or(0)) * plan.run_s / view.run.used_s : 0;
}

// What a server says of itself in STOKER_METRICS_FILE, rank 0 for all of them, against what was predicted of a rank.
void add_serving(const api::RunView& view, const PredictedServing& plan, RunLines& lines) {
    const auto add = [&](const char* label, const char* name, const PredictedRange& range, const auto& text) {
        if (!(range.mid > 0)) return;
        const std::string predicted =
            fmt::format("{} predicted ({} - {})", text(range.mid), text(range.low), text(range.high));
        const auto found = view.metrics.find(name);
        if (found == view.metrics.end() || !(found->second > 0))
            lines.add(label, fmt::format("not measured: it writes no {} to STOKER_METRICS_FILE; {}", name, predicted));
        else
            lines.add(label, with_verdict(fmt::format("{} measured, {}", text(found->second), predicted),
                                          held_words(found->second, range.mid, range.low, range.high)));
    };
    const auto rate = [](double value) { return fmt::format("{:.3g}", value); };
    add("first token", "ttft_p95_s", plan.ttft_s, run_seconds_text);
    add("each further", "tpot_p95_s", plan.tpot_s, run_seconds_text);
    const double replicas = std::max(1, plan.replicas);
    const PredictedRange& all = plan.tokens_per_s;
    if (all.high > all.low)  // of a service it is what is asked for
        add("tokens/s", "tokens_per_s", {all.low / replicas, all.mid / replicas, all.high / replicas}, rate);
}

void add_prediction(const api::RunView& view, const MeasuredSteps& measured, RunLines& lines) {
    if (!view.spec.prediction) return;
    const PredictionSpec& plan = *view.spec.prediction;
    const bool over = is_terminal(view.run.state), whole = view.run.state == RunState::succeeded;
    lines.head("Against the plan (its interval holds four runs of five)");
    if (plan.step_s > 0) {
        const std::string predicted =
            fmt::format("{} predicted ({} - {})", run_seconds_text(plan.step_s), run_seconds_text(plan.step_low_s),
                        run_seconds_text(plan.step_high_s));
        if (!(measured.step_s > 0)) {
            lines.add("step", "not measured: it writes no step_s to STOKER_METRICS_FILE; " + predicted);
        } else {
            lines.add("step",
                      with_verdict(fmt::format("{} measured, {}", run_seconds_text(measured.step_s), predicted),
                                   held_words(measured.step_s, plan.step_s, plan.step_low_s, plan.step_high_s)));
            if (measured.cpu_s > 0 && measured.step_s > 1.1 * measured.cpu_s)
                lines.add("", with_verdict(fmt::format("{} of it at work, the rest waiting for other ranks or for a "
                                                       "processor that does something else; what was at work",
                                                       run_seconds_text(measured.cpu_s)),
                                           held_words(measured.cpu_s, plan.step_s, plan.step_low_s, plan.step_high_s)));
        }
    }
    if (plan.serving) add_serving(view, *plan.serving, lines);
    if (plan.memory_bytes > 0) {
        const TakenMemory taken = taken_memory(view);
        std::string predicted = bytes_text(plan.memory_bytes) + " predicted";
        if (plan.memory_high_bytes > 0)
            predicted +=
                fmt::format(" ({} - {})", bytes_text(plan.memory_low_bytes), bytes_text(plan.memory_high_bytes));
        // Of a run on GPUs that tells nothing of them the machine's memory is not what was predicted.
        const bool comparable = taken.bytes > 0 && (taken.on_gpu || view.spec.per_rank.gpus == 0);
        lines.add(taken.on_gpu || view.spec.per_rank.gpus > 0 ? "GPU memory" : "memory",
                  comparable
                      ? with_verdict(fmt::format("{} measured, {}", taken.text(), predicted),
                                     held_words(taken.bytes, static_cast<double>(plan.memory_bytes),
                                                static_cast<double>(plan.memory_low_bytes),
                                                static_cast<double>(plan.memory_high_bytes)))
                      : (view.spec.per_rank.gpus > 0 ? "told by stoker_torch; " : "of a rank, when it has ended; ") +
                            predicted);
    }
    const auto until_now = [&] { return over ? (whole ? "" : " until it ended") : " so far"; };
    if (plan.run_s > 0)
        lines.add("time",
                  with_verdict(fmt::format("{} measured{}, {} predicted ({} - {})", run_seconds_text(view.run.used_s),
                                           until_now(), run_seconds_text(plan.run_s), run_seconds_text(plan.run_low_s),
                                           run_seconds_text(plan.run_high_s)),
                               whole ? held_words(view.run.used_s, plan.run_s, plan.run_low_s, plan.run_high_s) : ""));
    const double predicted_cost = predicted_microusd(view);
    if (predicted_cost > 0 && !view.cost_microusd)
        lines.add("cost", fmt::format("{} predicted; without the price book nothing is counted (stoker up --prices)",
                                      money_text(std::llround(predicted_cost))));
    if (predicted_cost > 0 && view.cost_microusd)
        lines.add("cost", with_verdict(fmt::format("{}{}, {} predicted", money_text(*view.cost_microusd), until_now(),
                                                   money_text(std::llround(predicted_cost))),
                                       whole ? held_words(static_cast<double>(*view.cost_microusd), predicted_cost,
                                                          predicted_cost * plan.run_low_s / plan.run_s,
                                                          predicted_cost * plan.run_high_s / plan.run_s)
                                             : ""));
}

}  // namespace

MeasuredSteps measured_steps(Client& client, const api::RunView& view) {
    MeasuredSteps out;
    const auto last = [&](const char* name) {
        const auto found = view.metrics.find(name);
        return found == view.metrics.end() ? 0.0 : found->second;
    };
    const auto median = [&](const char* name) {
        if (!(last(name) > 0)) return 0.0;
        const auto metrics = get<api::MetricsView>(
            client, fmt::format("/api/v1/runs/{}/metrics?max_points=20000&name={}", view.run.id.text(), name));
        std::vector<double> values;
        if (metrics && !metrics->series.empty())
            for (const auto& point : metrics->series.front().points)
                if (point.size() == 2) values.push_back(point[1]);
        if (values.empty()) return last(name);
        std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
        return values[values.size() / 2];
    };
    out.step_s = median("step_s");
    out.cpu_s = median("cpu_s");
    return out;
}

std::string checked_text(const PrerequisitesSpec& needs) {
    std::vector<std::string> parts;
    if (!needs.python_modules.empty())
        parts.push_back(fmt::format("{} with {}", needs.python, join(needs.python_modules, ", ")));
    for (const std::string& command : needs.commands) parts.push_back(command);
    for (const std::string& path : needs.paths) parts.push_back(path.substr(path.rfind('/') + 1));
    if (needs.disk_bytes > 0) parts.push_back(bytes_text(needs.disk_bytes) + " of disk free");
    if (!needs.driver.empty()) parts.push_back("driver " + needs.driver);
    if (parts.size() > 8) {
        const std::size_t more = parts.size() - 8;
        parts.resize(8);
        parts.push_back(fmt::format("{} more", more));
    }
    return printable(join(parts, ", "), 300);
}

std::string money_text(std::int64_t microusd) {
    return format_usd(Usd::micro(microusd));
}

std::string held_words(double measured, double predicted, double low, double high) {
    if (!(measured > 0) || !(high > 0)) return "";
    if (measured >= low && measured <= high) return "inside";
    if (!(predicted > 0)) predicted = measured < low ? low : high;
    constexpr double kTimes = 5;
    if (measured > kTimes * predicted) return fmt::format("{:.1f} times what was predicted", measured / predicted);
    return fmt::format("{:.0f} % {} than predicted", 100 * std::abs(measured / predicted - 1),
                       measured < low ? "less" : "more");
}

std::string ago_text(const std::string& time, std::int64_t now_us) {
    const auto at = parse_rfc3339(time);
    if (!at) return "-";
    return run_seconds_text(std::max(0.0, static_cast<double>(now_us - *at) / 1e6));
}

std::int64_t now_of(const std::string& told_now, bool offline) {
    const auto told = parse_rfc3339(told_now);
    if (!told) return wall_clock_us();
    return offline ? std::max(*told, wall_clock_us()) : *told;
}

std::string describe_text(const api::RunView& view, const MeasuredSteps& measured, const Style& style,
                          std::int64_t now_us) {
    const api::RunItem& run = view.run;
    RunLines lines(style.width);
    lines.out_ = fmt::format("{} {}  {}", style.bold(run.id.text()), printable(run.name), state_text(style, run));
    if (is_terminal(run.state) && run.cause != Cause::none && run.cause != Cause::ok)
        lines.out_ += fmt::format(" ({})", to_string(run.cause));
    lines.out_ += "\n";
    // The word of an engine stands in what it waits for, too.
    if (!run.detail.empty() && !(view.why && view.why->text.find(run.detail) != std::string::npos))
        lines.add("detail", printable(run.detail, 2000));
    if (view.why) {
        lines.add("waits", view.why->text);
        for (const std::string& unblock : view.why->unblock) lines.add("", "would start it: " + unblock);
    }
    if (view.eta && (run.state == RunState::queued || run.state == RunState::starting)) {
        if (view.eta->p50_s && !view.eta->p90_s)
            lines.add("starts", "in " + run_seconds_text(*view.eta->p50_s));
        else if (view.eta->p50_s)
            lines.add("starts",
                      fmt::format("in {} (half of the futures), {} (nine of ten)", run_seconds_text(*view.eta->p50_s),
                                  run_seconds_text(view.eta->p90_s.value_or(0))));
        else
            lines.add("starts", view.eta->text);
        if (view.eta->p50_s && !view.eta->text.empty()) lines.add("", view.eta->text);
    }
    if (run.held && !is_terminal(run.state)) lines.add("held", "yes");
    const std::string progress = progress_text(view, nullptr);
    if (!progress.empty()) lines.add("progress", progress);
    lines.add("kind", fmt::format("{}, {} rank{}{}, class {}, priority {}", to_string(run.kind), run.ranks,
                                  run.ranks == 1 ? "" : "s",
                                  run.gpus > 0 ? fmt::format(", {} GPU{}", run.gpus, run.gpus == 1 ? "" : "s") : "",
                                  to_string(run.run_class), run.priority));
    lines.add("submitted", fmt::format("{} ago by {} for {}", ago_text(run.submitted_at, now_us), printable(run.user),
                                       printable(run.project)));
    if (view.spec.after) {
        std::vector<std::string> before;
        for (const AfterRun& after : *view.spec.after)
            before.push_back(after.end == AfterEnd::ok ? after.run
                                                       : fmt::format("{} ({})", after.run, to_string(after.end)));
        lines.add("after", join(before, ", "));
    }
    if (view.spec.begin_at_us) lines.add("begins", rfc3339(*view.spec.begin_at_us / 1'000'000 * 1'000'000));
    if (view.spec.repeat) {
        const RepeatSpec& repeat = *view.spec.repeat;
        std::string row = repeat_in_words(repeat.every);
        if (repeat.number > 1 || repeat.times)
            row +=
                fmt::format("; number {}{}", repeat.number, repeat.times ? fmt::format(" of {}", *repeat.times) : "");
        if (!repeat.first.empty()) row += ", since " + repeat.first;
        lines.add("repeats", row);
        if (repeat.missed > 0)
            lines.add("missed",
                      fmt::format("{}{} time{} before this one passed without a run", repeat.missed,
                                  repeat.missed == kMostMissed ? " or more" : "", repeat.missed == 1 ? "" : "s"));
    }
    if (view.spec.notify) {
        std::vector<std::string> told;
        for (const NotifySpec& each : *view.spec.notify)
            told.push_back(printable(each.to, 200) +
                           (each.on == NotifyOn::any ? "" : fmt::format(" ({})", to_string(each.on))));
        lines.add("tells", join(told, ", "));
    }
    if (view.spec.parallel) lines.add("at once", fmt::format("{} at most", *view.spec.parallel));
    if (!run.engine.empty())
        lines.add("engine", view.attempts.empty() || view.attempts.back().chosen.empty()
                                ? run.engine
                                : fmt::format("{} ({})", run.engine, view.attempts.back().chosen));
    else if (view.spec.engine)
        lines.add("engine", printable(*view.spec.engine));
    if (!run.nodes.empty()) lines.add("nodes", join(run.nodes, ", "));
    if (run.used_s > 0) lines.add("on machines", run_seconds_text(run.used_s));
    if (view.cost_microusd) lines.add("cost", money_text(*view.cost_microusd));
    if (view.lease && !view.lease->stop_at.empty())
        lines.add("lease",
                  fmt::format("until {}Z{}", view.lease->stop_at.substr(0, 19), view.lease->warned ? ", warned" : ""));
    lines.add("command", command_text(view.spec.command));
    if (view.runs_as == "server")
        lines.add("runs as", "the server's own user: it can read the server's token, journal and secrets");
    else if (!view.runs_as.empty())
        lines.add("runs as", printable(view.runs_as) + ", who cannot read the server's token, journal and secrets");
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
        lines.add("checkpoints", checkpoints_text(*view.checkpoints));
        lines.add("", view.checkpoints->folder);
    }
    if (view.stored) {
        const api::StoredView& stored = *view.stored;
        std::string text = stored.step ? fmt::format("step {}, {}, {} ago", *stored.step, bytes_text(stored.bytes),
                                                     ago_text(stored.stored_at, now_us))
                                       : std::string("none yet");
        if (stored.uploading) text += fmt::format("; step {} is being uploaded", *stored.uploading);
        lines.add("in the store", text);
        lines.add("", printable(stored.url, 2000));
        if (!stored.warning.empty())
            lines.add("warning", fmt::format("the last upload failed ({} in a row): {}", stored.failures,
                                             printable(stored.warning, 600)));
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
    add_prediction(view, measured, lines);
    return lines.out_;
}

std::string outcome_text(const api::RunView& view, const MeasuredSteps& measured) {
    const api::RunItem& run = view.run;
    const PredictionSpec* plan = view.spec.prediction ? &*view.spec.prediction : nullptr;
    const auto against = [](const std::string& predicted, const std::string& verdict) {
        return fmt::format(" ({} predicted{}{})", predicted, verdict.empty() ? "" : ", ", verdict);
    };
    std::string text(to_string(run.state));
    if (run.state != RunState::succeeded && run.cause != Cause::none)
        text += fmt::format(" ({})", to_string(run.cause));
    if (run.used_s > 0) text += " after " + run_seconds_text(run.used_s);
    if (plan != nullptr && plan->run_s > 0 && run.state == RunState::succeeded)
        text += against(run_seconds_text(plan->run_s),
                        held_words(run.used_s, plan->run_s, plan->run_low_s, plan->run_high_s));
    if (run.attempts > 1) text += fmt::format(", {} attempts", run.attempts);
    if (!run.detail.empty() && run.state != RunState::succeeded) text += ": " + printable(run.detail, 300);
    if (measured.step_s > 0) {
        text += "; step " + run_seconds_text(measured.step_s);
        if (plan != nullptr && plan->step_s > 0)
            text += against(run_seconds_text(plan->step_s),
                            held_words(measured.step_s, plan->step_s, plan->step_low_s, plan->step_high_s));
        if (measured.cpu_s > 0 && measured.step_s > 1.3 * measured.cpu_s)
            text += fmt::format(", {} of it at work", run_seconds_text(measured.cpu_s));
    }
    if (const TakenMemory taken = taken_memory(view); taken.bytes > 0) {
        text += (taken.on_gpu ? "; GPU memory " : "; memory ") + taken.text();
        if (plan != nullptr && plan->memory_bytes > 0 && (taken.on_gpu || view.spec.per_rank.gpus == 0))
            text +=
                against(bytes_text(plan->memory_bytes), held_words(taken.bytes, static_cast<double>(plan->memory_bytes),
                                                                   static_cast<double>(plan->memory_low_bytes),
                                                                   static_cast<double>(plan->memory_high_bytes)));
    }
    if (view.cost_microusd) {
        text += "; cost " + money_text(*view.cost_microusd);
        if (const double predicted = plan != nullptr ? predicted_microusd(view) : 0; predicted > 0)
            text += against(money_text(std::llround(predicted)), "");
    }
    return text;
}

}  // namespace stoker
