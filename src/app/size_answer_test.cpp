#include "app/size_answer.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

SkuOffer offer(std::string size) {
    SkuOffer one;
    one.size = std::move(size);
    one.region = "eastus";
    return one;
}

// Whoever asks for one size in one region hears yes or no, and never "no findings" of a size that cannot be had.
TEST(SizeAnswer, TellsWhetherASizeCanBeHad) {
    SkuOffer open = offer("Standard_A"), restricted = offer("Standard_B"), zones = offer("Standard_C");
    open.zones = {"1", "3"};
    restricted.location_restricted = true;
    restricted.reason_codes = {"NotAvailableForSubscription"};
    zones.restricted_zones = {"1", "2"};
    std::vector<SkuOffer> all{open, restricted, zones};
    order_offers(all);
    EXPECT_TRUE(answer_size(all, "Standard_A", "eastus").offered);
    EXPECT_NE(answer_size(all, "Standard_A", "eastus").text.find("zones 1, 3"), std::string::npos);
    EXPECT_FALSE(answer_size(all, "Standard_B", "eastus").offered);
    EXPECT_NE(answer_size(all, "Standard_B", "eastus").text.find("NotAvailableForSubscription"), std::string::npos);
    EXPECT_FALSE(answer_size(all, "Standard_C", "eastus").offered);
    EXPECT_NE(answer_size(all, "Standard_D", "eastus").text.find("does not list it"), std::string::npos);
    EXPECT_NE(answer_size(all, "Standard_A", "westus").text.find("no answer for westus"), std::string::npos);
}

}  // namespace
}  // namespace stoker
