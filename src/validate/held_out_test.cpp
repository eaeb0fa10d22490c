// A source that is kept apart and fitted on all the same would make every figure "of unseen sources" a lie.
#include "validate/held_out.h"

#include <gtest/gtest.h>

#include "validate/fit_training.h"
#include "validate/measured.h"

namespace stoker::validate {
namespace {

constexpr const char* kRows =
    "id,source_group,gpu_model,gpus,model_name,arch,layers,hidden,heads,vocab,seq_len,global_batch,micro_batch,"
    "precision,framework,measured_step_s\n"
    "A,llm-foundry,A100-80GB,8,m,gpt,24,2048,16,50304,2048,64,8,bf16,composer,3\n"
    "B,nemo-perf,H100-SXM,8,m,gpt,24,2048,16,50304,2048,64,8,bf16,NeMo,2\n";

TEST(HeldOut, NoFitSeesTheSourcesOfTheList) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok());
    const auto problem = training_fit(*catalog, kRows, "rows.csv");
    ASSERT_TRUE(problem.ok()) << problem.error().text();
    EXPECT_EQ(problem->groups, std::vector<std::string>{"llm-foundry"});
}

// Rows that are told at half of their time would make their device the first choice by being there.
TEST(HeldOut, SourcesThatAreMissedProveNoDevice) {
    const auto missed = HeldOut::missed();
    ASSERT_TRUE(missed.ok()) << missed.error().text();
    const std::string row = "id,source_group,gpu_model,gpu_mem_gb,gpus,measured_step_s\n1,ult,RTX PRO 6000,96,1,5\n";
    const auto csv = Csv::read(row, "rows.csv");
    ASSERT_TRUE(csv.ok());
    EXPECT_TRUE(missed->has(Row(*csv, 0)));
    const auto counted = measured_tsv(*Catalog::embedded(), row, "id,model,gpu_model,ttft_ms\n");
    ASSERT_TRUE(counted.ok()) << counted.error().text();
    EXPECT_EQ(counted->find("RTX-PRO-6000"), std::string::npos);
}

TEST(HeldOut, ADeviceKeepsOnlyItsRowsApart) {
    const auto list = HeldOut::read("group\tdevice\naic\tH200\nall\t\n", "held_out.tsv");
    ASSERT_TRUE(list.ok());
    const auto csv =
        Csv::read("id,split_group,gpu_model,ttft_ms\n1,aic,H200,1\n2,aic,H100,1\n3,all,T4,1\n", "rows.csv");
    ASSERT_TRUE(csv.ok());
    EXPECT_TRUE(list->has(Row(*csv, 0)));
    EXPECT_FALSE(list->has(Row(*csv, 1)));
    EXPECT_TRUE(list->has(Row(*csv, 2)));
}

}  // namespace
}  // namespace stoker::validate
