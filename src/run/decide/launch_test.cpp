#include "run/decide/launch.h"

#include <gtest/gtest.h>

#include "run/decide/testing.h"

namespace stoker {
namespace {

// What torchrun, Slurm-aware and Open MPI programs read to find each other.
TEST(Launch, EveryRankKnowsItsPlace) {
    run_testing::World world;
    world.node("a", 2);
    world.node("b", 2);
    RunSpec spec = run_testing::World::spec(4, 1);
    spec.nodes = 2;
    spec.environment = {{"MINE", "1"}, {"RANK", "77"}};
    spec.checkpoint.folder = "/ck";
    const RunId id = world.submit(spec);
    world.pass();
    const stoker::Run& run = *world.state.find(id);
    const GangSpec gang = gang_spec(world.state, run, run.attempts.back(), "/logs");
    ASSERT_EQ(gang.ranks.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        const auto& environment = gang.ranks[i].environment;
        EXPECT_EQ(environment.at("RANK"), std::to_string(i));
        EXPECT_EQ(environment.at("WORLD_SIZE"), "4");
        EXPECT_EQ(environment.at("LOCAL_RANK"), std::to_string(i % 2));
        EXPECT_EQ(environment.at("LOCAL_WORLD_SIZE"), "2");
        EXPECT_EQ(environment.at("NODE_RANK"), std::to_string(i / 2));
        EXPECT_EQ(environment.at("MASTER_ADDR"), "a");
        EXPECT_EQ(environment.at("SLURM_PROCID"), std::to_string(i));
        EXPECT_EQ(environment.at("OMPI_COMM_WORLD_RANK"), std::to_string(i));
        EXPECT_EQ(environment.at("STOKER_CHECKPOINT_DIR"), "/ck");
        EXPECT_EQ(environment.count("STOKER_RESUME_FROM"), 0U);
        EXPECT_EQ(environment.at("MINE"), "1");
        EXPECT_EQ(gang.ranks[i].devices.size(), 1U);
        EXPECT_EQ(gang.ranks[i].node, i < 2 ? "a" : "b");
    }
    EXPECT_EQ(gang.log_folder, "/logs/r-1/a-1.1");
}

}  // namespace
}  // namespace stoker
