// The whole path from a workload to a plan, on the embedded catalogue.
#include <random>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::advice;
using testing::first_size;
using testing::kToday;
using testing::node;
using testing::plan;
using testing::quick;
using testing::rejection;
using testing::size;
using testing::workload;

constexpr std::string_view kLlama8b = R"(kind: training
model: llama-3-8b
data: {tokens: 150B, sequence: 8192}
precision: bf16
objective: {minimize: cost, deadline: 14d}
where: {cloud: azure, regions: [eastus, westeurope], spot: allowed}
)";

std::string text_of(const Plan& made) {
    std::string text = made.verdict + fmt::format(" {} {}\n", made.considered, made.refused);
    for (const auto* list : {&made.candidates, &made.pareto, &made.nearest})
        for (const Candidate& c : *list)
            text += fmt::format("{} {} {} {} {} {} {}\n", c.nodes, size(c), c.region, describe(c.layout),
                                c.prediction.hours.mid, c.prediction.usd.mid, c.why_not_first);
    for (const Rejection& r : made.rejected)
        text += fmt::format("{} {} {} {}\n", r.node_type, code(r.reason), r.count, r.text);
    for (const Advice& a : made.advice) text += a.id + a.text + "\n";
    for (const PlanWhatIf& w : made.what_if) text += w.change + w.outcome + "\n";
    return text;
}

// The same input gives the same plan, whatever the number of threads.
TEST(MakePlan, DoesNotDependOnThreads) {
    const Workload asked = workload(kLlama8b);
    PlanOptions options{.today = std::string(kToday)};
    options.threads = 1;
    const std::string one = text_of(plan(asked, options));
    options.threads = 3;
    EXPECT_EQ(one, text_of(plan(asked, options)));
    options.threads = 0;
    EXPECT_EQ(one, text_of(plan(asked, options)));
}

// The first candidate meets the deadline and is the cheapest of those shown; every other says why it is not first.
TEST(MakePlan, PutsTheCheapestWithinTheDeadlineFirst) {
    const Plan made = plan(kLlama8b);
    ASSERT_GE(made.candidates.size(), 3u);
    for (const Candidate& c : made.candidates) {
        EXPECT_LE(c.prediction.hours.mid, 14 * 24);
        EXPECT_GE(c.prediction.usd.mid, made.candidates.front().prediction.usd.mid);
        EXPECT_LE(c.prediction.hours.low, c.prediction.hours.mid);
        EXPECT_LE(c.prediction.usd.mid, c.prediction.usd.high);
        EXPECT_NE(c.region, "");
        EXPECT_GT(c.node_per_hour.dollars(), 0);
    }
    for (std::size_t i = 1; i < made.candidates.size(); ++i) EXPECT_NE(made.candidates[i].why_not_first, "");
    EXPECT_GT(made.considered, made.refused);
    EXPECT_GT(made.refused, 0);
    EXPECT_NE(made.verdict.find("14 d"), std::string::npos);
}

// Cost is nodes x hours x price, and nothing else.
TEST(MakePlan, CostIsNodesTimesHoursTimesPrice) {
    for (const Candidate& c : plan(kLlama8b).candidates)
        EXPECT_NEAR(c.prediction.usd.mid, c.nodes * c.prediction.hours.mid * c.node_per_hour.dollars(),
                    1e-6 * c.prediction.usd.mid);
}

// On the Pareto front nothing is both faster and cheaper than its neighbour.
TEST(MakePlan, ParetoFrontTradesTimeForMoney) {
    const Plan made = plan(kLlama8b);
    ASSERT_GE(made.pareto.size(), 2u);
    for (std::size_t i = 1; i < made.pareto.size(); ++i) {
        EXPECT_GT(made.pareto[i].prediction.hours.mid, made.pareto[i - 1].prediction.hours.mid);
        EXPECT_LT(made.pareto[i].prediction.usd.mid, made.pareto[i - 1].prediction.usd.mid);
    }
}

// A training plan uses every GPU of its nodes: no node is added while another has a free GPU.
TEST(MakePlan, FillsNodesBeforeAddingNodes) {
    std::mt19937 random(7);
    const std::string_view models[] = {"llama-3-8b", "gpt2", "llama-2-7b", "bert-large", "llama-3-70b"};
    for (int i = 0; i < 60; ++i) {
        const double tokens = 1e9 * static_cast<double>(1 + random() % 200);
        const std::string yaml = fmt::format(
            "kind: training\nmodel: {}\ndata: {{tokens: {:.0f}, sequence: {}}}\nobjective: {{minimize: {}, deadline: "
            "{}d}}\nwhere: {{regions: [eastus], max_nodes: {}}}\n",
            models[random() % 5], tokens, 256 << (random() % 2), random() % 2 ? "cost" : "time", 1 + random() % 60,
            1 << (random() % 5));
        const Plan made = plan(yaml);
        for (const Candidate& c : made.candidates) {
            const int devices = std::max(1, node(c.node_type).whole_gpus());
            EXPECT_EQ(c.layout.gpus(), c.nodes * devices) << yaml << size(c);
            EXPECT_LE(c.prediction.memory_bytes.mid, c.prediction.memory_capacity_bytes);
        }
    }
}

// A larger budget or a later deadline never makes the objective worse.
TEST(MakePlan, MoreBudgetIsNeverWorse) {
    double best = 1e18;
    for (std::string_view budget : {"6000", "8000", "20k", "100k", "1M"}) {
        const Plan made =
            plan(fmt::format("kind: training\nmodel: llama-3-8b\ndata: {{tokens: 20B, sequence: 8192}}\nobjective: "
                             "{{minimize: time, budget: {} USD}}\nwhere: {{regions: [eastus]}}\n",
                             budget));
        if (!made.feasible()) continue;
        EXPECT_LE(made.candidates.front().prediction.hours.mid, best) << budget;
        best = made.candidates.front().prediction.hours.mid;
    }
    EXPECT_LT(best, 1e18);
}

// A refusal carries the ways out: a default that can be turned off, weights that are kept in fewer bits, less data.
TEST(MakePlan, RefusalsNameTheWayOut) {
    const auto ways = [](const Plan& made) {
        std::string text;
        for (const Candidate& c : made.nearest) text += c.why_not_first + "\n";
        return text;
    };
    const Plan serving = plan(
        "kind: inference\nmodel: llama-2-13b\ntraffic: {requests_per_second: 1, prompt_tokens: 800, output_tokens: "
        "200}\nobjective: {budget: $3k, latency: {ttft_p95: 2s, tpot_p95: 80ms}}\nwhere: {regions: [eastus]}\n");
    ASSERT_FALSE(serving.feasible());
    EXPECT_NE(ways(serving).find("survive_one_replica_lost: false"), std::string::npos) << ways(serving);
    EXPECT_NE(ways(serving).find("precision: int"), std::string::npos) << ways(serving);
    EXPECT_TRUE(serving.nearest.front().doubt.empty()) << serving.nearest.front().doubt;
    const Plan training = plan(
        "kind: training\nmodel: llama-3-70b\ndata: {tokens: 2T, sequence: 8192}\nobjective: {budget: $10k}\nwhere: "
        "{regions: [eastus, eastus2], max_nodes: 64}\n");
    ASSERT_FALSE(training.feasible());
    EXPECT_NE(ways(training).find("tokens of the 2T"), std::string::npos) << ways(training);
}

// What is given out by reservation only is a list price that nobody gets: said, with what can be had instead.
TEST(MakePlan, SaysWhatCanHardlyBeHad) {
    const Plan made = plan(
        "kind: training\nmodel: llama-2-7b\ndata: {tokens: 100B, sequence: 4096}\nobjective: {deadline: 30d}\nwhere: "
        "{cloud: aws, accelerators: [b200]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    ASSERT_NE(testing::advice(made, "hard-to-get"), nullptr);
    EXPECT_NE(testing::advice(made, "hard-to-get")->text.find("Capacity Block"), std::string::npos);
    const Plan usual = plan(
        "kind: training\nmodel: llama-3.2-1b\ndata: {tokens: 1B, sequence: 4096}\nwhere: {regions: "
        "[eastus]}\n");
    EXPECT_EQ(testing::advice(usual, "hard-to-get"), nullptr);
}

// A notebook that asks for nothing but jupyter gets no GPU; a solver that says nothing gets one that runs CUDA.
TEST(MakePlan, TakesNoMoreThanIsAskedFor) {
    const Plan notebook = plan("kind: notebook\nperiod: 4h\nneeds: [jupyter]\nmemory: 16GiB\n");
    EXPECT_FALSE(testing::node(notebook.candidates.front().node_type).has_gpu());
    const Plan with_gpu = plan("kind: notebook\nperiod: 4h\n");
    EXPECT_TRUE(testing::node(with_gpu.candidates.front().node_type).has_gpu());
    const Plan solver = plan("kind: simulation\ngpu_hours: 100\n");
    const NodeType& size = testing::node(solver.candidates.front().node_type);
    ASSERT_TRUE(size.has_gpu());
    EXPECT_EQ(testing::catalog().accelerators()[static_cast<std::size_t>(size.accelerator)].vendor, "NVIDIA");
}

// An impossible deadline names the constraint, by how much it is missed, and what comes nearest.
TEST(MakePlan, SaysWhichConstraintIsMissedAndWhatIsNearest) {
    const Plan late = plan(
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 15T, sequence: 8192}\nobjective: {minimize: cost, deadline: "
        "1d}\n");
    EXPECT_FALSE(late.feasible());
    EXPECT_NE(late.infeasible_because.find("deadline of 1 d"), std::string::npos) << late.infeasible_because;
    ASSERT_FALSE(late.nearest.empty());
    EXPECT_GT(late.nearest.front().prediction.hours.mid, 24);
    EXPECT_NE(late.nearest.front().why_not_first.find("deadline 1 d ->"), std::string::npos);

    const Plan dear = plan(
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 150B, sequence: 8192}\nobjective: {minimize: time, budget: "
        "100 USD}\n");
    EXPECT_FALSE(dear.feasible());
    EXPECT_NE(dear.infeasible_because.find("budget"), std::string::npos);
    ASSERT_FALSE(dear.nearest.empty());
    EXPECT_GT(dear.nearest.front().prediction.usd.mid, 100);
}

// Retired sizes are refused from their date on, by the given day and not by the clock of the machine.
TEST(MakePlan, RefusesRetiredSizesByTheGivenDay) {
    constexpr std::string_view yaml = "kind: notebook\nwhere: {sizes: [Standard_NC6s_v3]}\n";
    PlanOptions options = quick();
    options.today = "2026-11-21";
    const Plan after = plan(yaml, options);
    EXPECT_FALSE(after.feasible());
    const Rejection* line = rejection(after, "Standard_NC6s_v3", Reason::retired);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("2025-09-30"), std::string::npos);
    options.today = "2025-09-01";
    EXPECT_EQ(rejection(plan(yaml, options), "Standard_NC6s_v3", Reason::retired), nullptr);
}

// A stale catalogue and stale prices are said with their age.
TEST(MakePlan, WarnsOfStaleFacts) {
    PlanOptions options = quick();
    options.today = "2027-06-01";
    const Plan made = plan("kind: notebook\n", options);
    ASSERT_NE(advice(made, "stale-catalogue"), nullptr);
    EXPECT_NE(advice(made, "stale-price"), nullptr);
}

// What changes the choice is told, with what it would become.
TEST(MakePlan, TellsWhatWouldChangeTheChoice) {
    PlanOptions options{.today = std::string(kToday)};
    const Plan made = plan(kLlama8b, options);
    ASSERT_GE(made.what_if.size(), 3u);
    EXPECT_NE(made.what_if[0].change.find("x 1.3"), std::string::npos);
    EXPECT_NE(made.what_if[1].change.find("deadline 7 d"), std::string::npos);
    for (const PlanWhatIf& w : made.what_if) EXPECT_NE(w.outcome, "");
}

// Data may not leave the geographies named.
TEST(MakePlan, KeepsDataWhereItMayBe) {
    const Plan made = plan("kind: notebook\nwhere: {residency: [EU]}\n");
    ASSERT_TRUE(made.feasible());
    for (const Candidate& c : made.candidates)
        EXPECT_TRUE(c.region.find("us") == std::string::npos || c.region.find("austria") != std::string::npos)
            << c.region;
}

// An estimate of a pinned configuration is the same that the search would have found for it.
TEST(Estimate, EvaluatesOnePinnedConfiguration) {
    const Workload asked = workload(
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 1B, sequence: 8192}\nwhere: {sizes: "
        "[Standard_ND96isr_H100_v5], nodes: 2}\nlayout: {tensor: 2, pipeline: 1, zero: 1}\n");
    auto one = estimate(asked, testing::catalog(), quick());
    ASSERT_TRUE(one.ok()) << one.error().text();
    EXPECT_EQ(one->nodes, 2);
    EXPECT_EQ(one->layout.tensor, 2);
    EXPECT_EQ(one->layout.data, 8);
    EXPECT_EQ(one->layout.zero, 1);
    EXPECT_GT(one->prediction.step_s.mid, 0);
    EXPECT_DOUBLE_EQ(one->prediction.hours.mid, plan(asked).candidates.front().prediction.hours.mid);
}

// A plan that met its deadline with a coin's chance was called feasible: the confidence asked for decides.
TEST(MakePlan, KeepsTheDeadlineWithTheConfidenceAskedFor) {
    const std::string text = replace_all(kLlama8b, "14d", "18d");
    const Plan sure = plan(text);
    EXPECT_LE(sure.candidates.front().prediction.hours.high, 18 * 24 * 1.001);
    Workload asked = workload(text);
    asked.objective.confidence = 0.5;
    const Plan even = plan(asked);
    EXPECT_LE(even.candidates.front().prediction.hours.mid, 18 * 24);
    EXPECT_GT(even.candidates.front().prediction.hours.high, 18 * 24);
    EXPECT_LT(even.candidates.front().prediction.usd.mid, sure.candidates.front().prediction.usd.mid);
    EXPECT_NE(advice(even, "deadline-tight"), nullptr);
    EXPECT_EQ(advice(sure, "deadline-tight"), nullptr);
}

// An estimate that cannot run was an error without terms: who pins a configuration wants to see what it lacks.
TEST(Estimate, ShowsTheTermsOfWhatCannotRun) {
    const auto made =
        estimate(workload("kind: training\nmodel: llama-3-70b\ndata: {tokens: 10B, sequence: 8192}\nlayout: "
                          "{tensor: 8, data: 2, zero: 0, micro_batch: 1}\nwhere: {regions: [eastus], sizes: "
                          "[Standard_ND96isr_H100_v5], nodes: 2}\n"),
                 testing::catalog(), quick());
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made->refused, Reason::memory);
    EXPECT_GT(made->need, made->have);
    EXPECT_NE(made->refusal, "");
    EXPECT_GT(made->prediction.step_s.mid, 0);
    double sum = 0;
    for (double bytes : made->prediction.bytes) sum += bytes;
    EXPECT_NEAR(sum, made->need, 1e-6 * sum);
    const auto serving = estimate(workload("kind: inference\nmodel: llama-3-70b\nprecision: fp16\ntraffic: "
                                           "{requests_per_second: 1, prompt_tokens: 500, output_tokens: 100}\nwhere: "
                                           "{sizes: [Standard_NC24ads_A100_v4]}\n"),
                                  testing::catalog(), quick());
    ASSERT_TRUE(serving.ok());
    EXPECT_EQ(serving->refused, Reason::memory);
}

// Five sizes of one series say the same five times: rows differ in kind, and none is out of the question.
TEST(MakePlan, ShowsAlternativesOfDifferentKinds) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 2, prompt_tokens: 300, output_tokens: "
        "100}\nwhere: {regions: [eastus]}\n");
    // An 8B model that a GPU serves for less is no case for CPUs, though they would be fast enough.
    EXPECT_TRUE(node(made.candidates.front().node_type).has_gpu());
    std::set<int> accelerators;
    int cpus = 0;
    for (const Candidate& c : made.candidates) {
        accelerators.insert(node(c.node_type).accelerator);
        cpus += !node(c.node_type).has_gpu();
        EXPECT_LT(c.prediction.usd.mid, 10 * made.candidates.front().prediction.usd.mid);
    }
    EXPECT_GE(accelerators.size(), 3u);
    EXPECT_LE(cpus, 1);
}

}  // namespace
}  // namespace stoker
