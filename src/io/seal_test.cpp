#include "io/seal.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

const std::string kKey(kSealKeyBytes, 'k'), kOther(kSealKeyBytes, 'o');

TEST(Seal, WhatWasSealedIsOpenedByItsKeyUnderItsName) {
    for (const std::string& plain : {std::string(), std::string("hf_secret"), std::string(40'000, 'x')}) {
        const auto sealed = seal(kKey, "0123", plain);
        ASSERT_TRUE(sealed.ok());
        EXPECT_TRUE(is_sealed_with(kKey, *sealed));
        EXPECT_FALSE(is_sealed_with(kOther, *sealed));
        EXPECT_EQ(*open_sealed(kKey, "0123", *sealed), plain);
        // Another time it looks different: nobody sees that a value is the same.
        EXPECT_NE(*seal(kKey, "0123", plain), *sealed);
        // A file that was moved to the name of another is no secret of that one's.
        EXPECT_FALSE(open_sealed(kKey, "4567", *sealed).ok());
        EXPECT_FALSE(open_sealed(kOther, "0123", *sealed).ok());
    }
}

TEST(Seal, WhatWasChangedOrCutIsNotOpened) {
    const std::string sealed = *seal(kKey, "a", "hf_secret");
    for (std::size_t i = 16; i < sealed.size(); ++i) {
        std::string other = sealed;
        other[i] = static_cast<char>(other[i] ^ 1);
        EXPECT_FALSE(open_sealed(kKey, "a", other).ok()) << i;
        EXPECT_FALSE(open_sealed(kKey, "a", sealed.substr(0, i)).ok()) << i;
    }
}

TEST(Seal, AKeyIs64HexDigits) {
    EXPECT_EQ(*read_seal_key(" " + std::string(64, 'A') + "\n"), std::string(32, '\xaa'));
    for (const std::string& bad : {std::string(), std::string(63, 'a'), std::string(64, 'g'), std::string(65, 'a')}) {
        const auto read = read_seal_key(bad);
        ASSERT_FALSE(read.ok());
        EXPECT_EQ(read.error().text().find(std::string(20, 'a')), std::string::npos) << "the key is told";
    }
}

}  // namespace
}  // namespace stoker
