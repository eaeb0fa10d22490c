// A factor judged on what it was fitted on, or carried by one source with many rows, would tell a buyer a wrong bill.
#include "validate/campaigns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/embedded.h"

namespace stoker::validate {
namespace {

constexpr const char* kHeader =
    "id,source_group,model_name,arch,layers,hidden,heads,ffn,vocab,gpu_model,gpu_mem_gb,gpus,framework,precision,seq_"
    "len,"
    "global_batch,tokens_b,measured_gpu_hours\n";

std::string row(const std::string& source, const std::string& hours, const std::string& tokens = "10") {
    return "x," + source + ",own,llama,16,2048,16,5504,32000,A100-SXM-80GB,80,8,fsdp,bf16,2048,256," + tokens + "," +
           hours + "\n";
}

Result<Campaigns> judge(const std::string& text) {
    static Hardware hardware(*Catalog::embedded());
    static Shapes shapes(hardware.catalog());
    static Jobs jobs(hardware, shapes);
    TRY(const Csv csv, Csv::read(text, "own.csv"));
    return campaigns(csv, jobs, "own.csv");
}

// Names of either half.
std::vector<std::string> sources(bool fitted, std::size_t wanted) {
    std::vector<std::string> out;
    for (int i = 0; out.size() < wanted; ++i)
        if (const std::string name = "s" + std::to_string(i); fitted_half(name) == fitted) out.push_back(name);
    return out;
}

TEST(Campaigns, OneHalfFitsAndTheOtherJudges) {
    const auto probe = judge(kHeader + row(sources(true, 4)[0], "100") + row(sources(true, 4)[1], "100") +
                             row(sources(true, 4)[2], "100") + row(sources(true, 4)[3], "100"));
    ASSERT_TRUE(probe.ok()) << probe.error().text();
    const double steady = probe->rows.front().steady_hours;
    ASSERT_GT(steady, 0);
    std::string text = kHeader;
    // One source with six rows says what another with one row says: each counts once.
    const auto fitted = sources(true, 5);
    for (int i = 0; i < 6; ++i) text += row(fitted[0], std::to_string(9 * steady));
    for (std::size_t i = 1; i < 5; ++i) text += row(fitted[i], std::to_string(1.5 * steady));
    for (const std::string& source : sources(false, 4)) text += row(source, std::to_string(3 * steady));
    const auto all = judge(text);
    ASSERT_TRUE(all.ok()) << all.error().text();
    EXPECT_NEAR(all->factor, 1.5, 1e-6);
    EXPECT_EQ(all->judged.sources, 4u);
    EXPECT_NEAR(all->judged.median, 0.5, 1e-6);
    EXPECT_EQ(all->judged.within_quarter, 0);
}

TEST(Campaigns, WhatCannotBePredictedIsRefusedWithItsColumn) {
    std::string text = kHeader;
    for (const std::string& source : sources(true, 4)) text += row(source, "100");
    const auto all = judge(text + row("a", "100", "") + row("a", "", "10") + row("a", "100", "1e9"));
    ASSERT_TRUE(all.ok()) << all.error().text();
    EXPECT_EQ(all->refused, 3u);
    EXPECT_EQ(all->rows[4].refused, "missing:tokens_b");
    EXPECT_EQ(all->rows[5].refused, "missing:measured_gpu_hours");
    EXPECT_EQ(all->rows[6].refused, "invalid:tokens_b");
    EXPECT_FALSE(judge("id,source_group\n1,a\n").ok());
    // Too little to fit on: judged by the factor that plans have.
    const auto few = judge(kHeader + row("a", "100"));
    ASSERT_TRUE(few.ok()) << few.error().text();
    EXPECT_FALSE(few->own_factor);
    EXPECT_EQ(few->judged.sources, 1u);
}

// What plans say of whole campaigns is what this table says.
TEST(Campaigns, PlansHaveTheFactorOfTheTable) {
    Hardware hardware(*Catalog::embedded());
    Shapes shapes(hardware.catalog());
    Jobs jobs(hardware, shapes);
    const auto csv = Csv::read(embedded_bytes("calibration/campaigns.csv"), "campaigns.csv");
    ASSERT_TRUE(csv.ok()) << csv.error().text();
    const auto all = campaigns(*csv, jobs, "campaigns.csv");
    ASSERT_TRUE(all.ok()) << all.error().text();
    EXPECT_EQ(all->refused, 0u);
    const Constant* used = hardware.catalog().constant("campaign_factor");
    ASSERT_NE(used, nullptr);
    EXPECT_LT(std::abs(std::log(used->value / all->factor)), 0.1) << all->factor;
}

}  // namespace
}  // namespace stoker::validate
