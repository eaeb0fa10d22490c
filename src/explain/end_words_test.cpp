#include "explain/end_words.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

RankStatus ended(int exit_code, std::int64_t at_us) {
    return {.started = true,
            .ended = true,
            .exit_code = exit_code,
            .cause = exit_code == 0 ? Cause::ok : Cause::user_error,
            .ended_us = at_us};
}

stoker::Run failed_run() {
    stoker::Run run;
    run.id = RunId(7);
    run.attempts.emplace_back();
    run.attempts.back().ranks = {ended(1, 20), ended(1, 10)};
    return run;
}

TEST(EndWords, TheRankThatEndedFirstCounts) {
    const auto told = end_in_words(failed_run(), [](int rank) {
        return Result<std::string>(rank == 1
                                       ? "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
                                         "ModuleNotFoundError: No module named 'apex'\n"
                                       : "ValueError: rank 0 says something else\n");
    });
    ASSERT_TRUE(told);
    EXPECT_EQ(told->name, "module-missing");
    EXPECT_EQ(told->rank, 1);
    EXPECT_TRUE(told->stops);
    ASSERT_EQ(told->evidence.size(), 3u);
    EXPECT_EQ(told->evidence[0], "ModuleNotFoundError: No module named 'apex'");
    EXPECT_EQ(told->evidence[1], "t.py:3");
    EXPECT_EQ(told->evidence[2], "rank 1 ended with exit code 1");
}

// The one that ended first heard of the other's end only: a log of a slow file system comes late.
TEST(EndWords, WhoSaysThatAnotherFailedIsNotBelieved) {
    const auto told = end_in_words(failed_run(), [](int rank) {
        return Result<std::string>(rank == 1 ? "RuntimeError: Connection closed by peer [10.0.0.4]:4711\n"
                                             : "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n");
    });
    ASSERT_TRUE(told);
    EXPECT_EQ(told->name, "gpu-memory");
    EXPECT_EQ(told->rank, 0);
}

TEST(EndWords, NobodySaidAWord) {
    const auto silent = end_in_words(failed_run(), [](int) { return Result<std::string>(std::string("step 4\n")); });
    ASSERT_TRUE(silent);
    EXPECT_EQ(silent->name, "program-failed");
    EXPECT_THAT(silent->what, HasSubstr("its output does not say why"));
    EXPECT_THAT(silent->fix, HasSubstr("stoker logs r-7 --rank 1"));
    // A shell tells the signal of what it ran.
    stoker::Run shell = failed_run();
    shell.attempts.back().ranks = {ended(139, 5)};
    const auto fault = end_in_words(shell, [](int) { return Result<std::string>(std::string("step 4\n")); });
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->name, "segfault");
    EXPECT_THAT(fault->what, HasSubstr("it ended with exit code 139: the program touched memory"));
    EXPECT_FALSE(end_in_words(failed_run(), [](int) { return Result<std::string>(std::string()); }));
    EXPECT_FALSE(
        end_in_words(failed_run(), [](int) -> Result<std::string> { return Error(ErrorKind::not_found, "gone"); }));
}

// A limit that it was given: its figures, and what to set.
TEST(EndWords, ALimitIsTold) {
    stoker::Run run = failed_run();
    const LogTail tail = [](int) { return Result<std::string>(std::string("Error: never asked for\n")); };
    run.state = RunState::failed;
    run.cause = Cause::oom;
    run.spec.per_rank.memory_bytes = 200 << 20;
    run.attempts.back().ranks[0].cause = run.attempts.back().ranks[1].cause = Cause::oom;
    run.attempts.back().ranks[1].peak_memory_bytes = 199 << 20;
    auto told = end_in_words(run, tail);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->name, "memory-limit");
    EXPECT_THAT(told->what, HasSubstr("its memory limit of 200 MiB"));
    EXPECT_EQ(told->evidence.at(0), "199 MiB at its peak on rank 1");
    EXPECT_THAT(told->fix, HasSubstr("--memory 300MiB"));
    run.state = RunState::expired;
    run.cause = Cause::timeout;
    run.detail = "ran for its 2 s";
    told = end_in_words(run, tail);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->name, "time-limit");
    EXPECT_EQ(told->what, "ran for its 2 s");
    // A person did it, or it goes on.
    run.cause = Cause::cancelled;
    run.state = RunState::cancelled;
    EXPECT_FALSE(end_in_words(run, tail));
}

// What others did to a rank is not looked for in its log.
TEST(EndWords, OnlyOfWhatTheProgramDid) {
    stoker::Run run = failed_run();
    const LogTail tail = [](int) { return Result<std::string>(std::string("Traceback: x\nError: y\n")); };
    run.attempts.back().ranks[0].cause = run.attempts.back().ranks[1].cause = Cause::oom;
    EXPECT_FALSE(end_in_words(run, tail));
    run.attempts.back().ranks = {ended(0, 5)};
    EXPECT_FALSE(end_in_words(run, tail));
    EXPECT_FALSE(end_in_words(stoker::Run{}, tail));
}

}  // namespace
}  // namespace stoker
