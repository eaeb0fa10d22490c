#include "run/spec/repeat.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

constexpr std::int64_t kMicro = 1'000'000;
constexpr std::int64_t kMinuteUs = 60 * kMicro, kDayUs = 1440 * kMinuteUs;
// 29 February on a given day of the week comes within 40 years, also over 2100.
constexpr std::int64_t kMostDays = 366 * 41;

struct Field {
    std::string_view name;
    int low, high;
};
constexpr std::array<Field, 5> kFields = {
    {{"minute", 0, 59}, {"hour", 0, 23}, {"day of the month", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 7}}};
constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

Error wrong(std::string_view words, const std::string& what) {
    return Error(ErrorKind::invalid, fmt::format("every '{}': {}", printable(words, 60), what), {},
                 "write an interval, 6h, or five fields of cron in UTC: \"0 2 * * 1-5\" is two at night on weekdays");
}

std::optional<int> number_of(std::string_view word, const Field& field) {
    int value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code == std::errc() && end == word.data() + word.size()) return value;
    const auto named = [&](const auto& names, int first) -> std::optional<int> {
        for (std::size_t i = 0; i < names.size(); ++i)
            if (equals_ignore_case(word, names[i])) return static_cast<int>(i) + first;
        return std::nullopt;
    };
    if (field.high == 12) return named(kMonths, 1);
    if (field.high == 7) return named(kDays, 0);
    return std::nullopt;
}

// "*/15", "1-5", "1,3,mon": the values as bits.
Result<std::uint64_t> read_field(std::string_view words, std::string_view text, const Field& field) {
    std::uint64_t bits = 0;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t slash = part.find('/');
        const std::string_view range = part.substr(0, slash);
        int low = field.low, high = field.high == 7 ? 6 : field.high, step = 1;
        if (slash != std::string_view::npos) {
            const auto given = number_of(part.substr(slash + 1), {"", 0, 0});
            if (!given || *given < 1 || *given > field.high)
                return wrong(words, fmt::format("the step of the {} is '{}'", field.name,
                                                printable(part.substr(slash + 1), 20)));
            step = *given;
        }
        if (range != "*") {
            const std::size_t dash = range.find('-');
            const auto from = number_of(range.substr(0, dash), field);
            const auto to = dash == std::string_view::npos ? from : number_of(range.substr(dash + 1), field);
            if (!from || !to || *from < field.low || *to > field.high || *from > *to)
                return wrong(words, fmt::format("the {} is '{}', expected {} to {}", field.name, printable(part, 20),
                                                field.low, field.high));
            low = *from;
            // "5/15" goes on to the end, as in Vixie's cron.
            high = dash == std::string_view::npos && slash != std::string_view::npos ? high : *to;
        }
        for (int value = low; value <= high; value += step)
            bits |= std::uint64_t{1} << (field.high == 7 && value == 7 ? 0 : value);
    }
    return bits;
}

bool is_day(const RepeatTimes& times, std::int64_t day) {
    const std::chrono::sys_days at{std::chrono::days(day)};
    const std::chrono::year_month_day date(at);
    const bool month = (times.months >> static_cast<unsigned>(date.month()) & 1) != 0;
    const bool of_month = (times.days >> static_cast<unsigned>(date.day()) & 1) != 0;
    const bool of_week = (times.weekdays >> std::chrono::weekday(at).c_encoding() & 1) != 0;
    // Two that are both restricted: either will do, as cron has it.
    const bool day_fits = times.any_day ? of_week : times.any_weekday ? of_month : of_month || of_week;
    return month && day_fits;
}

// 0: never.
std::int64_t next_of_cron(const RepeatTimes& times, std::int64_t after_us) {
    const std::int64_t from = after_us / kMinuteUs + 1;  // in minutes
    for (std::int64_t day = from / 1440; day < from / 1440 + kMostDays; ++day) {
        if (!is_day(times, day)) continue;
        for (std::int64_t minute = std::max<std::int64_t>(0, from - day * 1440); minute < 1440; ++minute) {
            if ((times.hours >> (minute / 60) & 1) == 0)
                minute += 59 - minute % 60;
            else if ((times.minutes >> (minute % 60) & 1) != 0)
                return day * kDayUs + minute * kMinuteUs;
        }
    }
    return 0;
}

}  // namespace

Result<RepeatTimes> parse_repeat(std::string_view words) {
    std::string text(trim(words));
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNamed = {{{"@hourly", "0 * * * *"},
                                                                                      {"@daily", "0 0 * * *"},
                                                                                      {"@weekly", "0 0 * * 0"},
                                                                                      {"@monthly", "0 0 1 * *"},
                                                                                      {"@yearly", "0 0 1 1 *"}}};
    for (const auto& [name, meant] : kNamed)
        if (equals_ignore_case(text, name)) text = meant;
    const auto fields = split_words(text);
    RepeatTimes times;
    if (fields.size() < 4) {
        const auto seconds = parse_seconds(text);
        if (!seconds) return wrong(words, "that is no interval");
        if (!(seconds->v >= static_cast<double>(kLeastRepeatS) && seconds->v <= static_cast<double>(kMostRepeatS)))
            return wrong(words, fmt::format("expected {} s to 366 days", kLeastRepeatS));
        times.interval_us = static_cast<std::int64_t>(seconds->v * 1e6);
        return times;
    }
    if (fields.size() != kFields.size())
        return wrong(words, fmt::format("it has {} fields, and cron has five", fields.size()));
    std::array<std::uint64_t, kFields.size()> bits{};
    for (std::size_t i = 0; i < kFields.size(); ++i) {
        TRY(bits[i], read_field(words, fields[i], kFields[i]));
    }
    times.minutes = bits[0];
    times.hours = static_cast<std::uint32_t>(bits[1]);
    times.days = static_cast<std::uint32_t>(bits[2]);
    times.months = static_cast<std::uint32_t>(bits[3]);
    times.weekdays = static_cast<std::uint32_t>(bits[4]);
    times.any_day = fields[2].starts_with('*');
    times.any_weekday = fields[4].starts_with('*');
    if (next_of_cron(times, 0) == 0) return wrong(words, "there is no such day in any year");
    return times;
}

std::int64_t next_time(const RepeatTimes& times, std::int64_t from_us, std::int64_t after_us) {
    if (times.interval_us == 0) return next_of_cron(times, after_us);
    const std::int64_t past = std::max<std::int64_t>(0, after_us - from_us);
    return from_us + (past / times.interval_us + 1) * times.interval_us;
}

std::int64_t times_between(const RepeatTimes& times, std::int64_t from_us, std::int64_t next_us) {
    if (times.interval_us > 0)
        return std::clamp<std::int64_t>((next_us - from_us) / times.interval_us - 1, 0, kMostMissed);
    std::int64_t count = 0;
    for (std::int64_t at = next_of_cron(times, from_us); at != 0 && at < next_us && count < kMostMissed; ++count)
        at = next_of_cron(times, at);
    return count;
}

std::string repeat_in_words(std::string_view words) {
    const std::string text(trim(words));
    if (text.starts_with('@') || split_words(text).size() == kFields.size())
        return fmt::format("at {} (cron, UTC)", printable(text, 100));
    return "every " + printable(text, 100);
}

}  // namespace stoker
