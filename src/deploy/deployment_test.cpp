// A Deployment says what the plan chose, and nothing else: whoever commits what is rendered of it gets the layout, the
// nodes and the promise that the plan showed.

#include "deploy/deployment.h"

#include <gtest/gtest.h>

#include <map>

#include "deploy/pinned.h"
#include "plan/testing.h"

namespace stoker {
namespace {

constexpr const char* kTraining = R"(kind: training
model: llama-3-8b
data: {tokens: 150B, sequence: 8192}
objective: {deadline: 14d}
where: {cloud: azure, regions: [eastus], spot: allowed}
)";
constexpr const char* kService = R"(kind: inference
model: llama-3-70b
traffic: {requests_per_second: 5, prompt_tokens: 500, output_tokens: 200}
)";
constexpr const char* kPile = R"(kind: batch-inference
model: llama-3-8b
traffic: {requests: 1M, prompt_tokens: 500, output_tokens: 100}
)";
constexpr const char* kNotebook = R"(kind: notebook
model: llama-3-8b
)";

// Planned once for all tests: a search takes most of their time.
const Plan& planned(const char* text) {
    static std::map<const char*, Plan> plans;
    auto found = plans.find(text);
    if (found == plans.end()) found = plans.emplace(text, testing::plan(text)).first;
    EXPECT_TRUE(found->second.feasible()) << text;
    return found->second;
}

Deployment deployed(const Candidate& candidate, const Workload& workload, const StartSpec* start = nullptr) {
    auto made = make_deployment(candidate, workload, testing::catalog(), {.name = "work", .start = start});
    EXPECT_TRUE(made) << made.error().text();
    return made ? std::move(*made) : Deployment{};
}

// A number that is not the plan's is a promise that nobody made.
TEST(Deployment, EveryNumberOfThePredictionIsThePlans) {
    const Workload workload = testing::workload(kTraining);
    const Plan& plan = planned(kTraining);
    ASSERT_TRUE(plan.feasible());
    const Candidate& candidate = plan.candidates.front();
    const Prediction& p = candidate.prediction;
    const PredictionSpec spec = deployed(candidate, workload).prediction;
    EXPECT_EQ(spec.machine, testing::size(candidate));
    EXPECT_EQ(spec.nodes, candidate.nodes);
    EXPECT_EQ(spec.step_s, p.step_s.mid);
    EXPECT_EQ(spec.step_low_s, p.step_s.low);
    EXPECT_EQ(spec.step_high_s, p.step_s.high);
    EXPECT_EQ(spec.steps, p.steps);
    EXPECT_EQ(spec.mfu, p.mfu);
    EXPECT_EQ(spec.run_s, 3600 * p.hours.mid);
    EXPECT_EQ(spec.run_low_s, 3600 * p.hours.low);
    EXPECT_EQ(spec.run_high_s, 3600 * p.hours.high);
    EXPECT_EQ(spec.memory_bytes, static_cast<std::int64_t>(p.memory_bytes.mid));
    ASSERT_TRUE(spec.cost_usd);
    EXPECT_EQ(spec.cost_usd->low, p.usd.low);
    EXPECT_EQ(spec.cost_usd->mid, p.usd.mid);
    EXPECT_EQ(spec.cost_usd->high, p.usd.high);
    double terms = 0;
    for (const PredictedTerm& term : spec.step_terms) terms += term.seconds;
    EXPECT_NEAR(terms, p.step_s.mid, 1e-6 * p.step_s.mid);
}

TEST(Deployment, AServiceKeepsItsLatencyAndAPileItsEnd) {
    const Workload service = testing::workload(kService);
    const Plan& plan = planned(kService);
    ASSERT_TRUE(plan.feasible());
    const Prediction& p = plan.candidates.front().prediction;
    const PredictionSpec spec = deployed(plan.candidates.front(), service).prediction;
    ASSERT_TRUE(spec.serving);
    EXPECT_EQ(spec.serving->ttft_s.high, p.ttft_p95_s.high);
    EXPECT_EQ(spec.serving->tpot_s.mid, p.tpot_p95_s.mid);
    EXPECT_EQ(spec.serving->tokens_per_s.mid, p.tokens_per_s);
    EXPECT_EQ(spec.serving->most_requests_per_s, p.knee_requests_per_s * plan.candidates.front().replicas);
    EXPECT_EQ(spec.run_s, 0) << "a service has no end";
    const Workload pile = testing::workload(kPile);
    const Plan& done = planned(kPile);
    ASSERT_TRUE(done.feasible());
    const PredictionSpec end = deployed(done.candidates.front(), pile).prediction;
    EXPECT_EQ(end.run_s, 3600 * done.candidates.front().prediction.hours.mid);
    EXPECT_LT(end.serving->tokens_per_s.low, end.serving->tokens_per_s.mid);
}

// A launcher that starts other ranks than the degrees make up hangs at the first collective.
TEST(Deployment, EveryDegreeMultipliesToTheRanks) {
    for (const char* text : {kTraining, kService, kPile, kNotebook}) {
        const Workload workload = testing::workload(text);
        for (const Candidate& candidate : planned(text).candidates) {
            const Deployment d = deployed(candidate, workload);
            SCOPED_TRACE(d.title + " on " + d.nodes.machine);
            if (d.training) {
                const ParallelLayout& layout = d.training->layout;
                EXPECT_EQ(layout.data * layout.tensor * layout.pipeline * layout.context, d.ranks.count);
                EXPECT_EQ(d.ranks.count, d.nodes.count * d.ranks.per_node);
                EXPECT_EQ(d.training->global_batch, layout.data * layout.micro_batch * layout.micro_batches);
            } else if (d.serving && d.nodes.gpus >= 1) {
                EXPECT_EQ(d.serving->replicas * d.serving->shape.gpus(), d.ranks.count * d.ranks.each.gpus);
            }
            EXPECT_GE(d.nodes.count * d.ranks.per_node, d.ranks.count);
            EXPECT_LE(d.ranks.per_node * d.ranks.each.gpus, std::max(1.0, d.nodes.gpus));
        }
    }
}

// Who commits what is rendered sees a difference only where something was decided anew.
TEST(Deployment, TheSameGivesTheSameBytes) {
    for (const char* text : {kTraining, kService}) {
        const auto all = [&] {
            const Workload workload = testing::workload(text);
            return to_json(deployed(planned(text).candidates.front(), workload)).dump();
        };
        EXPECT_EQ(all(), all());
    }
}

// --explain looks a setting up by its place: one that is not there would never be shown.
TEST(Deployment, EveryReasonIsOfASettingThatIsThere) {
    for (const char* text : {kTraining, kService, kPile}) {
        const Workload workload = testing::workload(text);
        for (const Candidate& candidate : planned(text).candidates) {
            const Deployment d = deployed(candidate, workload);
            const Json json = to_json(d);
            for (const Because& each : d.because) {
                const Json* at = &json;
                for (std::string_view rest = each.setting; at != nullptr && !rest.empty();) {
                    const std::size_t dot = std::min(rest.find('.'), rest.size());
                    at = at->find(rest.substr(0, dot));
                    rest.remove_prefix(std::min(dot + 1, rest.size()));
                }
                EXPECT_NE(at, nullptr) << each.setting;
                EXPECT_FALSE(each.reason.empty() || each.source.empty()) << each.setting;
            }
        }
    }
}

TEST(Deployment, OnlyRanksOnSeveralNodesAreToldOfTheFabric) {
    Workload workload = testing::workload(kTraining);
    workload.where.sizes = {"Standard_ND96isr_H100_v5"};
    workload.objective.deadline.reset();
    const auto variables = [&](double nodes) {
        workload.where.nodes = nodes;
        const Plan plan = testing::plan(workload);
        EXPECT_TRUE(plan.feasible()) << plan.infeasible_because;
        return plan.feasible() ? deployed(plan.candidates.front(), workload).environment
                               : std::map<std::string, std::string>{};
    };
    const auto two = variables(2), one = variables(1);
    EXPECT_EQ(two.at("NCCL_TOPO_FILE"), "/opt/microsoft/ndv5/topo.xml");
    EXPECT_EQ(two.at("NCCL_SOCKET_IFNAME"), "eth0");
    EXPECT_FALSE(one.contains("NCCL_SOCKET_IFNAME"));
    EXPECT_FALSE(two.contains("MASTER_ADDR")) << "that is the launcher's";
}

TEST(Deployment, TwoStatementsThatContradictAreRefusedWithTheirPlace) {
    const Workload workload = testing::workload(R"(kind: training
model: llama-3-8b
data: {tokens: 1B, sequence: 8192}
where: {sizes: [Standard_ND96isr_H100_v5], nodes: 2}
run:
  command: python3 train.py
  nodes: 4
  ranks_per_node: 8
)");
    const Plan plan = testing::plan(workload);
    ASSERT_TRUE(plan.feasible());
    const auto made = make_deployment(plan.candidates.front(), workload, testing::catalog(), {.name = "x"});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind(), ErrorKind::invalid);
    EXPECT_EQ(made.error().problems().front().pos.text(), "test.yaml:8:10");
    EXPECT_NE(made.error().message().find("where.nodes: 2"), std::string::npos) << made.error().message();
}

// Against what the planner chose, the plan stands in what is rendered; the owner of the file is told.
TEST(Deployment, ThePlanStandsAndSaysSo) {
    const Workload workload = testing::workload(std::string(kTraining) + R"(run:
  command: python3 train.py
  ranks: 2
  environment: {NCCL_SOCKET_IFNAME: ib0}
)");
    const Plan plan = testing::plan(workload);
    ASSERT_TRUE(plan.feasible());
    const StartSpec start{
        .command = {"sh", "-e", "-c", "python3 train.py"}, .environment = {{"NCCL_SOCKET_IFNAME", "ib0"}}, .ranks = 2};
    const Deployment d = deployed(plan.candidates.front(), workload, &start);
    EXPECT_EQ(d.ranks.count, plan.candidates.front().layout.gpus());
    EXPECT_EQ(d.command, start.command);
    EXPECT_EQ(d.environment.at("NCCL_SOCKET_IFNAME"), "ib0") << "what the file sets is the file's";
    ASSERT_EQ(d.notes.size(), 2u);
    EXPECT_NE(d.notes[1].find("run.ranks: 2 (test.yaml:9:10)"), std::string::npos) << d.notes[1];
}

// What runs here is as many ranks as run: starts: a layout of another size would be a prediction of something else.
TEST(PinnedWorkload, ALayoutThatTheRanksAreNotIsRefusedWithItsPlace) {
    const Workload workload = testing::workload(R"(kind: training
model: llama-3-8b
data: {tokens: 1B, sequence: 8192}
layout: {tensor: 2, data: 4}
run: {command: python3 train.py, ranks: 4}
)");
    const auto pinned = pinned_to_ranks(workload, 4, {});
    ASSERT_FALSE(pinned);
    ASSERT_EQ(pinned.error().problems().size(), 1u);
    EXPECT_EQ(pinned.error().problems().front().pos.text(), "test.yaml:5:18");
    EXPECT_TRUE(pinned_to_ranks(testing::workload(kTraining), 4, {}));
}

constexpr const char* kFront = R"(kind: inference
model: llama-3-70b
traffic: {requests_per_second: 20, prompt_tokens: 500, output_tokens: 200}
front: {image: registry.example/gateway:1.4, cpu_per_request: 60ms}
where: {cloud: azure, regions: [eastus]}
)";

// A gateway that is given no machines stands on those of the model, or nowhere.
TEST(Deployment, WhatStandsBeforeTheModelIsSizedByItsCpus) {
    const Workload workload = testing::workload(kFront);
    const Plan& plan = planned(kFront);
    ASSERT_TRUE(plan.feasible());
    const Deployment d = deployed(plan.candidates.front(), workload);
    ASSERT_TRUE(d.front);
    // 20/s x 60 ms = 1.2 vCPUs, at 60 % busy two pods of one.
    EXPECT_EQ(d.front->replicas, 2);
    EXPECT_EQ(d.front->most, 4);
    EXPECT_FALSE(d.front->machine.empty());
    EXPECT_NE(d.front->machine, d.nodes.machine);
    EXPECT_EQ(d.front->machines, 2) << "one that is lost takes not all of it";
    EXPECT_GT(d.front->microusd_per_hour, 0);
    ASSERT_FALSE(d.notes.empty());
    EXPECT_NE(d.notes.back().find("which the price of the plan does not have"), std::string::npos) << d.notes.back();
}

}  // namespace
}  // namespace stoker
