#include "io/password.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// A list of hashes that is stolen must cost a guess at each of them, and equal passwords must not show.
TEST(Password, IsKnownAgainAndNothingElseIs) {
    const auto one = hash_password("correct horse battery"), other = hash_password("correct horse battery");
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_NE(*one, *other);
    EXPECT_TRUE(one->starts_with("$argon2id$v=19$m=65536,t=3,p=1$")) << *one;
    EXPECT_TRUE(password_is("correct horse battery", *one));
    EXPECT_FALSE(password_is("correct horse batterx", *one));
    EXPECT_FALSE(password_is("", *one));
    EXPECT_FALSE(password_is("correct horse battery", ""));
    EXPECT_FALSE(password_is("correct horse battery", "$argon2id$nonsense"));
}

TEST(Password, TooShortAndTooLongAreRefused) {
    EXPECT_EQ(hash_password("short").error().kind(), ErrorKind::invalid);
    // Eleven letters of four bytes each are eleven to guess.
    std::string letters;
    for (int i = 0; i < 11; ++i) letters += "\U0001D413";
    EXPECT_EQ(check_password(letters).error().kind(), ErrorKind::invalid);
    EXPECT_TRUE(check_password(letters + "e"));
    EXPECT_EQ(hash_password(std::string(257, 'x')).error().kind(), ErrorKind::invalid);
    EXPECT_FALSE(password_is(std::string(1 << 20, 'x'), ""));
}

}  // namespace
}  // namespace stoker
