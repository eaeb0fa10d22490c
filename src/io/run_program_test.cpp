#include "io/run_program.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;
Clock::time_point in_s(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
ProgramCall shell(const std::string& script) {
    return {.arguments = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin", "WORD=here"}};
}

// What a scheduler's command says and how it ended reach whoever asked it, and nothing of our environment reaches it.
TEST(RunProgram, TellsWhatItSaidAndHowItEnded) {
    const auto ran = run_program(shell("echo $WORD$HOME; echo no >&2; exit 3"), in_s(20));
    ASSERT_TRUE(ran.ok());
    EXPECT_EQ(ran->output, "here\n");
    EXPECT_EQ(ran->complaint, "no\n");
    EXPECT_EQ(ran->exit_code, 3);
    EXPECT_EQ(run_program(shell("kill -9 $$"), in_s(20))->exit_code, 137);
}

// A command that waits for a dead controller must not hold the server: it and its children end at the deadline.
TEST(RunProgram, EndsAtTheDeadlineWithItsChildren) {
    const auto before = Clock::now();
    const auto ran = run_program(shell("sleep 100 & sleep 100; echo late"), in_s(0.2));
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().kind(), ErrorKind::timed_out);
    EXPECT_LT(Clock::now() - before, std::chrono::seconds(60));
}

// The pace at which a queue is asked for hangs on what asking costs; a command that mostly waits costs little.
TEST(RunProgram, SaysWhatItUsedOfAProcessor) {
    const auto busy = run_program(shell("i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done"), in_s(60));
    const auto waits = run_program(shell("exec sleep 0.2"), in_s(60));
    ASSERT_TRUE(busy.ok() && waits.ok());
    EXPECT_GT(busy->processor_s, 0.005);
    EXPECT_LT(busy->processor_s, 60);
    EXPECT_GT(waits->processor_s, 0);
    EXPECT_LT(waits->processor_s, busy->processor_s);
}

TEST(RunProgram, AMissingProgramAndAFloodAreSaid) {
    EXPECT_EQ(run_program({.arguments = {"no-such-program"}, .environment = {"PATH=/usr/bin"}}, in_s(5)).error().kind(),
              ErrorKind::not_found);
    ProgramCall flood = shell("head -c 300000 /dev/zero");
    flood.most_bytes = 1000;
    const auto ran = run_program(flood, in_s(20));
    EXPECT_EQ(ran->output.size(), 1000U);
    EXPECT_TRUE(ran->cut);
}

}  // namespace
}  // namespace stoker
