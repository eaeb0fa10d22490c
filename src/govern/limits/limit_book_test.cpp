#include "govern/limits/limit_book.h"

#include <gtest/gtest.h>

#include <random>

namespace stoker {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Else a tenant gets more than it pays for in some window, or less than it was told.
TEST(Gcra, NoWindowHasMoreThanItsLimitAndNoneIsStarved) {
    const RateLimit limit{.limit = 600, .burst = 50};
    Gcra gcra;
    std::mt19937_64 random(3);
    std::vector<std::int64_t> admitted;
    std::int64_t now = 5 * kSecond;
    for (int i = 0; i < 20'000; ++i) {
        now += static_cast<std::int64_t>(random() % (kSecond / 20));
        const RateDecision decision = gcra.peek(limit, 1, now);
        if (!decision.admitted) {
            // What it says about when is true.
            EXPECT_TRUE(gcra.peek(limit, 1, now + decision.retry_after_ns).admitted);
            EXPECT_FALSE(gcra.peek(limit, 1, now + decision.retry_after_ns - 2000).admitted);
            continue;
        }
        gcra.take(limit, 1, now);
        admitted.push_back(now);
    }
    for (std::size_t first = 0, last = 0; last < admitted.size(); ++last) {
        while (admitted[last] - admitted[first] > 60 * kSecond) ++first;
        EXPECT_LE(last - first + 1, 600u + 50u);
    }
    const double seconds = static_cast<double>(now - 5 * kSecond) / 1e9;
    EXPECT_GE(static_cast<double>(admitted.size()), seconds * 10 * 0.98);
}

TEST(LimitBook, RefusalTakesNothingAndUnusedComesBack) {
    LimitBook book;
    const KeyLimits limits{.tokens = {.limit = 6000, .burst = 1000}, .concurrent = 2, .budget_picousd = 1'000};
    const std::int64_t now = 100 * kSecond;
    EXPECT_TRUE(book.admit(1, limits, 900, 600, now).admitted());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(book.admit(1, limits, 900, 100, now).refusal, LimitRefusal::tokens);
    EXPECT_EQ(book.admit(1, limits, 100, 500, now).refusal, LimitRefusal::budget);
    EXPECT_EQ(book.admit(1, limits, 1001, 1, now).refusal, LimitRefusal::too_many_tokens);
    EXPECT_TRUE(book.admit(1, limits, 100, 400, now).admitted());
    EXPECT_EQ(book.admit(1, limits, 0, 0, now).refusal, LimitRefusal::concurrent);
    book.settle(1, limits, 900, 100, 600, 50);
    EXPECT_TRUE(book.admit(1, limits, 800, 500, now).admitted());
    EXPECT_EQ(book.spent(1), 50u);
    EXPECT_EQ(book.concurrent(1), 2);
}

// Ten times the largest number of tokens overflows nothing, and never gets in.
TEST(LimitBook, HugeRequestsAreRefusedAsNeverFitting) {
    LimitBook book;
    const KeyLimits limits{.tokens = {.limit = 1}};
    EXPECT_EQ(book.admit(1, limits, 128'000'000'000, 0, kSecond).refusal, LimitRefusal::too_many_tokens);
}

// The first of the month: what was spent is forgotten, what is under way stays reserved and is charged to the new one.
TEST(LimitBook, APeriodBeginsWhileRequestsAreUnderWay) {
    LimitBook book;
    const KeyLimits limits{.budget_picousd = 100};
    EXPECT_TRUE(book.admit(1, limits, 1, 60, 0).admitted());
    book.settle(1, limits, 1, 1, 60, 60);
    EXPECT_TRUE(book.admit(1, limits, 1, 40, 0).admitted());
    EXPECT_FALSE(book.admit(1, limits, 1, 1, 0).admitted());
    book.begin_period();
    EXPECT_EQ(book.spent(1), 0u);
    EXPECT_FALSE(book.admit(1, limits, 1, 61, 0).admitted()) << "40 are reserved";
    EXPECT_TRUE(book.admit(1, limits, 1, 60, 0).admitted());
    book.settle(1, limits, 1, 1, 40, 40);
    EXPECT_EQ(book.spent(1), 40u);
}

// Else a team that is refused for money loses the requests of its members as well.
TEST(LimitBook, WhatAnotherLimitRefusedIsAsIfItHadNeverCome) {
    LimitBook book;
    const KeyLimits limits{
        .requests = {.limit = 60, .burst = 2}, .tokens = {.limit = 600, .burst = 100}, .concurrent = 1};
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(book.admit(1, limits, 100, 10, 0).admitted()) << i;
        book.take_back(1, limits, 100, 10);
    }
    EXPECT_EQ(book.concurrent(1), 0);
    EXPECT_EQ(book.admit(1, limits, 100, 10, 0).requests.remaining, 1);
}

// Else a client is told of room that the limit of its team does not have.
TEST(LimitBook, OfTwoLimitsTheNearerOneIsTold) {
    LimitBook book;
    const AdmitDecision wide = book.admit(1, {.requests = {.limit = 60, .burst = 10}}, 5, 0, 0);
    const AdmitDecision narrow =
        book.admit(2, {.requests = {.limit = 60, .burst = 3}, .tokens = {.limit = 600, .burst = 100}}, 5, 0, 0);
    const AdmitDecision told = tighter_of(wide, narrow);
    EXPECT_EQ(told.requests.remaining, 2);
    EXPECT_EQ(told.request_limit.burst, 3);
    EXPECT_EQ(told.tokens.remaining, 95);
    EXPECT_EQ(tighter_of(narrow, wide).requests.remaining, 2);
}

// Else a client waits a second for money that comes back in a month, or a month for what comes back in a second.
TEST(LimitBook, MoneyThatIsSpentIsToldFromMoneyThatIsSetAside) {
    LimitBook book;
    const KeyLimits limits{.budget_picousd = 100};
    ASSERT_TRUE(book.admit(1, limits, 1, 80, 0).admitted());
    const AdmitDecision set_aside = book.admit(1, limits, 1, 80, 0);
    EXPECT_EQ(set_aside.refusal, LimitRefusal::budget);
    EXPECT_FALSE(set_aside.money_is_spent);
    book.settle(1, limits, 1, 1, 80, 80);
    EXPECT_TRUE(book.admit(1, limits, 1, 80, 0).money_is_spent);
}

}  // namespace
}  // namespace stoker
