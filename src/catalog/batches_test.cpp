#include "catalog/batches.h"

#include <gtest/gtest.h>

#include "base/embedded.h"

namespace stoker {
namespace {

// A typing error in the shipped table would end every plan of a pretraining without a batch.
TEST(Batches, TheShippedTableIsSoundAndItsClassesAscend) {
    const auto rows = read_batches(embedded_bytes("models/batches.tsv"));
    ASSERT_TRUE(rows.ok()) << rows.error().text();
    EXPECT_EQ(published_batch(1e8, false).model, "gpt-3-760m");
    EXPECT_EQ(published_batch(7e10, false).model, "llama-2-70b");
    EXPECT_EQ(published_batch(4e11, false).model, "nemotron-4-340b");
    EXPECT_EQ(published_batch(1e16, false).model, "nemotron-4-340b");  // larger than any class
    EXPECT_EQ(published_batch(6.7e11, true).model, "kimi-k2");
    EXPECT_EQ(published_batch(4.7e10, true).model, "deepseek-moe-16b");
}

TEST(Batches, TheWidestRunHasTheFewestTokensForEachGpu) {
    EXPECT_EQ(widest_published_batch().model, "mt-nlg-530b");
    EXPECT_NEAR(widest_published_batch().tokens() / widest_published_batch().gpus, 1170, 1);
}

TEST(Batches, ARowThatSaysNothingIsAProblemWithItsPlace) {
    const auto rows = read_batches(
        "model\tmixture\tparameters\tparameters_below\tsequences\tsequence\tgpus\tsource\tas_of\tnote\n"
        "a\t\t1e9\t1e10\t0\t2048\t8\tpaper\t2026-11-26\t\n"
        "b\t\t1e9\t1e9\t16\t2048\t8\t\t2026-11-26\t\n");
    ASSERT_FALSE(rows.ok());
    EXPECT_NE(rows.error().text().find("batches.tsv:2"), std::string::npos) << rows.error().text();
    EXPECT_NE(rows.error().text().find("classes of models ascend"), std::string::npos);
}

}  // namespace
}  // namespace stoker
