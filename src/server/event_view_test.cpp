#include "server/event_view.h"

#include <gmock/gmock.h>

#include "base/document.h"

namespace stoker::api {
namespace {

// A line break inside an event would end it early for whoever watches.
TEST(EventViewTest, AnEventIsOneLineOfJson) {
    const Event event{.seq = 7,
                      .at_us = 1'764'000'000'000'000,
                      .object = "run/r-1",
                      .kind = "run.submitted",
                      .actor = "a\nb",
                      .cause = "",
                      .trace = "t",
                      .operation = "",
                      .body = R"({"a":"x\ny"})"};
    const std::string json = as_json(event);
    EXPECT_EQ(json.find('\n'), std::string::npos);
    const auto document = Document::parse_json(json, "event");
    ASSERT_TRUE(document.ok()) << json;
    EXPECT_EQ(document->root().find("actor")->text, "a\nb");
    EXPECT_EQ(document->root().find("body")->find("a")->text, "x\ny");
    EXPECT_EQ(document->root().find("cause"), nullptr);
    const std::string sent = as_server_sent(event);
    EXPECT_EQ(sent, "id: 7\nevent: run.submitted\ndata: " + json + "\n\n");
    Event erased = event;
    erased.body.clear();
    EXPECT_TRUE(Document::parse_json(as_json(erased), "event").ok());
}

}  // namespace
}  // namespace stoker::api
