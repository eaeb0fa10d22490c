#include "govern/cloud_bill.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kVm = "/subscriptions/1/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/";
const std::string kSet = "/subscriptions/1/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/";

// As an enterprise agreement has it: days of America, a quoted field with a comma, costs below a micro-dollar.
std::string enterprise() {
    return "\xef\xbb\xbf"
           "SubscriptionName,ResourceGroup,Date,MeterCategory,UnitOfMeasure,Quantity,CostInBillingCurrency,ResourceId,"
           "BillingCurrencyCode,Tags\r\n"
           "lab,RG,11/01/2026,Virtual Machines,1 Hour,24,98.4000000001," +
           kVm + "Gpu-1,USD,\"\"\"team\"\": \"\"a, b\"\"\"\r\n" +
           "lab,RG,11/02/2026,Virtual Machines,10 Hours,2.4,98.4000000009," + kVm + "gpu-1,USD,\r\n" +
           "lab,RG,11/02/2026,Bandwidth,1 GB,3,0.25," + kVm + "gpu-1,USD,\r\n" +
           "lab,RG,11/02/2026,Storage,1 GB/Month,3,1.5,"
           "/subscriptions/1/resourceGroups/RG/providers/Microsoft.Compute/disks/os,USD,\r\n" +
           "lab,RG,11/03/2026,Virtual Machines,1 Hour,48,20," + kSet + "aks-pool-vmss,USD,\r\n" +
           "lab,RG,11/03/2026,Virtual Machines,1 Hour,1,7," + kVm + "forgotten,USD,\r\n";
}

// A controller adds up the file by hand, and comes to the same to the micro-dollar.
TEST(CloudBill, IsReadAsItWasExported) {
    const auto bill = read_cloud_bill(enterprise(), "azure.csv");
    ASSERT_TRUE(bill.ok()) << bill.error().text();
    EXPECT_EQ(bill->currency, "USD");
    EXPECT_EQ(bill->first_day, "2026-11-01");
    EXPECT_EQ(bill->last_day, "2026-11-03");
    EXPECT_EQ(bill->lines, 6U);
    EXPECT_EQ(bill->machines.at("gpu-1").micro, 197'050'000);
    EXPECT_DOUBLE_EQ(bill->machines.at("gpu-1").hours, 48);
    EXPECT_TRUE(bill->machines.at("aks-pool-vmss").scale_set);
    EXPECT_EQ(bill->others_micro, 1'500'000);
    EXPECT_EQ(bill->total_micro(), 197'050'000 + 1'500'000 + 27'000'000);
}

TEST(CloudBill, FocusAndCustomerAgreementsAreReadToo) {
    const auto focus = read_cloud_bill(
        "BilledCost,BillingCurrency,ChargePeriodStart,ConsumedQuantity,ConsumedUnit,ResourceId\n"
        "3.5,EUR,2026-11-03T00:00:00Z,2,Hours," +
            kVm + "a\n",
        "focus.csv");
    ASSERT_TRUE(focus.ok()) << focus.error().text();
    EXPECT_EQ(focus->machines.at("a").micro, 3'500'000);
    EXPECT_DOUBLE_EQ(focus->machines.at("a").hours, 2);
    const auto mca = read_cloud_bill(
        "date,costInBillingCurrency,billingCurrency,quantity,unitOfMeasure,ResourceId\n"
        "11/03/2026,1e-7,USD,1,1 Hour," +
            kVm + "a\n",
        "mca.csv");
    ASSERT_TRUE(mca.ok()) << mca.error().text();
    EXPECT_EQ(mca->machines.at("a").micro, 0);
}

// A file that was cut, or is another one, would make a comparison that nobody can trust.
TEST(CloudBill, WhatIsWrongHasItsLine) {
    const auto said = [](const std::string& csv) {
        const auto bill = read_cloud_bill(csv, "azure.csv");
        return bill.ok() ? "it was read" : bill.error().text();
    };
    EXPECT_THAT(said(""), HasSubstr("azure.csv"));
    EXPECT_THAT(said("name,price\na,1\n"), HasSubstr("no column for the day (date), the resource (resourceid)"));
    const std::string head = "Date,ResourceId,CostInBillingCurrency,BillingCurrency\n";
    EXPECT_THAT(said(head), HasSubstr("no line behind its first"));
    EXPECT_THAT(said(head + "11/01/2026,x,1,USD\n11/01/2026,x,\"1,5\",USD\n"), HasSubstr("azure.csv:3:14"));
    EXPECT_THAT(said(head + "yesterday,x,1,USD\n"), HasSubstr("its day is 'yesterday'"));
    EXPECT_THAT(said(head + "11/01/2026,x,1,USD\n11/01/2026,x,1,EUR\n"),
                HasSubstr("it is in EUR, and lines before in USD"));
    EXPECT_THAT(said(head + "11/01/2026,\"x"), HasSubstr("azure.csv:2:"));
}

// What is billed and held by nobody is money that runs away; what is charged above the bill is an invoice that is
// wrong.
TEST(CloudBill, IsHeldAgainstWhatWasHeldHere) {
    const auto bill = read_cloud_bill(enterprise(), "azure.csv");
    ASSERT_TRUE(bill.ok());
    const auto compared = compare_bill(*bill, {{"GPU-1", 150'000'000, 30},
                                               {"aks-pool-vmss000000", 12'000'000, 20},
                                               {"aks-pool-vmss000001", 12'000'000, 20},
                                               {"elsewhere", 5'000'000, 2}});
    std::vector<std::string> lines;
    for (const ComparedMachine& each : compared)
        lines.push_back(each.machine + " " + std::to_string(each.nodes.size()) + " " +
                        std::to_string(static_cast<int>(each.agreement)) + " " +
                        std::to_string(each.billed_micro - each.charged_micro));
    EXPECT_THAT(lines, ElementsAre("Gpu-1 1 0 47050000", "forgotten 0 2 7000000", "elsewhere 1 3 -5000000",
                                   "aks-pool-vmss 2 1 -4000000"));
}

}  // namespace
}  // namespace stoker
