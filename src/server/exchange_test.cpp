#include "server/exchange.h"

#include <gmock/gmock.h>

#include "base/document.h"

namespace stoker::api {
namespace {

using testing::HasSubstr;

class Kept final : public HttpSink {
public:
    void send(HttpResponse response) override {
        ++count;
        last = std::move(response);
    }
    std::shared_ptr<HttpStream> stream(HttpResponse) override { return nullptr; }
    int count = 0;
    HttpResponse last;
};

// Two threads that both think it is theirs to answer: the client gets one answer.
TEST(ExchangeTest, TheFirstAnswerCounts) {
    const auto sink = std::make_shared<Kept>();
    int told = 0;
    Exchange exchange({}, HttpReply(sink));
    exchange.on_answer([&] { ++told; });
    exchange.fail(Error(ErrorKind::not_found, "no"));
    exchange.send(Json::object());
    EXPECT_EQ(exchange.stream({}), nullptr);
    EXPECT_EQ(sink->count, 1);
    EXPECT_EQ(told, 1);
    EXPECT_EQ(sink->last.status, 404);
}

// Scripts decide by the state; people read the problems. Nothing that was sent can break the JSON.
TEST(ExchangeTest, ErrorsAreProblems) {
    std::vector<Problem> problems;
    problems.push_back({.message = "name is \"\x01\"", .remedy = "write another", .pos = {"body", 2, 5}});
    for (int i = 0; i < 500; ++i) problems.push_back({.message = "more"});
    const HttpResponse response = problem_response(Error(ErrorKind::invalid, std::move(problems)), "abc");
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.content_type, "application/problem+json");
    const auto document = Document::parse_json(response.body, "answer");
    ASSERT_TRUE(document.ok()) << response.body;
    EXPECT_EQ(document->root().find("trace_id")->text, "abc");
    EXPECT_EQ(document->root().find("type")->text, "urn:stoker:error:invalid");
    EXPECT_LE(document->root().find("problems")->items.size(), 200u) << "an answer has a bound";
    EXPECT_THAT(response.body, HasSubstr("\"line\":2"));
    const auto sink = std::make_shared<Kept>();
    Exchange({}, HttpReply(sink)).fail(Error(ErrorKind::exhausted, "full"));
    EXPECT_EQ(sink->last.status, 503);
    EXPECT_EQ(sink->last.headers.find("Retry-After"), "1");
    for (int status : {400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 416, 421, 422, 429, 500, 503, 504})
        EXPECT_NE(title_of(status), "Error") << status;
}

// A caller's trace that is none would join strangers' requests.
TEST(ExchangeTest, TracesThatAreNoneAreReplaced) {
    const auto of = [](const char* text) {
        HttpRequest request;
        if (text != nullptr) request.headers.add("traceparent", text);
        return trace_of(request);
    };
    const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    EXPECT_EQ(of(good.c_str()).id, "0af7651916cd43dd8448eb211c80319c");
    EXPECT_THAT(of(good.c_str()).parent, testing::EndsWith("-00"));
    for (const char* wrong : {"", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                              "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                              "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                              "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                              "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01"}) {
        const Trace trace = of(wrong);
        EXPECT_EQ(trace.parent.size(), 55u) << wrong;
        EXPECT_NE(trace.id, "0af7651916cd43dd8448eb211c80319c") << wrong;
    }
    EXPECT_NE(of(nullptr).id, of(nullptr).id);
}

}  // namespace
}  // namespace stoker::api
