#include "app/client/explanation_timeline.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/client/explanation_text.h"
#include "base/text.h"
#include "base/units.h"
#include "formats/xml_text.h"

namespace stoker {
namespace {

constexpr std::size_t kTimelineLabel = 13;

std::string seconds_word(double seconds) {
    return format_seconds(Seconds(seconds));
}

double value_at(const std::vector<double>& values, std::size_t i) {
    return i < values.size() ? values[i] : 0;
}

// The parts that a cause covers: first and one behind the last.
std::pair<std::size_t, std::size_t> parts_of(const api::SpanView& span, const api::TimelineView& line) {
    const double each = static_cast<double>(line.each_s), from = static_cast<double>(line.from_s);
    const double count = static_cast<double>(line.step_s.size());
    const double first = std::clamp(std::floor((span.from_s - from) / each), 0.0, count);
    const double last = std::clamp(std::ceil((span.to_s - from) / each), first, count);
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
}

std::string html(std::string_view text) {
    return xml_escaped(text, kHtml);
}

// Steps as columns of what they are made of, the interval of the plan as a band, causes as shaded times.
std::string timeline_svg(const api::ExplanationView& view) {
    const api::TimelineView& line = *view.timeline;
    constexpr double kWide = 900, kHigh = 260, kLeft = 60, kTop = 10;
    std::optional<double> predicted, low, high;
    for (const api::ExplainedTerm& term : view.terms)
        if (term.term == "step") predicted = term.predicted, low = term.low, high = term.high;
    double top = high.value_or(0);
    for (std::size_t i = 0; i < line.step_s.size(); ++i)
        top = std::max(top, line.step_s[i] + value_at(line.checkpoint_s, i));
    if (!(top > 0)) return "";
    top *= 1.05;
    const double each = kWide / static_cast<double>(std::max<std::size_t>(1, line.step_s.size()));
    const auto y = [&](double seconds) { return kTop + kHigh * (1 - seconds / top); };
    std::string out =
        fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"time of a step over the run\">\n",
                    kLeft + kWide + 10, kTop + kHigh + 30);
    for (const api::DiagnosisView& cause : view.diagnoses)
        for (const api::SpanView& span : cause.spans) {
            const auto [first, last] = parts_of(span, line);
            if (first == last) continue;
            out += fmt::format(
                "<rect class=\"cause\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
                "height=\"{:.0f}\"><title>{}</title></rect>\n",
                kLeft + each * static_cast<double>(first), kTop, each * static_cast<double>(last - first), kHigh,
                html(cause.name + ": " + cause.what));
        }
    if (low && high)
        out += fmt::format("<rect class=\"plan\" x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\"/>\n",
                           kLeft, y(*high), kWide, std::max(1.0, y(*low) - y(*high)));
    for (std::size_t i = 0; i < line.step_s.size(); ++i) {
        const double step = line.step_s[i];
        const double wait = value_at(line.wait_s, i), collectives = value_at(line.allreduce_s, i);
        double below = 0;
        for (const auto& [name, part] : {std::pair{"compute", std::max(0.0, step - wait - collectives)},
                                         {"input", wait},
                                         {"collectives", collectives},
                                         {"checkpoints", value_at(line.checkpoint_s, i)}}) {
            if (!(part > 0)) continue;
            out += fmt::format(
                "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>{} s: {} "
                "{}</title></rect>\n",
                name, kLeft + each * static_cast<double>(i), y(below + part), std::max(0.5, each - 0.6),
                y(below) - y(below + part), static_cast<std::int64_t>(i) * line.each_s, name, seconds_word(part));
            below += part;
        }
    }
    if (predicted)
        out += fmt::format("<line class=\"predicted\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
                           kLeft, kLeft + kWide, y(*predicted));
    for (const double share : {0.0, 0.5, 1.0})
        out += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6,
                           y(share * top / 1.05) + 4, share > 0 ? seconds_word(share * top / 1.05) : "0");
    out += fmt::format(
        "<text x=\"{:.0f}\" y=\"{:.0f}\">0 s</text><text x=\"{:.0f}\" y=\"{:.0f}\" "
        "text-anchor=\"end\">{}</text>\n</svg>\n",
        kLeft, kTop + kHigh + 20, kLeft + kWide, kTop + kHigh + 20,
        seconds_word(static_cast<double>(line.step_s.size()) * static_cast<double>(line.each_s)));
    return out;
}

constexpr const char* kExplanationStyle = R"(
:root{--back:#fff;--text:#1b1f24;--soft:#57606a;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--soft:#9aa4af}}
body{margin:0 auto;max-width:64rem;padding:2rem 1.25rem;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
svg{width:100%;height:auto}svg text{fill:var(--soft);font:12px system-ui,sans-serif}pre{font-size:.85rem;white-space:pre-wrap}
.compute{fill:#5a7fb5}.input{fill:#d9a334}.collectives{fill:#8a6fbf}.checkpoints{fill:#6b7a89}.cause{fill:#c01f2a;opacity:.18}.plan{fill:#1a7f37;opacity:.16}
.predicted{stroke:#1a7f37;stroke-width:1.5;stroke-dasharray:5 4}.key i{display:inline-block;width:.8rem;height:.8rem;margin:0 .35rem 0 1rem}
)";

}  // namespace

std::string timeline_text(const api::ExplanationView& view, int width) {
    if (!view.timeline || view.timeline->step_s.size() < 4) return "";
    const api::TimelineView& line = *view.timeline;
    const std::size_t room = static_cast<std::size_t>(std::clamp(width - 16, 20, 96));
    const std::size_t per = (line.step_s.size() + room - 1) / room, columns = (line.step_s.size() + per - 1) / per;
    std::vector<double> longest(columns, 0);
    double least = 0, most = 0;
    for (std::size_t i = 0; i < line.step_s.size(); ++i) {
        const double step = line.step_s[i];
        if (!(step > 0)) continue;
        longest[i / per] = std::max(longest[i / per], step);
        least = least > 0 ? std::min(least, step) : step;
        most = std::max(most, step);
    }
    if (!(most > 0)) return "";
    constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::string bars;
    for (const double each : longest)
        bars += each > 0 ? kBlocks[std::clamp(static_cast<int>(std::ceil(8 * each / most)) - 1, 0, 7)] : " ";
    std::string out = fmt::format("\n  {}{}\n", pad_right("steps", kTimelineLabel), bars);
    for (const api::DiagnosisView& cause : view.diagnoses) {
        if (cause.spans.empty()) continue;
        std::string marks(columns, ' ');
        for (const api::SpanView& span : cause.spans) {
            const auto [first, last] = parts_of(span, line);
            for (std::size_t i = first; i < last; ++i) marks[i / per] = '^';
        }
        while (!marks.empty() && marks.back() == ' ') marks.pop_back();
        if (!marks.empty()) out += fmt::format("  {}{} {}\n", pad_right("", kTimelineLabel), marks, cause.name);
    }
    return out + fmt::format("  {}a column is {}; {} to {} a step\n", pad_right("", kTimelineLabel),
                             seconds_word(static_cast<double>(per) * static_cast<double>(line.each_s)),
                             seconds_word(least), seconds_word(most));
}

std::string explanation_html(const api::ExplanationView& view) {
    Style plain;
    plain.width = 100;
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta "
        "charset=\"utf-8\"><title>{0}</title>\n<style>{1}</style></head>\n"
        "<body>\n<h1>{0}</h1>\n",
        html(view.run.text() + " against its plan"), kExplanationStyle);
    if (view.timeline && !view.timeline->step_s.empty()) {
        out += timeline_svg(view);
        out += "<p class=\"key\">";
        for (const auto& [name, words] : {std::pair{"compute", "computing"},
                                          {"input", "waiting for input"},
                                          {"collectives", "collectives"},
                                          {"checkpoints", "checkpoints"},
                                          {"plan", "interval of the plan"},
                                          {"cause", "when a cause was seen"}})
            out += fmt::format(
                "<svg style=\"width:.8rem;height:.8rem\" viewBox=\"0 0 8 8\"><rect class=\"{}\" width=\"8\" "
                "height=\"8\"/></svg> {}&emsp;",
                name, words);
        out += "</p>\n";
    } else {
        out += "<p>No steps were seen, so there is no picture of them.</p>\n";
    }
    return out + "<pre>" + html(explanation_text(view, plain)) + "</pre>\n</body></html>\n";
}

}  // namespace stoker
