#include "server/node_file.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

Result<std::vector<NodeInfo>> read(const std::string& text) {
    TRY(const Document document, Document::parse(text, "nodes.yaml"));
    TRY(Catalog catalog, Catalog::embedded());
    return read_node_file(document, catalog);
}

// An engineer declares the machines once: the file that plans reads is the one that the server offers.
TEST(NodeFile, TheFileOfPlanDeclaresNodes) {
    std::string nodes_file =
        ("nodes:\n  - {name: lab, gpu: A100-SXM-80GB, gpus: 2, vcpus: 16, memory: 64GiB, count: 2}\n"
         "  - {name: head, vcpus: 8, memory: 32GiB}\n");
    const auto nodes = read(nodes_file);
    ASSERT_TRUE(nodes.ok()) << nodes.error().text();
    ASSERT_EQ(nodes->size(), 3u);
    EXPECT_EQ((*nodes)[1].name, "lab-2");
    EXPECT_EQ((*nodes)[1].cpu_milli, 16'000);
    ASSERT_EQ((*nodes)[1].devices.size(), 2u);
    EXPECT_THAT((*nodes)[1].devices[1].model, HasSubstr("A100"));
    EXPECT_EQ((*nodes)[2].name, "head");
    EXPECT_TRUE((*nodes)[2].devices.empty());
}

// Where the doctor of a node listens; a typing error there would show as a node that can never be checked.
TEST(NodeFile, ADoctorIsHostAndPort) {
    std::string nodes_file =
        ("nodes:\n  - {name: a, vcpus: 8, memory: 32GiB, doctor: '10.0.0.7:7700', ethernet_gbps: 10}\n"
         "  - {name: b, vcpus: 8, memory: 32GiB}\n");
    const auto nodes = read(nodes_file);
    ASSERT_TRUE(nodes.ok()) << nodes.error().text();
    EXPECT_EQ((*nodes)[0].doctor, "10.0.0.7:7700");
    EXPECT_EQ((*nodes)[0].link_bytes_per_s, 1'250'000'000) << "what its check is held against";
    EXPECT_EQ((*nodes)[1].doctor, "");
    EXPECT_FALSE((*nodes)[1].link_bytes_per_s);
    for (const char* wrong : {"10.0.0.7", "':7700'", "'a:0'", "'a:70000'", "'http://a:1'", "'a b:1'", "7700", "[a]"}) {
        nodes_file = (std::string("nodes:\n  - {name: a, vcpus: 8, memory: 32GiB, doctor: ") + wrong + "}\n");
        const auto refused = read(nodes_file);
        ASSERT_FALSE(refused.ok()) << wrong;
        EXPECT_THAT(refused.error().text(), HasSubstr(":2:")) << wrong;
    }
    nodes_file = ("nodes:\n  - {name: a, vcpus: 8, memory: 32GiB, count: 2, doctor: 'a:7700'}\n");
    EXPECT_THAT(read(nodes_file).error().text(), HasSubstr("2 nodes cannot have the same"));
}

// A typing error is told with its line, not swallowed as a machine without GPUs.
TEST(NodeFile, ErrorsHaveAPlace) {
    std::string nodes_file = ("nodes:\n  - {name: lab, gpu: A200-XXL, gpus: 2, vcpus: 16, memory: 64GiB}\n");
    const auto nodes = read(nodes_file);
    ASSERT_FALSE(nodes.ok());
    EXPECT_THAT(nodes.error().text(), HasSubstr(":2:"));
}

// Which switch, and which GPU of this machine: what is wrong there would show as slow or forbidden only much later.
TEST(NodeFile, TopologyAndDeviceFiles) {
    std::string nodes_file =
        ("nodes:\n  - {name: lab, gpu: A100-SXM-80GB, gpus: 2, vcpus: 16, memory: 64GiB, topology: [row-1, leaf-7],\n"
         "     devices: [/dev/null, /dev/zero]}\n  - {name: head, vcpus: 8, memory: 32GiB, count: 2, topology: "
         "leaf-7}\n");
    const auto nodes = read(nodes_file);
    ASSERT_TRUE(nodes.ok()) << nodes.error().text();
    EXPECT_EQ((*nodes)[0].topology, "row-1/leaf-7");
    EXPECT_EQ((*nodes)[0].devices[1].file, "/dev/zero");
    EXPECT_EQ((*nodes)[2].topology, "leaf-7");

    nodes_file =
        ("nodes:\n"
         "  - {name: a, gpu: A100-SXM-80GB, gpus: 2, vcpus: 1, memory: 1GiB, devices: [/dev/null]}\n"
         "  - {name: b, gpu: A100-SXM-80GB, gpus: 1, vcpus: 1, memory: 1GiB, devices: [/etc/passwd]}\n"
         "  - {name: c, gpu: A100-SXM-80GB, gpus: 1, vcpus: 1, memory: 1GiB, devices: [/dev/no-such-gpu]}\n"
         "  - {name: d, gpu: A100-SXM-80GB, gpus: 1, vcpus: 1, memory: 1GiB, devices: [/dev/full]}\n"
         "  - {name: e, gpu: A100-SXM-80GB, gpus: 1, vcpus: 1, memory: 1GiB, devices: [/dev/full]}\n"
         "  - {name: f, gpu: A100-SXM-80GB, gpus: 1, vcpus: 1, memory: 1GiB, devices: [/dev/random], count: 2}\n"
         "  - {name: g, vcpus: 1, memory: 1GiB, topology: [row/1]}\n"
         "  - {name: h, vcpus: 1, memory: 1GiB, topology: []}\n");
    const auto wrong = read(nodes_file);
    ASSERT_FALSE(wrong.ok());
    const std::string text = wrong.error().text();
    for (const char* part : {":2:", "one for each of the node's GPUs, found 1", ":3:", "no path below /dev",
                             ":4:", "No such file", ":6:", "is the same device as /dev/full", ":7:",
                             "2 nodes cannot have the same devices", ":8:", "without a slash", ":9:", "0 levels"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(NodeFile, AMachineIsSplitWithoutInventingAnything) {
    NodeInfo machine{.name = "m", .cpu_milli = 8000, .memory_bytes = 64, .devices = {{"0"}, {"1"}, {"2"}}};
    const auto nodes = split_node(machine, 2);
    ASSERT_TRUE(nodes.ok());
    EXPECT_EQ((*nodes)[0].cpu_milli + (*nodes)[1].cpu_milli, 8000);
    EXPECT_EQ((*nodes)[0].devices[0].id, "0");
    EXPECT_EQ((*nodes)[1].devices[0].id, "1");
    EXPECT_FALSE(split_node(machine, 0).ok());
}

}  // namespace
}  // namespace stoker
