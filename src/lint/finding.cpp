#include "lint/finding.h"

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

}  // namespace stoker::lint
