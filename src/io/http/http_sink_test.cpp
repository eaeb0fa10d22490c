// Answers of many threads reach the loop in batches, and one that comes too late harms nothing.
#include "io/http/http_sink.h"

#include <gtest/gtest.h>

namespace stoker::http {
namespace {

struct FakeConnection final : Answering {
    std::vector<HttpResponse> answers;
    std::shared_ptr<StreamState> stream;
    int pulls = 0;

    void answer(HttpResponse response) override { answers.push_back(std::move(response)); }
    void begin_stream(HttpResponse head, std::shared_ptr<StreamState> state) override {
        answers.push_back(std::move(head));
        stream = std::move(state);
    }
    void pull() override { ++pulls; }
    // What a loop does when it pulls and everything fits into the socket.
    std::string take() {
        const std::lock_guard lock(stream->mutex);
        stream->pull_posted = false;
        return std::exchange(stream->waiting, {});
    }
};

class HttpSinks : public testing::Test {
protected:
    std::shared_ptr<HttpSink> sink(bool http_1_0 = false, bool head_only = false) {
        return make_sink(mailbox_, connection_, http_1_0, head_only, 100);
    }
    int wakes_ = 0;
    std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>([this] { ++wakes_; });
    std::shared_ptr<FakeConnection> connection_ = std::make_shared<FakeConnection>();
};

TEST_F(HttpSinks, ManyAnswersWakeTheLoopOnce) {
    for (int i = 0; i < 64; ++i) sink()->send({.status = 200 + i});
    EXPECT_EQ(wakes_, 1);
    EXPECT_TRUE(connection_->answers.empty());
    mailbox_->drain();
    ASSERT_EQ(connection_->answers.size(), 64u);
    EXPECT_EQ(connection_->answers[63].status, 263);
    sink()->send({});
    EXPECT_EQ(wakes_, 2);
}

// On the loop itself there is no detour.
TEST_F(HttpSinks, TheLoopAnswersAtOnce) {
    mailbox_->enter();
    sink()->send({.status = 201});
    EXPECT_EQ(connection_->answers.size(), 1u);
    EXPECT_EQ(wakes_, 0);
}

TEST_F(HttpSinks, ASinkAnswersOnceAndNeverNot) {
    {
        const auto one = sink();
        one->send({.status = 200});
        one->send({.status = 201});
        EXPECT_FALSE(one->stream({})->open());
    }
    sink();  // let go without an answer
    mailbox_->drain();
    ASSERT_EQ(connection_->answers.size(), 3u);
    EXPECT_EQ(connection_->answers[0].status, 200);
    EXPECT_EQ(connection_->answers[2].status, 500);
}

// Pieces that wait for the loop leave together, framed; what is beyond the bound cuts the reader off.
TEST_F(HttpSinks, StreamsJoinPiecesAndAreBounded) {
    const auto stream = sink()->stream({});
    mailbox_->drain();
    EXPECT_TRUE(stream->write("a"));
    EXPECT_TRUE(stream->write("bc"));
    mailbox_->drain();
    EXPECT_EQ(connection_->pulls, 1);
    EXPECT_EQ(connection_->take(), "1\r\na\r\n2\r\nbc\r\n");
    EXPECT_TRUE(stream->write(std::string(200, 'x')));  // one piece may be larger than the bound
    EXPECT_FALSE(stream->write("y"));
    EXPECT_FALSE(stream->open());
    mailbox_->drain();
    EXPECT_EQ(connection_->take(), "");
    const auto plain = sink(true)->stream({});
    mailbox_->drain();
    plain->write("a");
    EXPECT_EQ(connection_->take(), "a");
    EXPECT_FALSE(sink(false, true)->stream({})->open());
    EXPECT_FALSE(sink()->stream({.status = 204})->open());
}

TEST_F(HttpSinks, NothingHappensAfterTheEnd) {
    const auto late = sink();
    const auto stream = sink()->stream({});
    mailbox_->drain();
    const auto begun_late = sink()->stream({});
    connection_.reset();
    mailbox_->drain();
    EXPECT_FALSE(begun_late->open());
    mailbox_->close();
    EXPECT_FALSE(stream->open());
    EXPECT_FALSE(stream->write("x"));
    EXPECT_FALSE(late->stream({})->open());
    EXPECT_FALSE(mailbox_->post([] { FAIL(); }));
    mailbox_->drain();
}

}  // namespace
}  // namespace stoker::http
