// Whoever reads files and answers of other programs relies on this: damaged bytes end a message, and never a process.
#include "base/protobuf.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace stoker {
namespace {

using namespace std::string_view_literals;

TEST(Protobuf, FieldsOfEachKindAreRead) {
    // 1: 300; 2: "ab"; 3: a float of 1; 4: a double of 1; 16: 0.
    ProtobufFields fields(
        "\x08\xac\x02\x12\x02"
        "ab\x1d\0\0\x80\x3f\x21\0\0\0\0\0\0\xf0\x3f\x80\x01\0"sv);
    auto field = fields.next();
    ASSERT_TRUE(field);
    EXPECT_EQ(field->id, 1U);
    EXPECT_EQ(field->number, 300U);
    field = fields.next();
    ASSERT_TRUE(field);
    EXPECT_EQ(field->id, 2U);
    EXPECT_EQ(field->bytes, "ab");
    EXPECT_TRUE(field->fixed.empty());
    field = fields.next();
    ASSERT_TRUE(field);
    EXPECT_EQ(field->fixed, "\0\0\x80\x3f"sv);
    EXPECT_TRUE(field->bytes.empty());
    field = fields.next();
    ASSERT_TRUE(field);
    EXPECT_EQ(field->fixed.size(), 8U);
    field = fields.next();
    ASSERT_TRUE(field);
    EXPECT_EQ(field->id, 16U);
    EXPECT_FALSE(fields.next());
    EXPECT_FALSE(fields.broken());
}

TEST(Protobuf, WhatIsCutOffOrOfNoKindIsBroken) {
    for (const std::string_view bytes :
         {"\x08"sv, "\x08\xff"sv,
          "\x12\x05"
          "abc"sv,
          "\x1d\0\0"sv, "\x21\0\0\0\0"sv, "\x02\x00"sv, "\x0b\x08\x01\x0c"sv,
          "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv}) {
        ProtobufFields fields(bytes);
        EXPECT_FALSE(fields.next());
        EXPECT_TRUE(fields.broken());
        EXPECT_FALSE(fields.next()) << "it goes on behind what is broken";
    }
    ProtobufFields half("\x08\x01\x12\x7f"sv);
    EXPECT_TRUE(half.next());
    EXPECT_FALSE(half.broken());
    EXPECT_FALSE(half.next());
    EXPECT_TRUE(half.broken());
}

TEST(Protobuf, AnyBytesEnd) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes(random() % 48, '\0');
        for (char& each : bytes) each = static_cast<char>(random() % 3 == 0 ? random() % 32 : random());
        ProtobufFields fields(bytes);
        std::size_t count = 0, held = 0;
        while (const auto field = fields.next()) {
            ++count;
            held += field->bytes.size() + field->fixed.size();
            ASSERT_NE(field->id, 0U);
        }
        ASSERT_LE(2 * count + held, bytes.size() + count);  // a tag each, and no byte twice
    }
}

}  // namespace
}  // namespace stoker
