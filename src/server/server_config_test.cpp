#include "server/server_config.h"

#include <gmock/gmock.h>

#include "run/state/config_history.h"

namespace stoker {
namespace {

using testing::HasSubstr;

constexpr const char* kWhole = R"(# the machines of the lab
nodes:
  - {name: lab, vcpus: 8, memory: 32GiB, count: 2}
  - {name: head, vcpus: 4, memory: 16GiB}
prices:
  source: "our own, 2026"
  prices: [{resource: cpu, usd_per_hour: 0.02, valid_from: 2026-01-01}]
max_queued: 10
max_ended: 1k
keep_ended: 30d
backup: {to: "file:///srv/backups", every: 30m, keep: 48}
policy: fragmentation
rate: 50
azure_events: off
webhook: {url: "https://chat.example.org/hooks/stoker", secret_file: /etc/stoker/webhook.secret}
)";

// Who writes a file with every key gets a server with every one of them.
TEST(ServerConfig, EveryKeyIsRead) {
    const auto config = read_server_config(kWhole, "server.yaml", {});
    ASSERT_TRUE(config.ok()) << config.error().text();
    ASSERT_EQ(config->nodes->size(), 3U);
    EXPECT_EQ(config->nodes->at(1).name, "lab-2");
    EXPECT_EQ(config->prices->prices.size(), 1U);
    EXPECT_EQ(*config->max_queued, 10);
    EXPECT_EQ(*config->max_ended, 1000);
    EXPECT_EQ(config->keep_ended->value(), 30 * 86400);
    EXPECT_EQ(config->backup->to, "file:///srv/backups");
    EXPECT_EQ(config->backup->every->value(), 1800);
    EXPECT_EQ(*config->policy, PlacementPolicy::fragmentation);
    EXPECT_EQ(*config->rate, 50);
    EXPECT_EQ(*config->azure_events, "off");
    EXPECT_EQ(config->webhook->url, "https://chat.example.org/hooks/stoker");
    for (const char* nothing : {"", "# only a comment\n", "{}"}) {
        const auto empty = read_server_config(nothing, "server.yaml", {});
        ASSERT_TRUE(empty.ok()) << nothing;
        EXPECT_FALSE(empty->nodes || empty->max_queued || empty->prices);
    }
}

// A typing error may not leave a server without its machines: everything wrong is told at once, each with its place.
TEST(ServerConfig, EveryProblemHasItsPlace) {
    const auto config = read_server_config(
        "max_queud: 5\nmax_ended: -1\nkeep_ended: 1s\nnodes:\n  - {name: a, vcpus: 0, memory: 1GiB}\n"
        "  - {name: b, vcpus: 1, memory: 1GiB}\n  - {name: b, vcpus: 1, memory: 1GiB}\nvirtual_nodes: 2\n"
        "prices: {source: x, prices: [{resource: cpu, usd_per_hour: 1, valid_from: soon}]}\n"
        "backup: {to: nowhere}\npolicy: best\nazure_events: yes please\n",
        "server.yaml", {});
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().kind(), ErrorKind::invalid);
    const std::string text = config.error().text();
    for (const char* part :
         {"did you mean max_queued", "server.yaml:1:1", "server.yaml:2:", "server.yaml:3:", "server.yaml:5:",
          "the node b is named twice, first in line 6", "server.yaml:7:", "the nodes are listed already",
          "server.yaml:8:", "expected a day", "server.yaml:9:", "backup.to",
          "server.yaml:10:", "server.yaml:11:", "expected auto, off or a URL", "server.yaml:12:"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(read_server_config("[1, 2]", "server.yaml", {}).error().text(), HasSubstr("server.yaml:1:1"));
    EXPECT_THAT(read_server_config("a: [", "server.yaml", {}).error().text(), HasSubstr("server.yaml:1:"));
    EXPECT_FALSE(read_server_config(std::string(kMostConfigBytes + 1, ' '), "server.yaml", {}).ok());
    EXPECT_FALSE(read_server_config("nodes: []", "server.yaml", {}).ok());
}

// Editors complete what the server takes: schema and reference page come from the table that reads.
TEST(ServerConfig, SchemaAndReferenceNameEveryKey) {
    const std::string schema = server_config_record().json_schema().dump();
    const std::string page = server_config_reference();
    for (const std::string& key : server_config_record().keys()) {
        EXPECT_THAT(schema, HasSubstr("\"" + key + "\""));
        EXPECT_THAT(page, HasSubstr("| `" + key + "` |"));
    }
    EXPECT_THAT(page, HasSubstr("`usd_per_hour`"));
    EXPECT_THAT(page, HasSubstr("`topology`"));
}

// Who names the engine in one word gets it, and who gives this machine a partition is told before a server starts.
TEST(ServerConfig, NamesItsEngine) {
    const auto read = [](const std::string& text) { return read_server_config(text, "server.yaml", {}); };
    EXPECT_EQ(read("engine: slurm\n")->engine->kind, "slurm");
    const auto whole = read(
        "engine:\n  kind: slurm\n  partition: gpu\n  account: research\n  notice: 2m\n"
        "  gpu_models: [{name: a100, model: A100-SXM4-80GB}]\n");
    ASSERT_TRUE(whole.ok()) << whole.error().text();
    EXPECT_EQ(whole->engine->partition, "gpu");
    EXPECT_EQ(whole->engine->notice_s, 120);
    EXPECT_EQ(whole->engine->gpu_models.at("a100"), "A100-SXM4-80GB");
    const auto refusal = [&](const std::string& text) {
        const auto config = read(text);
        EXPECT_FALSE(config.ok()) << text;
        return config ? std::string() : config.error().text();
    };
    EXPECT_THAT(refusal("engine: {kind: local, partition: gpu}\n"), testing::HasSubstr("server.yaml:1:"));
    EXPECT_THAT(refusal("engine: slurn\n"), testing::HasSubstr("server.yaml:1:9"));
    EXPECT_THAT(refusal("engine: {kind: slurn}\n"), testing::HasSubstr("slurm"));
    EXPECT_THAT(refusal("engine: {partition: gpu}\n"), testing::HasSubstr("kind"));
    EXPECT_THAT(refusal("engine: {kind: slurm, qos: \"a\\nb\"}\n"), testing::HasSubstr("engine.qos"));
    const auto over_rest =
        read("engine:\n  kind: slurm\n  rest: {url: \"https://login:6820\", user: alice, token_file: /run/token}\n");
    ASSERT_TRUE(over_rest.ok()) << over_rest.error().text();
    EXPECT_EQ(over_rest->engine->rest.url, "https://login:6820");
    // A token that anybody on the way could read, or none where one is needed, is told before a server starts.
    for (const auto& [rest, said] :
         {std::pair("{url: \"http://login:6820\", user: alice, token_file: /run/token}", "for everybody to read"),
          std::pair("{url: \"https://login:6820\"}", "without a token"),
          std::pair("{url: \"unix:run/slurmrestd.sock\"}", "names no socket"),
          std::pair("{url: \"unix:/run/slurmrestd.sock\", user: alice}", "go together")})
        EXPECT_THAT(refusal(std::string("engine:\n  kind: slurm\n  rest: ") + rest + "\n"),
                    testing::AllOf(HasSubstr(said), HasSubstr("server.yaml:3:")));
    EXPECT_THAT(refusal("engine: {kind: local, rest: {url: \"unix:/x\"}}\n"), HasSubstr("only Slurm"));
    EXPECT_THAT(refusal("engine: {kind: slurm, commands: /opt, rest: {url: \"unix:/x\"}}\n"), HasSubstr("not used"));
    EXPECT_THAT(refusal("engine: slurm\nvirtual_nodes: 2\n"), testing::HasSubstr("this engine knows its nodes itself"));
}

}  // namespace
}  // namespace stoker
