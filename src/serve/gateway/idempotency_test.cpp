#include "serve/gateway/idempotency.h"

#include <gtest/gtest.h>

namespace stoker::gateway {
namespace {

using Found = IdempotencyBook::Found;

// Else a client that lost its connection pays twice, or gets the answer to another question.
TEST(Idempotency, OneNameIsOneAnswer) {
    IdempotencyBook book;
    {
        IdempotencyClaim claim(book, "anna/1");
        EXPECT_EQ(book.begin("anna/1", "body", "req_1", 0).found, Found::fresh);
        EXPECT_EQ(book.begin("anna/1", "body", "req_2", 0).found, Found::running);
        EXPECT_EQ(book.begin("anna/1", "another", "req_2", 0).found, Found::other_body);
        EXPECT_EQ(book.begin("ben/1", "another", "req_3", 0).found, Found::fresh);
        claim.answered({.status = 200, .type = "application/json", .body = "{}", .request_id = "req_1"});
    }
    const auto again = book.begin("anna/1", "body", "req_4", 1);
    ASSERT_EQ(again.found, Found::answered);
    EXPECT_EQ(again.answer->body, "{}");
    EXPECT_EQ(again.request_id, "req_1");
}

// Else a request that failed could never be sent again.
TEST(Idempotency, WhatFailedMayBeTriedAgain) {
    IdempotencyBook book;
    {
        EXPECT_EQ(book.begin("a", "b", "r", 0).found, Found::fresh);
        const IdempotencyClaim claim(book, "a");
    }
    EXPECT_EQ(book.begin("a", "b", "r2", 0).found, Found::fresh);
}

// Else whoever sends names without end takes the memory of the gateway; and a day later the name is free.
TEST(Idempotency, AnswersGoAfterADayAndWhenThereIsNoRoom) {
    IdempotencyBook book(10'000);
    for (int i = 0; i < 20; ++i) {
        const std::string name = std::to_string(i);
        EXPECT_EQ(book.begin(name, "b", "r", i).found, Found::fresh);
        book.answered(name, {.status = 200, .type = "t", .body = std::string(1000, 'x'), .request_id = "r"});
    }
    EXPECT_EQ(book.begin("0", "b", "r", 20).found, Found::fresh);
    EXPECT_EQ(book.begin("19", "b", "r", 20).found, Found::answered);
    EXPECT_EQ(book.begin("19", "b", "r", 25LL * 3600 * 1'000'000).found, Found::fresh);
}

}  // namespace
}  // namespace stoker::gateway
