// Two replicas on one VM do not survive the loss of the VM: what "one may be lost" means is a node.
#include "plan/replicas.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

struct Vm {
    NodeType node;
    Accelerator gpu;
    NodeChoice choice;
    explicit Vm(double gpus) {
        node.accelerator = 0;
        node.accelerators = gpus;
        choice.node = &node;
        choice.accelerator = &gpu;
    }
};

// Whichever node is lost, the others hold what the traffic needs; and nothing is bought twice.
TEST(ReplicaFleet, SurvivesTheLossOfAnyNode) {
    for (int gpus : {1, 2, 4, 8})
        for (int tensor : {1, 2, 4, 8})
            for (int carrying = 1; carrying <= 20; ++carrying)
                for (int models : {1, 3, 4}) {
                    const Vm vm(gpus);
                    const ReplicaFleet all = place_fleet(vm.choice, {tensor, 1}, carrying, models, true);
                    const ReplicaFleet bare = place_fleet(vm.choice, {tensor, 1}, carrying, models, false);
                    ASSERT_EQ(bare.replicas, carrying * models);
                    ASSERT_GE(all.replicas, (carrying + 1) * models);
                    ASSERT_GT(all.nodes, bare.nodes);
                    if (all.per_node <= 0) continue;
                    ASSERT_LE(all.replicas, all.nodes * all.per_node);
                    if (models == 1) {
                        const int most_on_one = (all.replicas + all.nodes - 1) / all.nodes;
                        ASSERT_GE(all.replicas - most_on_one, carrying) << gpus << " " << tensor;
                        ASSERT_LE(all.nodes, bare.nodes + 1);
                    }
                }
}

// Four models on VMs of four GPUs: one VM each way; on VMs of one GPU every model needs its own spare.
TEST(ReplicaFleet, AReplicaOfOneModelIsNoSpareForAnother) {
    EXPECT_EQ(place_fleet(Vm(4).choice, {1, 1}, 1, 4, true).nodes, 2);
    EXPECT_EQ(place_fleet(Vm(4).choice, {1, 1}, 1, 4, false).nodes, 1);
    EXPECT_EQ(place_fleet(Vm(1).choice, {1, 1}, 1, 4, true).nodes, 8);
}

}  // namespace
}  // namespace stoker
