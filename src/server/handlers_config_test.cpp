#include <gmock/gmock.h>

#include "server/config_keeper.h"
#include "server/testing.h"

namespace stoker::api_testing {
namespace {

using testing::HasSubstr;

class ConfigApi : public ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        keeper_ = std::make_shared<ConfigKeeper>(ServerSettings{}, std::map<std::string, std::string>{}, nullptr);
        ASSERT_TRUE(keeper_->begin("", "none").ok());
        keeper_->use({.newest = [this]() -> Result<std::string> {
                          std::string text;
                          TRY_VOID(engine_->read([&](const EngineView& view) {
                              if (!view.state.config.empty()) text = view.state.config.back().text;
                          }));
                          return text;
                      },
                      .set_nodes = [](std::vector<NodeInfo>) {},
                      .set_prices = [](PriceBook) {},
                      .set_limits = [](const CoreLimits&) { return done(); },
                      .set_backup = [](BackupOptions) {}});
        ApiOptions options;
        options.config = keeper_;
        open(std::move(options));
    }
    std::shared_ptr<ConfigKeeper> keeper_;
};

class NoConfigApi : public ApiTest {};

// A server without a configuration says so, and one that is only looked at takes none.
TEST_F(NoConfigApi, WithoutAServerNothingIsSet) {
    const HttpResponse none = ask("GET", "/api/v1/config");
    EXPECT_EQ(none.status, 200);
    EXPECT_THAT(none.body, HasSubstr("\"version\":0"));
    EXPECT_EQ(ask("PUT", "/api/v1/config", R"({"text":"max_queued: 5\n"})").status, 503);
    EXPECT_EQ(ask("POST", "/api/v1/config/rollback", R"({"version":1})").status, 503);
    EXPECT_EQ(ask("GET", "/api/v1/config/versions").body, "{\"items\":[]}\n");
    EXPECT_EQ(ask("GET", "/api/v1/config/versions/1").status, 404);
}

// Whoever writes a client relies on these statuses: 200 with an ETag, 400 with line and column, 412, 404.
TEST_F(ConfigApi, AnswersAsItsRoutesPromise) {
    const HttpResponse first = ask("PUT", "/api/v1/config", R"({"text":"max_queued: 5\n","note":"a"})");
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(first.headers.find("ETag"), "\"1\"");
    EXPECT_THAT(first.body, HasSubstr("\"applied\":[\"max_queued\"]"));
    EXPECT_THAT(ask("PUT", "/api/v1/config", R"({"text":"max_queued: 5\n"})").body, HasSubstr("\"repeated\":true"));
    const HttpResponse bad = ask("PUT", "/api/v1/config", R"({"text":"a: 1\nmax_queued: x\n"})");
    EXPECT_EQ(bad.status, 400);
    EXPECT_THAT(bad.body, HasSubstr(R"("place":{"in":"config","line":2,"column":13})"));
    EXPECT_EQ(ask("PUT", "/api/v1/config", R"({"text":"rate: 5\n"})", {}, {{"If-Match", "\"7\""}}).status, 412);
    const HttpResponse second = ask("PUT", "/api/v1/config", R"({"text":"rate: 5\n"})", {}, {{"If-Match", "\"1\""}});
    EXPECT_THAT(second.body, HasSubstr("\"needs_restart\":[\"rate\"]"));
    EXPECT_EQ(ask("POST", "/api/v1/config/rollback", R"({"version":9})").status, 404);
    EXPECT_EQ(ask("POST", "/api/v1/config/rollback", R"({"version":1})", {}, {{"If-Match", "\"1\""}}).status, 412);
    const HttpResponse back = ask("POST", "/api/v1/config/rollback", R"({"version":1})");
    EXPECT_EQ(back.headers.find("ETag"), "\"3\"");
    EXPECT_THAT(ask("GET", "/api/v1/config/versions/3").body, HasSubstr("back to version 1"));
    EXPECT_THAT(ask("GET", "/api/v1/config").body, HasSubstr("max_queued: 5\\n"));
    EXPECT_EQ(ask("GET", "/api/v1/config/versions/0").status, 404);
    EXPECT_EQ(ask("GET", "/api/v1/config/versions/x").status, 404);
}

}  // namespace
}  // namespace stoker::api_testing
