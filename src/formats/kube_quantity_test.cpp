// When this breaks, a pod that no node can hold is said to fit, or a right quantity is called wrong.
#include "formats/kube_quantity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"

namespace stoker {
namespace {

std::optional<double> read_quantity(std::string_view text) {
    const auto quantity = parse_kube_quantity(text);
    return quantity ? std::optional(*quantity) : std::nullopt;
}

// Forms and edges of apimachinery's own tests (pkg/api/resource/quantity_test.go).
TEST(KubeQuantity, ReadsEveryUnitSignFractionAndExponent) {
    const std::pair<const char*, double> right[] = {{"8", 8},
                                                    {"0", 0},
                                                    {"00012", 12},
                                                    {"500m", 0.5},
                                                    {"16Gi", 17179869184.0},
                                                    {"512M", 512e6},
                                                    {"1Pi", 1125899906842624.0},
                                                    {"2Ei", 2305843009213693952.0},
                                                    {"7E", 7e18},
                                                    {"1P", 1e15},
                                                    {"4k", 4000},
                                                    {"1e3", 1000},
                                                    {"1E3", 1000},
                                                    {"1e12", 1e12},
                                                    {"1e1", 10},
                                                    {"1e+3", 1000},
                                                    {"1e-3", 0.001},
                                                    {"1E-9", 1e-9},
                                                    {"12E6", 12e6},
                                                    {"+4", 4},
                                                    {"-1", -1},
                                                    {"-1.5Gi", -1610612736.0},
                                                    {".5", 0.5},
                                                    {"5.", 5},
                                                    {"0.", 0},
                                                    {"1.25Ki", 1280},
                                                    {"3.5m", 0.0035},
                                                    {"100n", 1e-7},
                                                    {"3u", 3e-6},
                                                    {"1n", 1e-9},
                                                    {"1Ti", 1099511627776.0},
                                                    {"0e99999", 0}};
    for (const auto& [text, value] : right) EXPECT_EQ(read_quantity(text), value) << text;
}

TEST(KubeQuantity, WhatDoesNotFitIsTheMostOrTheLeast) {
    for (const char* most : {"1e400", "9223372036854775808", "10E", "16Ei", "1e9999999999"})
        EXPECT_EQ(read_quantity(most), 9223372036854775807.0) << most;
    EXPECT_EQ(read_quantity("-16Ei"), -9223372036854775807.0);
    for (const char* least : {"0.1n", "1e-10", "1e-400", "0.0000000001"})
        EXPECT_EQ(read_quantity(least), 1e-9) << least;
    EXPECT_EQ(read_quantity("-1e-12"), -1e-9);
}

TEST(KubeQuantity, RefusesWhatTheServerRefuses) {
    for (const char* wrong :
         {"",      "-",     "+",    ".",     "x",     "lots", "1K",   "5Q",    "1GiB", "1GB", "1i",  "1ki",   "1kI",
          "1e",    "1e1.5", "1ee3", "e3",    "Gi",    "1 Gi", " 1",   "1 ",    "0x10", "inf", "nan", "1.1.1", "1,5",
          "1_000", "--1",   "+-1",  "1e+-3", "1e--3", "1mi",  "1Mi3", "1e3Gi", "1e+",  "1m1", "1Ee"})
        EXPECT_FALSE(read_quantity(wrong)) << wrong;
    EXPECT_NE(parse_kube_quantity("5Q").error().text().find("5Q is no quantity: Q is no unit"), std::string::npos);
}

// As the server writes a value again: the largest unit that leaves a whole number.
std::string canonical(std::int64_t number, bool binary, int power) {
    static constexpr const char* decimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    static constexpr const char* two[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    const std::int64_t step = binary ? 1024 : 1000;
    while (number != 0 && number % step == 0 && power < (binary ? 6 : 9)) number /= step, ++power;
    return fmt::format("{}{}", number, binary ? two[power] : decimal[power]);
}
TEST(KubeQuantity, CanonicalFormsComeBack) {
    SplitMix random(20261122);
    for (int round = 0; round < 20'000; ++round) {
        const bool binary = random.below(2) == 0;
        const int power = static_cast<int>(random.below(binary ? 6 : 9));
        const auto number = static_cast<std::int64_t>(random.below(5000)) - 500;
        const std::string text = canonical(number, binary, power);
        const auto value = read_quantity(text);
        ASSERT_TRUE(value) << text;
        // Back in the smallest unit that it was written in.
        const double unit = binary ? std::ldexp(1.0, 10 * power) : std::pow(10.0, 3 * power - 9);
        if (std::fabs(*value) >= 9.2e18) continue;  // at the edge all are one
        EXPECT_EQ(canonical(std::llround(*value / unit), binary, power),
                  number == 0 ? canonical(0, binary, power) : text);
        // The same number with an exponent in place of the unit.
        if (!binary) {
            EXPECT_DOUBLE_EQ(*read_quantity(fmt::format("{}e{}", number, 3 * power - 9)), *value) << text;
        }
    }
}

// More is never less: of one unit by the number, of one number by the unit.
TEST(KubeQuantity, IsMonotone) {
    const std::vector<std::string> units = {"n", "u",  "m", "",   "k", "Ki", "M", "Mi",
                                            "G", "Gi", "T", "Ti", "P", "Pi", "E", "Ei"};
    SplitMix random(7);
    for (int round = 0; round < 5'000; ++round) {
        const auto low = static_cast<std::int64_t>(random.below(100'000)) - 1000,
                   high = low + 1 + static_cast<std::int64_t>(random.below(1000));
        const std::string& unit = units[random.below(units.size())];
        EXPECT_LE(*read_quantity(fmt::format("{}{}", low, unit)), *read_quantity(fmt::format("{}{}", high, unit)))
            << low << unit;
        const std::size_t place = random.below(units.size() - 1);
        if (low > 0) {
            EXPECT_LE(*read_quantity(fmt::format("{}{}", low, units[place])),
                      *read_quantity(fmt::format("{}{}", low, units[place + 1])))
                << low << units[place];
        }
    }
}

}  // namespace
}  // namespace stoker
