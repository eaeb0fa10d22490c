// A length taken from the wrong script is a silent error of every row that leaves its length out.
#include "validate/scripts.h"

#include <gtest/gtest.h>

namespace stoker::validate {
namespace {

TEST(Scripts, AllWordsHaveToBeThere) {
    const auto scripts = Scripts::read(
        "model\twords\ttokens\tbatch_in\tsource\n"
        "bert-large\tmaker,fine\t384\tsequences\tx\n"
        "wmt\t\t32\ttokens\tx\n",
        "scripts.tsv");
    ASSERT_TRUE(scripts);
    ASSERT_NE(scripts->find("bert-large", "Maker's examples > Fine-tuning"), nullptr);
    EXPECT_EQ(scripts->find("bert-large", "Maker's examples > Fine-tuning")->tokens, 384);
    EXPECT_EQ(scripts->find("bert-large", "Maker's examples > Pre-training"), nullptr);
    EXPECT_EQ(scripts->find("bert-base", "Maker's examples > Fine-tuning"), nullptr);
    EXPECT_TRUE(scripts->find("wmt", "")->batch_in_tokens);
}

TEST(Scripts, TheShippedTableReads) {
    const auto scripts = Scripts::embedded();
    ASSERT_TRUE(scripts);
    EXPECT_NE(scripts->find("bert-large", "bert-large squad"), nullptr);
}

}  // namespace
}  // namespace stoker::validate
