#include "lint/value.h"

#include <gtest/gtest.h>

namespace stoker::lint {
namespace {

// What cannot be followed neither satisfies nor violates a condition, or rules would guess.
TEST(Value, UnknownIsNeitherYesNorNo) {
    Value value;
    value.text = "true";
    for (const Value::State state : {Value::State::absent, Value::State::unknown}) {
        value.state = state;
        EXPECT_FALSE(value.is("true") || value.is_nocase("TRUE") || value.as_bool() || value.as_int());
    }
    value.state = Value::State::known;
    EXPECT_TRUE(value.is("true") && value.is_nocase("TRUE") && value.as_bool() == true);
}

TEST(Value, ReadsWholeNumbersOnly) {
    Value value;
    value.state = Value::State::known;
    for (const auto& [text, number] : {std::pair{"8", 8}, {"-1", -1}, {"0", 0}}) {
        value.text = text;
        EXPECT_EQ(value.as_int(), number);
    }
    for (const char* text : {"", "8 ", "0.5", "500m", "8x", "99999999999999999999", "+1"}) {
        value.text = text;
        EXPECT_FALSE(value.as_int()) << text;
    }
}

TEST(Text, IsComparedWithoutCase) {
    EXPECT_TRUE(contains_nocase("nvcr.io/NVIDIA/pytorch", "nvidia/"));
    EXPECT_TRUE(contains_nocase("abc", "") && contains_nocase("aab", "AB") && contains_nocase("-GPU", "-gpu"));
    EXPECT_FALSE(contains_nocase("ab", "abc") || contains_nocase("", "a") || contains_nocase("nvidi", "nvidia"));
    EXPECT_TRUE(starts_with_ignore_case("Standard_NC6", "standard_") && !starts_with_ignore_case("Std", "standard"));
    EXPECT_FALSE(equals_ignore_case("[", "{"));  // only letters have a case
}

}  // namespace
}  // namespace stoker::lint
