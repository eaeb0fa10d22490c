// What is written down is what the Deployment says, in words that its reader takes; what a target has no words for is
// refused before anything is written.

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Deployment of_kind(WorkloadKind kind) {
    Deployment deployment{.name = "work", .title = "Work", .kind = kind};
    deployment.nodes = {.cloud = "azure", .machine = "Standard_ND96isr_H100_v5", .count = 2};
    deployment.ranks = {.count = 16, .per_node = 8};
    if (is_training(kind)) deployment.training = TrainingWork{.layout = {.data = 16}};
    return deployment;
}

TEST(RenderTargets, WhatIsNotThereIsRefusedWithTheList) {
    const auto none = find_render_target("nomad");
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message().find("local, torchrun"), std::string::npos) << none.error().message();
    const Deployment service = of_kind(WorkloadKind::inference);
    for (const RenderTarget& target : render_targets()) EXPECT_FALSE(rendered(service, target)) << target.name;
    EXPECT_FALSE(usual_render_target(service));
}

TEST(RenderTargets, TheSameDeploymentGivesTheSameFiles) {
    const auto target = usual_render_target(of_kind(WorkloadKind::training));
    ASSERT_TRUE(target) << target.error().text();
    EXPECT_EQ((*target)->name, "torchrun");
    const auto once = rendered(of_kind(WorkloadKind::training), **target);
    const auto twice = rendered(of_kind(WorkloadKind::training), **target);
    ASSERT_TRUE(once && twice);
    ASSERT_EQ(once->files.size(), 1u);
    EXPECT_EQ(once->files[0].content, twice->files[0].content);
    EXPECT_EQ(once->files[0].mode, 0755);
    EXPECT_NE(once->files[0].content.find("--nnodes 2 --nproc_per_node 8"), std::string::npos);
}

TEST(RenderTargets, AWordForTheShellIsThatWord) {
    EXPECT_EQ(shell_word("train.py"), "train.py");
    EXPECT_EQ(shell_word(""), "''");
    EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
}

}  // namespace
}  // namespace stoker
