#include "app/client/explanation_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/client/explanation_timeline.h"
#include "app/client/run_text.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

constexpr std::size_t kLabel = 13;

std::string explained_seconds_text(double seconds) {
    if (seconds < 0.0005) return seconds > 0 ? fmt::format("{:.2f} ms", seconds * 1e3) : "0 ms";
    return format_seconds(Seconds(seconds));
}

std::string value_text(double value, std::string_view unit) {
    if (unit == "bytes")
        return value >= 0.1 * kGiB ? format_bytes_gib(Bytes(value)) : fmt::format("{:.1f} MiB", value / kMiB);
    if (unit == "microusd") return format_usd(Usd::micro(std::llround(value)));
    return explained_seconds_text(value);
}

std::string verdict_text(const api::ExplainedTerm& term, const Style& style) {
    if (term.verdict.empty() || !term.measured) return "";
    const std::string text =
        held_words(*term.measured, term.predicted.value_or(0), term.low.value_or(0), term.high.value_or(0));
    return term.verdict == "inside" ? style.good(text) : term.verdict == "above" ? style.bad(text) : style.warn(text);
}

std::string term_text(const api::ExplainedTerm& term, const Style& style) {
    std::string text = term.measured ? value_text(*term.measured, term.unit) + " measured" : "not measured";
    if (term.predicted) text += fmt::format(", {} predicted", value_text(*term.predicted, term.unit));
    if (term.low && term.high)
        text += fmt::format(" ({} - {})", value_text(*term.low, term.unit), value_text(*term.high, term.unit));
    if (const std::string verdict = verdict_text(term, style); !verdict.empty()) text += ": " + verdict;
    if (!term.note.empty()) text += ": " + term.note;
    return text;
}

const api::ExplainedTerm* term_named(const api::ExplanationView& view, std::string_view name) {
    for (const api::ExplainedTerm& term : view.terms)
        if (term.term == name) return &term;
    return nullptr;
}

// "84 % busy, tensor cores 10 %, memory bandwidth 61 %, 480 of 700 W"
std::string gpu_use_text(const api::GpuUseView& gpu) {
    std::vector<std::string> parts;
    const auto share = [](double value) {
        return value > 0 && value < 0.005 ? std::string("under 1 %") : fmt::format("{:.0f} %", 100 * value);
    };
    if (gpu.busy_share) parts.push_back(share(*gpu.busy_share) + " busy");
    if (gpu.tensor_share) parts.push_back("tensor cores " + share(*gpu.tensor_share));
    if (gpu.bandwidth_share) parts.push_back("memory bandwidth " + share(*gpu.bandwidth_share));
    if (gpu.power_w)
        parts.push_back(fmt::format("{:.0f}{} W{}", *gpu.power_w,
                                    gpu.power_limit_w ? fmt::format(" of {:.0f}", *gpu.power_limit_w) : "",
                                    gpu.count > 1 ? " each" : ""));
    const std::string text = join(parts, ", ");
    return gpu.count > 1 ? fmt::format("{} boards{}{}", gpu.count, text.empty() ? "" : ": ", text) : text;
}

// What the board has and the allocator holds beside the peak, and what the program took of the machine.
std::string gpu_memory_text(const api::ExplanationView& view, const api::ExplainedTerm& term, const Style& style) {
    std::string text = term_text(term, style);
    std::vector<std::string> beside;
    if (view.gpu && view.gpu->memory_size_bytes)
        beside.push_back(fmt::format("of {:.0f} GiB", *view.gpu->memory_size_bytes / (1 << 30)));
    if (view.gpu && view.gpu->memory_held_bytes)
        beside.push_back("the allocator holds " + value_text(*view.gpu->memory_held_bytes, "bytes"));
    if (const api::ExplainedTerm* host = term_named(view, "memory"); host != nullptr && host->measured)
        beside.push_back("host " + value_text(*host->measured, host->unit));
    return text + (beside.empty() ? "" : fmt::format(" ({})", join(beside, ", ")));
}

class ExplanationLines {
public:
    explicit ExplanationLines(int width) : width_(static_cast<std::size_t>(std::max(40, width))) {}
    void add(std::string_view label, std::string_view text) {
        bool first = true;
        for (const std::string& line : wrap(text, width_ - kLabel - 2)) {
            out_ += fmt::format("  {}{}\n", pad_right(first ? label : "", kLabel), line);
            first = false;
        }
    }
    std::string out_;

private:
    std::size_t width_;
};

void add_diagnosis(const api::DiagnosisView& diagnosis, const Style& style, ExplanationLines& lines) {
    lines.out_ += fmt::format("\n{}{}\n", style.bold(diagnosis.name),
                              diagnosis.rank ? fmt::format(" (rank {})", *diagnosis.rank) : "");
    lines.add("what", diagnosis.what);
    if (!diagnosis.evidence.empty()) lines.add("evidence", join(diagnosis.evidence, "; "));
    if (diagnosis.cost_s > 0 && !diagnosis.stops) {
        std::string text = explained_seconds_text(diagnosis.cost_s);
        if (diagnosis.cost_low_s && diagnosis.cost_high_s)
            text += fmt::format(" ({} - {})", explained_seconds_text(*diagnosis.cost_low_s),
                                explained_seconds_text(*diagnosis.cost_high_s));
        text += " a step";
        if (diagnosis.share_of_gap) text += fmt::format(", {:.0f} % of the gap", 100 * *diagnosis.share_of_gap);
        if (diagnosis.expected_gain >= 0.005)
            text += fmt::format("; without it steps take up to {:.0f} % less", 100 * diagnosis.expected_gain);
        lines.add("costs", text);
    }
    lines.add("fix", diagnosis.fix);
}

// "cpu-limit: ready threads wait 4 % of the time they run"; those with the same reason on one line.
void add_notes(std::string_view head, const std::vector<api::DiagnosisNoteView>& notes, ExplanationLines& lines) {
    if (notes.empty()) return;
    lines.out_ += fmt::format("\n{}\n", head);
    std::vector<std::pair<std::string, std::string>> by_reason;  // reason, names
    for (const api::DiagnosisNoteView& note : notes) {
        const auto found = std::find_if(by_reason.begin(), by_reason.end(),
                                        [&](const auto& each) { return each.first == note.reason; });
        if (found == by_reason.end())
            by_reason.emplace_back(note.reason, note.name);
        else
            found->second += ", " + note.name;
    }
    std::size_t widest = 0;
    for (const api::DiagnosisNoteView& note : notes) widest = std::max(widest, note.name.size());
    for (const auto& [reason, names] : by_reason)
        for (const std::string& line : wrap(fmt::format("{}: {}", names, reason), 94)) lines.out_ += "  " + line + "\n";
}

// What the diagnoses cost together, beside what a step takes longer than planned.
std::string gap_text(const api::ExplanationView& view) {
    if (!view.gap_s || !view.unexplained_s || !(*view.gap_s > 0)) return "";
    const std::string gap = explained_seconds_text(*view.gap_s), rest = explained_seconds_text(*view.unexplained_s),
                      told = explained_seconds_text(*view.gap_s - *view.unexplained_s);
    constexpr double kNothing = 0.01;  // of the gap: less is rounding
    if (*view.unexplained_s >= *view.gap_s) return fmt::format("\nThe gap of {} a step is not explained.\n", gap);
    if (*view.unexplained_s < -kNothing * *view.gap_s)
        return fmt::format("\nTogether {} a step, more than the gap of {}: they overlap, or one of them was planned.\n",
                           told, gap);
    if (*view.unexplained_s <= kNothing * *view.gap_s) return fmt::format("\nThat is the gap of {} a step.\n", gap);
    return fmt::format("\nOf the gap of {} a step, {} are explained and {} are not.\n", gap, told, rest);
}

}  // namespace

std::string measured_text(double value, std::string_view unit) {
    return value_text(value, unit);
}

std::string explanation_text(const api::ExplanationView& view, const Style& style) {
    ExplanationLines lines(style.width);
    lines.out_ = fmt::format("{} {}", style.bold(view.run.text()), to_string(view.state));
    if (view.cause != Cause::none && view.cause != Cause::ok) lines.out_ += fmt::format(" ({})", to_string(view.cause));
    if (view.steps > 0) {
        lines.out_ += fmt::format(", {:.0f} steps of a rank looked at", view.steps);
        if (view.warm_up_steps > 0) lines.out_ += fmt::format(" after {:.0f} of warm-up", view.warm_up_steps);
    }
    lines.out_ += "\n";
    if (!view.kept_at.empty())
        lines.out_ += fmt::format(
            "judged when it ended, {}Z, from seconds that are gone by now;\nwhat is left: stoker explain {} --again\n",
            view.kept_at.substr(0, 19), view.run.text());
    else if (view.point_s >= 60 && view.steps > 0)
        lines.out_ += fmt::format("judged from points of {}: finer ones are gone\n",
                                  format_seconds(Seconds(static_cast<double>(view.point_s))));
    if (view.attempt.empty()) {
        const std::string_view why = view.state == RunState::queued
                                         ? "has not started yet; what it waits for:"
                                         : "has not run itself; the steps of a graph are runs of their own:";
        lines.out_ += fmt::format("It {} stoker describe {}\n", why, view.run.text());
        return lines.out_;
    }
    // Of ranks on GPUs the memory that matters is that of the boards; the machine's stands beside it.
    const bool on_gpus = term_named(view, "gpu-memory") != nullptr;
    bool use_told = !view.gpu;
    for (const api::ExplainedTerm& term : view.terms) {
        const bool of_board = term.term == "gpu-memory", of_machine = term.term == "memory";
        if ((of_board || of_machine) && !use_told) {
            lines.add("GPU", gpu_use_text(*view.gpu));
            use_told = true;
        }
        if (of_board)
            lines.add("GPU memory", gpu_memory_text(view, term, style));
        else if (!of_machine || !on_gpus)
            lines.add(term.term, term_text(term, style));
    }
    lines.out_ += timeline_text(view, style.width);
    for (const api::DiagnosisView& each : view.diagnoses) add_diagnosis(each, style, lines);
    if (view.diagnoses.empty()) {
        const bool known = !view.ruled_out.empty();
        const bool better = view.outside && std::none_of(view.terms.begin(), view.terms.end(),
                                                         [](const auto& term) { return term.verdict == "above"; });
        const bool failed = view.state == RunState::failed && view.cause == Cause::user_error;
        lines.out_ += failed ? fmt::format(
                                   "\nNothing was found that slowed it, and it printed nothing before it failed: "
                                   "stoker describe {}\n",
                                   view.run.text())
                      : !known       ? "\nNothing can be said: no rule has what it needs.\n"
                      : better       ? "\nIt does better than planned, and nothing was found that is wrong.\n"
                      : view.outside ? "\nNo diagnosis explains what is outside.\n"
                                     : "\nNothing found that slows it down.\n";
    }
    lines.out_ += gap_text(view);
    // Of a program that failed before its first steps there is nothing to judge: why it failed is the answer.
    const bool stopped = !view.diagnoses.empty() && view.diagnoses.front().stops;
    const bool over = view.state == RunState::failed || view.state == RunState::expired;
    if (stopped && over && !(view.steps > 0)) return lines.out_;
    add_notes("Ruled out", view.ruled_out, lines);
    add_notes("Could not be known", view.not_known, lines);
    return lines.out_;
}

std::string explanation_summary(const api::ExplanationView& view) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, view.diagnoses.size()); ++i) {
        const api::DiagnosisView& each = view.diagnoses[i];
        text += fmt::format("{}: {}", each.name, each.what);
        if (each.expected_gain >= 0.005 && !each.stops)
            text += fmt::format(" (up to {:.0f} % of a step)", 100 * each.expected_gain);
        text += fmt::format("\nfix: {}\n", each.fix);
    }
    if (text.empty() && view.outside && !view.ruled_out.empty()) text = "no diagnosis explains what is outside\n";
    if (!text.empty()) text += fmt::format("more: stoker explain {}\n", view.run.text());
    return text;
}

}  // namespace stoker
