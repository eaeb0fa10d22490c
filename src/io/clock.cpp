#include "io/clock.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace stoker {
namespace {

bool begins_with_date(std::string_view text) {
    constexpr std::string_view kForm = "dddd-dd-dd";
    if (text.size() < kForm.size()) return false;
    int month = 0, day = 0;
    for (std::size_t i = 0; i < kForm.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (kForm[i] == 'd' ? !digit : text[i] != '-') return false;
        if (i == 5 || i == 6) month = month * 10 + (text[i] - '0');
        if (i == 8 || i == 9) day = day * 10 + (text[i] - '0');
    }
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

}  // namespace

std::string today() {
    if (const char* now = std::getenv("STOKER_NOW"); now != nullptr && begins_with_date(now))
        return std::string(now, 10);
    const auto days = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
    const std::chrono::year_month_day date(days);
    char text[32];
    std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    return text;
}

double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace stoker
