#include "app/client/follow.h"

#include <gmock/gmock.h>

#include "app/client/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;

HttpResponse log_piece(std::string text, std::string next, bool end) {
    HttpResponse response{.content_type = "text/plain", .body = std::move(text)};
    response.headers.add("Stoker-Log-Next", std::move(next));
    response.headers.add("Stoker-Log-End", end ? "true" : "false");
    return response;
}

// A log that is read twice from its beginning, or from behind its end, shows people things that did not happen.
TEST(LogReaderTest, GoesOnWhereItWasAndFromAttemptToAttempt) {
    ScriptedTransport script;
    Client client = script.client();
    LogReader reader("r-1", 2, 0, "");
    EXPECT_EQ(reader.read(client).error().kind(), ErrorKind::unavailable);
    script.by_query = true;
    script.missing = 404;
    EXPECT_EQ(*reader.read(client), "") << "it has not started: no error";
    EXPECT_FALSE(reader.at_end());
    const std::string first = "GET /api/v1/runs/r-1/logs?rank=2&attempt=1&limit=262144";
    const std::string second = "GET /api/v1/runs/r-1/logs?rank=2&attempt=2&limit=262144";
    script.answers[first] = log_piece("one ", "c&1", false);
    script.answers[first + "&offset=c%261"] = log_piece("two", "c2", true);
    EXPECT_EQ(*reader.read(client), "one two");
    EXPECT_TRUE(reader.at_end());
    script.answers[first + "&offset=c2"] = log_piece("", "c2", true);
    EXPECT_EQ(*reader.read(client), "");
    script.answers[second] = log_piece(" three", "c3", false);
    script.answers[second + "&offset=c3"] = log_piece("", "c3", false);
    EXPECT_EQ(*reader.read(client), " three");
    EXPECT_FALSE(reader.at_end());
}

// `stoker logs --attempt 1` of a run that was tried again shows the first attempt and nothing else.
TEST(LogReaderTest, StaysWithTheAttemptThatWasAskedFor) {
    ScriptedTransport script;
    Client client = script.client();
    script.answers["GET /api/v1/runs/r-1/logs"] = log_piece("", "5", true);
    LogReader reader("r-1", 0, 1, "");
    ASSERT_TRUE(reader.read(client).ok());
    EXPECT_TRUE(reader.at_end());
    EXPECT_THAT(script.asked, testing::Each(HasSubstr("attempt=1")));
}

}  // namespace
}  // namespace stoker
