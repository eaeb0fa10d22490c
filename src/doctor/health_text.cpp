#include "doctor/health_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "observe/health_lines.h"

namespace stoker {

namespace {

constexpr std::size_t kLayerWidth = 9, kNameWidth = 18;

std::string health_number(double value, std::string_view unit) {
    if (unit == "bytes/s")
        return value >= 1e12  ? fmt::format("{:.3g} TB/s", value / 1e12)
               : value >= 1e9 ? fmt::format("{:.3g} GB/s", value / 1e9)
               : value >= 1e6 ? fmt::format("{:.3g} MB/s", value / 1e6)
                              : fmt::format("{:.3g} kB/s", value / 1e3);
    if (unit == "FLOP/s")
        return value >= 1e12 ? fmt::format("{:.3g} TFLOP/s", value / 1e12) : fmt::format("{:.3g} GFLOP/s", value / 1e9);
    if (unit == "s") return value < 0.001 ? fmt::format("{:.3g} us", value * 1e6) : format_seconds(Seconds(value));
    if (unit == "bytes") return value >= 1e8 ? format_bytes_gib(Bytes(value)) : format_thousands(value) + " bytes";
    if (unit == "1/s") return format_thousands(value) + " a second";
    if (unit == "share")
        return value < 0.1 ? fmt::format("{:.2g} %", 100 * value) : fmt::format("{:.0f} %", 100 * value);
    return fmt::format("{:g}", value);
}

// People think of links in bits.
std::string measured_text(const HealthCheck& check, double value) {
    if (check.layer == HealthLayer::network && check.unit == "bytes/s" && check.name.starts_with("link-"))
        return value >= 1.25e8 ? fmt::format("{:.3g} Gbit/s", 8e-9 * value)
                               : fmt::format("{:.3g} Mbit/s", 8e-6 * value);
    return health_number(value, check.unit);
}

std::string verdict_word(HealthVerdict verdict, const Style& style) {
    switch (verdict) {
        case HealthVerdict::pass: return style.good("pass");
        case HealthVerdict::warn: return style.warn("warn");
        case HealthVerdict::fail: return style.bad("FAIL");
        case HealthVerdict::skipped: break;
    }
    return style.dim("-   ");
}

std::string line_text(const HealthCheck& check) {
    if (!check.expected) return "";
    return fmt::format("{} {} expected", lower_is_better(check.name) ? "at most" : "at least",
                       measured_text(check, *check.expected));
}

std::string sentence_of(const HealthCheck& check) {
    std::vector<std::string> parts;
    if (check.measured) parts.push_back(measured_text(check, *check.measured));
    if (const std::string line = line_text(check); !line.empty()) parts.push_back(line);
    std::string text = join(parts, ", ");
    if (!check.detail.empty()) text += (text.empty() ? "" : ": ") + check.detail;
    return text;
}

class HealthLines {
public:
    explicit HealthLines(const Style& style)
        : style_(style), width_(static_cast<std::size_t>(std::max(60, style.width)) - kLayerWidth - kNameWidth - 6) {}

    void add(std::string_view layer, const HealthCheck& check, bool blamed) {
        std::string text = sentence_of(check);
        if (!check.peer.empty()) text = check.peer + (text.empty() ? "" : ": ") + text;
        bool first = true;
        for (const std::string& line : wrap(text, width_)) {
            out_ += fmt::format("{}{}{} {}\n", pad_right(first ? layer : "", kLayerWidth),
                                first ? verdict_word(check.verdict, style_) + " " : std::string(5, ' '),
                                pad_right(first ? check.name : "", kNameWidth), line);
            first = false;
        }
        if (check.verdict != HealthVerdict::warn && check.verdict != HealthVerdict::fail) return;
        if (check.expected && !check.source.empty()) more("expected by " + check.source, false);
        if (!check.fix.empty()) more("fix: " + check.fix, blamed);
    }

    std::string out_;

private:
    void more(const std::string& text, bool bold) {
        for (const std::string& line : wrap(text, width_))
            out_ += std::string(kLayerWidth + 5 + kNameWidth + 1, ' ') + (bold ? style_.bold(line) : style_.dim(line)) +
                    "\n";
    }
    const Style& style_;
    const std::size_t width_;
};

}  // namespace

std::string_view word_of(HealthLayer layer) {
    return enum_names(layer)[static_cast<std::size_t>(layer)].second;
}
std::string_view word_of(HealthVerdict verdict) {
    return enum_names(verdict)[static_cast<std::size_t>(verdict)].second;
}

const HealthCheck* to_blame(const HealthReport& report) {
    for (const HealthVerdict wanted : {HealthVerdict::fail, HealthVerdict::warn}) {
        const HealthCheck* found = nullptr;
        for (const HealthCheck& check : report.checks)
            if (check.verdict == wanted && (found == nullptr || check.layer < found->layer)) found = &check;
        if (found != nullptr) return found;
    }
    return nullptr;
}

std::string health_text(const HealthReport& report, const HealthHeading& heading, const Style& style) {
    HealthLines lines(style);
    lines.out_ =
        fmt::format("{}, {}, looked at in {:.1f} s\n", style.bold(heading.node), heading.level, heading.seconds);
    const HealthCheck* blamed = to_blame(report);
    std::vector<const HealthCheck*> skipped;
    for (const auto& [layer, name] : enum_names(HealthLayer{})) {
        bool first = true;
        for (const HealthCheck& check : report.checks) {
            if (check.layer != layer) continue;
            // What was measured and has nothing to be held against is still worth reading.
            if (check.verdict == HealthVerdict::skipped && !check.measured) {
                skipped.push_back(&check);
                continue;
            }
            lines.add(first ? name : "", check, &check == blamed);
            first = false;
        }
    }
    const bool any = std::any_of(report.checks.begin(), report.checks.end(), [](const HealthCheck& check) {
        return check.verdict == HealthVerdict::skipped && check.measured;
    });
    if (any)
        lines.out_ +=
            style.dim("-: measured and not judged; with --baseline these figures become what is usual here") + "\n";
    if (!skipped.empty()) {
        lines.out_ += style.dim("not looked at") + "\n";
        for (const HealthCheck* check : skipped) {
            std::string text =
                fmt::format("{}{}: {}", check->name, check->peer.empty() ? "" : " " + check->peer, check->detail);
            if (!check->fix.empty()) text += " (" + check->fix + ")";
            for (const std::string& line : wrap(text, static_cast<std::size_t>(std::max(60, style.width)) - 2))
                lines.out_ += "  " + line + "\n";
        }
    }
    return lines.out_;
}

Json health_json(const HealthReport& report, const HealthHeading& heading) {
    Json checks = Json::array();
    for (const HealthCheck& check : report.checks) {
        Json each = Json::object()
                        .set("layer", word_of(check.layer))
                        .set("name", check.name)
                        .set("node", check.node)
                        .set("verdict", word_of(check.verdict));
        if (!check.peer.empty()) each.set("peer", check.peer);
        if (check.measured) each.set("measured", *check.measured);
        if (check.expected) each.set("expected", *check.expected);
        const auto add = [&](const char* key, const std::string& text) {
            if (!text.empty()) each.set(key, text);
        };
        add("unit", check.unit);
        add("source", check.source);
        add("detail", check.detail);
        add("fix", check.fix);
        checks.push(std::move(each));
    }
    Json all = Json::object()
                   .set("node", heading.node)
                   .set("level", heading.level)
                   .set("verdict", word_of(report.verdict()))
                   .set("seconds", heading.seconds);
    if (const HealthCheck* blamed = to_blame(report))
        all.set("to_blame",
                Json::object().set("layer", word_of(blamed->layer)).set("check", blamed->name).set("fix", blamed->fix));
    return all.set("checks", std::move(checks));
}

}  // namespace stoker
