#include "lint/finding.h"

#include <fmt/format.h>

namespace stoker::lint {

std::string_view to_string(Severity severity) {
    switch (severity) {
        case Severity::info: return "info";
        case Severity::warning: return "warning";
        case Severity::error: return "error";
    }
    return "error";
}

std::optional<Severity> severity_from(std::string_view text) {
    for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
        if (text == to_string(severity)) return severity;
    return std::nullopt;
}

std::string_view to_string(FixClass fix) {
    switch (fix) {
        case FixClass::none: return "none";
        case FixClass::safe: return "safe";
        case FixClass::unsafe: return "unsafe";
    }
    return "none";
}

std::string FindingCost::text() const {
    const std::string where = lowest ? fmt::format("the lowest list price, {}", region) : fmt::format("in {}", region);
    const std::string copies = nodes == 1 ? "" : fmt::format("{} x ", nodes);
    if (!instead.empty())
        return fmt::format("{}{} is {:.2f} USD an hour, {} with a GPU from {:.2f} ({}, {})", copies, size, usd_per_hour,
                           instead, instead_usd_per_hour, where, as_of);
    return fmt::format("{}{} idle is {:.2f} USD an hour, {:.0f} a weekend of {:.0f} hours ({}, {})", copies, size,
                       usd_per_hour, usd_per_weekend(), kWeekendHours, where, as_of);
}

}  // namespace stoker::lint
