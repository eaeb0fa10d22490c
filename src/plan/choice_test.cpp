// Laws of choosing, on the shipped catalogue: what a change of machines, prices and limits may do to the answer.
#include <algorithm>

#include <fmt/format.h>

#include "plan/evidence.h"
#include "plan/pipeline.h"
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::node;
using testing::plan;
using testing::quick;
using testing::workload;

constexpr double kTie = 1.10;  // time_most_share, tie_share: what time and rules of thumb may cost

// Of different kinds, without limits and with them.
const std::vector<std::string>& questions() {
    static const std::vector<std::string> all = {
        "kind: training\nmodel: llama-3.2-1b\ndata: {tokens: 20B, sequence: 4096}\nobjective: {deadline: 10d}\nwhere: "
        "{max_nodes: 8}\n",
        "kind: fine-tuning\nmethod: lora\nmodel: mistral-7b\ndata: {examples: 30000, sequence: 2048}\nwhere: "
        "{max_nodes: 4}\n",
        "kind: training\nmodel: resnet-50\ndata: {examples: 1281167, epochs: 30}\nwhere: {max_nodes: 4}\n",
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 3, prompt_tokens: 800, output_tokens: "
        "200}\nwhere: {regions: [eastus]}\n",
        "kind: inference\nmodel: bert-base\ntraffic: {requests_per_second: 150, prompt_tokens: 128}\nobjective: "
        "{latency: {p95: 150ms}}\nwhere: {regions: [eastus]}\n",
        "kind: batch-inference\nmodel: llama-3-8b\ntraffic: {requests: 500k, prompt_tokens: 1000, output_tokens: "
        "200}\nobjective: {deadline: 2d}\nwhere: {regions: [eastus, westeurope]}\n",
        "kind: preprocessing\ndata: {examples: 20M, bytes: 2TB}\n",
        "kind: notebook\nperiod: 8h\n"};
    return all;
}

Plan plan_with(const Catalog& catalog, const std::string& question, const PlanOptions& options = quick()) {
    auto made = make_plan(workload(question), catalog, options);
    EXPECT_TRUE(made.ok()) << question;
    return made ? std::move(made).value() : Plan{};
}

Catalog without(int type) {
    Catalog fewer = testing::catalog();
    NodeType& gone = fewer.node_type(type);
    gone.status = "retired";
    gone.retirement_date = "2020-01-01";
    return fewer;
}

Catalog with_price_times(int type, double factor) {
    Catalog changed = testing::catalog();
    std::vector<Price> prices;
    for (Price price : changed.prices_of(type)) {
        price.per_hour = Usd::from_double(price.per_hour.dollars() * factor);
        price.low *= factor, price.high *= factor;
        prices.push_back(std::move(price));
    }
    changed.replace_prices(std::move(prices));
    return changed;
}

// What nothing speaks against and is more than a tie dearer never stands before what is cheaper.
TEST(Choice, CheapestIsCheapest) {
    for (const std::string& question : questions()) {
        const Plan made = plan(question);
        ASSERT_TRUE(made.feasible()) << question;
        const Candidate& first = made.candidates.front();
        for (const Candidate& c : made.candidates) {
            if (!c.doubt.empty() || !c.priced) continue;
            EXPECT_LE(first.prediction.usd.mid, kTie * c.prediction.usd.mid) << question << testing::size(c);
        }
    }
}

// A machine more in the catalogue never makes the answer dearer, unless it is the surer one.
TEST(Choice, AMachineMoreNeverCostsMore) {
    for (const std::string& question : questions()) {
        const Plan all = plan(question);
        ASSERT_TRUE(all.feasible()) << question;
        std::vector<int> types;
        for (const Candidate& c : all.candidates)
            if (std::find(types.begin(), types.end(), c.node_type) == types.end()) types.push_back(c.node_type);
        for (std::size_t i = 0; i < types.size() && i < 3; ++i) {
            const Plan fewer = plan_with(without(types[i]), question);
            if (!fewer.feasible() || !fewer.candidates.front().doubt.empty()) continue;
            EXPECT_LE(all.candidates.front().prediction.usd.mid, kTie * fewer.candidates.front().prediction.usd.mid)
                << question << "without " << node(types[i]).name;
        }
    }
}

// Half the price of what lost brings it nearer to the first place, or leaves it where it was.
TEST(Choice, ALowerPriceNeverMovesAMachineBack) {
    auto place = [](const Plan& made, int type) {
        for (std::size_t i = 0; i < made.candidates.size(); ++i)
            if (made.candidates[i].node_type == type) return i;
        return made.candidates.size();
    };
    for (const std::string& question : questions()) {
        const Plan before = plan(question);
        for (std::size_t i = 1; i < before.candidates.size() && i < 4; ++i) {
            const int type = before.candidates[i].node_type;
            const Plan after = plan_with(with_price_times(type, 0.5), question);
            EXPECT_LE(place(after, type), place(before, type)) << question << node(type).name;
        }
    }
}

// A later deadline and a larger budget never cost more, as long as the answer is as sure.
TEST(Choice, ALooserLimitNeverCostsMore) {
    const std::string train =
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 20B, sequence: 8192}\nwhere: {regions: [eastus]}\n";
    double least = kInfinity;
    for (int days : {3, 6, 12, 24, 48}) {
        const Plan made = plan(train + fmt::format("objective: {{deadline: {}d}}\n", days));
        if (!made.feasible() || !made.candidates.front().doubt.empty()) continue;
        EXPECT_LE(made.candidates.front().prediction.usd.mid, kTie * least) << days;
        least = std::min(least, made.candidates.front().prediction.usd.mid);
    }
    EXPECT_LT(least, kInfinity);
    const std::string serve =
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 3, prompt_tokens: 800, output_tokens: "
        "200}\nwhere: {regions: [eastus]}\n";
    least = kInfinity;
    for (int ms : {20, 40, 80, 160}) {
        const Plan made = plan(serve + fmt::format("objective: {{latency: {{tpot_p95: {}ms}}}}\n", ms));
        if (!made.feasible() || !made.candidates.front().doubt.empty()) continue;
        EXPECT_LE(made.candidates.front().prediction.usd.mid, kTie * least) << ms;
        least = std::min(least, made.candidates.front().prediction.usd.mid);
    }
    EXPECT_LT(least, kInfinity);
}

// Nor where something speaks against every choice: given out by agreement, several scale sets on one fabric.
TEST(Choice, ALooserLimitNeverCostsMoreAmongWhatIsHardToGet) {
    const Catalog few = testing::catalog_of({"Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4",
                                             "Standard_ND96isr_H200_v5", "Standard_ND128isr_NDR_GB200_v6"});
    const std::string train = "kind: training\nmodel: deepseek-v3\ndata: {tokens: 14.8T, sequence: 4096}\n";
    double least = kInfinity;
    for (int days : {60, 75, 90, 120}) {
        const Plan made = plan_with(few, train + fmt::format("objective: {{deadline: {}d}}\n", days));
        ASSERT_TRUE(made.feasible()) << made.infeasible_because;
        EXPECT_LE(made.candidates.front().prediction.usd.mid, kTie * least) << days;
        least = std::min(least, made.candidates.front().prediction.usd.mid);
    }
}

// A shape that is only a number of parameters is one that can be divided over stages and ranks: with 99 layers and nine
// KV heads 8,192 GPUs waited for a pipeline of 16 stages nine tenths of the time.
TEST(Choice, ABareSizeIsAModelThatPeopleTrain) {
    for (const char* parameters : {"3B", "7B", "20B", "70B", "130B", "175B", "250B", "600B"}) {
        const Workload asked = workload(fmt::format(
            "kind: training\nmodel: {{parameters: {}}}\ndata: {{tokens: 3T, sequence: 8192}}\n", parameters));
        EXPECT_EQ(asked.model.layers % 2, 0) << parameters;
        EXPECT_TRUE(asked.model.kv_heads % 2 == 0 || asked.model.kv_heads == 1) << parameters;
        EXPECT_EQ(asked.model.heads % 4, 0) << parameters;
    }
    const Plan large = plan(
        "kind: training\nmodel: {parameters: 175B}\ndata: {tokens: 3T, sequence: 8192}\nobjective: {minimize: "
        "time}\nwhere: {cloud: aws, sizes: [p5en.48xlarge], gpus: 8192}\n");
    ASSERT_TRUE(large.feasible());
    EXPECT_GT(large.candidates.front().prediction.mfu, 0.3);
}

// The first row is the best that an exhaustive search knows.
TEST(Choice, TheFirstRowIsTheBestOfAll) {
    for (const std::string& question : questions()) {
        const Workload asked = workload(question);
        const PlanOptions options = quick();
        const Context context = make_context(asked, testing::catalog(), options);
        auto some = run_search(context, {});
        auto all = run_search(context, {.exhaustive = true});
        ASSERT_TRUE(some.ok() && all.ok()) << question;
        const Ranking quickly = rank(context, some->points), fully = rank(context, all->points);
        ASSERT_FALSE(quickly.groups.empty()) << question;
        const Option &a = quickly.groups.front(), &b = fully.groups.front();
        EXPECT_EQ(fmt::format("{} x {} {} {}", a.nodes, a.name, a.region, a.doubts),
                  fmt::format("{} x {} {} {}", b.nodes, b.name, b.region, b.doubts))
            << question;
        EXPECT_EQ(score(a, asked.objective.minimize), score(b, asked.objective.minimize)) << question;
    }
}

// A device that nobody measured at this kind of work has the widest interval, is not first, and its saving is told;
// who names it gets it, without a made-up chance to keep the limits.
TEST(Choice, UnmeasuredDevicesAreNotFirstUnlessNamed) {
    const std::string train =
        "kind: training\nmodel: llama-3-8b\ndata: {tokens: 20B, sequence: 8192}\nobjective: {deadline: 14d}\n";
    const Plan made = plan(train);
    ASSERT_TRUE(made.feasible());
    EXPECT_TRUE(made.candidates.front().measured);
    EXPECT_GE(made.candidates.front().measured_rows, 10);
    const Plan named = plan(train + "where: {accelerators: [mi300x]}\n");
    ASSERT_TRUE(named.feasible()) << named.infeasible_because;
    const Candidate& amd = named.candidates.front();
    EXPECT_FALSE(amd.measured);
    EXPECT_GT(amd.prediction.hours.high / amd.prediction.hours.mid,
              made.candidates.front().prediction.hours.high / made.candidates.front().prediction.hours.mid);
    for (const std::string& reason : named.reasons) EXPECT_EQ(reason.find("is kept with"), std::string::npos) << reason;
    EXPECT_NE(testing::advice(named, "no-measured-row"), nullptr);
    if (amd.prediction.usd.mid < made.candidates.front().prediction.usd.mid) {
        const Advice* told = testing::advice(made, "passed-over-unmeasured");
        ASSERT_NE(told, nullptr);
        EXPECT_NE(told->text.find("% less"), std::string::npos);
    }
}

// Sixteen thousand GPUs: an InfiniBand size over several scale sets, and no gang of small Ethernet machines that waits
// for years.
TEST(Choice, LargeSystemsArePlanned) {
    const Plan made = plan(
        "kind: training\nmodel: llama-3.1-405b\ndata: {tokens: 15.6T, sequence: 8192}\nobjective: {minimize: time}\n"
        "where: {cloud: azure, gpus: 16384}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    const Candidate& first = made.candidates.front();
    EXPECT_TRUE(is_rdma(node(first.node_type))) << testing::size(first);
    EXPECT_GT(first.prediction.mfu, 0.04);
    EXPECT_NE(testing::advice(made, "ib-scale-set-limit"), nullptr);
    const Rejection* ethernet = testing::rejection(made, "Standard_NC80adis_H100_v5", Reason::no_rdma);
    ASSERT_NE(ethernet, nullptr);
    EXPECT_GT(ethernet->need, 0.5);
}

// A number of GPUs that nothing divides comes with the nearest one that does.
TEST(Choice, GpusThatDivideBadlyHaveANumberThatDoes) {
    const Plan made = plan(
        "kind: training\nmodel: {parameters: 2T, experts: 128, active_experts: 8}\ndata: {tokens: 30T, sequence: "
        "8192}\n"
        "where: {cloud: azure, gpus: 100000, accelerators: [h100]}\n");
    ASSERT_FALSE(made.feasible());
    ASSERT_FALSE(made.nearest.empty());
    EXPECT_NE(made.nearest.front().why_not_first.find("gpus: 98304"), std::string::npos)
        << made.nearest.front().why_not_first;
    EXPECT_NE(made.infeasible_because.find("global batch"), std::string::npos) << made.infeasible_because;
}

// Without a deadline, machines or a number of them, nobody waits for years.
TEST(Choice, NoRunOfYears) {
    const Plan made =
        plan("kind: training\nmodel: llama-3-70b\ndata: {tokens: 2T, sequence: 8192}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_LE(made.candidates.front().prediction.hours.mid, 366 * 24);
    const Plan poor =
        plan("kind: training\nmodel: llama-3-70b\ndata: {tokens: 15T, sequence: 8192}\nwhere: {max_nodes: 1}\n");
    EXPECT_FALSE(poor.feasible());
    EXPECT_NE(poor.infeasible_because.find("without a deadline"), std::string::npos) << poor.infeasible_because;
}

// As fast but for a few percent: the cheaper one, where time is what counts.
TEST(Choice, OfTheFastestTheCheapest) {
    const Plan made = plan(
        "kind: training\nmodel: vit-b-16\ndata: {examples: 1281167, epochs: 90}\nobjective: {minimize: time, budget: "
        "3000 "
        "USD}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    const Prediction& first = made.candidates.front().prediction;
    for (const Candidate& c : made.candidates) {
        if (!c.doubt.empty()) continue;
        EXPECT_FALSE(c.prediction.hours.mid <= 1.0001 * first.hours.mid && c.prediction.usd.mid < first.usd.mid)
            << testing::size(c);
        EXPECT_LE(first.hours.mid, 1.25 * c.prediction.hours.mid) << testing::size(c);  // money_most_share
    }
}

// What is given out by agreement is first for nobody who has not named it; what it would save is told.
TEST(Choice, WhatIsGivenOutByAgreementIsNotFirst) {
    const std::string tune =
        "kind: fine-tuning\nmethod: full\nmodel: qwen3-32b\ndata: {tokens: 3B, sequence: 2048}\nobjective: {minimize: "
        "time}\n";
    const Plan made = plan(tune);
    ASSERT_TRUE(made.feasible());
    EXPECT_EQ(testing::first_size(made).find("GB200"), std::string::npos) << testing::first_size(made);
    EXPECT_NE(testing::advice(made, "passed-over-scarce"), nullptr);
    const Plan named = plan(tune + "where: {accelerators: [gb200]}\n");
    ASSERT_TRUE(named.feasible());
    EXPECT_NE(testing::first_size(named).find("GB200"), std::string::npos) << testing::first_size(named);
    EXPECT_NE(testing::advice(named, "hard-to-get"), nullptr);
}

// One LLM over several T4 was measured by nobody, though one T4 was: it is not first where it is cheapest.
TEST(Choice, AModelOverSeveralUnmeasuredDevicesIsNotFirst) {
    const Plan made = plan(
        "kind: inference\nmodel: mixtral-8x7b\ntraffic: {users: 20, prompt_tokens: 1500, output_tokens: 50}\nwhere: "
        "{cloud: aws}\n");
    ASSERT_TRUE(made.feasible());
    EXPECT_EQ(testing::first_size(made).find("g4dn"), std::string::npos) << testing::first_size(made);
    EXPECT_TRUE(made.candidates.front().measured);
}

// Optimizer states on the host are for those who have no other way, or ask.
TEST(Choice, NoOptimizerOnTheHostBesideAMachineThatHoldsIt) {
    const Plan made = plan(
        "kind: fine-tuning\nmethod: full\nmodel: llama-3-70b\ndata: {examples: 40000, sequence: 4096}\nobjective: "
        "{deadline: 3d}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_FALSE(made.candidates.front().layout.offload);
}

// A large model needs GPUs that come with InfiniBand only: those are planned, and no fleet of CPU machines.
TEST(Choice, NoFleetOfCpusForALargeModel) {
    const Plan made = plan(
        "kind: inference\nmodel: kimi-k2\ntraffic: {requests_per_second: 1, prompt_tokens: 1000, output_tokens: "
        "200}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_TRUE(node(made.candidates.front().node_type).has_gpu());
}

// Who works where no price list is known gets a bracket from the list that is, and not a refusal.
TEST(Choice, ARegionWithoutAPriceListHasABracket) {
    const std::string asked =
        "kind: fine-tuning\nmethod: lora\nmodel: mistral-7b\ndata: {examples: 30000, sequence: "
        "2048}\nwhere: {cloud: aws, ";
    const Plan listed = plan(asked + "regions: [us-east-1]}\n"), named = plan(asked + "regions: [eu-central-1]}\n"),
               stays = plan(asked + "residency: eu}\n"), same = plan(asked + "regions: [us-west-2]}\n");
    for (const Plan* one : {&listed, &named, &stays, &same}) ASSERT_TRUE(one->feasible());
    EXPECT_FALSE(listed.candidates.front().price_is_estimate);
    const Candidate& best = named.candidates.front();
    EXPECT_EQ(best.region, "eu-central-1");
    EXPECT_EQ(best.price_is_of, "us-east-1");
    EXPECT_TRUE(best.price_is_estimate);
    EXPECT_GT(best.prediction.usd.mid, listed.candidates.front().prediction.usd.mid);
    EXPECT_GT(best.prediction.usd.high / best.prediction.usd.low,
              listed.candidates.front().prediction.usd.high / listed.candidates.front().prediction.usd.low);
    EXPECT_TRUE(stays.candidates.front().region.starts_with("eu-")) << stays.candidates.front().region;
    EXPECT_DOUBLE_EQ(same.candidates.front().prediction.usd.mid, listed.candidates.front().prediction.usd.mid);
}

}  // namespace
}  // namespace stoker
