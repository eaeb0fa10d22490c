#include "formats/kube_quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace stoker {

namespace {

constexpr double kMostQuantity = 9223372036854775807.0, kLeastQuantity = 1e-9;

Error no_quantity(std::string_view text, std::string_view why) {
    return Error(
        ErrorKind::invalid, fmt::format("{} is no quantity: {}", printable(text, 40), why), {},
        "a quantity is a number with n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3");
}

// What the number is multiplied by; empty: no such suffix. A lone E is exa, E with a number behind it an exponent.
std::optional<double> factor_of_suffix(std::string_view suffix) {
    constexpr std::string_view kBinary = "KMGTPE", kDecimal = "numkMGTPE";
    constexpr double kFactors[] = {1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18};
    if (suffix.empty()) return 1;
    if (suffix.size() == 2 && suffix[1] == 'i') {
        const std::size_t power = kBinary.find(suffix[0]);
        if (power == std::string_view::npos) return std::nullopt;
        return std::ldexp(1.0, static_cast<int>(power + 1) * 10);
    }
    if (suffix.size() == 1) {
        const std::size_t place = kDecimal.find(suffix[0]);
        if (place == std::string_view::npos) return std::nullopt;
        return kFactors[place];
    }
    return std::nullopt;
}

// The whole number behind e or E, cut to what makes a difference; empty: it is no exponent.
std::optional<int> exponent_of_suffix(std::string_view suffix) {
    if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
    suffix.remove_prefix(1);
    if (suffix[0] == '+' && suffix.size() > 1 && suffix[1] != '-') suffix.remove_prefix(1);
    std::int64_t exponent = 0;
    const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
    if (error != std::errc() || end != suffix.data() + suffix.size()) return std::nullopt;
    return static_cast<int>(std::clamp<std::int64_t>(exponent, -100'000, 100'000));
}

}  // namespace

Result<double> parse_kube_quantity(std::string_view text) {
    std::string_view rest = text;
    const bool negative = rest.starts_with('-');
    if (negative || rest.starts_with('+')) rest.remove_prefix(1);
    const std::size_t stop = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::string_view digits = rest.substr(0, stop), suffix = rest.substr(stop);
    if (digits.find_first_not_of('.') == std::string_view::npos) return no_quantity(text, "it has no digit");
    if (std::count(digits.begin(), digits.end(), '.') > 1) return no_quantity(text, "it has two points");
    double number = 0;
    if (const auto exponent = exponent_of_suffix(suffix)) {
        // As one number, so that it is rounded once.
        const std::string whole =
            fmt::format("{}e{}", digits.starts_with('.') ? "0" + std::string(digits) : digits, *exponent);
        const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
        if (error == std::errc::result_out_of_range) {
            const bool zero = digits.find_first_of("123456789") == std::string_view::npos;
            number = zero ? 0 : *exponent > 0 ? kMostQuantity : kLeastQuantity;
        }
    } else if (const auto factor = factor_of_suffix(suffix)) {
        const std::string whole = digits.starts_with('.') ? "0" + std::string(digits) : std::string(digits);
        const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
        if (error == std::errc::result_out_of_range)
            number = whole.find_first_of("123456789") < whole.find('.') ? kMostQuantity : kLeastQuantity;
        // Dividing is exact where a factor of a thousandth is not.
        number = *factor < 1 ? number / std::round(1 / *factor) : number * *factor;
    } else {
        return no_quantity(text, fmt::format("{} is no unit", printable(suffix, 20)));
    }
    if (number > 0) number = std::clamp(number, kLeastQuantity, kMostQuantity);
    return negative ? -number : number;
}

}  // namespace stoker
