#include "doctor/tool_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/health_text.h"

namespace stoker {

namespace {

constexpr std::size_t kPlaceWidth = 9, kVerdictWidth = 5, kToolLayerWidth = 9;
constexpr std::size_t kMostPassed = 12;  // notes that passed, of one file; -o json has them all

std::string note_word(HealthVerdict verdict, const Style& style) {
    switch (verdict) {
        case HealthVerdict::pass: return style.good("pass ");
        case HealthVerdict::warn: return style.warn("warn ");
        case HealthVerdict::fail: return style.bad("FAIL ");
        case HealthVerdict::skipped: break;
    }
    return style.dim("-    ");
}

class ToolText {
public:
    explicit ToolText(const Style& style)
        : style_(style),
          indent_(2 + kPlaceWidth + kVerdictWidth + kToolLayerWidth),
          width_(static_cast<std::size_t>(std::clamp(style.width, 60, 100))) {}

    void reading(const ToolReading& reading) {
        out_ += fmt::format("{}: {}\n", style_.bold(printable(reading.file)), word_of(reading.tool));
        std::size_t passed = 0;
        for (const ToolNote& note : reading.notes) {
            if (note.verdict == HealthVerdict::pass && ++passed > kMostPassed) continue;
            this->note(note);
        }
        if (passed > kMostPassed)
            out_ += fmt::format("  and {} more that passed (-o json has them)\n", passed - kMostPassed);
    }

    void conclusion(const ToolReport& report) {
        out_ += "\n";
        for (const std::string& line : wrap(printable(report.conclusion, 1000), width_))
            out_ += (report.verdict() == HealthVerdict::fail ? style_.bold(line) : line) + "\n";
        for (const std::string& each : report.together)
            for (const std::string& line : wrap(printable(each, 1000), width_ - 2)) out_ += "  " + line + "\n";
        if (report.open.empty()) return;
        out_ += style_.dim("not concluded") + "\n";
        for (const std::string& each : report.open)
            for (const std::string& line : wrap(printable(each, 1000), width_ - 2)) out_ += "  " + line + "\n";
    }

    std::string out_;

private:
    void note(const ToolNote& note) {
        bool first = true;
        for (const std::string& line : wrap(printable(note.message, 2000), width_ - indent_)) {
            if (first)
                out_ +=
                    fmt::format("  {}{}{}{}\n", pad_right(fmt::format("{}:{}", note.line, note.column), kPlaceWidth),
                                note_word(note.verdict, style_), pad_right(word_of(note.layer), kToolLayerWidth), line);
            else
                out_ += std::string(indent_, ' ') + line + "\n";
            first = false;
        }
        if (note.fix.empty()) return;
        // YAML keeps its lines, which are short; a sentence is broken.
        const auto lines = split_lines(note.fix);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const std::string text = (i == 0 ? "fix: " : "     ") + printable(lines[i], 1000);
            const auto broken =
                display_width(text) <= width_ - indent_ ? std::vector<std::string>{text} : wrap(text, width_ - indent_);
            for (const std::string& line : broken) out_ += std::string(indent_, ' ') + line + "\n";
        }
    }

    const Style& style_;
    const std::size_t indent_, width_;
};

Json note_json(const ToolNote& note) {
    Json json = Json::object()
                    .set("line", note.line)
                    .set("column", note.column)
                    .set("layer", word_of(note.layer))
                    .set("verdict", word_of(note.verdict))
                    .set("message", note.message);
    if (!note.fix.empty()) json.set("fix", note.fix);
    return json;
}

Json tool_check_json(const HealthCheck& check) {
    Json json = Json::object()
                    .set("name", check.name)
                    .set("layer", word_of(check.layer))
                    .set("verdict", word_of(check.verdict));
    if (!check.peer.empty()) json.set("peer", check.peer);
    if (check.measured) json.set("measured", *check.measured);
    if (check.expected) json.set("expected", *check.expected);
    if (!check.unit.empty()) json.set("unit", check.unit);
    if (!check.source.empty()) json.set("source", check.source);
    if (!check.detail.empty()) json.set("detail", check.detail);
    if (!check.fix.empty()) json.set("fix", check.fix);
    return json;
}

}  // namespace

std::string tool_text(const ToolReport& report, const Style& style) {
    ToolText text(style);
    for (const ToolReading& each : report.readings) text.reading(each);
    text.conclusion(report);
    return std::move(text.out_);
}

Json tool_json_answer(const ToolReport& report) {
    Json files = Json::array();
    for (const ToolReading& reading : report.readings) {
        Json facts = Json::array(), notes = Json::array(), checks = Json::array();
        for (const ToolFact& fact : reading.facts)
            facts.push(Json::object().set("name", fact.name).set("value", fact.value));
        for (const ToolNote& note : reading.notes) notes.push(note_json(note));
        for (const HealthCheck& check : reading.checks) checks.push(tool_check_json(check));
        files.push(Json::object()
                       .set("file", reading.file)
                       .set("tool", word_of(reading.tool))
                       .set("verdict", word_of(reading.verdict()))
                       .set("conclusion", reading.conclusion)
                       .set("facts", std::move(facts))
                       .set("notes", std::move(notes))
                       .set("checks", std::move(checks)));
    }
    Json open = Json::array();
    for (const std::string& each : report.open) open.push(each);
    Json together = Json::array();
    for (const std::string& each : report.together) together.push(each);
    return Json::object()
        .set("verdict", word_of(report.verdict()))
        .set("conclusion", report.conclusion)
        .set("together", std::move(together))
        .set("open", std::move(open))
        .set("files", std::move(files));
}

}  // namespace stoker
