#include "serve/wire/multipart.h"

#include <gtest/gtest.h>

namespace stoker::wire {
namespace {

const std::string kType = "multipart/form-data; boundary=\"b-1\"";

// Else a file loses its last line, or takes the next part for its own.
TEST(Multipart, PartsLieAsTheyWereSent) {
    const std::string body =
        "--b-1\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
        "--b-1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".jsonl\"\r\nContent-Type: "
        "x/y\r\n\r\n{}\r\n--b\r\n\r\n--b-1--\r\n";
    const auto parts = read_form(kType, body);
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->size(), 2u);
    EXPECT_EQ((*parts)[0].name, "purpose");
    EXPECT_EQ((*parts)[0].content, "batch");
    EXPECT_EQ((*parts)[1].filename, "a \"b\".jsonl");
    EXPECT_EQ((*parts)[1].content, "{}\r\n--b\r\n");
    // Cut off anywhere it is none, and nothing is read past its end.
    for (std::size_t size = 0; size + 4 < body.size(); ++size)
        EXPECT_FALSE(read_form(kType, std::string_view(body).substr(0, size))) << size;
}

TEST(Multipart, WhatIsNoFormIsRefused) {
    EXPECT_FALSE(read_form("application/json", "{}"));
    EXPECT_FALSE(read_form("multipart/form-data", "--\r\n\r\n--"));
    EXPECT_FALSE(read_form(kType, "--b-1\r\n\r\nno name\r\n--b-1--"));
    EXPECT_FALSE(read_form(kType, "x--b-1\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b-1--"));
    EXPECT_TRUE(read_form(kType, "--b-1\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--b-1--"));
}

}  // namespace
}  // namespace stoker::wire
