// A wrong date or a size that is not found makes every rule about sizes lie to everyone who runs it.
#include "lint/knowledge.h"

#include <gtest/gtest.h>

namespace stoker::lint {
namespace {

TEST(Knowledge, FindsSizesInAnyCase) {
    const Knowledge& facts = Knowledge::embedded();
    const KnownSize* size = facts.size("standard_nd96ISR_h100_v5");
    ASSERT_TRUE(size);
    EXPECT_EQ(size->name, "Standard_ND96isr_H100_v5");
    EXPECT_EQ(size->vendor, "NVIDIA");
    EXPECT_EQ(size->accelerators, 8);
    EXPECT_TRUE(size->rdma());
    EXPECT_TRUE(size->generation_2 && !size->generation_1);
    EXPECT_GT(size->usd_per_hour, 20);
    EXPECT_FALSE(facts.size("Standard_ND96is_H100_v5")->rdma());
    EXPECT_FALSE(facts.size("Standard_NC6_v3"));
    EXPECT_EQ(facts.size("p5.48xlarge")->accelerators, 8);
    EXPECT_EQ(facts.size("Standard_ND96asr_v4")->trusted_launch, std::optional(false));
}

TEST(Knowledge, KnowsRetirementsByAnySpelling) {
    const Knowledge& facts = Knowledge::embedded();
    for (const char* name : {"Standard_NC6", "NC6", "standard_nc6_promo", "STANDARD_NC6"}) {
        ASSERT_TRUE(facts.retirement(name)) << name;
        EXPECT_EQ(facts.retirement(name)->date, "2023-09-06");
    }
    EXPECT_EQ(facts.retirement("Standard_NC24rs_v3")->date, "2025-03-31");
    EXPECT_TRUE(facts.retirement("Standard_NV6s_v2")->date.empty());
    EXPECT_FALSE(facts.retirement("Standard_ND40rs_v2"));  // nothing is published about it
    EXPECT_FALSE(facts.retirement("Standard_NC24ads_A100_v4"));
}

TEST(Knowledge, TellsSizesFromOtherWords) {
    for (const char* yes : {"Standard_NC6_v3", "Standard_D4s_v5", "Basic_A1", "p5.48xlarge"})
        EXPECT_TRUE(Knowledge::looks_like_size(yes)) << yes;
    for (const char* no : {"Standard_LRS", "Standard", "Standard_v2", "Premium_LRS", "", "Standard_${x}"})
        EXPECT_FALSE(Knowledge::looks_like_size(no)) << no;
    EXPECT_EQ(Knowledge::embedded().nearest_size("Standard_ND96isr_H100v5"), "Standard_ND96isr_H100_v5");
}

// A price must be of the size and region that were asked for, with its day.
TEST(Knowledge, PricesHaveARegionAndADay) {
    const Knowledge& knowledge = Knowledge::embedded();
    const auto here = knowledge.price("Standard_NC24ads_A100_v4", "eastus");
    ASSERT_TRUE(here);
    EXPECT_NEAR(here->usd_per_hour, 3.673, 1e-9);
    EXPECT_EQ(here->region, "eastus");
    EXPECT_EQ(here->as_of, "2026-06-18");
    EXPECT_FALSE(here->source.empty());
    const auto any = knowledge.price("Standard_NC24ads_A100_v4");
    ASSERT_TRUE(any);
    EXPECT_LE(any->usd_per_hour, here->usd_per_hour);
    EXPECT_NEAR(any->usd_per_hour, knowledge.size("Standard_NC24ads_A100_v4")->usd_per_hour, 1e-9);
    EXPECT_FALSE(knowledge.price("Standard_NC24ads_A100_v4", "atlantis"));
    EXPECT_FALSE(knowledge.price("Standard_NoSuch_v1"));
    EXPECT_NEAR(knowledge.price("Standard_D16s_v5", "eastus")->usd_per_hour, 0.768, 1e-9);
    ASSERT_TRUE(knowledge.cheapest_gpu("eastus"));
    EXPECT_LE(knowledge.price(knowledge.cheapest_gpu("eastus")->name, "eastus")->usd_per_hour, 0.526);
    EXPECT_FALSE(knowledge.cheapest_gpu("atlantis"));
}

// Who follows the fix gets as many accelerators as before, of a series that is recommended and stays.
TEST(Knowledge, NamesASuccessorWithAsManyAccelerators) {
    const Knowledge& knowledge = Knowledge::embedded();
    const auto successor = [&](std::string_view size) {
        const KnownSize* found = knowledge.successor(size);
        return found ? found->name : std::string_view();
    };
    EXPECT_EQ(successor("Standard_NC24rs_v3"), "Standard_NC96ads_A100_v4");
    EXPECT_EQ(successor("standard_nc6s_v3"), "Standard_NC24ads_A100_v4");
    EXPECT_EQ(successor("NC12"), "Standard_NC48ads_A100_v4") << "two, which the T4 series does not have";
    EXPECT_EQ(successor("NV12s_v3"), "Standard_NV36ads_A10_v5");
    EXPECT_EQ(successor("Standard_ND96isr_H100_v5"), "") << "not retired";
    EXPECT_EQ(successor("Standard_D4s_v5"), "");
}

}  // namespace
}  // namespace stoker::lint
