// What a home of segments promises, whichever it is: one suite for each. A kind of home has
//     static std::string prepare();                // a place that nobody has used; why there can be none, empty: there
//     is static std::unique_ptr<SegmentHome> open();  // of that place, as another process would
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io/segment_home.h"

namespace stoker {

template <class Kind>
class SegmentConformance : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string why = Kind::prepare(); !why.empty()) GTEST_SKIP() << why;
    }
    static Status write(SegmentHome& home, std::uint64_t segment, std::uint64_t at, std::string_view bytes) {
        const SegmentPiece piece{segment, at, 256, bytes};
        return home.write({&piece, 1});
    }
    // What stands there, without the zeros behind it.
    static std::string text(SegmentHome& home, std::uint64_t segment) {
        auto read = home.read(segment);
        EXPECT_TRUE(read) << (read ? "" : read.error().text());
        if (!read) return {};
        read->resize(read->find_last_not_of('\0') + 1);
        return *read;
    }
};
TYPED_TEST_SUITE_P(SegmentConformance);

// Else what was acknowledged is not there when the next process looks.
TYPED_TEST_P(SegmentConformance, KeepsWhatWasWritten) {
    {
        const auto home = TypeParam::open();
        ASSERT_TRUE(home->claim());
        EXPECT_TRUE(home->claim()) << "once more";
        ASSERT_TRUE(this->write(*home, 1, 0, "begins "));
        ASSERT_TRUE(this->write(*home, 1, 7, "goes on"));
        const std::vector<SegmentPiece> pieces = {{1, 14, 256, ", ends"}, {40, 0, 256, "next"}, {40, 4, 256, "!"}};
        ASSERT_TRUE(home->write(pieces));
    }
    const auto home = TypeParam::open();
    EXPECT_EQ(home->segments().value(), (std::vector<std::uint64_t>{1, 40}));
    EXPECT_EQ(this->text(*home, 1), "begins goes on, ends");
    EXPECT_EQ(this->text(*home, 40), "next!");
    EXPECT_NE(home->place(1), home->place(40));
}

// Else two processes settle what one reserved.
TYPED_TEST_P(SegmentConformance, IsWrittenByOneProcessAndReadByAll) {
    auto first = TypeParam::open();
    ASSERT_TRUE(first->claim());
    ASSERT_TRUE(this->write(*first, 1, 0, "mine"));
    const auto second = TypeParam::open();
    EXPECT_EQ(second->claim().error().kind(), ErrorKind::conflict);
    EXPECT_EQ(this->text(*second, 1), "mine");
    first.reset();
    ASSERT_TRUE(second->claim());
    ASSERT_TRUE(this->write(*second, 5, 0, "mine now"));
    EXPECT_EQ(this->text(*second, 5), "mine now");
}

// Else the next process goes on behind bytes that it could not read.
TYPED_TEST_P(SegmentConformance, WhatWasReadToItsEndNeedsNoCut) {
    const auto home = TypeParam::open();
    ASSERT_TRUE(home->claim());
    ASSERT_TRUE(this->write(*home, 1, 0, "all of it"));
    EXPECT_TRUE(home->cut(1, 9));
    EXPECT_EQ(this->text(*home, 1), "all of it");
}

REGISTER_TYPED_TEST_SUITE_P(SegmentConformance, KeepsWhatWasWritten, IsWrittenByOneProcessAndReadByAll,
                            WhatWasReadToItsEndNeedsNoCut);

}  // namespace stoker
