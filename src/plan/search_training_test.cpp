// Pruning loses nothing: the bounded search shows what the exhaustive one shows.
#include "plan/search_training.h"

#include <fmt/format.h>

#include "plan/layouts.h"
#include "plan/pipeline.h"
#include "plan/testing.h"

namespace stoker {
namespace {

std::vector<std::string> best_and_front(const Workload& asked, bool exhaustive) {
    const PlanOptions options = testing::quick();
    Context context = make_context(asked, testing::catalog(), options);
    auto search = search_training(context, {.exhaustive = exhaustive, .top = 3});
    EXPECT_TRUE(search.ok());
    const Ranking ranking = rank(context, search->points);
    std::vector<std::string> lines;
    auto add = [&](const Option& o) {
        lines.push_back(fmt::format("{} {} {} {} {:.6f} {:.2f}", o.nodes, o.name, o.region, static_cast<int>(o.pricing),
                                    o.hours.mid, o.usd.mid));
    };
    for (std::size_t i = 0; i < ranking.groups.size() && i < 3; ++i) add(ranking.groups[i]);
    std::vector<Option> all = ranking.expansion.options;
    all.insert(all.end(), ranking.expansion.over_limit.begin(), ranking.expansion.over_limit.end());
    for (const Option& o : pareto_front(all)) add(o);
    return lines;
}

// On small spaces the best groups and the whole Pareto front are equal, for cost, time and energy, with and without
// limits.
TEST(SearchTraining, PrunedEqualsExhaustive) {
    for (std::string_view objective : {"{minimize: cost}", "{minimize: cost, deadline: 6d}",
                                       "{minimize: time, budget: 9000 USD}", "{minimize: energy, deadline: 10d}"})
        for (std::string_view spot : {"never", "allowed"}) {
            const Workload asked = testing::workload(
                fmt::format("kind: training\nmodel: llama-2-7b\ndata: {{tokens: 20B, sequence: 4096}}\nobjective: "
                            "{}\nwhere: {{regions: [eastus, eastus2], spot: {}, max_nodes: 12}}\n",
                            objective, spot));
            EXPECT_EQ(best_and_front(asked, false), best_and_front(asked, true)) << objective << spot;
        }
}

// All small counts, then counts with many divisors, up to the limit and never beyond.
TEST(SearchTraining, NodeCountsReachTheLimit) {
    WhereSpec where;
    EXPECT_EQ(node_counts(where, {}).back(), 16384);
    where.max_nodes = 50;
    EXPECT_EQ(node_counts(where, {}).back(), 50);
    NodeType few;
    few.available = 20000;  // a cluster of one's own, of any size
    where.max_nodes.reset();
    EXPECT_EQ(node_counts(where, few).back(), 20000);
    few.available = 3;
    EXPECT_EQ(node_counts(where, few), (std::vector<int>{1, 2, 3}));
    where.nodes = 7;
    EXPECT_EQ(node_counts(where, {}), std::vector<int>{7});
    where.nodes.reset();
    where.gpus = 24;
    NodeType eight;
    eight.accelerator = 0;
    eight.accelerators = 8;
    EXPECT_EQ(node_counts(where, eight), std::vector<int>{3});
}

// Every division multiplies to the devices, keeps tensor parallelism inside the fast links, and divides heads.
TEST(Layouts, DivideTheDevices) {
    LayoutSpace space{.devices = 96,
                      .devices_per_node = 8,
                      .domain = 8,
                      .layers = 80,
                      .heads = 64,
                      .kv_heads = 8,
                      .sequence = 8192,
                      .global_batch = 512};
    const Divisions all = divisions(space);
    EXPECT_GT(all.layouts.size(), 20u);
    bool six_stages = false;
    for (const ParallelLayout& layout : all.layouts) {
        EXPECT_EQ(layout.gpus(), 96);
        EXPECT_LE(layout.tensor, 8);
        EXPECT_EQ(64 % layout.tensor, 0);
        six_stages |= layout.pipeline == 10 || layout.pipeline == 6 || layout.pipeline == 4;
    }
    EXPECT_TRUE(six_stages);
}

// 48 ranks cannot make a batch of 512 exactly; an eighth of slack is allowed, and more is not.
TEST(Layouts, RoundTheGlobalBatch) {
    ParallelLayout layout;
    layout.data = 48;
    EXPECT_TRUE(fit_batch(layout, 1, 512));
    EXPECT_EQ(layout.micro_batches, 11);
    EXPECT_FALSE(fit_batch(layout, 8, 512));
}

// 70B from scratch takes several nodes with InfiniBand, and the degrees multiply to the GPUs.
TEST(SearchTraining, SeventyBillionFromScratchTakesSeveralNodesWithInfiniBand) {
    const Plan made = testing::plan(
        "kind: training\nmodel: llama-3-70b\ndata: {tokens: 300B, sequence: 8192}\nobjective: {minimize: cost, "
        "deadline: 60d}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    const Candidate& c = made.candidates.front();
    EXPECT_GT(c.nodes, 1);
    EXPECT_GT(testing::node(c.node_type).rdma_gbps_per_gpu, 0);
    EXPECT_NE(c.framework, "");
    EXPECT_EQ(c.layout.tensor * c.layout.pipeline * c.layout.context * c.layout.data,
              c.nodes * testing::node(c.node_type).whole_gpus());
    EXPECT_NE(testing::advice(made, "ib-scale-set"), nullptr);
}

// A full fine-tune of 7B fits one ND96asr_v4 with sharded states.
TEST(SearchTraining, FineTuningSevenBillionFitsOneNode) {
    const Plan made = testing::plan(
        "kind: fine-tuning\nmodel: llama-2-7b\ndata: {examples: 52000, sequence: 2048, epochs: 3}\nwhere: {sizes: "
        "[Standard_ND96asr_v4], max_nodes: 1}\n");
    ASSERT_TRUE(made.feasible());
    EXPECT_GE(made.candidates.front().layout.zero, 1);
}

// BF16 asked of a T4 is refused, and told where it exists.
TEST(SearchTraining, BrainFloatOnT4IsRefused) {
    const Plan made = testing::plan(
        "kind: fine-tuning\nmodel: gpt2\nprecision: bf16\ndata: {examples: 1000, sequence: 512}\nwhere: {sizes: "
        "[Standard_NC4as_T4_v3]}\n");
    EXPECT_FALSE(made.feasible());
    const Rejection* line = testing::rejection(made, "Standard_NC4as_T4_v3", Reason::precision_unsupported);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("A100"), std::string::npos);
}

}  // namespace
}  // namespace stoker
