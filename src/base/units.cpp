#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"

namespace stoker {
namespace {

constexpr double kMostCount = 1e24, kMostBytes = 1e21, kMostSeconds = 1e12;
constexpr long double kMostDollars = 9e12L;

constexpr std::string_view kCountForms = "a count such as 70B, 15T, 350M, 8k, 7e9 or 1_000_000";
constexpr std::string_view kBytesForms = "an amount of memory such as 80GB, 80GiB, 512MiB or 1.5TB";
constexpr std::string_view kSecondsForms = "a duration such as 90m, 7d, 500ms, 1h30m, 14 days or 2w";
constexpr std::string_view kUsdForms = "an amount of dollars such as $20k, 200 USD, 0.53 or $1.5M";

// What stands at the start of the text, read as decimal digits and an exponent so that a unit that is a power of ten
// costs no rounding: 1.1B is 1.1e9 and not 1.1 times 1e9.
struct Number {
    std::string digits;  // "1.5", separators removed
    int exponent = 0;
    std::string_view rest;
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Digits with single underscores between them, or in groups of three with commas; an empty string when it is neither.
std::string read_whole(std::string_view& text) {
    std::string digits;
    std::size_t i = 0;
    bool comma = false, underscore = false;
    std::size_t group = 0;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (is_digit(c)) {
            digits += c;
            if (++group > 3 && comma) return {};
            continue;
        }
        if (c != '_' && c != ',') break;
        if (i + 1 >= text.size() || !is_digit(text[i + 1]) || digits.empty()) return {};
        if (c == ',' && (underscore || group > 3 || (comma && group != 3))) return {};
        if (c == '_' && comma) return {};
        (c == ',' ? comma : underscore) = true;
        group = 0;
    }
    if (comma && group != 3) return {};
    text.remove_prefix(i);
    return digits;
}

std::optional<Number> read_number(std::string_view text) {
    Number number;
    const bool starts_with_point = text.size() > 1 && text[0] == '.' && is_digit(text[1]);
    number.digits = starts_with_point ? "0" : read_whole(text);
    if (number.digits.empty()) return std::nullopt;
    if (text.size() > 1 && text[0] == '.') {
        std::size_t end = 1;
        while (end < text.size() && is_digit(text[end])) ++end;
        if (end == 1) return std::nullopt;
        number.digits += text.substr(0, end);
        text.remove_prefix(end);
    }
    if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
        std::size_t i = 1;
        if (text[i] == '+' || text[i] == '-') ++i;
        const std::size_t first_digit = i;
        while (i < text.size() && is_digit(text[i])) ++i;
        if (i > first_digit) {  // otherwise the e belongs to a unit, and the unit reader will say what it thinks of it
            const char* begin = text.data() + (text[1] == '+' ? 2 : 1);
            int exponent = 0;
            if (std::from_chars(begin, text.data() + i, exponent).ec != std::errc()) return std::nullopt;
            if (std::abs(exponent) > 1000) return std::nullopt;
            number.exponent = exponent;
            text.remove_prefix(i);
        }
    }
    number.rest = trim(text);
    return number;
}

template <typename Float>
std::optional<Float> value_of(const Number& number, int more_exponent = 0) {
    const std::string text = number.digits + "e" + std::to_string(number.exponent + more_exponent);
    Float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

// Values come from strangers: a message shows at most 40 bytes of one, without control characters.
std::string shown(std::string_view text) {
    return "'" + printable(text, 40) + "'";
}

Error refused(std::string_view text, std::string_view why, std::string_view forms) {
    const std::string what = text.empty() ? "the value is empty" : shown(text) + " " + std::string(why);
    return Error(ErrorKind::invalid, fmt::format("{}; expected {}", what, forms));
}

// The refusals that every quantity shares; the number otherwise.
Result<Number> begin(std::string_view text, std::string_view forms) {
    const std::string_view body = trim(text);
    if (body.empty()) return refused(body, "", forms);
    if (body[0] == '-') return refused(body, "must not be negative", forms);
    if (body[0] == '+') return refused(body, "must be written without a plus sign", forms);
    if (auto number = read_number(body)) return std::move(*number);
    return refused(body, "is not a number Stoker understands", forms);
}

struct Unit {
    std::string_view name;  // lower case
    double factor;
};

template <std::size_t N>
const Unit* find_unit(const Unit (&units)[N], std::string_view name) {
    const auto* found = std::find_if(units, units + N, [&](const Unit& unit) { return unit.name == name; });
    return found == units + N ? nullptr : found;
}

// Suffixes of counts and of money, as powers of ten.
std::optional<int> scale_of(std::string_view suffix) {
    static constexpr std::pair<std::string_view, int> kScales[] = {
        {"", 0},         {"k", 3},       {"m", 6},       {"b", 9},         {"t", 12},
        {"thousand", 3}, {"million", 6}, {"billion", 9}, {"trillion", 12},
    };
    for (const auto& [name, exponent] : kScales)
        if (name == suffix) return exponent;
    return std::nullopt;
}

std::string trim_zeros(std::string text) {
    if (text.find('.') == std::string::npos) return text;
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

// Three significant digits without trailing zeros: 70.6, 1.5, 405. For values from 1 to 1000.
std::string three_digits(double value) {
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return trim_zeros(fmt::format("{:.{}f}", value, decimals));
}

std::string not_a_number(double value) {
    return std::isnan(value) ? "unknown" : value > 0 ? "infinite" : "-infinite";
}

std::string two_parts(double whole, std::string_view unit, double part, std::string_view part_unit) {
    std::string out = fmt::format("{:.0f} {}", whole, unit);
    if (part > 0) out += fmt::format(" {:.0f} {}", part, part_unit);
    return out;
}

}  // namespace

Usd Usd::from_double(double dollars) {
    CHECK(!std::isnan(dollars));
    const double micro_dollars = std::round(dollars * 1e6);
    if (micro_dollars >= 9223372036854775807.0) return micro(std::numeric_limits<std::int64_t>::max());
    if (micro_dollars <= -9223372036854775808.0) return micro(std::numeric_limits<std::int64_t>::min());
    return micro(static_cast<std::int64_t>(micro_dollars));
}

Result<double> parse_count(std::string_view text) {
    TRY(const Number number, begin(text, kCountForms));
    const std::string suffix = lower(number.rest);
    if (suffix == "ki" || suffix == "mi") {  // a context of 8Ki tokens
        const auto value = value_of<double>(number);
        const double binary = suffix == "ki" ? 1024 : 1024 * 1024;
        if (!value || *value * binary > kMostCount)
            return refused(trim(text), "is out of range (at most 1e24)", kCountForms);
        return *value * binary;
    }
    const auto scale = scale_of(suffix);
    if (!scale && suffix.ends_with("ib") && parse_bytes(text))
        return refused(trim(text), "is an amount of memory and no count: without the B it is one", kCountForms);
    if (!scale) return refused(trim(text), "has the unknown suffix " + shown(number.rest), kCountForms);
    const auto value = value_of<double>(number, *scale);
    if (!value || *value > kMostCount) return refused(trim(text), "is out of range (at most 1e24)", kCountForms);
    return *value;
}

Result<Bytes> parse_bytes(std::string_view text) {
    static constexpr Unit kUnits[] = {
        {"b", 1},
        {"kb", 1e3},
        {"mb", 1e6},
        {"gb", 1e9},
        {"tb", 1e12},
        {"pb", 1e15},
        {"kib", kKiB},
        {"mib", kMiB},
        {"gib", kGiB},
        {"tib", kGiB * 1024},
        {"pib", kGiB * 1048576},
        {"ki", kKiB},
        {"mi", kMiB},
        {"gi", kGiB},
        {"ti", kGiB * 1024},
        {"pi", kGiB * 1048576},
        {"byte", 1},
        {"bytes", 1},
    };
    TRY(const Number number, begin(text, kBytesForms));
    const auto value = value_of<double>(number);
    if (!value) return refused(trim(text), "is out of range (at most 1e21 bytes)", kBytesForms);
    if (number.rest.empty()) {
        if (*value == 0) return Bytes(0);
        return refused(trim(text), "has no unit", kBytesForms);
    }
    const std::string name = lower(number.rest);
    const Unit* unit = find_unit(kUnits, name);
    if (unit == nullptr) {
        // Slurm counts 1G as 2^30 and Kubernetes as 1e9, so the letter alone says nothing.
        if (name.size() == 1 && std::string_view("kmgtp").find(name[0]) != std::string_view::npos) {
            return refused(trim(text), fmt::format("could be {0}B or {0}iB", upper(name)), kBytesForms);
        }
        return refused(trim(text), "has the unknown unit " + shown(number.rest), kBytesForms);
    }
    if (*value * unit->factor > kMostBytes)
        return refused(trim(text), "is out of range (at most 1e21 bytes)", kBytesForms);
    return Bytes(*value * unit->factor);
}

Result<Seconds> parse_seconds(std::string_view text) {
    constexpr double kYear = 365.25 * 86400;
    static constexpr Unit kUnits[] = {
        {"us", 1e-6},
        {"ms", 1e-3},
        {"s", 1},
        {"sec", 1},
        {"secs", 1},
        {"second", 1},
        {"seconds", 1},
        {"m", 60},
        {"min", 60},
        {"mins", 60},
        {"minute", 60},
        {"minutes", 60},
        {"h", 3600},
        {"hr", 3600},
        {"hrs", 3600},
        {"hour", 3600},
        {"hours", 3600},
        {"d", 86400},
        {"day", 86400},
        {"days", 86400},
        {"w", 604800},
        {"week", 604800},
        {"weeks", 604800},
        {"month", kYear / 12},
        {"months", kYear / 12},
        {"y", kYear},
        {"year", kYear},
        {"years", kYear},
    };
    const std::string_view body = trim(text);
    double total = 0, last_factor = std::numeric_limits<double>::infinity();
    std::string_view left = body;
    do {
        auto number = begin(left, kSecondsForms);
        if (!number) {
            if (left.size() == body.size()) return std::move(number).error();
            return refused(body, "has " + shown(left) + " where another number with its unit belongs", kSecondsForms);
        }
        std::size_t end = 0;
        const std::string_view rest = number->rest;
        while (end < rest.size() && ((rest[end] | 0x20) >= 'a' && (rest[end] | 0x20) <= 'z')) ++end;
        const auto value = value_of<double>(*number);
        if (!value) return refused(body, "is out of range (at most 1e12 seconds)", kSecondsForms);
        if (rest.empty()) {
            if (*value == 0 && left.size() == body.size()) return Seconds(0);
            return refused(body, "has no unit behind " + shown(left), kSecondsForms);
        }
        const Unit* unit = find_unit(kUnits, lower(rest.substr(0, end)));
        if (unit == nullptr)
            return refused(body, "has the unknown unit " + shown(rest.substr(0, std::max<std::size_t>(end, 1))),
                           kSecondsForms);
        if (unit->factor >= last_factor)
            return refused(body, "must name each unit once, the longest first", kSecondsForms);
        last_factor = unit->factor;
        // Dividing by 1000 rounds once; multiplying by 0.001, which is itself rounded, would round twice: 3ms is 0.003.
        total += unit->factor < 1 ? *value / std::round(1 / unit->factor) : *value * unit->factor;
        left = trim(rest.substr(end));
    } while (!left.empty());
    if (!(total <= kMostSeconds)) return refused(body, "is out of range (at most 1e12 seconds)", kSecondsForms);
    return Seconds(total);
}

Result<Usd> parse_usd(std::string_view text) {
    const std::string_view body = trim(text);
    std::string_view amount = body;
    if (!amount.empty() && amount.front() == '$') {
        amount = trim(amount.substr(1));
        if (amount.empty()) return refused(body, "has no number", kUsdForms);
    }
    auto begun = begin(amount, kUsdForms);
    if (!begun) {
        if (body.find("\xE2\x82\xAC") != std::string_view::npos)
            return refused(body, "is not in US dollars", kUsdForms);
        return std::move(begun).error();
    }
    const Number& number = *begun;
    std::string suffix = lower(number.rest);
    for (const std::string_view currency : {"usd", "dollars", "dollar"}) {
        if (!std::string_view(suffix).ends_with(currency)) continue;
        suffix = trim(std::string_view(suffix).substr(0, suffix.size() - currency.size()));
        break;
    }
    const auto scale = scale_of(suffix);
    if (!scale)
        return refused(body, "has the unknown suffix " + shown(number.rest) + " (amounts are in US dollars)",
                       kUsdForms);
    // long double has the 64 bits that a micro-dollar in the largest amount needs.
    const auto micro = value_of<long double>(number, *scale + 6);
    if (!micro || *micro > kMostDollars * 1e6L)
        return refused(body, "is out of range (at most 9e12 dollars)", kUsdForms);
    const long double rounded = std::round(*micro);
    if (*micro > 0 && rounded == 0) return refused(body, "is less than a millionth of a dollar", kUsdForms);
    return Usd::micro(static_cast<std::int64_t>(rounded));
}

std::string format_thousands(double value, int decimals) {
    if (!std::isfinite(value)) return not_a_number(value);
    std::string digits = fmt::format("{:.{}f}", std::fabs(value), std::clamp(decimals, 0, 15));
    const std::size_t point = std::min(digits.find('.'), digits.size());
    for (std::size_t i = point; i > 3; i -= 3) digits.insert(i - 3, ",");
    const bool is_zero = digits.find_first_not_of("0.,") == std::string::npos;
    return value < 0 && !is_zero ? "-" + digits : digits;
}

std::string format_count(double count) {
    if (!std::isfinite(count)) return not_a_number(count);
    if (count < 0) return "-" + format_count(-count);
    if (count < 1000 && count != std::floor(count))
        return count < 1 ? fmt::format("{:.3g}", count) : three_digits(count);
    if (count < 999'999.5) return format_thousands(count);
    static constexpr std::pair<double, char> kScales[] = {{1e6, 'M'}, {1e9, 'B'}, {1e12, 'T'}};
    for (const auto& [scale, letter] : kScales)
        if (count / scale < 999.5) return three_digits(count / scale) + letter;
    return count < 1e18 ? format_thousands(count / 1e12) + "T" : fmt::format("{:.3g}", count);
}

std::string format_bytes_gib(Bytes bytes) {
    const double gib = bytes.v / kGiB;
    if (!std::isfinite(gib)) return not_a_number(gib);
    const double size = std::fabs(gib);
    if (size == 0) return "0 GiB";
    if (size < 0.0995) return fmt::format("{:.2g} GiB", gib);
    return format_thousands(gib, size < 999.95 ? 1 : 0) + " GiB";
}

std::string format_seconds(Seconds seconds) {
    const double s = seconds.v;
    if (!std::isfinite(s)) return not_a_number(s);
    if (s < 0) return "-" + format_seconds(Seconds(-s));
    if (s == 0) return "0 s";
    // Each limit is where the shorter unit would round up into the next.
    if (s < 1e-6) return fmt::format("{:.2g} us", s * 1e6);
    if (s < 999.5e-6) return three_digits(s * 1e6) + " us";
    if (s < 0.9995) return s < 9.995e-3 ? three_digits(s * 1e3) + " ms" : fmt::format("{:.0f} ms", s * 1e3);
    if (s < 59.95) return three_digits(s) + " s";
    // What two parts say exactly (a deadline of 2 h 15 min) is said so; a prediction gets the digits it deserves.
    const double whole = std::round(s);
    const bool exact = std::fabs(s - whole) <= 1e-9 * s;
    if (exact && s < 3600) return two_parts(std::floor(whole / 60), "min", std::fmod(whole, 60), "s");
    if (exact && s < 172800 && std::fmod(whole, 60) == 0 && std::fmod(whole, 86400) != 0)
        return two_parts(std::floor(whole / 3600), "h", std::fmod(whole, 3600) / 60, "min");
    if (s < 597) return trim_zeros(fmt::format("{:.1f}", s / 60)) + " min";
    if (s < 5970 && std::round(s / 60) != 60) return fmt::format("{:.0f} min", s / 60);
    if (s < 35820) return trim_zeros(fmt::format("{:.1f}", s / 3600)) + " h";
    if (s < 171000 && !(exact && std::fmod(whole, 86400) == 0)) return fmt::format("{:.0f} h", s / 3600);
    const double days = s / 86400;
    return days < 99.95 ? trim_zeros(fmt::format("{:.1f}", days)) + " d" : format_thousands(days) + " d";
}

std::string format_usd(Usd usd) {
    const double dollars = std::fabs(usd.dollars());
    const std::string sign = usd.micro() < 0 ? "-$" : "$";
    if (usd.micro() == 0) return "$0";
    if (dollars < 0.0995) return sign + trim_zeros(fmt::format("{:.{}f}", dollars, dollars < 0.00995 ? 6 : 4));
    return sign + format_thousands(dollars, dollars < 999.995 ? 2 : 0);
}

}  // namespace stoker
