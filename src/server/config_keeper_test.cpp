#include "server/config_keeper.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A server without its threads: what would be changed is written down.
struct Server {
    std::string text;
    std::vector<NodeInfo> nodes;
    CoreLimits limits;
    BackupOptions backup;
    PriceBook prices;
    bool broken = false;

    ConfigHooks hooks() {
        return {.newest = [this]() -> Result<std::string> { return text; },
                .set_nodes = [this](std::vector<NodeInfo> value) { nodes = std::move(value); },
                .set_prices = [this](PriceBook value) { prices = std::move(value); },
                .set_limits = [this](const CoreLimits& value) -> Status {
                    if (broken) return Error(ErrorKind::unavailable, "the disk is full");
                    limits = value;
                    return done();
                },
                .set_backup = [this](BackupOptions value) { backup = std::move(value); }};
    }
};

std::string value_of(ConfigKeeper& keeper, const std::string& key, std::string ConfigSetting::*member) {
    for (const ConfigSetting& setting : keeper.settings())
        if (setting.key == key) return setting.*member;
    return "";
}

// An operator who sets a file is told which lines hold now, which after a restart, and which the command line beats.
TEST(ConfigKeeper, TellsWhatHoldsWhenAndWhatDoesNot) {
    ServerSettings usual;
    usual.limits.max_queued = 7;
    ConfigKeeper keeper(usual, {{"max_queued", "--max-queued 7"}}, {});
    const auto settings = keeper.begin("max_ended: 5\n", "server.yaml");
    ASSERT_TRUE(settings.ok()) << settings.error().text();
    EXPECT_EQ(settings->limits.max_ended, 5U);
    EXPECT_EQ(settings->limits.max_queued, 7U);
    EXPECT_FALSE(keeper.apply().ok());  // before the server is there
    Server server;
    keeper.use(server.hooks());
    server.text =
        "max_queued: 9\nmax_ended: 6\npolicy: random\nrate: 5\nnodes: [{name: a, vcpus: 2, memory: 1GiB}]\n"
        "prices: {source: s, prices: [{resource: cpu, usd_per_hour: 1, valid_from: 2026-01-01}]}\n"
        "backup: {to: \"file:///tmp/none\", every: 2h}\n";
    const auto outcome = keeper.apply();
    ASSERT_TRUE(outcome.ok()) << outcome.error().text();
    EXPECT_THAT(outcome->applied, ElementsAre("max_ended", "policy", "nodes", "prices", "backup"));
    EXPECT_THAT(outcome->needs_restart, ElementsAre("rate"));
    EXPECT_THAT(outcome->overridden, ElementsAre("max_queued"));
    EXPECT_EQ(server.limits.max_queued, 7U);
    EXPECT_EQ(server.limits.max_ended, 6U);
    EXPECT_EQ(server.limits.policy, PlacementPolicy::random);
    EXPECT_EQ(server.nodes.at(0).name, "a");
    EXPECT_EQ(server.prices.prices.size(), 1U);
    EXPECT_EQ(server.backup.every_s, 7200);
    EXPECT_EQ(value_of(keeper, "max_queued", &ConfigSetting::source), "command_line");
    EXPECT_THAT(value_of(keeper, "max_queued", &ConfigSetting::value), HasSubstr("--max-queued 7"));
    EXPECT_EQ(value_of(keeper, "nodes", &ConfigSetting::source), "configuration");
    EXPECT_EQ(value_of(keeper, "keep_ended", &ConfigSetting::source), "default");
    // Nothing new: nothing is touched, and the restart is still due. Taken back: it is not due any more.
    EXPECT_THAT(keeper.apply()->applied, IsEmpty());
    EXPECT_THAT(keeper.apply()->needs_restart, ElementsAre("rate"));
    server.text = "max_ended: 5\n";
    EXPECT_THAT(keeper.apply()->needs_restart, IsEmpty());
    EXPECT_TRUE(server.nodes.empty());
    EXPECT_TRUE(server.backup.to.empty());
}

// A change that the engine refuses is told, and is tried again with the next.
TEST(ConfigKeeper, WhatFailedIsStillToBeDone) {
    ConfigKeeper keeper({}, {}, {});
    ASSERT_TRUE(keeper.begin("", "server.yaml").ok());
    Server server;
    server.broken = true;
    server.text = "max_ended: 6\nnodes: [{name: a, vcpus: 2, memory: 1GiB}]\n";
    keeper.use(server.hooks());
    EXPECT_FALSE(keeper.apply().ok());
    EXPECT_TRUE(server.nodes.empty());
    server.broken = false;
    EXPECT_THAT(keeper.apply()->applied, ElementsAre("max_ended", "nodes"));
}

// Who looks for a fault in a server that runs makes its log talk, without a restart.
TEST(ConfigKeeper, TheLogDoesWhatTheConfigurationSays) {
    auto opened = Log::open({.sink = [](std::string_view) {}});
    ASSERT_TRUE(opened.ok());
    const std::shared_ptr<Log> log = std::move(*opened);
    ConfigKeeper keeper({}, {{"log_format", "--log-format logfmt"}}, {}, log);
    ASSERT_TRUE(keeper.begin("log_level: debug\nlog_format: json\n", "server.yaml").ok());
    EXPECT_EQ(log->level(), LogLevel::debug);
    EXPECT_EQ(log->format(), LogFormat::logfmt) << "the command line goes first";
    Server server;
    keeper.use(server.hooks());
    server.text = "log_level: warn\n";
    EXPECT_THAT(keeper.apply()->applied, ElementsAre("log_level"));
    EXPECT_FALSE(log->wants(LogLevel::info));
    server.text = "";
    EXPECT_THAT(keeper.apply()->applied, ElementsAre("log_level"));
    EXPECT_EQ(log->level(), LogLevel::info) << "as it was before anything was written";
    EXPECT_FALSE(keeper.check("log_level: loud\n").ok());
}

// A store without keys, or a URL that is none, is told with its line before it is written down.
TEST(ConfigKeeper, WhatThisServerCannotBeIsRefused) {
    ConfigKeeper keeper({}, {}, {});
    const Status bad = keeper.check("max_ended: 6\nbackup: {to: nowhere}\n");
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().problems().front().pos.line, 2U);
    EXPECT_EQ(bad.error().problems().front().pos.file.view(), "config");
    EXPECT_TRUE(keeper.check("virtual_nodes: 2\n").ok());
}

}  // namespace
}  // namespace stoker
