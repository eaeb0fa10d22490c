#include "io/http/http_date.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 7> kDayNames = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonthNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::string http_date(std::int64_t time_s) {
    const auto time = static_cast<std::time_t>(time_s);
    std::tm at{};
    ::gmtime_r(&time, &at);
    return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDayNames[static_cast<std::size_t>(at.tm_wday)],
                       at.tm_mday, kMonthNames[static_cast<std::size_t>(at.tm_mon)], at.tm_year + 1900, at.tm_hour,
                       at.tm_min, at.tm_sec);
}

std::optional<std::int64_t> read_http_date(std::string_view text) {
    // "Fri, 24 May 2013 00:00:00 GMT"
    if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
    const auto number = [&](std::size_t at, std::size_t size) {
        int value = -1;
        const auto [end, code] = std::from_chars(text.data() + at, text.data() + at + size, value);
        return code == std::errc() && end == text.data() + at + size ? value : -1;
    };
    const auto month = std::find(kMonthNames.begin(), kMonthNames.end(), text.substr(8, 3));
    std::tm at{};
    at.tm_mday = number(5, 2);
    at.tm_mon = static_cast<int>(month - kMonthNames.begin());
    at.tm_year = number(12, 4) - 1900;
    at.tm_hour = number(17, 2);
    at.tm_min = number(20, 2);
    at.tm_sec = number(23, 2);
    if (month == kMonthNames.end() || at.tm_mday < 1 || at.tm_mday > 31 || at.tm_year < 0 || at.tm_hour < 0 ||
        at.tm_hour > 23 || at.tm_min < 0 || at.tm_min > 59 || at.tm_sec < 0 || at.tm_sec > 60)
        return std::nullopt;
    return static_cast<std::int64_t>(::timegm(&at));
}

std::optional<std::int64_t> read_retry_after(std::string_view text, std::int64_t now_s) {
    text = trim(text);
    if (const auto at = read_http_date(text)) return std::max<std::int64_t>(0, *at - now_s);
    std::int64_t seconds = -1;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (code != std::errc() || seconds < 0) return std::nullopt;
    std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
    if (rest.empty()) return seconds;
    if (rest.size() < 2 || rest.front() != '.') return std::nullopt;
    rest.remove_prefix(1);
    if (rest.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    return seconds + (rest.find_first_not_of('0') == std::string_view::npos ? 0 : 1);
}

}  // namespace stoker
