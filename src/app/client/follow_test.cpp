#include "app/client/follow.h"

#include <gmock/gmock.h>

#include "app/client/testing.h"

namespace stoker {
namespace {

using testing::Contains;
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
    EXPECT_EQ(reader.read(client, 1).error().kind(), ErrorKind::unavailable);
    script.answers["GET /api/v1/runs/r-1/logs"] = {.status = 404, .body = "{}"};
    EXPECT_EQ(*reader.read(client, 1), "") << "it has not started: no error";
    EXPECT_FALSE(reader.at_end());
    script.answers["GET /api/v1/runs/r-1/logs"] = log_piece("", "c&1", true);
    EXPECT_EQ(*reader.read(client, 1), "");
    EXPECT_TRUE(reader.at_end());
    script.asked.clear();
    EXPECT_EQ(*reader.read(client, 2), "");
    ASSERT_EQ(script.asked.size(), 2u);
    EXPECT_THAT(script.asked[0], HasSubstr("attempt=1"));
    EXPECT_THAT(script.asked[0], HasSubstr("offset=c%261"));
    EXPECT_THAT(script.asked[1], HasSubstr("attempt=2"));
    EXPECT_THAT(script.asked[1], HasSubstr("rank=2"));
    EXPECT_EQ(script.asked[1].find("offset"), std::string::npos);
}

// `stoker logs --attempt 1` of a run that was tried again shows the first attempt and nothing else.
TEST(LogReaderTest, StaysWithTheAttemptThatWasAskedFor) {
    ScriptedTransport script;
    Client client = script.client();
    script.answers["GET /api/v1/runs/r-1/logs"] = log_piece("", "5", true);
    LogReader reader("r-1", 0, 1, "");
    ASSERT_TRUE(reader.read(client, 3).ok());
    EXPECT_TRUE(reader.at_end());
    EXPECT_THAT(script.asked, testing::Each(HasSubstr("attempt=1")));
}

}  // namespace
}  // namespace stoker
