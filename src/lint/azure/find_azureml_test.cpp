// The script in an Azure ML job is where its training is; a place that is off sends people to the wrong line.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

TEST(FindAzureml, ReadsComputeJobsAndTheirCommands) {
    const auto file = read_file("job.yml",
                                "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\n"
                                "command: >-\n"
                                "  torchrun --nproc-per-node=8 train.py\n"
                                "  --data ${{inputs.data}}\n"
                                "environment_variables:\n"
                                "  NCCL_DEBUG: INFO\n"
                                "distribution:\n"
                                "  process_count_per_instance: 8\n",
                                ReadOptions{});
    ASSERT_TRUE(file);
    ASSERT_EQ(file->resources.size(), 1u);
    EXPECT_EQ(file->resources[0].get(Attr::process_count).text, "8");
    ASSERT_EQ(file->services.size(), 1u);
    EXPECT_EQ(file->services[0].env("NCCL_DEBUG")->value.text, "INFO");
    ASSERT_EQ(file->guests.size(), 1u);
    EXPECT_EQ(file->guests[0]->source().place(0).line, 3u);
    EXPECT_EQ(file->guests[0]->host_container, &file->services[0]);
}

TEST(FindAzureml, ReadsClusters) {
    const auto file =
        read_file("compute.yml", "type: amlcompute\nname: a\nsize: STANDARD_NC6\nidle_time_before_scale_down: 120\n",
                  ReadOptions{});
    ASSERT_TRUE(file);
    ASSERT_EQ(file->resources.size(), 1u);
    EXPECT_EQ(file->resources[0].type, ResourceType::aml_compute);
    EXPECT_EQ(file->resources[0].get(Attr::idle_seconds).as_int(), 120);
}

// A step of a pipeline runs a component that stands in a file of its own.
TEST(FindAzureml, AComponentHasTheComputeOfItsStep) {
    CheckedTree tree{{{"compute/a.yml",
                       "$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\nname: a\n"
                       "type: amlcompute\nsize: Standard_NC48ads_A100_v4\n"},
                      {"pipeline.yml",
                       "$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json\ntype: "
                       "pipeline\nsettings: {default_compute: azureml:a}\njobs:\n  t:\n    type: command\n"
                       "    component: ./train.yml\n"},
                      {"train.yml",
                       "$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json\nname: t\n"
                       "type: command\ncommand: python t.py\ndistribution: {type: pytorch, "
                       "process_count_per_instance: 4}\n"}},
                     {}};
    EXPECT_EQ(tree.places("AML001"), Places{"train.yml:5"});
    tree.texts[1].second += "    compute: azureml:other\n";
    EXPECT_EQ(tree.places("AML001"), Places{});
}

}  // namespace
}  // namespace stoker::lint
