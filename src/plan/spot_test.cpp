// Spot: which rate of evictions is planned with, what it takes, and where the choice would be another.
#include <algorithm>

#include <fmt/format.h>

#include "plan/option.h"
#include "plan/testing.h"

namespace stoker {
namespace {

std::string training(std::string_view rate) {
    return fmt::format(
        "kind: training\nmodel: llama-3-8b\ndata: {{tokens: 20B, sequence: 4096}}\nobjective: {{deadline: "
        "14d}}\nwhere: "
        "{{regions: [eastus], spot: allowed{}}}\n",
        rate);
}

PlanOptions asking() {
    PlanOptions options = testing::quick();
    options.what_if = true;
    return options;
}

const Advice* advice(const Plan& plan, std::string_view id) {
    const auto found =
        std::find_if(plan.advice.begin(), plan.advice.end(), [&](const Advice& a) { return a.id == id; });
    return found == plan.advice.end() ? nullptr : &*found;
}

// Before the rate was an input, what somebody knew of his size and region could not reach the plan.
TEST(Spot, TheRateOfTheFileComesBeforeSettingsAndCatalogue) {
    PlanOptions options = asking();
    const Plan by_catalogue = testing::plan(training(""), options);
    ASSERT_TRUE(by_catalogue.spot_rate);
    EXPECT_FALSE(by_catalogue.spot_rate->given);
    EXPECT_NE(by_catalogue.spot_rate->from.find("21 series"), std::string::npos) << by_catalogue.spot_rate->from;
    options.evictions_per_hour = Range{0.1, 0.2, 0.4};
    const Plan by_settings = testing::plan(training(""), options);
    EXPECT_EQ(by_settings.spot_rate->from, "your settings");
    EXPECT_DOUBLE_EQ(by_settings.spot_rate->per_hour.mid, 0.2);
    const Plan by_file = testing::plan(training(", evictions_per_hour: 0-5%"), options);
    EXPECT_EQ(by_file.spot_rate->from, "where.evictions_per_hour");
    EXPECT_DOUBLE_EQ(by_file.spot_rate->per_hour.high, 0.05);
}

TEST(Spot, TheChoiceFlipsWhereThePlanSaysItDoes) {
    const Plan made = testing::plan(training(", evictions_per_hour: 0.05"), asking());
    ASSERT_TRUE(made.feasible());
    ASSERT_EQ(made.candidates.front().pricing, Pricing::spot);
    ASSERT_TRUE(made.spot_rate);
    ASSERT_GT(made.spot_rate->flips_at, 0.05) << "spot at any rate";
    const auto first = [&](double times) {
        return testing::plan(training(fmt::format(", evictions_per_hour: {:.6f}", times * made.spot_rate->flips_at)))
            .candidates.front()
            .pricing;
    };
    EXPECT_EQ(first(0.8), Pricing::spot);
    EXPECT_NE(first(1.25), Pricing::spot);
    const Advice* risk = advice(made, "spot-risk");
    ASSERT_NE(risk, nullptr);
    EXPECT_NE(risk->text.find("above"), std::string::npos) << risk->text;
}

// Time passes while there is no capacity, and nothing is paid: the money is of fewer hours than the work takes.
TEST(Spot, WaitingForCapacityCountsInTheTimeAndNotInTheMoney) {
    const Plan made = testing::plan(training(""));
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) {
        if (c.pricing != Pricing::spot) continue;
        EXPECT_GT(c.prediction.checkpoint.waiting_s, 0);
        EXPECT_LT(c.prediction.usd.mid, 0.99 * c.prediction.hours.mid * c.nodes * c.node_per_hour.dollars());
    }
}

std::string service(std::string_view where) {
    return fmt::format(
        "kind: inference\nmodel: llama-3-8b\ninterruptible: true\ntraffic: {{requests_per_second: 20, prompt_tokens: "
        "500, output_tokens: 200}}\nobjective: {{latency: {{ttft_p95: 2s, tpot_p95: 80ms}}}}\nwhere: {{sizes: "
        "[Standard_NC24ads_A100_v4], regions: [eastus], spot: allowed{}}}\n",
        where);
}

// "Keep enough elsewhere" was all that was said of a service on spot.
TEST(Spot, AServiceIsToldWhatItLoses) {
    const Plan calm = testing::plan(service(", evictions_per_hour: 0.01"));
    const Plan wild = testing::plan(service(", evictions_per_hour: 1"));
    ASSERT_TRUE(calm.feasible() && wild.feasible());
    const auto& a = calm.candidates.front().spot_service;
    const auto& b = wild.candidates.front().spot_service;
    ASSERT_TRUE(a && b);
    EXPECT_GT(b->evictions, 10 * a->evictions);
    EXPECT_GT(b->hours_below.low, a->hours_below.low);
    EXPECT_LE(b->hours_below.high, 730);
    EXPECT_GT(a->requests.high, 0);
}

TEST(Spot, AFloorOnDemandStaysAndIsPaid) {
    const Plan bare = testing::plan(service(", evictions_per_hour: 0.2"));
    const Plan floor = testing::plan(service(", evictions_per_hour: 0.2, on_demand_replicas: 1"));
    ASSERT_TRUE(bare.feasible() && floor.feasible());
    const Candidate *a = nullptr, *b = nullptr;
    for (const Candidate& c : bare.candidates)
        if (c.pricing == Pricing::spot && a == nullptr) a = &c;
    for (const Candidate& c : floor.candidates)
        if (c.pricing == Pricing::spot && b == nullptr) b = &c;
    ASSERT_TRUE(a != nullptr && b != nullptr);
    ASSERT_EQ(a->nodes, b->nodes);
    ASSERT_TRUE(b->spot_service);
    EXPECT_EQ(b->spot_service->on_demand_nodes, 1);
    EXPECT_GT(b->prediction.usd.mid, a->prediction.usd.mid);
    EXPECT_LT(b->spot_service->requests.high, a->spot_service->requests.high);
    EXPECT_NE(advice(bare, "spot-no-floor"), nullptr);
    EXPECT_EQ(advice(floor, "spot-no-floor"), nullptr);
}

// Where the first choice cannot be had, the plan has named what comes next.
TEST(Spot, FallbacksAreElsewhereAndOtherMachines) {
    const Plan made = testing::plan(
        "kind: fine-tuning\nmethod: lora\nmodel: mistral-7b\ndata: {examples: 30000, "
        "sequence: 2048}\n");
    ASSERT_TRUE(made.feasible());
    ASSERT_EQ(made.fallbacks.size(), 2U);
    const Candidate& first = made.candidates.front();
    EXPECT_EQ(made.fallbacks[0].candidate.node_type, first.node_type);
    EXPECT_NE(made.fallbacks[0].candidate.region, first.region);
    EXPECT_NE(made.fallbacks[1].candidate.node_type, first.node_type);
    EXPECT_NE(made.fallbacks[1].needs.find("quota in"), std::string::npos);
}

// Data in Europe was planned for the United States without a word.
TEST(Places, DataThatIsElsewhereIsSaidWithItsCost) {
    const Plan near = testing::plan(
        "kind: training\nmodel: resnet-50\ndata: {examples: 1281167, epochs: 30, bytes: "
        "150GB, region: westeurope}\n");
    ASSERT_TRUE(near.feasible());
    const Plan far = testing::plan(
        "kind: training\nmodel: resnet-50\ndata: {examples: 1281167, epochs: 30, bytes: "
        "150GB, region: westeurope}\nwhere: {regions: [eastus]}\n");
    const Advice* said = advice(far, "data-elsewhere");
    ASSERT_NE(said, nullptr);
    EXPECT_EQ(said->severity, AdviceSeverity::warning);
    EXPECT_NE(said->text.find("150 GB"), std::string::npos) << said->text;
    EXPECT_EQ(advice(far, "storage-region"), nullptr);
    EXPECT_NE(near.candidates.front().region, "eastus");
}

}  // namespace
}  // namespace stoker
