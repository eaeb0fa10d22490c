// A size that the subscription cannot have is known before a pipeline waits for it.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::of_size;
using samples::read;
using samples::replaced;
using samples::verdict_of;
using samples::worst;

// Both reason codes, both scopes, several restrictions of one size.
TEST(AzureOutput, EveryRestrictionCounts) {
    const ToolReading zone = read(samples::kSkus, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(verdict_of(zone, "sku-offered"), HealthVerdict::warn);
    EXPECT_NE(
        worst(zone, "sku-offered")->detail.find("restricted in zone 2, 3: NotAvailableForSubscription; left: zone 1"),
        std::string::npos)
        << worst(zone, "sku-offered")->detail;
    const ToolReading region = read(samples::kSkus, of_size("Standard_NC96ads_A100_v4"));
    EXPECT_EQ(verdict_of(region, "sku-offered"), HealthVerdict::fail);
    for (const char* code : {"NotAvailableForSubscription", "QuotaId"})
        EXPECT_NE(worst(region, "sku-offered")->detail.find(code), std::string::npos)
            << worst(region, "sku-offered")->detail;
    EXPECT_NE(worst(region, "sku-offered")->fix.find("Usage + quotas"), std::string::npos);
    EXPECT_EQ(verdict_of(read(samples::kSkus, of_size("Standard_NC4as_T4_v3")), "sku-offered"), HealthVerdict::pass);
    // A remedy for each scope, and a zone's code is not told of the region.
    const ToolReading both = read(
        R"([{"name":"Standard_ND96isr_H100_v5","resourceType":"virtualMachines","locations":["eastus"],)"
        R"("locationInfo":[{"location":"eastus","zones":["1","2"]}],"capabilities":[{"name":"GPUs","value":"8"}],)"
        R"("restrictions":[{"type":"Zone","reasonCode":"QuotaId","restrictionInfo":{"locations":["eastus"],"zones":["1"]}},)"
        R"({"type":"Location","reasonCode":"NotAvailableForSubscription","restrictionInfo":{"locations":["eastus"]}}]}])",
        of_size("Standard_ND96isr_H100_v5"));
    EXPECT_NE(
        worst(both, "sku-offered")->detail.find("region: NotAvailableForSubscription; beside that in zone 1: QuotaId"),
        std::string::npos)
        << worst(both, "sku-offered")->detail;
    EXPECT_TRUE(worst(both, "sku-offered")->fix.starts_with("NotAvailableForSubscription is no shortage"))
        << worst(both, "sku-offered")->fix;
    EXPECT_NE(worst(both, "sku-offered")->fix.find("in zone 1: QuotaId"), std::string::npos);
    // Not in the listing: az hides what is restricted in the whole region.
    const ToolReading hidden = read(samples::kSkus, of_size("Standard_ND96isr_H200_v5"));
    EXPECT_EQ(verdict_of(hidden, "sku-offered"), HealthVerdict::fail);
    EXPECT_NE(worst(hidden, "sku-offered")->fix.find("--all"), std::string::npos);
    // Without a size, all GPU sizes: two of three are restricted.
    EXPECT_EQ(read(samples::kSkus).conclusion, "2 of 3 GPU sizes restricted in eastus2");
}

// 96 vCPUs with 80 free are refused before anything is created.
TEST(AzureOutput, QuotaOfTheFamilyAndTheRegion) {
    const ToolReading reading = read(samples::kUsage, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(verdict_of(reading, "quota-family"), HealthVerdict::fail);
    EXPECT_EQ(worst(reading, "quota-family")->measured, 80);
    EXPECT_EQ(worst(reading, "quota-family")->expected, 96);
    EXPECT_NE(worst(reading, "quota-family")->fix.find("Standard NDSH100v5 Family vCPUs"), std::string::npos);
    EXPECT_EQ(verdict_of(reading, "quota-region"), HealthVerdict::pass);
    EXPECT_EQ(verdict_of(read(replaced(samples::kUsage, "\"limit\": 1000", "\"limit\": 950"),
                              of_size("Standard_ND96isr_H100_v5")),
                         "quota-region"),
              HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(samples::kUsage, of_size("Standard_NC4as_T4_v3")), "quota-family"), HealthVerdict::fail);
}

TEST(AzureOutput, TheDriverExtension) {
    const ToolReading failed = read(samples::kExtension);
    EXPECT_EQ(verdict_of(failed, "driver-extension"), HealthVerdict::fail);
    EXPECT_NE(failed.conclusion.find("kernel headers"), std::string::npos);
    EXPECT_EQ(verdict_of(read(R"({"Status": "Succeeded", "Message": null})"), "driver-extension"), HealthVerdict::pass);
    EXPECT_EQ(verdict_of(read(R"({"Status": "Creating", "Message": null})"), "driver-extension"),
              HealthVerdict::skipped);
}

// PowerShell and appended pages give two values in one file.
TEST(AzureOutput, PlacesAreThoseOfTheFile) {
    const std::string pages = std::string(samples::kUsage) + std::string(samples::kUsage);
    const ToolReading reading = read(pages, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(reading.notes.back().line, 11U);
}

}  // namespace
}  // namespace stoker
