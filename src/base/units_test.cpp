#include "base/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace stoker {
namespace {

// Counts take a suffix, an exponent or separators, in either case, and come out exactly.
TEST(Units, CountsAreReadExactly) {
    const std::pair<const char*, double> cases[] = {
        {"70B", 70e9},   {"70b", 70e9},      {"15T", 15e12},     {"350M", 350e6},      {"8k", 8000},
        {"7e9", 7e9},    {"1_000_000", 1e6}, {"1,000,000", 1e6}, {"1.1B", 1.1e9},      {"0", 0},
        {".5", 0.5},     {"1.5e+3", 1500},   {" 405 B ", 405e9}, {"2 trillion", 2e12}, {"0.3M", 0.3e6},
        {"1e-3", 0.001}, {"8192", 8192},     {"1e24", 1e24},     {"8Ki", 8192},        {"1.5 Mi", 1'572'864},
    };
    for (const auto& [text, value] : cases) {
        const auto count = parse_count(text);
        ASSERT_TRUE(count.ok()) << text << ": " << count.error().message();
        EXPECT_EQ(*count, value) << text;
    }
}

// What is no count is refused, and every message names forms that are accepted.
TEST(Units, WrongCountsAreRefusedNamingTheForms) {
    for (const char* text :
         {"",      " ",    "-1",   "+1", "nan",        "inf",           "NaN",      "1e999",     "1e25",      "70Q",
          "7 0",   "70BB", "1__0", "_1", "1_",         "1,0",           "1,0000",   "12,34,567", "1_000,000", "1.",
          "1.5.2", "0x10", "1e",   "B",  "70B tokens", "1e99999999999", "\xC3\xA9", "1,5"}) {
        const auto count = parse_count(text);
        ASSERT_FALSE(count.ok()) << text;
        EXPECT_NE(count.error().message().find("such as 70B"), std::string::npos) << count.error().message();
        EXPECT_EQ(count.error().kind(), ErrorKind::invalid);
    }
    EXPECT_NE(parse_count("8KiB").error().message().find("without the B"), std::string::npos);
    EXPECT_EQ(parse_count("-5").error().message(),
              "'-5' must not be negative; expected a count such as 70B, 15T, 350M, 8k, 7e9 or 1_000_000");
}

// GB is 10^9 and GiB is 2^30; a unit is needed, and one that could be either is refused.
TEST(Units, BytesNeedAUnit) {
    EXPECT_EQ(parse_bytes("80GB")->v, 80e9);
    EXPECT_EQ(parse_bytes("80gb")->v, 80e9);
    EXPECT_EQ(parse_bytes("80 GiB")->v, 80 * kGiB);
    EXPECT_EQ(parse_bytes("512MiB")->v, 512 * kMiB);
    EXPECT_EQ(parse_bytes("1.5TB")->v, 1.5e12);
    EXPECT_EQ(parse_bytes("64Gi")->v, 64 * kGiB);
    EXPECT_EQ(parse_bytes("12 bytes")->v, 12);
    EXPECT_EQ(parse_bytes("0")->v, 0);
    for (const char* text : {"", "80", "80G", "80XB", "-1GB", "GB", "1e30GB", "1001000PB", "80GB80GB", "nanGB"})
        EXPECT_FALSE(parse_bytes(text).ok()) << text;
    EXPECT_NE(parse_bytes("80g").error().message().find("could be GB or GiB"), std::string::npos);
}

// Durations are one number with a unit or several, the longest unit first; m is minutes.
TEST(Units, DurationsCombineUnits) {
    const std::pair<const char*, double> cases[] = {
        {"3 months", 7'889'400},
        {"1 year", 31'557'600},
        {"90m", 5400},
        {"7d", 604800},
        {"500ms", 0.5},
        {"1h30m", 5400},
        {"14 days", 14 * 86400.0},
        {"2w", 1209600},
        {"3ms", 0.003},
        {"1 h 30 min 5 s", 5405},
        {"1.5h", 5400},
        {"10us", 1e-5},
        {"0", 0},
        {"0s", 0},
        {"2 Hours", 7200},
        {"1e3s", 1000},
    };
    for (const auto& [text, value] : cases) {
        const auto seconds = parse_seconds(text);
        ASSERT_TRUE(seconds.ok()) << text << ": " << seconds.error().message();
        EXPECT_EQ(seconds->v, value) << text;
    }
    for (const char* text :
         {"", "7", "1h30", "30m1h", "1h1h", "-1h", "1h-5m", "7 fortnights", "1e13s", "1e300d", "h", "nan d", "5 d!"})
        EXPECT_FALSE(parse_seconds(text).ok()) << text;
    EXPECT_EQ(parse_seconds("7").error().message(),
              "'7' has no unit behind '7'; expected a duration such as 90m, 7d, 500ms, 1h30m, 14 days or 2w");
}

// Money is kept to the micro-dollar, up to the largest amount.
TEST(Units, MoneyIsReadToTheMicroDollar) {
    const std::pair<const char*, std::int64_t> cases[] = {
        {"$20k", 20'000'000'000},
        {"200 USD", 200'000'000},
        {"0.53", 530'000},
        {"$1.5M", 1'500'000'000'000},
        {"$4,719.36", 4'719'360'000},
        {"0.000001", 1},
        {"$ 7", 7'000'000},
        {"8999999999999.999999", 8'999'999'999'999'999'999},
        {"$0", 0},
        {"20k USD", 20'000'000'000},
        {"3 dollars", 3'000'000},
    };
    for (const auto& [text, micro] : cases) {
        const auto usd = parse_usd(text);
        ASSERT_TRUE(usd.ok()) << text << ": " << usd.error().message();
        EXPECT_EQ(usd->micro(), micro) << text;
    }
    for (const char* text : {"", "$", "-5", "$-5", "20 EUR",
                             "\xE2\x82\xAC"
                             "20",
                             "9.1e12", "1e300", "0.0000001", "nan", "$$5", "5$"})
        EXPECT_FALSE(parse_usd(text).ok()) << text;
}

// Amounts beyond the range of the integer stop at its ends, and halves round away from zero.
TEST(Units, MoneyFromDoublesSaturates) {
    EXPECT_EQ(Usd::from_double(1e30).micro(), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(Usd::from_double(-1e30).micro(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(Usd::from_double(std::numeric_limits<double>::infinity()).micro(),
              std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(Usd::from_double(0.0000025).micro(), 3);
    EXPECT_EQ((Usd::from_double(10.0) * 1.5).micro(), 15'000'000);
}

// What people read is short and always the same.
TEST(Units, FormattersAreShort) {
    EXPECT_EQ(format_count(70e9), "70B");
    EXPECT_EQ(format_count(1.5e12), "1.5T");
    EXPECT_EQ(format_count(8192), "8,192");
    EXPECT_EQ(format_count(131072), "131,072");
    EXPECT_EQ(format_count(70.55e9), "70.5B");
    EXPECT_EQ(format_count(999.96e6), "1B");
    EXPECT_EQ(format_count(0.9), "0.9");
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(2e15), "2,000T");
    EXPECT_EQ(format_bytes_gib(Bytes(18.9 * kGiB)), "18.9 GiB");
    EXPECT_EQ(format_bytes_gib(Bytes(1536 * kGiB)), "1,536 GiB");
    EXPECT_EQ(format_bytes_gib(Bytes(0)), "0 GiB");
    EXPECT_EQ(format_bytes_gib(Bytes(0.031 * kGiB)), "0.031 GiB");
    EXPECT_EQ(format_seconds(Seconds(9.8 * 86400)), "9.8 d");
    EXPECT_EQ(format_seconds(Seconds(3 * 3600 + 12 * 60)), "3 h 12 min");
    EXPECT_EQ(format_seconds(Seconds(7200)), "2 h");
    EXPECT_EQ(format_seconds(Seconds(3599.9)), "1 h");
    EXPECT_EQ(format_seconds(Seconds(725)), "12 min 5 s");
    EXPECT_EQ(format_seconds(Seconds(59.97)), "1 min");
    EXPECT_EQ(format_seconds(Seconds(5.31)), "5.31 s");
    EXPECT_EQ(format_seconds(Seconds(0.212)), "212 ms");
    EXPECT_EQ(format_seconds(Seconds(86399)), "24 h");
    EXPECT_EQ(format_seconds(Seconds(86400)), "1 d");
    EXPECT_EQ(format_seconds(Seconds(90)), "1 min 30 s");
    EXPECT_EQ(format_seconds(Seconds(36 * 3600)), "36 h");
    // A prediction is not told to the second: "43 min 58 s" with an interval from 36 min to an hour is noise.
    EXPECT_EQ(format_seconds(Seconds(2638.4)), "44 min");
    EXPECT_EQ(format_seconds(Seconds(341.7)), "5.7 min");
    EXPECT_EQ(format_seconds(Seconds(5254.9)), "88 min");
    EXPECT_EQ(format_seconds(Seconds(28981.7)), "8.1 h");
    EXPECT_EQ(format_seconds(Seconds(88561.3)), "25 h");
    EXPECT_EQ(format_seconds(Seconds(400 * 86400.0)), "400 d");
    EXPECT_EQ(format_seconds(Seconds(0)), "0 s");
    EXPECT_EQ(format_usd(Usd::from_double(81400)), "$81,400");
    EXPECT_EQ(format_usd(Usd::from_double(0.53)), "$0.53");
    EXPECT_EQ(format_usd(Usd::from_double(4719.36)), "$4,719");
    EXPECT_EQ(format_usd(Usd::from_double(651.234)), "$651.23");
    EXPECT_EQ(format_usd(Usd::from_double(0.0882)), "$0.0882");
    EXPECT_EQ(format_usd(Usd::from_double(0.0004)), "$0.0004");
    EXPECT_EQ(format_usd(Usd::from_double(-12)), "-$12.00");
    EXPECT_EQ(Usd::micro(4'775'000).dollars(), 4.775);  // JSON printed 4.7749999999999995
    EXPECT_EQ(format_usd(Usd()), "$0");
    EXPECT_EQ(format_thousands(12900), "12,900");
    EXPECT_EQ(format_thousands(-1234567.891, 2), "-1,234,567.89");
    EXPECT_EQ(format_thousands(-0.2), "0");
    EXPECT_EQ(format_thousands(std::nan("")), "unknown");
}

// Whatever is shown can be typed in again and is the same but for the digits that were not shown.
TEST(Units, WhatIsShownCanBeReadBack) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> exponent(-6, 12);
    for (int i = 0; i < 20000; ++i) {
        const double value = std::pow(10.0, exponent(random));
        const auto count = parse_count(format_count(value));
        ASSERT_TRUE(count.ok()) << format_count(value);
        ASSERT_NEAR(*count, value, 0.006 * value) << format_count(value);
        const auto seconds = parse_seconds(format_seconds(Seconds(value)));
        ASSERT_TRUE(seconds.ok()) << format_seconds(Seconds(value));
        ASSERT_NEAR(seconds->v, value, 0.06 * value) << format_seconds(Seconds(value));
        const auto usd = parse_usd(format_usd(Usd::from_double(value)));
        ASSERT_TRUE(usd.ok()) << format_usd(Usd::from_double(value));
        ASSERT_NEAR(usd->dollars(), value, value < 999 ? 0.0051 : 0.51);
        ASSERT_TRUE(parse_bytes(format_bytes_gib(Bytes(value))).ok()) << format_bytes_gib(Bytes(value));
    }
}

}  // namespace
}  // namespace stoker
