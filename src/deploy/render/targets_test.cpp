// What is written down is what the Deployment says, in words that its reader takes; what a target has no words for is
// refused before anything is written.

#include "deploy/render/targets.h"

#include <set>

#include "deploy/render/azure_shape.h"
#include "deploy/render/reasons.h"
#include "deploy/render/recipes.h"
#include "deploy/render/words.h"
#include "plan/testing.h"

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
    EXPECT_FALSE(rendered(service, **find_render_target("torchrun")));
    EXPECT_FALSE(rendered(service, **find_render_target("slurm")));
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

// A target whose files differ from run to run makes every commit a false alarm; one that writes nothing is worse.
TEST(RenderTargets, WhatIsNotRefusedIsWrittenAndTheSameTwice) {
    int written = 0;
    for (const WorkloadKind kind : {WorkloadKind::training, WorkloadKind::fine_tuning, WorkloadKind::inference,
                                    WorkloadKind::batch_inference, WorkloadKind::preprocessing, WorkloadKind::notebook})
        for (const std::string cloud : {"azure", "aws", "gcp", "on-prem"})
            for (const RenderTarget& target : render_targets()) {
                Deployment deployment = of_kind(kind);
                deployment.nodes.cloud = cloud;
                deployment.nodes.gpus = 8, deployment.nodes.gpu = "H100-SXM", deployment.nodes.gpu_vendor = "NVIDIA";
                deployment.command = {"python3", "it's.py"};
                const auto once = rendered(deployment, target);
                if (!once) {
                    EXPECT_NE(once.error().message().find(std::string(target.name) + " cannot say this: "),
                              std::string::npos);
                    continue;
                }
                ++written;
                const auto twice = rendered(deployment, target);
                ASSERT_TRUE(twice);
                ASSERT_FALSE(once->files.empty()) << target.name;
                std::set<std::string> paths;
                for (std::size_t i = 0; i < once->files.size(); ++i) {
                    const FileToWrite& file = once->files[i];
                    EXPECT_EQ(file.content, twice->files[i].content) << target.name;
                    EXPECT_TRUE(paths.insert(file.path).second) << target.name << " writes " << file.path << " twice";
                    EXPECT_TRUE(file.content.ends_with('\n')) << target.name << ": " << file.path;
                    EXPECT_FALSE(file.path.starts_with('/') || file.path.find("..") != std::string::npos) << file.path;
                }
            }
    EXPECT_GT(written, 100);
}

// A table that no longer reads would leave pods without an image and machines without a driver.
TEST(RenderTargets, TheTablesOfNamesAreRead) {
    for (const char* engine : {"vllm", "sglang", "tgi", "tensorrt-llm", "triton", "llama.cpp", "pytorch"})
        EXPECT_TRUE(engine_image(engine, "NVIDIA")) << engine;
    EXPECT_TRUE(engine_image("llama.cpp", ""));
    EXPECT_FALSE(engine_image("vllm", "Google"));
    EXPECT_EQ(resource_of_vendor("AMD"), "amd.com/gpu");
    EXPECT_EQ(resource_of_vendor("nobody"), "");
    EXPECT_EQ(vm_image("NVIDIA").urn.substr(0, 14), "microsoft-dsvm");
    EXPECT_EQ(vm_image("").urn.substr(0, 9), "Canonical");
    EXPECT_TRUE(engine_image("doca-driver", ""));
    EXPECT_TRUE(engine_image("device-plugin", "NVIDIA"));
    for (const char* program : {"network-operator", "lws", "k3s", "cyclecloud-slurm-workspace"})
        EXPECT_FALSE(release_in_use(program).release.empty()) << program;
    EXPECT_EQ(release_in_use("nothing").release, "");
    // The open driver knows Turing and what came after.
    EXPECT_EQ(driver_package("V100-PCIe"), "cuda-drivers-580");
    EXPECT_EQ(driver_package("T4"), "nvidia-open");
    // Between the others of its table.
    EXPECT_EQ(vm_image("containers of Batch").urn.substr(0, 14), "microsoft-dsvm");
    EXPECT_EQ(gke_accelerator("a2-highgpu-1g"), "nvidia-tesla-a100");
    EXPECT_EQ(gke_accelerator("n2-standard-8"), "");
    EXPECT_EQ(names_reached_for(registry_of("ghcr.io/acme/work:1.4")).back(), "pkg-containers.githubusercontent.com");
    EXPECT_EQ(names_reached_for(registry_of("acme.azurecr.io/work")), std::vector<std::string>{"acme.azurecr.io"});
    EXPECT_EQ(registry_of("localhost:5000/work"), "localhost:5000");
    EXPECT_EQ(registry_of("library/ubuntu:24.04"), "docker.io");
    EXPECT_EQ(registry_of("ubuntu:24.04"), "docker.io");
    ASSERT_TRUE(recipe_of("torchtitan", "llama-3-8b"));
    EXPECT_EQ(recipe_of("torchtitan", "llama-3-8b")->config, "llama3_8b");
    EXPECT_FALSE(recipe_of("torchtitan", "no-such-model"));
}

// Names of work are people's; names of resources have rules.
TEST(RenderTargets, AnyNameBecomesALabel) {
    EXPECT_EQ(dns_label("My_Run.v2"), "my-run-v2");
    EXPECT_EQ(dns_label("2nd Notebook"), "w-2nd-notebook");
    EXPECT_EQ(dns_label(""), "w");
    EXPECT_EQ(dns_label("a-----------b", 3), "a-b");
    EXPECT_EQ(dns_label("abc-def", 4), "abc");
    EXPECT_EQ(yaml_word("yes"), "\"yes\"");
    EXPECT_EQ(yaml_word("1.4"), "\"1.4\"");
    EXPECT_EQ(clock_time(90061), "1-01:01:01");
}

// A folder with a blank or a dollar in its name must reach the program as it is.
TEST(RenderTargets, AnyFolderReachesTheProgram) {
    Deployment deployment = of_kind(WorkloadKind::training);
    deployment.checkpoint.folder = "my run/$x";
    EXPECT_NE(checkpoint_exports(deployment).find("STOKER_CHECKPOINT_DIR='my run/$x'\n"), std::string::npos);
    deployment.checkpoint.folder = "ckpt";
    EXPECT_NE(checkpoint_exports(deployment).find("\"${STOKER_CHECKPOINT_DIR:-ckpt}\"\n"), std::string::npos);
}

// What --explain tells is what stands in the files: titles and usage are not reasons.
TEST(RenderTargets, ReasonsAreTheCommentsAboveTheLines) {
    Deployment deployment = of_kind(WorkloadKind::training);
    deployment.files = {
        {"a.sh", "#!/bin/sh\n# Title\n#   ./a.sh\nset -eu\n# because\n# of this\nx=1\n# lost\n\ny=2\n"}};
    const auto reasons = reasons_in(deployment);
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_EQ(reasons[0].line, 7u);
    EXPECT_EQ(reasons[0].setting, "x=1");
    EXPECT_EQ(reasons[0].reason, "because of this");
}

TEST(RenderTargets, AWordForTheShellIsThatWord) {
    EXPECT_EQ(shell_word("train.py"), "train.py");
    EXPECT_EQ(shell_word(""), "''");
    EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
}

// Files that ask for more machines than a placement group holds say so, by the number that plans go by.
TEST(AzureShapes, KnowWhatAPlacementGroupHolds) {
    EXPECT_EQ(kVmsOfAGroup, testing::catalog().constant_or_die("placement_group_vms"));
}

}  // namespace
}  // namespace stoker
