// Tokens of a gateway's account become charges of the server: else an invoice has machines alone, or has a token twice.
#include "server/token_charges.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <thread>

#include "govern/ledger/ledger.h"
#include "server/testing.h"

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TokenChargesTest : public api_testing::ApiTest {
protected:
    static RequestKey request_of(int n) {
        RequestKey key{};
        key[15] = static_cast<std::uint8_t>(n);
        return key;
    }
    std::unique_ptr<Ledger> ledger(const std::string& name, std::uint8_t gateway) {
        auto made = Ledger::open({.folder = folder_ + "/" + name,
                                  .gateway = {gateway},
                                  .segment_bytes = 64u << 10,
                                  .names = {{NameKind::key, name_id("bot"), "bot"},
                                            {NameKind::model, name_id("demo"), "demo"},
                                            {NameKind::project, name_id("red"), "red"},
                                            {NameKind::project, name_id("blue"), "blue"}},
                                  .sync = false});
        EXPECT_TRUE(made.ok()) << made.error().text();
        return std::move(*made);
    }
    static void request(Ledger& ledger, int n, const char* project, std::uint64_t picousd) {
        const std::uint64_t lsn = ledger.reserve({.request = request_of(n),
                                                  .project = name_id(project),
                                                  .key = name_id("bot"),
                                                  .model = name_id("demo"),
                                                  .price_version = 7});
        const std::uint64_t settled = ledger.settle({.request = request_of(n),
                                                     .reserve_lsn = lsn,
                                                     .in = 10,
                                                     .out = 5,
                                                     .charge_picousd = picousd,
                                                     .finished_unix_us = kAt});
        ledger.commit();
        while (ledger.durable() < settled) std::this_thread::yield();
    }
    TokenAccounts account(const std::string& name) {
        return {{.account = folder_ + "/" + name,
                 .gateway = {},
                 .projects = {{.gateway = "red", .charge = "default/red"}},
                 .others = "default/default"}};
    }
    std::int64_t charged(const std::string& project) {
        std::int64_t sum = 0;
        (void)engine_->read([&](const EngineView& view) {
            for (const auto& [key, each] : view.state.charges)
                if (view.state.tenants.projects.at(key.project).name == project) sum += each.microusd;
        });
        return sum;
    }
    void make_project(const std::string& name) {
        ASSERT_TRUE(
            call(*engine_, {.what = MakeProject{kDefaultOrganisation, name}, .actor = Actor::token("admin")}).ok());
    }
    static constexpr std::int64_t kAt = std::int64_t{1'795'000'000} * 1'000'000;  // 2026-11-18
};

TEST_F(TokenChargesTest, EachRequestOnceToItsProjectAlsoByTheNextServer) {
    make_project("red");
    const auto book = ledger("ledger", 3);
    request(*book, 1, "red", 2'000'000'000);
    request(*book, 2, "blue", 500'000'000);
    {
        TokenCharges charges(*engine_, {.by_itself = false});
        charges.use(account("ledger"));
        charges.look();
        EXPECT_EQ(charged("red"), 0) << "what may not be on disk yet is not charged";
        charges.look();
        EXPECT_EQ(charged("red"), 2000);
        EXPECT_EQ(charged("default"), 500);
        request(*book, 3, "red", 1'000'000'000);
    }
    TokenCharges charges(*engine_, {.by_itself = false});
    charges.use(account("ledger"));
    for (int i = 0; i < 4; ++i) charges.look();
    EXPECT_EQ(charged("red"), 3000);
    EXPECT_EQ(charged("default"), 500);
    EXPECT_THAT(charges.faults(), ElementsAre(""));

    const std::string invoice = ask("GET", "/api/v1/invoice", "", {{"month", "2026-11"}}).body;
    EXPECT_THAT(invoice, HasSubstr("\"total_microusd\":3500"));
    EXPECT_THAT(invoice, HasSubstr("\"tokens\":30"));
    const std::string items = ask("GET", "/api/v1/charges", "", {{"month", "2026-11"}}).body;
    EXPECT_THAT(items, HasSubstr("\"account\":\"gateway/3\""));
    EXPECT_THAT(items, HasSubstr("\"price_version\":7"));
    const std::string usage = ask("GET", "/api/v1/usage", "", {{"by", "project"}, {"from", "2026-11-18"}}).body;
    EXPECT_THAT(usage, HasSubstr("\"key\":\"red\""));
    EXPECT_THAT(usage, HasSubstr("\"tokens\":45"));
    EXPECT_THAT(ask("GET", "/api/v1/usage", "", {{"to", "2026-11-01"}}).body, HasSubstr("\"items\":[]"));
}

// What cannot be charged is said, and is charged when it can be: nothing is dropped on the way.
TEST_F(TokenChargesTest, WhatIsWrongIsSaidAndNothingIsLost) {
    const auto book = ledger("ledger", 3);
    request(*book, 1, "red", 1'000'000'000);
    request(*book, 2, "red", 1'000'000'000);
    TokenCharges charges(*engine_, {.by_itself = false});
    charges.use(account("ledger"));
    for (int i = 0; i < 2; ++i) charges.look();
    EXPECT_THAT(charges.faults(), ElementsAre("there is no project default/red"));
    make_project("red");
    charges.look();
    EXPECT_EQ(charged("red"), 2000);

    // Another account that says it is the same gateway's would be charged from the middle on.
    const auto other = ledger("other", 3);
    request(*other, 1, "blue", 1'000'000);
    TokenAccounts both = account("ledger");
    both.push_back(account("other").front());
    charges.use(both);
    charges.look();
    EXPECT_THAT(charges.faults(), ElementsAre("", HasSubstr("are both accounts of gateway/3")));
    charges.use(account("other"));
    charges.look();
    EXPECT_THAT(charges.faults(), ElementsAre(HasSubstr("was charged up to")));
    charges.use(account("nowhere"));
    charges.look();
    EXPECT_THAT(charges.faults().front(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace stoker
