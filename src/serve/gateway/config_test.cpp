#include "serve/gateway/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "io/files.h"

namespace stoker::gateway {
namespace {

const std::string kDigest(64, 'a');

std::string file(const std::string& more = "", const std::string& key = "", const std::string& model = "") {
    return fmt::format(
        "{}models: [{{name: m, upstreams: [\"http://127.0.0.1:1\"], price: {{input: 0.15, output: 0.6}}{}}}]\n"
        "keys: [{{name: anna, sha256: {}{}}}]\n",
        more, model, kDigest, key);
}

// Else a price per million tokens is charged a millionth too high or too low.
TEST(GatewayConfig, PricesAndBudgetsAreExact) {
    const auto config = read_gateway_config(file("", ", budget: $20"), "gateway.yaml", "");
    ASSERT_TRUE(config.ok()) << config.error().text();
    const TokenPrice& price = config->setup->models.at("m").price;
    EXPECT_EQ(price.in_picousd, 150'000u);
    EXPECT_EQ(price.cached_in_picousd, 150'000u);
    EXPECT_EQ(price.of(1'000'000, 0, 0), 150'000'000'000u);
    EXPECT_EQ(config->setup->keys.at(0).limits.budget_picousd, 20'000'000'000'000u);
}

TEST(GatewayConfig, AllProblemsAreToldTogetherWithTheirPlaces) {
    const auto config =
        read_gateway_config(file("tls_cert: x.pem\n", ", models: [nobody], expires: soon"), "gateway.yaml", "");
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().problems().size(), 3u) << config.error().text();
    for (const Problem& problem : config.error().problems()) EXPECT_GT(problem.pos.line, 0u) << problem.message;
}

TEST(GatewayConfig, KeyThatIsThereTwiceIsRefused) {
    const std::string twice = file() + "  \n";
    EXPECT_TRUE(read_gateway_config(twice, "gateway.yaml", "").ok());
    const auto config = read_gateway_config(
        fmt::format(
            "models: [{{name: m, upstreams: [\"http://127.0.0.1:1\"]}}]\nkeys: [{{name: a, sha256: {0}}}, {{name: b, "
            "sha256: {0}}}]\n",
            kDigest),
        "gateway.yaml", "");
    ASSERT_FALSE(config.ok());
    EXPECT_NE(config.error().message().find("twice"), std::string::npos);
}

// An endpoint is a model of its own name, or of the one that the file gives it with a price; never both, and never one
// that is not there.
TEST(GatewayConfig, EndpointsAreModels) {
    const auto board = std::make_shared<ReplicaBoard>();
    const std::string keys = fmt::format("keys: [{{name: a, sha256: {}, models: [chat]}}]\n", kDigest);
    const auto own = read_gateway_config(keys, "gateway.yaml", "", {{"chat", board}});
    ASSERT_TRUE(own.ok()) << own.error().text();
    EXPECT_EQ(own->setup->models.at("chat").board, board);
    const auto named = read_gateway_config("models: [{name: chat, endpoint: chat-7b, price: {input: 1}}]\n" + keys,
                                           "gateway.yaml", "", {{"chat-7b", board}});
    ASSERT_TRUE(named.ok()) << named.error().text();
    EXPECT_EQ(named->setup->models.size(), 1u);
    EXPECT_EQ(named->setup->models.at("chat").price.in_picousd, 1'000'000u);
    for (const auto& [models, words] :
         {std::pair("[{name: chat, endpoint: gone}]", "none named 'gone'"),
          std::pair("[{name: chat, endpoint: e, upstreams: [\"http://127.0.0.1:1\"]}]", "known already"),
          std::pair("[{name: chat}]", "upstreams"),
          std::pair("[{name: e, upstreams: [\"http://127.0.0.1:1\"]}]", "endpoint, too"),
          std::pair("[{name: chat, upstreams: [\"http://127.0.0.1:1\"], queue: 5s}]", "max_outstanding")}) {
        const auto wrong =
            read_gateway_config(fmt::format("models: {}\n{}", models, keys), "gateway.yaml", "", {{"e", board}});
        ASSERT_FALSE(wrong.ok()) << models;
        std::string all;
        for (const Problem& problem : wrong.error().problems()) all += problem.message + "\n";
        EXPECT_NE(all.find(words), std::string::npos) << all;
    }
    EXPECT_FALSE(read_gateway_config(keys, "gateway.yaml", "").ok());
}

// A budget is whole again when its period begins, without a new start.
TEST(GatewayConfig, BudgetPeriodsBeginInUtc) {
    constexpr std::int64_t kSecond = 1'000'000;
    const std::int64_t at = 1'772'366'399 * kSecond;  // 2026-03-01 11:59:59
    EXPECT_EQ(budget_period_start_us(BudgetPeriod::day, at), 1'772'323'200 * kSecond);
    EXPECT_EQ(budget_period_start_us(BudgetPeriod::month, at), 1'772'323'200 * kSecond);
    EXPECT_EQ(budget_period_start_us(BudgetPeriod::month, 1'772'323'199 * kSecond), 1'769'904'000 * kSecond);
    EXPECT_EQ(budget_period_start_us(BudgetPeriod::total, at), 0);
}

TEST(GatewayConfig, BudgetPeriodsEndWhereTheNextBegins) {
    constexpr std::int64_t kSecond = 1'000'000;
    const std::int64_t at = 1'772'366'399 * kSecond;  // 2026-03-01 11:59:59
    EXPECT_EQ(budget_period_end_us(BudgetPeriod::day, at), 1'772'409'600 * kSecond);
    EXPECT_EQ(budget_period_end_us(BudgetPeriod::month, at), 1'775'001'600 * kSecond);                       // April
    EXPECT_EQ(budget_period_end_us(BudgetPeriod::month, 1'769'904'000 * kSecond), 1'772'323'200 * kSecond);  // February
    EXPECT_EQ(budget_period_end_us(BudgetPeriod::total, at), 0);
}

// Else a provider is asked at another path than its own, or a wrong file is only found when the first request fails.
TEST(GatewayConfig, ProvidersHaveAPathAKeyAndTls) {
    ::setenv("STOKER_TEST_PROVIDER", "sk-1", 1);
    const auto config =
        read_gateway_config(file("", ", project: red", ", fallback: [own], cap: $5, objective: {first_token: 2s}") +
                                "projects: [{name: red, budget: $3}]\n",
                            "gateway.yaml", "");
    ASSERT_FALSE(config.ok());
    EXPECT_NE(config.error().text().find("there is no model 'own'"), std::string::npos);
    const auto azure = read_gateway_config(
        fmt::format(
            "models: [{{name: m, upstreams: [\"https://127.0.0.1:1/openai/v1/\"], key_env: STOKER_TEST_PROVIDER, "
            "key_header: api-key, cap: $5}}]\nkeys: [{{name: a, sha256: {}, project: red}}]\n"
            "projects: [{{name: red, budget: $3}}]\n",
            kDigest),
        "gateway.yaml", "");
    ASSERT_TRUE(azure.ok()) << azure.error().text();
    const ModelSetup& model = azure->setup->models.at("m");
    EXPECT_EQ(model.upstreams.at(0).path, "/openai");
    EXPECT_TRUE(model.upstreams.at(0).tls);
    EXPECT_EQ(model.authorization, "api-key: sk-1\r\n");
    EXPECT_EQ(model.cap_picousd, 5'000'000'000'000u);
    EXPECT_TRUE(azure->setup->keys.at(0).project_limited);
    EXPECT_EQ(azure->setup->keys.at(0).project_limits.budget_picousd, 3'000'000'000'000u);
    for (const char* wrong : {"https://h/a?b", "https://h//a", "ftp://h"})
        EXPECT_FALSE(read_gateway_config(fmt::format("models: [{{name: m, upstreams: [\"{}\"]}}]\nkeys: [{{name: a, "
                                                     "sha256: {}}}]\n",
                                                     wrong, kDigest),
                                         "gateway.yaml", "")
                         .ok())
            << wrong;
}

// The page that people read.
TEST(GatewayConfig, ReferencePageIsWhatTheTableSays) {
    const auto page = read_file(STOKER_SOURCE_DIR "/docs/reference/gateway.md", 1u << 20);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(*page, gateway_config_reference()) << "stoker schema gateway-reference > docs/reference/gateway.md";
}

}  // namespace
}  // namespace stoker::gateway
