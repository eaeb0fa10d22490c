#include "base/api_time.h"

#include <chrono>

#include <fmt/format.h>

namespace stoker {
namespace {

constexpr std::int64_t kDayUs = 86'400'000'000;

bool digits(std::string_view text, std::size_t at, std::size_t count, int& value) {
    value = 0;
    if (text.size() < at + count) return false;
    for (std::size_t i = at; i < at + count; ++i) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = 10 * value + (text[i] - '0');
    }
    return true;
}

}  // namespace

std::string rfc3339(std::int64_t us) {
    if (us == 0) return "";
    const std::int64_t day = us / kDayUs - (us % kDayUs < 0 ? 1 : 0), rest = us - day * kDayUs;
    const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
    const std::int64_t second = rest / 1'000'000;
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                       second / 60 % 60, second % 60, rest % 1'000'000);
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (text.size() == 10) return parse_rfc3339(std::string(text) + "T00:00:00Z");
    if (!digits(text, 0, 4, year) || !digits(text, 5, 2, month) || !digits(text, 8, 2, day) ||
        !digits(text, 11, 2, hour) || !digits(text, 14, 2, minute) || !digits(text, 17, 2, second))
        return std::nullopt;
    if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't' && text[10] != ' ') ||
        text[13] != ':' || text[16] != ':')
        return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
    std::size_t at = 19;
    std::int64_t fraction_us = 0;
    if (at < text.size() && text[at] == '.') {
        std::int64_t unit = 100'000;
        const std::size_t first = ++at;
        for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
            fraction_us += unit * (text[at] - '0');
        if (at == first || at - first > 9) return std::nullopt;
    }
    std::int64_t offset_min = 0;
    if (at + 1 == text.size() && (text[at] == 'Z' || text[at] == 'z')) {
        // UTC
    } else if (at + 6 == text.size() && (text[at] == '+' || text[at] == '-') && text[at + 3] == ':') {
        int h = 0, m = 0;
        if (!digits(text, at + 1, 2, h) || !digits(text, at + 4, 2, m) || h > 23 || m > 59) return std::nullopt;
        offset_min = (text[at] == '-' ? -1 : 1) * (60 * h + m);
    } else {
        return std::nullopt;
    }
    const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    return days * kDayUs + ((hour * 60 + minute - offset_min) * 60 + second) * 1'000'000 + fraction_us;
}

}  // namespace stoker
