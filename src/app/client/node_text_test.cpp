// Whoever asks why a node takes no gang reads what failed, against what, and what to do about it.
#include "app/client/node_text.h"

#include <gmock/gmock.h>

#include "base/api_time.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kNow = 1'700'000'000'000'000;

api::NodeView quarantined() {
    api::NodeView node{.name = "node-b", .state = NodeState::quarantined, .cause = Cause::node_unhealthy};
    node.since = rfc3339(kNow - 180'000'000);
    node.takes = NodeTakes::nothing;
    node.cpu_milli = node.cpu_milli_free = 64'000;
    node.memory_bytes = node.memory_bytes_free = std::int64_t{512} << 30;
    node.devices = {{.id = "0", .model = "H100"}, {.id = "1", .model = "H100"}};
    node.gpu_milli_free = 2000;
    node.topology = "leaf-7";
    node.check = api::NodeCheckView{.at = rfc3339(kNow - 60'000'000), .verdict = HealthVerdict::fail, .passed = 3};
    node.check->not_passed = {{.layer = HealthLayer::network,
                               .name = "link-bandwidth",
                               .node = "node-b",
                               .peer = "node-a",
                               .verdict = HealthVerdict::fail,
                               .measured = 6e6,
                               .expected = 1.2e9,
                               .unit = "bytes/s",
                               .source = "median of 9 nodes",
                               .fix = "look at the cable"}};
    node.reason = "node-b is quarantined: " + check_text(node.check->not_passed[0]);
    return node;
}

TEST(NodeText, SaysWhatFailedAndWhatToDo) {
    const std::string text = node_text(quarantined(), Style{}, kNow);
    for (const char* part :
         {"node-b  quarantined (node_unhealthy) for 3 min", "6 MB/s", "expected 1.2 GB/s", "median of 9 nodes",
          "fix: look at the cable", "3 parts", "stoker nodes check node-b", "stoker nodes ready node-b"})
        EXPECT_THAT(text, HasSubstr(part));
    api::NodeView well{.name = "a"};
    EXPECT_THAT(node_text(well, Style{}, kNow), HasSubstr("never checked"));
    EXPECT_THAT(node_text(well, Style{}, kNow), Not(HasSubstr("stoker nodes")));
}

// Whoever has one cluster hears that it is away, as whoever has several does; a list of nodes alone would look well.
TEST(NodeText, AnEngineThatIsAwayIsSaid) {
    api::NodeList list;
    list.items = {api::NodeView{.name = "n1"}};
    list.engines.emplace().push_back({.name = {}, .fault = "the token ended"});
    const std::string one = nodes_text(list, Style{}, kNow);
    EXPECT_THAT(one, HasSubstr("\nthe engine does not answer: the token ended; its nodes are shown as they were"));
    EXPECT_THAT(one.substr(0, one.find('\n')), Not(HasSubstr("engine"))) << "it is the only one: no column for it";
    list.items.clear();
    EXPECT_THAT(nodes_text(list, Style{}, kNow), HasSubstr("the engine does not answer"));
    list.engines->front().name = "slurm-b";
    EXPECT_THAT(nodes_text(list, Style{}, kNow), HasSubstr("the engine slurm-b does not answer"));
}

// The list fits a terminal of 100 columns, with names as usual.
TEST(NodeText, TheListFitsATerminal) {
    api::NodeList list;
    list.items = {quarantined(), quarantined()};
    list.items[1].name = std::string(16, 'n');
    list.items[1].reason.clear();
    list.items[1].topology = "row-1/rack-3/leaf-7-of-the-second-hall";
    list.items[1].blames.resize(12);
    const std::string text = nodes_text(list, Style{}, kNow);
    EXPECT_THAT(text, HasSubstr("fail 1 min"));
    EXPECT_THAT(text, HasSubstr("2/2"));
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
        const std::string line = text.substr(begin, end - begin);
        if (line.find("is quarantined:") == std::string::npos) {
            EXPECT_LE(line.size(), 100U) << line;
        }
    }
    EXPECT_EQ(nodes_text({}, Style{}, kNow).find("no nodes; a server that has just started"), 0U);
}

}  // namespace
}  // namespace stoker
