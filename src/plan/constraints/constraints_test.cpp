// Offers, quota and residency narrow a plan, each with its numbers.
#include "catalog/geography.h"
#include "plan/constraints/constraint.h"

#include "plan/platform.h"
#include "plan/quota.h"
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::plan;
using testing::quick;

constexpr std::string_view kFineTune =
    "kind: fine-tuning\nmodel: llama-2-7b\ndata: {examples: 52000, sequence: 2048}\nwhere: {regions: [eastus], sizes: "
    "[Standard_ND96asr_v4, Standard_ND96amsr_A100_v4], max_nodes: 2}\n";

// Family names carry spaces and other case in different answers of Azure; they are compared without both.
TEST(Quota, ComparesFamiliesWithoutSpacesAndCase) {
    EXPECT_EQ(fold_family("Standard NDASv4_A100 Family"), fold_family("standardNDASv4_a100family"));
}

// A shortfall names family, current, limit and need; what can start today is planned, the rest is marked and behind it.
// Asked for what can start today, the plan leaves the rest out.
TEST(Quota, WhatCannotStartTodayComesLastAndIsMarked) {
    PlanOptions options = quick();
    options.usages_region = "eastus";
    options.usages = {{.family = "Standard NDASv4_A100 Family", .label = "", .current = 16, .limit = 96},
                      {.family = "cores", .label = "", .current = 0, .limit = 1000}};
    const Plan made = plan(kFineTune, options);
    ASSERT_TRUE(made.feasible());
    EXPECT_EQ(testing::first_size(made), "Standard_ND96amsr_A100_v4");
    EXPECT_EQ(made.candidates.front().blocked_by, "");
    const Candidate* blocked = nullptr;
    for (const Candidate& c : made.candidates)
        if (testing::size(c) == "Standard_ND96asr_v4") blocked = &c;
    ASSERT_NE(blocked, nullptr);
    EXPECT_NE(blocked->blocked_by.find("16 of 96"), std::string::npos);
    EXPECT_NE(blocked->why_not_first.find("cannot start today"), std::string::npos);
    EXPECT_LT(blocked->prediction.usd.mid, made.candidates.front().prediction.usd.mid);
    EXPECT_NE(testing::advice(made, "passed-over-blocked"), nullptr);

    options.startable = true;
    const Plan now = plan(kFineTune, options);
    for (const Candidate& c : now.candidates) EXPECT_EQ(c.blocked_by, "");
    const Rejection* line = testing::rejection(now, "Standard_ND96asr_v4", Reason::quota);
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->have, 80);
    EXPECT_EQ(line->need, 96);
    EXPECT_NE(line->text.find("Standard NDASv4_A100 Family"), std::string::npos);
    EXPECT_NE(line->text.find("16 of 96"), std::string::npos);
}

// With no quota anywhere the plan stands, headed by what to ask for.
TEST(Quota, NothingFreeStillPlansAndSaysWhatToAskFor) {
    PlanOptions options = quick();
    options.usages_region = "eastus";
    options.usages = {{.family = "cores", .label = "", .current = 0, .limit = 0}};
    const Plan made = plan(kFineTune, options);
    ASSERT_TRUE(made.feasible());
    const Advice* said = testing::advice(made, "quota-short");
    ASSERT_NE(said, nullptr);
    EXPECT_EQ(said->severity, AdviceSeverity::error);
    EXPECT_NE(said->remedy.find("Usage + quotas"), std::string::npos);
}

// A family that the answer does not mention is unknown, not zero.
TEST(Quota, UnknownFamilyIsNotZero) {
    PlanOptions options = quick();
    options.usages_region = "eastus";
    options.usages = {{.family = "standardDSv5Family", .label = "", .current = 0, .limit = 0}};
    EXPECT_EQ(testing::advice(plan(kFineTune, options), "quota-short"), nullptr);
}

// Location restrictions exclude, zone restrictions narrow, and both reason codes are told.
TEST(Restriction, LocationExcludesAndZonesAreReported) {
    PlanOptions options = quick();
    options.offers = {{.size = "Standard_ND96asr_v4",
                       .region = "eastus",
                       .family = "",
                       .zones = {},
                       .restricted_zones = {},
                       .location_restricted = true,
                       .reason_codes = {"NotAvailableForSubscription"}},
                      {.size = "Standard_ND96amsr_A100_v4",
                       .region = "eastus",
                       .family = "",
                       .zones = {"2"},
                       .restricted_zones = {"1", "3"},
                       .location_restricted = false,
                       .reason_codes = {"QuotaId"}}};
    const Plan made = plan(kFineTune, options);
    ASSERT_TRUE(made.feasible());
    EXPECT_EQ(testing::first_size(made), "Standard_ND96amsr_A100_v4");
    const Rejection* line = testing::rejection(made, "Standard_ND96asr_v4", Reason::restricted);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("NotAvailableForSubscription"), std::string::npos);
    bool zones = false;
    for (const PlanNote& note : made.candidates.front().notes)
        zones |= note.text.find("zones open to this subscription: 2") != std::string::npos;
    EXPECT_TRUE(zones);
}

// The retirement date of list-skus beats the table.
TEST(Restriction, LiveRetirementDateBeatsTheTable) {
    PlanOptions options = quick();
    options.offers = {{.size = "Standard_ND96asr_v4", .region = "eastus", .retirement_date = "2026-01-01"}};
    EXPECT_NE(testing::rejection(plan(kFineTune, options), "Standard_ND96asr_v4", Reason::retired), nullptr);
}

// Geography words people use.
TEST(Geography, KnowsWhereRegionsLie) {
    EXPECT_TRUE(same_geography("EU", "westeurope"));
    EXPECT_TRUE(same_geography("Germany", "germanywestcentral"));
    EXPECT_FALSE(same_geography("EU", "uksouth"));
    EXPECT_FALSE(same_geography("EU", "switzerlandnorth"));
    EXPECT_TRUE(same_geography("Europe", "switzerlandnorth"));
    EXPECT_TRUE(same_geography("us", "eastus2"));
    EXPECT_FALSE(same_geography("us", "australiaeast"));
    EXPECT_FALSE(same_geography("EU", "nowhere"));
}

// Where nothing is said, a region that ordinary subscriptions can use; the cheap far one is told, with its saving.
// Access to some regions is granted on request: nobody is sent there who did not name them.
TEST(Geography, TakesWellKnownRegionsUnlessAsked) {
    constexpr std::string_view kPrepare = "kind: preprocessing\ndata: {examples: 20M, bytes: 2TB}\n";
    const Plan silent = plan(kPrepare);
    ASSERT_TRUE(silent.feasible());
    EXPECT_EQ(access_of("azure", silent.candidates.front().region), RegionAccess::well_known);
    const Advice* far = testing::advice(silent, "passed-over-far");
    ASSERT_NE(far, nullptr);
    EXPECT_NE(far->text.find("% less"), std::string::npos);
    for (const Candidate& c : silent.pareto) EXPECT_NE(access_of("azure", c.region), RegionAccess::restricted);
    const Plan named = plan(std::string(kPrepare) + "where: {regions: [jioindiawest]}\n");
    ASSERT_TRUE(named.feasible());
    EXPECT_EQ(named.candidates.front().region, "jioindiawest");
}

// Home is asked for once: a geography or a region, and for what somebody waits for the very region.
TEST(Geography, PlansAtHome) {
    PlanOptions options = quick();
    options.home = "japan";
    constexpr std::string_view kServe =
        "kind: inference\nmodel: bert-base\ntraffic: {requests_per_second: 20, prompt_tokens: 128}\n"
        "objective: {latency: {p95: 200ms}}\n";
    const Plan japan = plan(kServe, options);
    ASSERT_TRUE(japan.feasible());
    EXPECT_TRUE(same_geography("japan", japan.candidates.front().region)) << japan.candidates.front().region;
    EXPECT_EQ(distance_from_home("japan", "azure", "japaneast", false), 0);
    EXPECT_GT(distance_from_home("japan", "azure", "centralindia", false), 0);
    EXPECT_EQ(distance_from_home("westeurope", "azure", "swedencentral", false), 0);
    EXPECT_EQ(distance_from_home("westeurope", "azure", "swedencentral", true), 1);
    options.home = "uksouth";
    const Plan here = plan(kServe, options);
    ASSERT_TRUE(here.feasible());
    EXPECT_EQ(here.candidates.front().region, "uksouth");
    options.residency = {"eu"};
    options.home = "";
    EXPECT_TRUE(same_geography("eu", plan(kServe, options).candidates.front().region));
}

// A machine without CUDA is no cheaper way to a notebook that needs it.
TEST(Needs, CudaLeavesOutWhatHasNone) {
    const Plan made = plan("kind: notebook\nneeds: [cuda]\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates) {
        const NodeType& node = testing::node(c.node_type);
        ASSERT_TRUE(node.has_gpu()) << node.name;
        EXPECT_EQ(testing::catalog().accelerators()[static_cast<std::size_t>(node.accelerator)].vendor, "NVIDIA");
    }
}

// Notebook on AML, several nodes on Slurm, replicas on AKS, a pile on Batch: with complexity, alternatives and the PaaS
// word.
TEST(Platform, FollowsTheDecisionTable) {
    const Plan gang = plan(
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 150B, sequence: 8192}\nobjective: {deadline: 14d}\nwhere: "
        "{regions: [eastus]}\n");
    EXPECT_EQ(gang.platform.orchestrator, Orchestrator::cyclecloud_slurm);
    EXPECT_EQ(gang.platform.complexity, "medium");
    EXPECT_GE(gang.platform.alternatives.size(), 3u);
    EXPECT_NE(gang.platform.paas.find("Azure ML"), std::string::npos);
    EXPECT_NE(gang.platform.image.find("hpc"), std::string::npos);
    // What the team says it needs of scheduling, containers and scaling decides before the kind of work does (R78,
    // R79).
    for (const auto& [need, expected] : {std::pair("slurm", Orchestrator::cyclecloud_slurm),
                                         {"grid-engine", Orchestrator::cyclecloud_slurm},
                                         {"microservices", Orchestrator::aks},
                                         {"experiment-tracking", Orchestrator::azure_ml},
                                         {"custom-image", Orchestrator::vmss},
                                         {"task-queue", Orchestrator::batch},
                                         {"ray", Orchestrator::ray}})
        EXPECT_EQ(
            plan(std::string("kind: preprocessing\ndata: {bytes: 1TB}\nneeds: [") + need + "]\n").platform.orchestrator,
            expected)
            << need;
    EXPECT_EQ(plan("kind: notebook\n").platform.orchestrator, Orchestrator::azure_ml);
    EXPECT_EQ(plan("kind: preprocessing\ndata: {bytes: 1TB}\n").platform.orchestrator, Orchestrator::batch);
    EXPECT_EQ(plan("kind: notebook\norchestrator: vmss\n").platform.orchestrator, Orchestrator::vmss);
}

}  // namespace
}  // namespace stoker
