#include "observe/causes/rule_text.h"

#include <fmt/format.h>

namespace stoker {

std::string milliseconds_text(double seconds) {
    const double ms = seconds * 1e3;
    if (ms >= 1000) return format_thousands(ms) + " ms";
    return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} ms", ms);
}

std::string percent_text(double share) {
    return fmt::format("{:.{}f} %", share * 100, share < 0.1 ? 1 : 0);
}

}  // namespace stoker
