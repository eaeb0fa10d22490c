// Quotas, budgets and invoices over the API, as two organisations see them.
#include <fmt/format.h>

#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "the-token-of-this-installation";

class LimitsApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        api_->stop();
        open({.token = kToken, .actor = Actor::token("admin")});
        with(kToken, "POST", "/api/v1/organisations", R"({"name":"hospital","project":"imaging"})");
        with(kToken, "POST", "/api/v1/organisations", R"({"name":"bank"})");
        imaging_ = key("admin", "project", "p-2");
        hospital_ = key("admin", "organisation", "p-2");
        bank_ = key("auditor", "organisation", "p-3");
    }
    HttpResponse with(const std::string& secret, const std::string& method, const std::string& path,
                      const std::string& body = {}, std::vector<std::pair<std::string, std::string>> query = {}) {
        return ask(method, path, body, std::move(query), {{"Authorization", "Bearer " + secret}});
    }
    std::string key(const char* role, const char* level, const char* project) {
        return at(
            with(kToken, "POST", "/api/v1/keys",
                 fmt::format(R"({{"name":"anna","role":"{}","level":"{}","project":"{}"}})", role, level, project)),
            "secret");
    }
    // Until the run is in this state, two seconds at most.
    void wait_for(const std::string& state) {
        std::string now;
        for (int i = 0; i < 100 && now != state; ++i) {
            const auto shown = Document::parse_json(with(imaging_, "GET", "/api/v1/runs/r-1").body, "run");
            ASSERT_TRUE(shown.ok());
            now = shown->root().find("run")->find("state")->text;
            if (now != state) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        EXPECT_EQ(now, state);
    }
    std::string imaging_, hospital_, bank_;
};

// A team that sets its own limit has none; one that sees another's learns how large it is.
TEST_F(LimitsApiTest, ALimitIsSetFromAboveAndSeenByWhomItIsAbout) {
    constexpr const char* kBody = R"({"scope":"p-2","resource":"cpu","limit_milli":2000})";
    EXPECT_EQ(with(imaging_, "POST", "/api/v1/quotas", kBody).status, 403);
    EXPECT_EQ(with(bank_, "POST", "/api/v1/quotas", kBody).status, 403);
    const HttpResponse set = with(hospital_, "POST", "/api/v1/quotas", kBody);
    EXPECT_EQ(set.status, 200) << set.body;
    EXPECT_THAT(set.body, HasSubstr(R"("scope_name":"project hospital/imaging")"));
    EXPECT_THAT(with(imaging_, "GET", "/api/v1/quotas").body, HasSubstr("\"limit_milli\":2000"));
    EXPECT_THAT(with(bank_, "GET", "/api/v1/quotas").body, HasSubstr("\"items\":[]"));
    EXPECT_EQ(with(hospital_, "POST", "/api/v1/quotas", R"({"scope":"p-3","resource":"cpu","limit_milli":1})").status,
              404);
    for (const char* wrong :
         {R"({"scope":"p-2","resource":"tpu","limit_milli":1})", R"({"scope":"x","resource":"cpu","limit_milli":1})",
          R"({"scope":"p-2","resource":"cpu","limit_milli":-1})", R"({"scope":"p-2","resource":"cpu","limit":1})",
          R"({"scope":"p-2","resource":"cpu","limit_milli":null})"})
        EXPECT_EQ(with(hospital_, "POST", "/api/v1/quotas", wrong).status, 400) << wrong;
    EXPECT_THAT(with(hospital_, "POST", "/api/v1/quotas", R"({"scope":"p-2","resource":"cpu"})").body,
                HasSubstr("\"items\":[]"));
    EXPECT_EQ(with(hospital_, "POST", "/api/v1/quotas", R"({"scope":"p-2","resource":"cpu"})").status, 404);
}

// What was charged and what the invoice says must be the same micro-dollars, and nobody else's.
TEST_F(LimitsApiTest, ChargesSumToTheInvoiceAndAreNobodyElses) {
    auto book = std::make_shared<PriceBook>();
    book->prices = {{.resource = PricedResource::cpu, .microusd_per_hour = 3'600'000'000'000}};
    ASSERT_TRUE(call(*engine_, {.what = SetPrices{book, "book-1"}, .actor = Actor::part("config")}).ok());
    EXPECT_EQ(with(hospital_, "POST", "/api/v1/budgets", R"({"scope":"p-2","limit_micro":4000000000000000})").status,
              200);
    const std::string run = at(with(imaging_, "POST", "/api/v1/runs", kJob), "run");
    ASSERT_EQ(run, "r-1");
    wait_for("running");
    EXPECT_EQ(with(imaging_, "POST", "/api/v1/runs/r-1/cancel").status, 200);
    wait_for("cancelled");
    const HttpResponse charges = with(hospital_, "GET", "/api/v1/charges"),
                       invoice = with(hospital_, "GET", "/api/v1/invoice");
    const auto charged = Document::parse_json(charges.body, "charges");
    ASSERT_TRUE(charged.ok());
    const Node* items = charged->root().find("items");
    ASSERT_EQ(items->items.size(), 1U) << charges.body;
    EXPECT_EQ(items->items[0]->find("book")->text, "book-1");
    const std::string total = at(invoice, "total_microusd");
    EXPECT_EQ(items->items[0]->find("microusd")->text, total);
    EXPECT_NE(total, "0");
    EXPECT_THAT(with(bank_, "GET", "/api/v1/invoice").body, HasSubstr("\"items\":[]"));
    EXPECT_THAT(with(bank_, "GET", "/api/v1/charges").body, Not(HasSubstr("r-1")));
    EXPECT_THAT(with(bank_, "GET", "/api/v1/budgets").body, HasSubstr("\"items\":[]"));
    EXPECT_THAT(with(hospital_, "GET", "/api/v1/invoice", "", {{"month", "2020-01"}}).body, HasSubstr("\"items\":[]"));
    EXPECT_EQ(with(hospital_, "GET", "/api/v1/invoice", "", {{"month", "May"}}).status, 400);
}

}  // namespace
}  // namespace stoker::api
