#include "serve/gateway/limit_home.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "base/codec.h"

namespace stoker::gateway {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000, kBegin = 100 * kSecondNs;
constexpr std::int64_t kSettled = kBegin + LimitHome::kSettleNs;

LimitMessage message_of(std::uint64_t gateway, std::uint64_t sequence, std::vector<ScopeUse> uses = {}) {
    return {.process = "p" + std::to_string(gateway),
            .gateway = gateway,
            .sequence = sequence,
            .whole = sequence == 1,
            .uses = std::move(uses)};
}
LimitAsk streams_of(std::uint64_t scope, std::int64_t most, std::uint64_t picousd = 0, std::uint64_t budget = 0) {
    return {{{.scope = ScopeId{scope}, .concurrent = most, .budget = budget, .picousd = picousd}}};
}
bool granted(const LimitReply& reply, std::size_t i = 0) {
    return reply.verdicts.size() > i && decision_of(reply.verdicts[i]).admitted();
}

// Else two gateways let as many streams begin as one key may have, each.
TEST(LimitHome, WhatGoesOnAtOneCountsForAll) {
    LimitBook book;
    LimitHome home(book, kBegin);
    home.answer(message_of(1, 1), kSettled);
    LimitMessage ask = message_of(2, 1);
    ask.asks = {streams_of(7, 2), streams_of(7, 2), streams_of(7, 2)};
    const LimitReply reply = home.answer(ask, kSettled);
    EXPECT_TRUE(granted(reply, 0) && granted(reply, 1));
    EXPECT_FALSE(granted(reply, 2));
    EXPECT_FALSE(book.admit(7, {.concurrent = 2}, 0, 0, kSettled).admitted());
    LimitMessage other = message_of(1, 2);
    other.asks = {streams_of(7, 2)};
    EXPECT_FALSE(granted(home.answer(other, kSettled)));
    // The next message of the second says what there really is: one of the two had left.
    home.answer(message_of(2, 2, {{.scope = ScopeId{7}, .concurrent = 1}}), kSettled);
    other.sequence = 3;
    EXPECT_TRUE(granted(home.answer(other, kSettled)));
}

// Else a key whose number is large is one that the home does not understand.
TEST(LimitHome, MessagesAreReadAsTheyWereWritten) {
    LimitMessage message = message_of(1, 1, {{.scope = ScopeId{UINT64_MAX}, .concurrent = 1, .spent = 5}});
    message.asks = {streams_of(UINT64_MAX - 1, 2)};
    const auto read = codec::decode<LimitMessage>(codec::encode(message), "message");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->uses.at(0).scope.number, UINT64_MAX);
    EXPECT_EQ(read->asks.at(0).wants.at(0).scope.number, UINT64_MAX - 1);
    LimitBook book;
    LimitHome home(book, kBegin);
    const auto reply = codec::decode<LimitReply>(codec::encode(home.answer(*read, kSettled)), "answer");
    ASSERT_TRUE(reply);
    EXPECT_TRUE(granted(*reply));
}

// Else a message that was given up and arrives all the same takes back what is known since.
TEST(LimitHome, AMessageThatComesLateOrTwiceChangesNothing) {
    LimitBook book;
    LimitHome home(book, kBegin);
    home.answer(message_of(1, 1, {{.scope = ScopeId{7}, .concurrent = 3}}), kSettled);
    const LimitMessage late = message_of(1, 2, {{.scope = ScopeId{7}, .concurrent = 0}});
    home.answer(message_of(1, 3, {{.scope = ScopeId{7}, .concurrent = 4}}), kSettled);
    home.answer(late, kSettled);
    EXPECT_FALSE(book.admit(7, {.concurrent = 4}, 0, 0, kSettled).admitted());
}

// Else a gateway that was killed holds the streams of its clients for ever, or its money is spent a second time.
TEST(LimitHome, WhoIsLostHasNoStreamsAndItsMoneyStaysCounted) {
    LimitBook book;
    LimitHome home(book, kBegin);
    home.answer(message_of(1, 1, {{.scope = ScopeId{7}, .concurrent = 2, .spent = 30, .reserved = 50}}), kSettled);
    home.look(kSettled + LimitHome::kLostNs + 1);
    EXPECT_EQ(home.heard(), 0u);
    const KeyLimits limits{.concurrent = 1, .budget_picousd = 100};
    EXPECT_EQ(book.admit(7, limits, 0, 21, kSettled).refusal, LimitRefusal::budget);
    EXPECT_TRUE(book.admit(7, limits, 0, 20, kSettled).admitted());
    book.take_back(7, limits, 0, 20);
    // It comes back, and its own account says less.
    LimitMessage back = message_of(1, 9, {{.scope = ScopeId{7}, .spent = 35}});
    EXPECT_FALSE(home.answer(back, kSettled + 7 * kSecondNs).known);
    back.whole = true;
    EXPECT_TRUE(home.answer(back, kSettled + 7 * kSecondNs).known);
    EXPECT_TRUE(book.admit(7, limits, 0, 65, kSettled).admitted());
}

// Else a home that was killed lets streams and money begin that others have under way.
TEST(LimitHome, ANewProcessHearsAllBeforeItAdmits) {
    LimitBook before;
    LimitHome old(before, kBegin);
    old.answer(message_of(1, 1, {{.scope = ScopeId{7}, .spent = 60}}), kSettled);
    LimitBook book;
    LimitHome home(book, kBegin);
    home.restore(old.record());
    LimitMessage ask = message_of(2, 1, {{.scope = ScopeId{7}, .concurrent = 1, .reserved = 30}});
    ask.asks = {streams_of(7, 9, 20, 100)};
    const LimitReply early = home.answer(ask, kBegin + 1);
    EXPECT_TRUE(early.settling && early.verdicts.empty());
    ask.sequence = 2;
    const LimitReply settled = home.answer(ask, kSettled);
    ASSERT_EQ(settled.verdicts.size(), 1u);
    EXPECT_EQ(decision_of(settled.verdicts[0]).refusal, LimitRefusal::budget);
    EXPECT_EQ(settled.elsewhere.at(0).spent, 60u);
}

// Else four gateways of which one is killed exceed a limit, or a burst is had again when the home starts.
TEST(LimitHome, FourThatAskExceedNothingWhoeverIsKilled) {
    std::mt19937_64 random(11);
    const RateLimit rate{.limit = 6000, .burst = 100};
    const LimitAsk ask{{{.scope = ScopeId{7}, .requests = rate.limit, .request_burst = rate.burst}}};
    auto book = std::make_unique<LimitBook>();
    auto home = std::make_unique<LimitHome>(*book, kBegin - LimitHome::kSettleNs);
    std::vector<std::int64_t> admitted;
    std::vector<std::uint64_t> sequence(4, 0), starts(4, 0);
    std::int64_t now_ns = kBegin;
    for (int step = 0; step < 20'000; ++step) {
        now_ns += static_cast<std::int64_t>(random() % 10'000'000);
        const std::size_t one = random() % 4;
        if (step == 7000) {
            ++starts[3];
            sequence[3] = 0;
        }
        if (step == 12'000) {
            home.reset();
            book = std::make_unique<LimitBook>();
            book->begin_used_up(now_ns);
            home = std::make_unique<LimitHome>(*book, now_ns);
        }
        LimitMessage message = message_of(one, ++sequence[one]);
        message.process += "." + std::to_string(starts[one]);
        message.asks = {ask, ask};
        LimitReply reply = home->answer(message, now_ns);
        if (!reply.known) {
            message.whole = true;
            reply = home->answer(message, now_ns);
        }
        for (std::size_t i = 0; i < reply.verdicts.size(); ++i)
            if (granted(reply, i)) admitted.push_back(now_ns);
    }
    for (std::size_t first = 0, last = 0; last < admitted.size(); ++last) {
        while (admitted[last] - admitted[first] > 60 * kSecondNs) ++first;
        EXPECT_LE(last - first + 1, 6000u + 101u);
    }
    const double seconds = static_cast<double>(now_ns - kBegin - LimitHome::kSettleNs) / 1e9;
    EXPECT_GE(static_cast<double>(admitted.size()), seconds * 100 * 0.98);
}

}  // namespace
}  // namespace stoker::gateway
