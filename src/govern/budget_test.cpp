#include "govern/budget.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "govern/usage.h"

namespace stoker {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kUs = 1'000'000, kHour = 3600 * kUs, kDollar = 1'000'000;

std::int64_t at(int day, int hour) {
    return month_window("2026-11")->from_us + (day * 24 + hour) * kHour;
}

TEST(Budget, AMonthIsACalendarMonth) {
    EXPECT_EQ(month_of(at(0, 0)), "2026-11");
    EXPECT_EQ(month_of(at(0, 0) - 1), "2026-10");
    EXPECT_EQ(month_window("2026-12")->to_us, month_window("2027-01")->from_us);
    EXPECT_EQ((month_window("2024-02")->to_us - month_window("2024-02")->from_us) / (24 * kHour), 29);
    for (const char* text : {"2026-13", "2026-1", "26-01-01", "2026-00", "", "9999-01", "20x6-01"})
        EXPECT_FALSE(month_window(text)) << text;
}

// A warning that comes again and again is read by nobody; one that does not come costs a month's money.
TEST(Budget, EachMarkIsReachedOnceAMonth) {
    BudgetEntry budget{.scope = "p-2", .limit_micro = 100 * kDollar};
    const BudgetLoad half{.used_micro = 51 * kDollar};
    EXPECT_THAT(stand_of(budget, half, at(3, 0)).marks, ElementsAre("50"));
    budget.month = "2026-11";
    budget.told = {"50"};
    EXPECT_THAT(stand_of(budget, half, at(3, 0)).marks, IsEmpty());
    EXPECT_THAT(stand_of(budget, {.used_micro = 100 * kDollar}, at(3, 0)).marks, ElementsAre("80", "100"));
    EXPECT_THAT(stand_of(budget, half, at(33, 0)).marks, ElementsAre("50"));  // a new month
    EXPECT_THAT(stand_of(budget, {.used_micro = 52 * kDollar, .committed_micro = 50 * kDollar}, at(3, 0)).marks,
                ElementsAre("forecast"));
}

// Looking too late overruns the limit; looking all the time costs more than it saves.
TEST(Budget, ItIsLookedAtAgainWhenTheNextLineIsReached) {
    const BudgetEntry budget{.scope = "p-2", .limit_micro = 100 * kDollar};
    const BudgetLoad load{.used_micro = 49 * kDollar, .rate_micro_per_h = 10 * kDollar, .notice_us = 60 * kUs};
    const std::int64_t next = stand_of(budget, load, at(3, 0)).next_us;
    EXPECT_NEAR(static_cast<double>(next - at(3, 0)), 6.0 * 60 * kUs, 2);  // a tenth of an hour
    EXPECT_FALSE(stand_of(budget, load, at(3, 0)).stop);
    BudgetLoad late = load;
    late.used_micro = 100 * kDollar - 10 * kDollar / 60;
    EXPECT_TRUE(stand_of(budget, late, at(3, 0)).stop);
    EXPECT_THAT(stand_of(budget, late, at(3, 0)).marks, Contains("stopping"));
    BudgetEntry block = budget;
    block.on_exhausted = BudgetStop::block_new;
    EXPECT_FALSE(stand_of(block, late, at(3, 0)).stop);
}

// Stopped at the moments it asks for, with any rates and notices, a budget is overrun by less than one notice costs.
TEST(Budget, ItIsOverrunByLessThanOneNotice) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SplitMix random(seed);
        BudgetEntry budget{.scope = "p-2", .limit_micro = static_cast<std::int64_t>(1 + random.below(500)) * kDollar};
        BudgetLoad load{.rate_micro_per_h = static_cast<std::int64_t>(1 + random.below(3000)) * kDollar / 10,
                        .notice_us = static_cast<std::int64_t>(random.below(600)) * kUs};
        std::int64_t now = at(1, 0);
        const auto run_until = [&](std::int64_t then) {
            load.used_micro += micro_over(load.rate_micro_per_h, then - now);
            now = then;
        };
        for (int looks = 0;; ++looks) {
            ASSERT_LT(looks, 2000) << seed;
            if (random.below(4) == 0) load.rate_micro_per_h += load.rate_micro_per_h / 8;
            const BudgetStand stand = stand_of(budget, load, now);
            for (const std::string& mark : stand.marks) budget.told.push_back(mark);
            budget.month = month_of(now);
            if (stand.stop) break;
            ASSERT_GT(stand.next_us, now) << seed;
            run_until(stand.next_us);
            if (now >= at(29, 0)) break;
        }
        run_until(now + load.notice_us);
        EXPECT_LE(load.used_micro,
                  budget.limit_micro + micro_over(load.rate_micro_per_h, load.notice_us) + kDollar / 100)
            << "seed " << seed;
    }
}

TEST(Budget, AReservingBudgetLetsInWhatFitsToItsEnd) {
    BudgetGate gate{.scope = "p-2", .limit_micro = 100 * kDollar, .reserve = true, .ends_us = at(30, 0)};
    const BudgetGate::Request day{.rate_micro_per_h = 4 * kDollar, .lasts_us = 24 * kHour, .notice_us = 60 * kUs};
    EXPECT_TRUE(gate.lets_in(day, at(1, 0)));  // 96 of 100
    gate.take(day, at(1, 0));
    EXPECT_FALSE(gate.lets_in(day, at(1, 0)));
    gate.reserve = false;
    EXPECT_TRUE(gate.lets_in(day, at(1, 0)));  // it is stopped in time
    const BudgetGate::Request endless{.rate_micro_per_h = 1, .lasts_us = 0, .notice_us = 0};
    gate.reserve = true;
    EXPECT_EQ(gate.would_use_micro(endless, at(29, 0)), 96 * kDollar + 24);
}

// A month of a million intervals, cut anywhere: what the invoices sum to is what the intervals cost, to the
// micro-dollar, and the same by month, by project and by what it was for.
TEST(Budget, AMillionIntervalsSumToTheMicroDollar) {
    PriceBook book;
    book.prices = {{.resource = PricedResource::gpu, .model = "H100", .microusd_per_hour = 2'406'661},
                   {.resource = PricedResource::gpu, .model = "A100", .microusd_per_hour = 1'100'007},
                   {.resource = PricedResource::cpu, .microusd_per_hour = 20'001}};
    const auto price = [&](int kind) { return book.prices[static_cast<std::size_t>(kind)]; };
    SplitMix random(7);
    Charges charges;
    std::int64_t whole = 0;
    std::size_t pieces = 0;
    const std::int64_t month = month_window("2026-11")->from_us;
    while (pieces < 1'000'000) {
        const BookPrice& of = price(static_cast<int>(random.below(3)));
        const std::int64_t milli = static_cast<std::int64_t>(1 + random.below(8000)),
                           from = month + static_cast<std::int64_t>(random.below(20 * 24 * 3600)) * kUs + 17,
                           to = from + static_cast<std::int64_t>(1 + random.below(9 * 24 * 3600)) * kUs;
        whole += cost_until(of.microusd_per_hour, milli, from, to);
        const ChargeKey key{.month = "2026-11",
                            .project = {1 + random.below(5)},
                            .user = "anna",
                            .resource = of.resource,
                            .model = of.model};
        for (std::int64_t piece = from; piece < to; ++pieces) {
            const std::int64_t end = std::min(to, piece + 1 + static_cast<std::int64_t>(random.below(7200)) * kUs);
            add_charge(charges, key,
                       {.microusd = cost_until(of.microusd_per_hour, milli, from, end) -
                                    cost_until(of.microusd_per_hour, milli, from, piece)});
            piece = end;
        }
    }
    std::int64_t sum = 0;
    for (const auto& [key, each] : charges) sum += each.microusd;
    EXPECT_EQ(sum, whole);
    Tenants tenants;
    for (std::uint64_t i = 2; i <= 5; ++i) tenants.projects[{i}] = {.id = {i}, .organisation = {1}, .name = "p"};
    EXPECT_EQ(charged_micro(charges, tenants, "2026-11", "o-1", BudgetUnit::usd), whole);
    std::int64_t by_project = 0;
    for (int i = 1; i <= 5; ++i)
        by_project += charged_micro(charges, tenants, "2026-11", "p-" + std::to_string(i), BudgetUnit::usd);
    EXPECT_EQ(by_project, whole);
}

TEST(Budget, OldMonthsAreLetGo) {
    Charges charges;
    for (int month = 1; month <= 12; ++month)
        for (const char* year : {"2024", "2025", "2026", "2027"})
            add_charge(charges, {.month = std::string(year) + (month < 10 ? "-0" : "-") + std::to_string(month)},
                       {.microusd = 1});
    EXPECT_LE(charges.size(), 37U);
    add_charge(charges, {.month = "2030-01"}, {.microusd = 1});
    EXPECT_EQ(charges.size(), 1U);
}

// A gateway prices in pico-dollars: what stays below a micro-dollar has to come with the next piece, whatever the
// mark-up, or a project with many small requests pays nothing.
TEST(Budget, PiecesOfTokensAddUpToTheWholeHoweverTheyAreCut) {
    SplitMix random(7);
    for (const std::int64_t markup_bp : {0, 1500, -5000, 3, -10'000}) {
        std::int64_t left = 0, micro = 0;
        std::int64_t pico = 0;
        for (int i = 0; i < 1000; ++i) {
            const auto piece = static_cast<std::int64_t>(random.below(i % 3 == 0 ? 3 : 5'000'000'000));
            const WholeMicro whole = whole_micro(left, piece, markup_bp);
            left = whole.left;
            micro += whole.microusd;
            pico += piece;
        }
        const WholeMicro all = whole_micro(0, pico, markup_bp);
        EXPECT_EQ(micro, all.microusd);
        EXPECT_EQ(left, all.left);
    }
}

// A budget whose forecast knows machines alone is overrun by tokens without a warning.
TEST(Budget, TokensGoOnAsTheyDidSinceYesterday) {
    Tenants tenants;
    TokenDays days;
    const std::int64_t today = month_window("2026-11")->from_us + 9 * kDayUs;
    const auto charge = [&](std::int64_t day_us, std::int64_t microusd) {
        add_token_day(days, {.day_us = day_us, .project = kDefaultProject, .user = "anna", .model = "demo"},
                      {.microusd = microusd, .tokens = 10, .requests = 1});
    };
    const std::int64_t noon = today + kDayUs / 2;
    EXPECT_EQ(token_rate_micro_per_h(days, tenants, "p-1", noon), 0);
    charge(today, 12'000);
    EXPECT_EQ(token_rate_micro_per_h(days, tenants, "p-1", noon), 1000);
    charge(today - kDayUs, 60'000);
    EXPECT_EQ(token_rate_micro_per_h(days, tenants, "p-1/anna", noon), 2000);
    EXPECT_EQ(token_rate_micro_per_h(days, tenants, "p-1/ben", noon), 0);
    charge(today - 9 * kDayUs, 1'000'000);
    EXPECT_EQ(token_rate_micro_per_h(days, tenants, "o-1", noon), 2000);
    charge(today + (kDaysOfTokens - 9) * kDayUs, 1);
    EXPECT_EQ(days.begin()->first.day_us, today - kDayUs) << "days are kept for a bounded time";
}

}  // namespace
}  // namespace stoker
