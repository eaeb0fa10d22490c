#include "deploy/engines/engines.h"

#include <gmock/gmock.h>

#include <set>

namespace stoker {
namespace {

using ::testing::HasSubstr;

// A name that two engines have would start work on either.
TEST(Engines, EachHasItsOwnNameAndSaysWhatItIs) {
    std::set<std::string_view> names;
    for (const EngineKind& each : engines()) {
        EXPECT_TRUE(names.insert(each.name).second) << each.name;
        EXPECT_FALSE(each.what.empty());
        EXPECT_NE(each.make, nullptr);
        EXPECT_NE(each.look, nullptr);
        EXPECT_EQ(*find_engine(each.name), &each);
    }
    EXPECT_EQ(*find_engine(""), &engines().front());
}

// Who mistypes an engine is told which there are, and nothing starts elsewhere.
TEST(Engines, AnUnknownNameIsRefusedWithTheList) {
    const auto none = find_engine("slurn");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::not_found);
    EXPECT_THAT(none.error().text(), HasSubstr("there is no engine slurn"));
    EXPECT_THAT(none.error().text(), HasSubstr("local (this machine"));
}

// What an engine has left is looked at without starting one.
TEST(Engines, AnswersComeWithoutAnEngineThatRuns) {
    const auto questions = find_engine("local").value()->look("/nowhere");
    const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    const auto piece = questions->read_log({.launched = {}, .log_folder = "/nowhere", .rank = 0}, "", 10, soon);
    ASSERT_TRUE(piece.ok());
    EXPECT_EQ(piece->text, "");
    // What an engine does not know is said in one way by all.
    const Questions mute;
    EXPECT_EQ(mute.list_files("/", 10, soon).error().kind(), ErrorKind::unsupported);
    EXPECT_EQ(mute.look_for({}, {}, soon).error().kind(), ErrorKind::unsupported);
}

}  // namespace
}  // namespace stoker
