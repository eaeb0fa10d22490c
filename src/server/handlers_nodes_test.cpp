// Commands about nodes through the API, as scripts send them.
#include "server/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;

class NodesApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        for (int i = 0; i < 3000 && ask("GET", "/api/v1/nodes").body.find("alpha") == std::string::npos; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
};

// The driver of this test cannot measure: that is told as skipped, and is no pass.
TEST_F(NodesApiTest, ACheckIsAskedForAndItsResultIsListed) {
    const HttpResponse asked = ask("POST", "/api/v1/nodes/alpha/check", R"({"level":"full"})");
    EXPECT_EQ(asked.status, 202) << asked.body;
    EXPECT_THAT(asked.body, HasSubstr("\"node\":\"alpha\""));
    std::string list;
    for (int i = 0; i < 3000 && list.find("\"verdict\":\"skipped\"") == std::string::npos; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        list = ask("GET", "/api/v1/nodes").body;
    }
    EXPECT_THAT(list, HasSubstr("\"verdict\":\"skipped\""));
    EXPECT_THAT(list, HasSubstr("\"level\":\"full\""));
    EXPECT_EQ(ask("POST", "/api/v1/nodes/nosuchnode/check").status, 404);
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/check", R"({"level":"deep"})").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/check", R"({"depth":1})").status, 400);
    EXPECT_THAT(ask("GET", "/metrics").body, HasSubstr("stoker_nodes_checked{verdict=\"skipped\"} 1"));
    EXPECT_THAT(ask("GET", "/metrics").body, HasSubstr("stoker_nodes{state=\"quarantined\"} 0"));
}

// Repairs are counted, whoever says so; the third quarantines, and only a person lifts that.
TEST_F(NodesApiTest, RepairsAreCountedAndReadyOverrides) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/repaired").status, 200);
    EXPECT_THAT(ask("GET", "/api/v1/nodes").body, HasSubstr("node_lemon"));
    const HttpResponse ready = ask("POST", "/api/v1/nodes/alpha/ready");
    EXPECT_EQ(at(ready, "state"), "ready");
    EXPECT_EQ(at(ready, "cause"), "node_override");
    EXPECT_THAT(ask("GET", "/api/v1/events").body, HasSubstr("node_override")) << "the journal says who wanted it";
    EXPECT_EQ(ask("POST", "/api/v1/nodes/nosuchnode/repaired").status, 404);
}

}  // namespace
}  // namespace stoker
