#include "govern/usage.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stoker {
namespace {

constexpr std::int64_t kHour = 3'600'000'000;

PriceBook book(const std::string& rows) {
    const auto read = PriceBook::read("source: test\nprices:\n" + rows, "prices.yaml");
    EXPECT_TRUE(read.ok()) << read.error().text();
    return read ? *read : PriceBook{};
}

// An invoice that is cut by month or by hour must add up to the bill for the whole.
TEST(UsageTest, PiecesAddUpToTheWholeHoweverTheyAreCut) {
    SplitMix random(7);
    for (int round = 0; round < 300; ++round) {
        PriceBook prices;
        std::int64_t from = 0;
        for (std::uint64_t i = 0; i < 1 + random.below(4); ++i) {
            prices.prices.push_back({.resource = PricedResource::gpu,
                                     .microusd_per_hour = static_cast<std::int64_t>(random.below(40'000'000)),
                                     .valid_from_us = from});
            from += static_cast<std::int64_t>(random.below(200 * kHour));
        }
        const UsageInterval interval{.resource = PricedResource::gpu,
                                     .milli = static_cast<std::int64_t>(1 + random.below(8000)),
                                     .from_us = static_cast<std::int64_t>(random.below(100 * kHour)),
                                     .to_us = static_cast<std::int64_t>((100 + random.below(500)) * kHour),
                                     .markup_bp = static_cast<std::int64_t>(random.below(30'000)) - 10'000};
        const std::int64_t whole = cost_of(prices, interval, {0, 1000 * kHour}).microusd;
        std::int64_t sum = 0, at = 0;
        while (at < 1000 * kHour) {
            const std::int64_t next = at + 1 + static_cast<std::int64_t>(random.below(50 * kHour));
            sum += cost_of(prices, interval, {at, next}).microusd;
            at = next;
        }
        ASSERT_EQ(sum, whole) << "round " << round;
    }
}

// A GPU at 2.40 USD an hour for 90 minutes, half of it.
TEST(UsageTest, KnownFigure) {
    const PriceBook prices = book("  - {resource: gpu, model: H100, usd_per_hour: 2.40, valid_from: 1970-01-01}\n");
    const UsageInterval half{
        .resource = PricedResource::gpu, .model = "h100", .milli = 500, .from_us = 0, .to_us = kHour * 3 / 2};
    const Cost cost = cost_of(prices, half, {0, 10 * kHour});
    EXPECT_EQ(cost.microusd, 1'800'000);
    EXPECT_TRUE(cost.priced);
    EXPECT_DOUBLE_EQ(hours_of(half, {0, 10 * kHour}), 0.75);
}

// What nobody priced must not look free.
TEST(UsageTest, WhatHasNoPriceSaysSo) {
    const PriceBook prices = book("  - {resource: cpu, usd_per_hour: 1, valid_from: 1970-01-02}\n");
    const UsageInterval gpu{.resource = PricedResource::gpu, .from_us = 0, .to_us = kHour};
    EXPECT_FALSE(cost_of(prices, gpu, {0, kHour}).priced);
    const UsageInterval early{.resource = PricedResource::cpu, .from_us = 23 * kHour, .to_us = 25 * kHour};
    const Cost cost = cost_of(prices, early, {0, 100 * kHour});
    EXPECT_FALSE(cost.priced);
    EXPECT_EQ(cost.microusd, 1'000'000);
}

// What an organisation pays on top is of the price of an hour; others pay the price.
TEST(UsageTest, AMarkupIsOfOneOrganisation) {
    const PriceBook prices = book(
        "  - {resource: gpu, usd_per_hour: 2, valid_from: 2026-01-01}\n"
        "markups:\n  - {organisation: bank, percent: 15}\n  - {organisation: lab, percent: -50}\n");
    UsageInterval hour{.resource = PricedResource::gpu, .from_us = prices.prices[0].valid_from_us};
    hour.to_us = hour.from_us + kHour;
    const auto paid = [&](const char* who) {
        hour.markup_bp = prices.markup_of(who);
        return cost_of(prices, hour, {0, hour.to_us}).microusd;
    };
    EXPECT_EQ(paid("hospital"), 2'000'000);
    EXPECT_EQ(paid("bank"), 2'300'000);
    EXPECT_EQ(paid("lab"), 1'000'000);
    // Another digest: an invoice says by which it was.
    PriceBook plain = prices;
    plain.markups.clear();
    EXPECT_NE(digest(prices), digest(plain));
    const auto twice = PriceBook::read(
        "source: x\nprices: []\nmarkups: [{organisation: a, percent: 1}, {organisation: a, percent: 2}]\n", "p.yaml");
    ASSERT_FALSE(twice.ok());
    EXPECT_NE(twice.error().text().find("two markups of a"), std::string::npos);
}

}  // namespace
}  // namespace stoker
