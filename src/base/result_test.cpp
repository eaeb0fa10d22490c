#include "base/result.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Result<int> half_of(int n) {
    if (n % 2 != 0) return Error(ErrorKind::invalid, "not even", {"n.yaml", 3, 5}, "add one");
    return n / 2;
}

Result<int> quarter_of(int n) {
    TRY(const int half, half_of(n));
    return half_of(half);
}

Status check_quarter(int n) {
    TRY_VOID(quarter_of(n));
    return done();
}

// TRY hands a value on, and an error to the caller, whatever the caller's own type.
TEST(Result, TryHandsOnValuesAndErrors) {
    EXPECT_EQ(*quarter_of(12), 3);
    EXPECT_FALSE(quarter_of(6).ok());
    EXPECT_EQ(check_quarter(6).error().message(), "not even");
    EXPECT_TRUE(check_quarter(12).ok());
}

// The text has each problem with its place and remedy, and then what was being done, innermost first.
TEST(Result, TextOfAnErrorShowsPlaceRemedyAndContext) {
    const auto result = half_of(1).while_doing("halving").while_doing("sizing the cluster");
    EXPECT_EQ(result.error().text(),
              "error: not even\n  at n.yaml:3:5\n  add one\n  while halving\n  while sizing the cluster\n");
    const Error two(ErrorKind::invalid, {Problem{.message = "first"}, Problem{.message = "second"}});
    EXPECT_EQ(two.text(), "error: first\nerror: second\n");
}

// A place prints what is known of it.
TEST(Result, TextOfAPlaceLeavesOutWhatIsUnknown) {
    EXPECT_EQ((SourcePos{"a.yaml", 7, 12}).text(), "a.yaml:7:12");
    EXPECT_EQ((SourcePos{"a.yaml", 7, 0}).text(), "a.yaml:7");
    EXPECT_EQ((SourcePos{"a.yaml", 0, 0}).text(), "a.yaml");
    EXPECT_EQ((SourcePos{"", 7, 12}).text(), "line 7:12");
    EXPECT_FALSE(SourcePos{}.known());
}

// Names outlive the strings they were made of, and equal names share one copy.
TEST(Result, FileNamesOutliveTheirSource) {
    SourcePos pos;
    {
        const std::string name = "a_name_too_long_for_the_string_itself.yaml";
        pos.file = name;
    }
    EXPECT_EQ(pos.file, "a_name_too_long_for_the_string_itself.yaml");
    EXPECT_EQ(FileName("x.yaml").data(), FileName(std::string("x.yaml")).data());
}

// Every kind has a word and one of the exit codes 1 to 4; only the answer "no" is 1, and only our bugs are 4.
TEST(Result, EveryKindHasAnExitCode) {
    EXPECT_EQ(exit_code(ErrorKind::infeasible), 1);
    EXPECT_EQ(exit_code(ErrorKind::invalid), 2);
    EXPECT_EQ(exit_code(ErrorKind::not_found), 2);
    EXPECT_EQ(exit_code(ErrorKind::denied), 3);
    EXPECT_EQ(exit_code(ErrorKind::timed_out), 3);
    EXPECT_EQ(exit_code(ErrorKind::internal), 4);
    EXPECT_EQ(to_string(ErrorKind::timed_out), "timed_out");
}

// A broken CHECK names the expression and ends the program with the code of a bug.
TEST(ResultDeathTest, CheckEndsTheProgramWithCode4) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(CHECK(1 + 1 == 3), testing::ExitedWithCode(4), "1 \\+ 1 == 3 is false at");
}

}  // namespace
}  // namespace stoker
