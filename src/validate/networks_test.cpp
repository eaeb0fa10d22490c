// A network that one source alone had must not be anybody else's, and must be the one it had.
#include "validate/networks.h"

#include <gtest/gtest.h>

#include "sizing/collectives.h"
#include "validate/hardware.h"

namespace stoker::validate {
namespace {

constexpr std::string_view kHeader = "source\tlink\twhat\tnodes\tvalue\n";

class NetworksTest : public ::testing::Test {
protected:
    NetworksTest() : hardware_(*Catalog::embedded()) {}
    Cluster nodes(std::string_view source, double count, std::string_view link = {}) {
        return hardware_.cluster({.gpu_model = "H100-SXM",
                                  .inter_link = link,
                                  .source = source,
                                  .gpu_mem_gb = 80,
                                  .gpus_per_node = 8,
                                  .gpus = 8 * count});
    }
    Hardware hardware_;
};

TEST_F(NetworksTest, AGatherTakesAsLongAsItWasSeenTo) {
    const Cluster cluster = nodes("hf-ultrascale", 64);
    ASSERT_NE(cluster.network, nullptr);
    const double bytes = PublishedNetwork::kBytes;
    const double seconds = all_gather_s(*cluster.device, make_group(*cluster.device, 512, 1), bytes);
    EXPECT_NEAR(gather_bytes(512, bytes) / seconds, 11e9, 0.1e9);
    EXPECT_NEAR(cluster.network->stage_wait(64), 1, 1e-9);
    EXPECT_LT(cluster.network->stage_wait(40), 0.1) << "from 64 nodes on";
    EXPECT_EQ(cluster.network->stage_wait(4), 0);
}

TEST_F(NetworksTest, NobodyElseHasIt) {
    const Cluster own = nodes("hf-ultrascale", 2), other = nodes("somebody", 2);
    EXPECT_EQ(other.network, nullptr);
    EXPECT_GT(own.device->across.latency_s, 10 * other.device->across.latency_s);
    EXPECT_EQ(nodes("hf-ultrascale", 2, "8x InfiniBand 400 Gb/s").network, nullptr) << "its row says another";
    EXPECT_EQ(nodes("hf-ultrascale", 1).network, nullptr) << "one node has none";
    EXPECT_TRUE(own.assumed.empty()) << own.assumed.front();
}

// EFA was taken for InfiniBand, six times as quick to answer.
TEST_F(NetworksTest, AnAdapterOfAmazonIsNoInfiniBand) {
    const Cluster efa = nodes("somebody", 2, "3200 Gb/s EFA"), ib = nodes("somebody", 2, "8x InfiniBand 400 Gb/s");
    EXPECT_GT(efa.device->across.latency_s, 4 * ib.device->across.latency_s);
}

TEST(NetworkTable, RefusesWhatCannotBe) {
    const auto refused = [](std::string_view line) {
        return !PublishedNetworks::read(std::string(kHeader) + std::string(line) + "\n", "networks.tsv").ok();
    };
    EXPECT_FALSE(refused("a\tEFA\tstage\t8\t3"));
    EXPECT_TRUE(refused("a\tEFA\tstage\t1\t3")) << "one node";
    EXPECT_TRUE(refused("a\tEFA\tall_gather\t8\t0"));
    EXPECT_TRUE(refused("a\tEFA\tbroadcast\t8\t3"));
    EXPECT_TRUE(refused("a\tEFA\tstage\t8\t3\na\tEFA\tstage\t8\t4")) << "the same number twice";
}

}  // namespace
}  // namespace stoker::validate
