#include "run/state/rules.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Rules, BackOffDoublesFromTenSecondsToTenMinutes) {
    std::vector<std::int64_t> seconds;
    for (int i = 0; i < 9; ++i) seconds.push_back(back_off_us(i) / kSecondUs);
    EXPECT_EQ(seconds, (std::vector<std::int64_t>{10, 20, 40, 80, 160, 320, 600, 600, 600}));
    EXPECT_EQ(operation_back_off_us(1), kSecondUs);
    EXPECT_EQ(operation_back_off_us(100), 60 * kSecondUs);
}

// When a machine dies, the exit codes of its peers come first; blaming the user for them would cost a restart.
TEST(Rules, TheStrongestEvidenceIsTheCause) {
    Attempt attempt;
    attempt.ranks = {{.ended = true, .exit_code = 134, .cause = Cause::user_error, .ended_us = 10},
                     {.ended = true, .cause = Cause::oom, .ended_us = 12},
                     {.ended = true, .cause = Cause::device_fault, .ended_us = 30},
                     {.ended = true, .cause = Cause::ok, .ended_us = 5}};
    EXPECT_EQ(first_failure(attempt).rank, 2);
    attempt.ranks.resize(1);
    attempt.ranks.push_back({.ended = true, .exit_code = 1, .cause = Cause::user_error, .ended_us = 3});
    EXPECT_EQ(first_failure(attempt).rank, 1);  // among equals the first
    attempt.ranks = {{.ended = true, .cause = Cause::ok}};
    EXPECT_EQ(first_failure(attempt).rank, -1);
}

// EX_TEMPFAIL says "try again": it may not use up the restarts of the user.
TEST(Rules, TransientExitCodesCountNothing) {
    stoker::Run run;
    run.attempts.push_back(
        {.cause = Cause::user_error, .ranks = {{.ended = true, .exit_code = 75, .cause = Cause::user_error}}});
    EXPECT_FALSE(counts_as_restart(run));
    run.attempts.back().ranks[0].exit_code = 1;
    EXPECT_TRUE(counts_as_restart(run));
    run.attempts.back().cause = Cause::node_lost;
    EXPECT_FALSE(counts_as_restart(run));
}

// A timeout holds for all attempts together: evictions may not stretch it.
TEST(Rules, TheTimeoutCountsEveryAttempt) {
    stoker::Run run;
    run.state = RunState::running;
    run.spec.timeout_s = 100;
    run.used_us = 30 * kSecondUs;
    run.attempts.push_back({.state = AttemptState::running, .created_us = 1000 * kSecondUs});
    EXPECT_EQ(latest_end_us(run), 1070 * kSecondUs);
    EXPECT_EQ(next_due(run), 1070 * kSecondUs);
    EXPECT_EQ(used_us(run, 1010 * kSecondUs), 40 * kSecondUs);
}

// Taken down three times at the same place, a run is held for somebody to look at; one that got further each time goes
// on.
TEST(Rules, ARunThatGetsFurtherIsNotHeld) {
    stoker::Run run;
    for (int i = 0; i < 3; ++i) {
        Attempt attempt;
        attempt.cause = Cause::platform;
        attempt.running_us = 1 * kSecondUs;
        attempt.end_us = 11 * kSecondUs;
        run.attempts.push_back(attempt);
    }
    EXPECT_TRUE(looks_poisonous(run));
    run.attempts[1].resume_from = "checkpoints/step-10";
    run.attempts[2].resume_from = "checkpoints/step-20";
    EXPECT_FALSE(looks_poisonous(run));
    run.attempts[1].resume_from = run.attempts[0].resume_from = run.attempts[2].resume_from;
    EXPECT_TRUE(looks_poisonous(run));
}

}  // namespace
}  // namespace stoker
