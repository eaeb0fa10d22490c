#include "observe/gpu/call_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace stoker {
namespace {

struct PacedAsk {
    AskEvery wish;
    double us = 0;
    std::uint64_t last = 0;
    int promised = 1, longest = 0, times = 0;
};

struct PacedRun {
    std::vector<double> us;  // of each reading
    std::vector<PacedAsk> asked;
};

// Readings in which each question takes as long as `cost_us` says, of its number and of the reading.
template <class F>
PacedRun simulate(CallPace& pace, std::vector<PacedAsk> asked, int readings, F cost_us) {
    for (const PacedAsk& each : asked) pace.add(each.wish);
    PacedRun seen;
    for (std::uint64_t reading = 0; reading < static_cast<std::uint64_t>(readings); ++reading) {
        double sum = 0;
        for (std::size_t i = 0; i < asked.size(); ++i) {
            PacedAsk& each = asked[i];
            if (!pace.due(i, reading)) continue;
            if (each.times > 0) {
                const int since = static_cast<int>(reading - each.last);
                EXPECT_LE(since, each.promised) << "question " << i << " in reading " << reading;
                each.longest = std::max(each.longest, since);
            }
            each.promised = pace.next_in(i, reading);
            const double us = cost_us(i, reading);
            pace.took(i, reading, us, false);
            each.last = reading, ++each.times;
            sum += us;
        }
        if (reading < 10 || reading % 10 == 0) pace.plan();
        seen.us.push_back(sum);
    }
    seen.asked = std::move(asked);
    return seen;
}

double mean_of_last(const std::vector<double>& us, std::size_t count) {
    return std::accumulate(us.end() - static_cast<std::ptrdiff_t>(count), us.end(), 0.0) / static_cast<double>(count);
}

// Costs as an H200 had them on 27 November 2026, in the order of gpu_questions.cpp; fields by equal shares of the sum.
std::vector<PacedAsk> h200() {
    return {{{1, 1}, 14},    {{1, 1}, 70},    {{1, 30}, 884},  {{1, 1}, 4},     {{1, 1}, 7},     {{1, 1}, 3},
            {{1, 2}, 737},   {{1, 2}, 1414},  {{1, 10}, 546},  {{1, 10}, 2},    {{1, 10}, 368},  {{1, 10}, 368},
            {{1, 10}, 1104}, {{1, 10}, 1104}, {{1, 10}, 737},  {{1, 10}, 1473}, {{1, 30}, 368},  {{1, 30}, 95},
            {{1, 60}, 345},  {{5, 10}, 20},   {{5, 30}, 2604}, {{5, 30}, 4},    {{60, 60}, 3000}};
}

// Where each call is one to the firmware, an agent took 3 % of a processor from the work it watches.
TEST(CallPace, DearQuestionsAreAskedAsSeldomAsTheBudgetWants) {
    const std::vector<PacedAsk> board = h200();
    CallPace pace(2000);
    const PacedRun seen = simulate(pace, board, 700, [&](std::size_t i, std::uint64_t) { return board[i].us; });
    EXPECT_LE(mean_of_last(seen.us, 600), 2000 * 1.02);
    EXPECT_LE(pace.total_us(), 2000);
    // Nor does it stay far below: what is allowed is used for fresh answers.
    EXPECT_GE(mean_of_last(seen.us, 600), 2000 * 0.8);
    // All of one interval in one reading would be a pause of the driver of 15 ms.
    EXPECT_LE(*std::max_element(seen.us.begin() + 20, seen.us.end()), 4 * 2000);
    for (const PacedAsk& each : seen.asked) EXPECT_LE(each.longest, each.wish.most);
    // What is wanted in each reading, whatever it costs.
    EXPECT_EQ(seen.asked[0].times, 700);
}

TEST(CallPace, WhatIsCheapIsAskedInEachReading) {
    const std::vector<PacedAsk> board = h200();
    CallPace pace(2000);
    const PacedRun seen = simulate(pace, board, 200, [&](std::size_t, std::uint64_t) { return 2.0; });
    for (std::size_t i = 0; i < board.size(); ++i) EXPECT_EQ(pace.every(i), board[i].wish.wanted) << i;
    for (const PacedAsk& each : seen.asked) EXPECT_LE(each.longest, each.wish.wanted);
}

// On a busy node a call is interrupted now and then: answers would be old for that without being dear.
TEST(CallPace, InterruptionsAreNotCosts) {
    const std::vector<PacedAsk> board = h200();
    CallPace pace(2000);
    std::minstd_rand random(7);
    simulate(pace, board, 300, [&](std::size_t, std::uint64_t) { return random() % 20 == 0 ? 20'000.0 : 2.0; });
    int at_will = 0;
    for (std::size_t i = 0; i < board.size(); ++i) at_will += pace.every(i) == board[i].wish.wanted ? 1 : 0;
    EXPECT_GE(at_will, static_cast<int>(board.size()) - 2);
}

// A driver that becomes slow, as one does while a board is reset, and well again.
TEST(CallPace, FollowsCostsThatChange) {
    const std::vector<PacedAsk> board = h200();
    CallPace pace(2000);
    const auto cost = [&](std::size_t i, std::uint64_t reading) {
        return reading >= 100 && reading < 400 ? board[i].us : 2.0;
    };
    for (const PacedAsk& each : board) pace.add(each.wish);
    double dear = 0;
    for (std::uint64_t reading = 0; reading < 1200; ++reading) {
        for (std::size_t i = 0; i < board.size(); ++i)
            if (pace.due(i, reading)) {
                const double us = cost(i, reading);
                if (reading >= 200 && reading < 400) dear += us;
                pace.took(i, reading, us, false);
            }
        if (reading < 10 || reading % 10 == 0) pace.plan();
    }
    EXPECT_LE(dear / 200, 2000 * 1.1);
    for (std::size_t i = 0; i < board.size(); ++i) EXPECT_EQ(pace.every(i), board[i].wish.wanted) << i;
}

TEST(CallPace, WhatHasNoAnswerIsAskedSeldom) {
    CallPace pace(100);
    pace.add({1, 10});
    for (std::uint64_t reading = 0; reading < 30; ++reading) {
        if (pace.due(0, reading)) pace.took(0, reading, 6000, true);
        pace.plan();
    }
    EXPECT_GT(pace.every(0), 10);
}

}  // namespace
}  // namespace stoker
