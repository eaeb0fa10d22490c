// An answer is owed once: a caller in this process or at a socket that gets none would wait for ever.
#include "io/http/http.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

class RecordingStream final : public HttpStream {
public:
    explicit RecordingStream(std::string& out) : out_(out) {}
    bool write(std::string piece) override {
        out_ += piece;
        return true;
    }
    void close() override { open_ = false; }
    bool open() const override { return open_; }

private:
    std::string& out_;
    bool open_ = true;
};

struct Recorded {
    std::vector<HttpResponse> responses;
    std::string streamed;
};

class RecordingSink final : public HttpSink {
public:
    explicit RecordingSink(Recorded& recorded) : recorded_(recorded) {}
    void send(HttpResponse response) override { recorded_.responses.push_back(std::move(response)); }
    std::shared_ptr<HttpStream> stream(HttpResponse head) override {
        recorded_.responses.push_back(std::move(head));
        return std::make_shared<RecordingStream>(recorded_.streamed);
    }

private:
    Recorded& recorded_;
};

// Headers are found whatever their case, the first of a name; parameters by their exact name.
TEST(Http, FindsHeadersAndParameters) {
    HttpRequest request;
    request.headers.add("If-Match", "\"3\"");
    request.headers.add("if-match", "\"4\"");
    request.query = {{"state", "running"}, {"State", "x"}, {"state", "ended"}};
    EXPECT_EQ(request.headers.find("IF-MATCH"), "\"3\"");
    EXPECT_EQ(request.headers.find("If-None-Match"), std::nullopt);
    EXPECT_EQ(request.parameter("state"), "running");
    EXPECT_EQ(request.parameter("sTATE"), std::nullopt);
}

TEST(Http, AReplyAnswersOnce) {
    Recorded recorded;
    {
        HttpReply reply(std::make_shared<RecordingSink>(recorded));
        HttpReply moved(std::move(reply));
        moved.send({.status = 201, .content_type = {}, .headers = {}, .body = {}});
    }
    ASSERT_EQ(recorded.responses.size(), 1u);
    EXPECT_EQ(recorded.responses[0].status, 201);
    EXPECT_DEATH(
        {
            HttpReply reply(std::make_shared<RecordingSink>(recorded));
            reply.send({});
            reply.send({});
        },
        "");
}

TEST(Http, AReplyThatIsDroppedAnswers500) {
    Recorded recorded;
    { const HttpReply dropped(std::make_shared<RecordingSink>(recorded)); }
    ASSERT_EQ(recorded.responses.size(), 1u);
    EXPECT_EQ(recorded.responses[0].status, 500);
    EXPECT_EQ(recorded.responses[0].content_type, "application/problem+json");
}

TEST(Http, AReplyStreams) {
    Recorded recorded;
    HttpReply reply(std::make_shared<RecordingSink>(recorded));
    const auto stream = reply.stream({.status = 200, .content_type = "text/event-stream", .headers = {}, .body = {}});
    EXPECT_TRUE(stream->write("data: 1\n\n"));
    EXPECT_EQ(recorded.streamed, "data: 1\n\n");
    EXPECT_EQ(recorded.responses.size(), 1u);
}

}  // namespace
}  // namespace stoker
