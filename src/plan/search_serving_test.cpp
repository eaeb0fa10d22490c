// Inference plans: the cheapest that keeps the limits, whatever rules of thumb say; replicas for the rate.
// Longer than 500 lines because the cases share their few machines and services.
#include "plan/search_serving.h"

#include <fmt/format.h>

#include "plan/context.h"
#include "plan/testing.h"

namespace stoker {
namespace {

using testing::advice;
using testing::first_size;
using testing::node;
using testing::plan;
using testing::plan_of;
using testing::rejection;

Plan small_classifier(std::string_view limit) {
    return plan(
        fmt::format("kind: inference\nmodel: minilm-l6-v2\ntraffic: {{requests_per_second: 20, prompt_tokens: "
                    "64}}\nobjective: {{latency: {{p95: {}}}}}\nwhere: {{regions: [eastus]}}\n",
                    limit));
}

// The rule "CPU first above 50 ms" never made a dearer machine the first, nor refused a cheaper one below it.
TEST(SearchServing, TheFiftyMillisecondRuleDoesNotOverruleTheMoney) {
    for (std::string_view limit : {"51ms", "50ms", "49ms"}) {
        const Plan made = small_classifier(limit);
        ASSERT_TRUE(made.feasible());
        for (const Candidate& c : made.candidates) {
            if (c.doubt.empty()) {
                EXPECT_GE(c.prediction.usd.mid * 1.03, made.candidates.front().prediction.usd.mid) << limit;
            }
        }
    }
}

// One, two and eight GPUs of what LLMs are served on, and what is cheap.
const Catalog& few_machines() {
    static const Catalog few =
        testing::catalog_of({"Standard_NC4as_T4_v3", "Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4",
                             "Standard_NC40ads_H100_v5", "Standard_NC80adis_H100_v5", "Standard_ND96amsr_A100_v4",
                             "Standard_ND96isr_H200_v5", "g6.xlarge", "p5.48xlarge", "a2-ultragpu-1g"});
    return few;
}

const std::vector<std::string>& services() {
    static const std::vector<std::string> all = {
        "model: llama-3-8b\ntraffic: {requests_per_second: 7, prompt_tokens: 900, output_tokens: 300}\n",
        "model: llama-3-70b\ntraffic: {requests_per_second: 3, prompt_tokens: 2500, output_tokens: 350}\n",
        "model: mistral-7b\ntraffic: {concurrency: 150, prompt_tokens: 1500, output_tokens: 500}\n",
        "model: bge-large\ntraffic: {requests_per_second: 170, prompt_tokens: 256}\n"};
    return all;
}
std::string service(const std::string& one, std::string_view objective) {
    const bool sequences = one.find("bge") != std::string::npos;
    return fmt::format("kind: {}\n{}objective: {{{}}}\nwhere: {{regions: [eastus]}}\n",
                       sequences ? "embedding" : "inference", one, objective);
}
std::string limits_of(const std::string& one) {
    return one.find("bge") != std::string::npos ? "latency: {p95: 120ms}"
                                                : "latency: {ttft_p95: 1200ms, tpot_p95: 50ms}";
}

// What comes first keeps the latency limits as surely as was asked for: nobody is sent to machines that keep them with
// 58 %. Who asks for less pays no more.
TEST(SearchServing, TheFirstChoiceKeepsTheLimitsWithTheConfidenceAskedFor) {
    for (const std::string& one : services()) {
        const Plan sure = plan_of(few_machines(), service(one, limits_of(one)));
        ASSERT_TRUE(sure.feasible()) << one;
        EXPECT_TRUE(sure.candidates.front().doubt.empty()) << one << sure.candidates.front().doubt;
        EXPECT_GE(sure.candidates.front().prediction.latency_chance, 0.9) << one;
        const Plan even = plan_of(few_machines(), service(one, limits_of(one) + ", confidence: 0.6"));
        ASSERT_TRUE(even.feasible()) << one;
        EXPECT_LE(even.candidates.front().prediction.usd.mid, 1.03 * sure.candidates.front().prediction.usd.mid) << one;
        for (const Candidate& c : sure.candidates) {
            // Fewer machines to get and to run may cost a little more (TieRules).
            if (!c.doubt.empty() || c.nodes > sure.candidates.front().nodes) continue;
            EXPECT_LE(sure.candidates.front().prediction.usd.mid, 1.03 * c.prediction.usd.mid) << one;
        }
    }
}

// Where the money allows only machines that may miss the limits, they are planned, and the doubt is said.
TEST(SearchServing, ABudgetBuysWhatItCanAndSaysHowSure) {
    const std::string one =
        "model: llama-3-70b\ntraffic: {requests_per_second: 3, prompt_tokens: 2500, output_tokens: "
        "350}\nprecision: bf16\n";
    const Plan sure = plan_of(few_machines(), service(one, limits_of(one)));
    ASSERT_TRUE(sure.feasible());
    const double month = sure.candidates.front().prediction.usd.mid * 730;
    bool bought = false;
    for (const double share : {0.95, 0.9, 0.85, 0.8, 0.75, 0.7}) {
        const Plan tight =
            plan_of(few_machines(), service(one, limits_of(one) + fmt::format(", budget: ${:.0f}", share * month)));
        if (!tight.feasible()) continue;
        const Candidate& first = tight.candidates.front();
        EXPECT_LE(first.prediction.usd.mid * 730, share * month * 1.001) << share;
        if (first.prediction.latency_chance >= 0.9) continue;
        bought = true;
        EXPECT_FALSE(first.doubt.empty()) << share;
    }
    EXPECT_TRUE(bought);
}

// The work of a search is bounded by decisions of the simulated engines, whatever the lengths: 12 requests/s with 900
// tokens out under a sliding window once took seconds.
TEST(SearchServing, LongAnswersAreSearchedWithLittleWork) {
    for (const std::string& one :
         {std::string(
              "model: mistral-7b\ntraffic: {requests_per_second: 12, prompt_tokens: 6000, output_tokens: 900}\n"),
          std::string(
              "model: mistral-7b\ntraffic: {requests_per_second: 2, prompt_tokens: 500, output_tokens: 6000}\n"),
          std::string("model: llama-3-70b\ntraffic: {concurrency: 500, prompt_tokens: 1000, output_tokens: 2000}\n")}) {
        const Workload asked = testing::workload("kind: inference\n" + one);
        const PlanOptions options = testing::quick();
        const Context context = make_context(asked, testing::catalog(), options);
        auto search = search_serving(context, {});
        ASSERT_TRUE(search.ok());
        EXPECT_FALSE(search->points.empty());
        EXPECT_GT(search->simulated, 1000);
        EXPECT_LT(search->simulated, 6'000'000) << one;
    }
}

// 70B is not for CPUs: the refusal carries the bytes and the predicted latency.
TEST(SearchServing, SeventyBillionOnCpuIsRefusedWithNumbers) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-70b\nprecision: bf16\ntraffic: {requests_per_second: 0.2, prompt_tokens: 300, "
        "output_tokens: 100}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_TRUE(node(made.candidates.front().node_type).has_gpu());
    const Rejection* line = rejection(made, "Standard_D16s_v5", Reason::memory);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("GiB"), std::string::npos);
    EXPECT_NE(line->text.find("predicted"), std::string::npos);
}

// 7B in INT8 starts on a T4; 13B in FP16 does not fit one, with the arithmetic against what is usable.
TEST(SearchServing, StartsOnT4WhereTheModelFits) {
    const Plan seven = plan(
        "kind: inference\nmodel: llama-2-7b\nprecision: int8\ntraffic: {requests_per_second: 0.2, prompt_tokens: 300, "
        "output_tokens: 100}\nwhere: {regions: [eastus]}\n");
    EXPECT_EQ(first_size(seven), "Standard_NC4as_T4_v3");
    ASSERT_NE(advice(seven, "t4-first"), nullptr);
    EXPECT_NE(advice(seven, "t4-first")->text.find("A100"), std::string::npos);
    const Plan thirteen = plan(
        "kind: inference\nmodel: llama-2-13b\nprecision: fp16\ntraffic: {requests_per_second: 0.2, prompt_tokens: 300, "
        "output_tokens: 100}\nwhere: {regions: [eastus]}\n");
    EXPECT_NE(first_size(thirteen), "Standard_NC4as_T4_v3");
    const Rejection* line = rejection(thirteen, "Standard_NC4as_T4_v3", Reason::memory);
    ASSERT_NE(line, nullptr);
    EXPECT_LT(line->have, 15.5 * kGiB);
    EXPECT_GT(line->need, 24e9);
}

// InfiniBand is left out for inference where the twin without it is priced in the same region and costs no more; where
// there is no such twin, the size is a candidate like any other.
TEST(SearchServing, LeavesInfiniBandOutOnlyForACheaperTwin) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-70b\nprecision: fp8\ntraffic: {requests_per_second: 12, prompt_tokens: 1500, "
        "output_tokens: 300}\nobjective: {latency: {ttft_p95: 800ms, tpot_p95: 50ms}}\nwhere: {regions: [eastus], "
        "accelerators: [h100-sxm]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    for (const Candidate& c : made.candidates)  // unless a replica spans nodes, and uses it
        EXPECT_TRUE(!is_rdma(node(c.node_type)) || c.replica.gpus() > node(c.node_type).whole_gpus());
    const Plan h200 = plan(
        "kind: inference\nmodel: llama-3.1-405b\nprecision: fp8\ntraffic: {requests_per_second: 4, prompt_tokens: "
        "2000, output_tokens: 400}\nwhere: {cloud: azure, accelerators: [h100, h200]}\n");
    EXPECT_EQ(first_size(h200), "Standard_ND96isr_H200_v5");
    const Rejection* line = rejection(made, "Standard_ND96isr_H100_v5", Reason::policy_inference_rdma);
    ASSERT_NE(line, nullptr);
    EXPECT_NE(line->text.find("88.488"), std::string::npos) << line->text;
    EXPECT_NE(line->text.find("98.320"), std::string::npos) << line->text;
    EXPECT_EQ(made.candidates.front().prediction.bottleneck, Bottleneck::memory_bandwidth);
}

// More requests take more replicas, and one may always be lost.
TEST(SearchServing, ReplicasGrowWithTheRate) {
    int last = 0;
    for (double rate : {1.0, 20.0, 80.0}) {
        const Plan made = plan(fmt::format(
            "kind: inference\nmodel: llama-3-8b\nprecision: bf16\ntraffic: {{requests_per_second: {}, prompt_tokens: "
            "1000, output_tokens: 200}}\nwhere: {{regions: [eastus], sizes: [Standard_NC24ads_A100_v4]}}\n",
            rate));
        ASSERT_TRUE(made.feasible());
        const Candidate& c = made.candidates.front();
        EXPECT_GE((c.replicas - 1) * c.prediction.knee_requests_per_s, rate * 0.999);
        EXPECT_GT(c.replicas, last);
        last = c.replicas;
    }
}

// Price per request is price per second over sustained requests per second.
TEST(SearchServing, CostPerUnitIsPriceOverSustainedThroughput) {
    const Plan made = plan_of(
        few_machines(),
        "kind: inference\nmodel: llama-3-8b\nprecision: bf16\ntraffic: {requests_per_second: 5, prompt_tokens: 1000, "
        "output_tokens: 200}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    const Candidate& c = made.candidates.front();
    const double per_second = c.node_per_hour.dollars() / 3600 * c.nodes;
    EXPECT_NEAR(c.prediction.usd_per_unit.mid, 1e6 * per_second / (c.prediction.knee_requests_per_s * c.replicas * 200),
                1e-6 * c.prediction.usd_per_unit.mid);
}

// Four models are held by one VM with four T4.
TEST(SearchServing, SeveralModelsShareOneVm) {
    const Plan made = plan(
        "kind: inference\nmodel: resnet-50\nmodels_served: 4\ntraffic: {requests_per_second: 100}\nobjective: "
        "{latency: {p95: 40ms}}\nwhere: {regions: [eastus], sizes: [Standard_NC64as_T4_v3]}\n");
    EXPECT_EQ(first_size(made), "Standard_NC64as_T4_v3");
    bool packing = false;
    for (const PlanNote& note : made.candidates.front().notes) packing |= note.kind == NoteKind::packing;
    EXPECT_TRUE(packing);
}

// Impossible latency: the plan says so and shows what comes nearest with more of it, and never answers after hours.
TEST(SearchServing, NearestWithWiderLatencyLimits) {
    const Plan made = plan(
        "kind: inference\nmodel: llama-3-70b\nprecision: bf16\ntraffic: {requests_per_second: 1, prompt_tokens: 8000, "
        "output_tokens: 300}\nobjective: {latency: {ttft_p95: 1ms, tpot_p95: 1ms}}\nwhere: {regions: [eastus]}\n");
    EXPECT_FALSE(made.feasible());
    EXPECT_NE(made.infeasible_because, "");
    ASSERT_FALSE(made.nearest.empty());
    EXPECT_NE(made.nearest.front().why_not_first.find("latency limits 1000 x as wide"), std::string::npos);
}

// Stages shorten no answer: they are taken where a tensor group does not hold the model, and no more than hold it.
TEST(SearchServing, PipelinesOnlyWhereTheTensorGroupDoesNotHoldTheModel) {
    const auto asked = [](std::string_view model, std::string_view precision, std::string_view size) {
        return plan(
            fmt::format("kind: inference\nmodel: {}\nprecision: {}\ntraffic: {{concurrency: 300, prompt_tokens: "
                        "1500, output_tokens: 300}}\nwhere: {{sizes: [{}]}}\n",
                        model, precision, size));
    };
    for (const Candidate& c : asked("llama-3-70b", "bf16", "Standard_NC96ads_A100_v4").candidates)
        EXPECT_EQ(c.replica.pipeline, 1) << c.replica.text();
    for (const Candidate& c : asked("llama-3.1-405b", "bf16", "Standard_ND96isr_H100_v5").candidates)
        EXPECT_EQ(c.replica.pipeline, 2) << c.replica.text();
}

// Images behind a router that knows who is idle: three a second, each two seconds of a GPU, are no hundred GPUs.
TEST(SearchServing, ReplicasThatAnswerInBatchesShareOneQueue) {
    const Plan made = plan(
        "kind: inference\nmodel: stable-diffusion-xl\ntraffic: {requests_per_second: 3}\nobjective: {latency: {p95: "
        "4s}, survive_one_replica_lost: false}\nwhere: {sizes: [Standard_NC40ads_H100_v5]}\n");
    ASSERT_TRUE(made.feasible());
    const Candidate& first = made.candidates.front();
    EXPECT_LT(first.replicas, 30);
    EXPECT_GT(first.replicas, 3);
    EXPECT_LT(first.prediction.ttft_p95_s.mid, 4);
}

// Nobody waits for ever because nobody said how long: a classifier's answer has a limit, too.
TEST(SearchServing, WhatAnswersAtOnceHasALimitWithoutBeingAsked) {
    const Plan made =
        plan("kind: inference\nmodel: bert-large\ntraffic: {requests_per_second: 1}\nwhere: {regions: [eastus]}\n");
    ASSERT_TRUE(made.feasible());
    EXPECT_LT(made.candidates.front().prediction.ttft_p95_s.mid, 1);
}

// So many nodes are so many nodes: they hold the rate, or the plan says what they hold of it; and that the model does
// not fit one GPU is not the reason where eight hold it.
TEST(SearchServing, PinnedNodesHoldTheRateOrSayWhatTheyHold) {
    const auto asked = [](double rate, std::string_view nodes) {
        return plan(fmt::format(
            "kind: inference\nmodel: llama-3-70b\nprecision: bf16\ntraffic: {{requests_per_second: {}, prompt_tokens: "
            "1000, output_tokens: 300}}\nwhere: {{sizes: [Standard_ND96isr_H100_v5], {}}}\n",
            rate, nodes));
    };
    const Plan one = asked(1, "nodes: 1");
    ASSERT_TRUE(one.feasible()) << one.infeasible_because;
    EXPECT_EQ(one.candidates.front().nodes, 1);
    EXPECT_EQ(one.candidates.front().spare_nodes, 0);
    for (const char* limit : {"nodes: 1", "max_nodes: 1"}) {
        const Plan few = asked(60, limit);
        EXPECT_FALSE(few.feasible()) << limit;
        EXPECT_NE(few.infeasible_because.find("one node holds"), std::string::npos) << few.infeasible_because;
        EXPECT_NE(few.infeasible_because.find("of 60 asked"), std::string::npos) << few.infeasible_because;
        ASSERT_FALSE(few.nearest.empty());
        EXPECT_GT(few.nearest.front().nodes, 1);
    }
    EXPECT_EQ(asked(1, "max_nodes: 1").candidates.front().nodes, 1);
    EXPECT_EQ(asked(1, "max_nodes: 2").candidates.front().nodes, 2);
    EXPECT_EQ(asked(60, "nodes: 12").candidates.front().nodes, 12);
    EXPECT_EQ(asked(60, "nodes: 12").candidates.front().replica.pipeline, 1);
}

std::string closed(std::string_view traffic, std::string_view where) {
    return fmt::format(
        "kind: inference\nmodel: llama-2-7b\nprecision: fp16\ntraffic: {{{}, prompt_tokens: 1000, output_tokens: "
        "300}}\nwhere: {{{}}}\n",
        traffic, where);
}

// Property: what is asked, and the answer for a size, do not depend on which other machines are searched.
TEST(SearchServing, TheLoadDoesNotDependOnTheSearch) {
    for (const char* traffic : {"concurrency: 64", "users: 2000, think_time: 30s", "requests_per_second: 9"}) {
        const Plan many = plan_of(few_machines(), closed(traffic, "cloud: any"));
        ASSERT_TRUE(many.feasible());
        for (const Candidate& c : many.candidates) {
            const Plan alone =
                plan(closed(traffic, fmt::format("cloud: {}, sizes: [{}]", node(c.node_type).cloud, testing::size(c))));
            ASSERT_TRUE(alone.feasible()) << testing::size(c);
            const Candidate& same = alone.candidates.front();
            EXPECT_EQ(same.nodes, c.nodes) << testing::size(c) << " " << traffic;
            EXPECT_EQ(same.replicas, c.replicas) << testing::size(c);
            EXPECT_EQ(same.prediction.requests_per_s, c.prediction.requests_per_s) << testing::size(c);
        }
    }
}

// Clients wait: with limits that allow it one GPU carries all of them, and more clients never take fewer replicas.
TEST(SearchServing, ClientsMayWait) {
    const auto clients = [](int n, std::string_view limits) {
        return plan(fmt::format(
            "kind: inference\nmodel: llama-2-7b\nprecision: fp16\ntraffic: {{concurrency: {}, prompt_tokens: 2048, "
            "output_tokens: 128}}\nobjective: {{latency: {{{}}}, survive_one_replica_lost: false}}\nwhere: {{sizes: "
            "[Standard_NC24ads_A100_v4]}}\n",
            n, limits));
    };
    EXPECT_EQ(clients(32, "ttft_p95: 600s, tpot_p95: 10s").candidates.front().replicas, 1);
    int last = 0;
    for (int n : {8, 64, 512}) {
        const Candidate c = clients(n, "ttft_p95: 1s, tpot_p95: 60ms").candidates.front();
        EXPECT_GE(c.replicas, last);
        EXPECT_LE(c.prediction.latency.ttft_p95, 1);
        EXPECT_GE(c.prediction.clients_per_replica * c.replicas, n);
        last = c.replicas;
    }
    EXPECT_GT(last, 1);
}

// 500 people are not 500 requests in flight.
TEST(SearchServing, UsersCostLessThanAsManyClients) {
    const std::string where = "sizes: [Standard_NC40ads_H100_v5]";
    const Plan users = plan(closed("users: 2000", where)), clients = plan(closed("concurrency: 2000", where));
    ASSERT_TRUE(users.feasible() && clients.feasible());
    EXPECT_LT(3 * users.candidates.front().nodes, clients.candidates.front().nodes);
}

// No load and so many machines: what they hold, which more machines hold more of.
TEST(SearchServing, TheCapacityQuestion) {
    const auto holds = [](std::string_view where) {
        const Plan made =
            plan(fmt::format("kind: inference\nmodel: llama-3-8b\nprecision: bf16\ntraffic: "
                             "{{prompt_tokens: 1000, output_tokens: 200}}\nwhere: {{{}}}\n",
                             where));
        EXPECT_TRUE(made.feasible()) << made.infeasible_because;
        EXPECT_NE(made.verdict.find("requests/s within the limits"), std::string::npos) << made.verdict;
        return made.candidates.front();
    };
    const Candidate one = holds("sizes: [Standard_NC40ads_H100_v5], nodes: 1"),
                    four = holds("sizes: [Standard_NC40ads_H100_v5], nodes: 4"),
                    gpus = holds("sizes: [Standard_NC40ads_H100_v5], gpus: 4");
    EXPECT_EQ(four.nodes, 4);
    EXPECT_EQ(four.replicas, 4);
    EXPECT_NEAR(four.prediction.requests_per_s, 4 * one.prediction.requests_per_s, 1e-9);
    EXPECT_EQ(gpus.nodes, 4);
    EXPECT_GE(four.prediction.utilisation, 0.999);
    EXPECT_NEAR(four.prediction.usd_per_unit_asked.mid, four.prediction.usd_per_unit.mid,
                0.001 * four.prediction.usd_per_unit.mid);
}

// An image is all of its steps, so half an image a second is work for several GPUs; nothing has tokens there.
TEST(SearchServing, ImagesAreCountedWhole) {
    const auto images = [](std::string_view traffic) {
        return plan(fmt::format("kind: inference\nmodel: stable-diffusion-xl\nprecision: fp16\ntraffic: {{{}}}\n"
                                "objective: {{latency: {{p95: 20s}}}}\nwhere: {{sizes: [Standard_NC24ads_A100_v4]}}\n",
                                traffic))
            .candidates.front();
    };
    const Candidate thirty = images("requests_per_second: 0.5"), ten = images("requests_per_second: 0.5, steps: 10"),
                    bare = images("requests_per_second: 0.5, guidance: false");
    EXPECT_GT(thirty.prediction.latency.e2e_p95, 1);
    EXPECT_LE(thirty.prediction.knee_requests_per_s, 0.5);
    EXPECT_GT(ten.prediction.knee_requests_per_s, 2 * thirty.prediction.knee_requests_per_s);
    EXPECT_GT(bare.prediction.knee_requests_per_s, 1.6 * thirty.prediction.knee_requests_per_s);
    EXPECT_EQ(thirty.prediction.unit_name, "1k images");
    EXPECT_EQ(thirty.prediction.rate_unit, "images");
    EXPECT_EQ(thirty.prediction.tpot_p95_s.mid, 0);
}

// A lightly used machine is dear by the token: the price of the asked load is said beside the one at full load.
TEST(SearchServing, PriceOfTheAskedLoad) {
    const Candidate c =
        plan(closed("requests_per_second: 0.1", "sizes: [Standard_NC24ads_A100_v4]")).candidates.front();
    EXPECT_GT(c.prediction.usd_per_unit_asked.mid, 10 * c.prediction.usd_per_unit.mid);
    EXPECT_NEAR(c.prediction.usd_per_unit_asked.mid, c.node_per_hour.dollars() * c.nodes / (0.1 * 3600 * 300 / 1e6),
                1e-6 * c.prediction.usd_per_unit_asked.mid);
    EXPECT_EQ(c.spare_nodes, 1);
    bool priced = false;
    for (const PlanNote& note : c.notes)
        priced |= note.text.find("survive_one_replica_lost: false") != std::string::npos;
    EXPECT_TRUE(priced);
}

// Being sure of the limits takes a replica more than the middle estimate, and a lost node takes one: one replica is
// both, unless the file asks that the limits be kept as surely when a node is lost.
TEST(SearchServing, WhatIsThereToBeSureIsThereWhenANodeIsLost) {
    const auto nodes = [](std::string_view objective) {
        return plan(fmt::format("kind: inference\nmodel: qwen2.5-72b\nprecision: bf16\n"
                                "traffic: {{requests_per_second: 6, prompt_tokens: 1500, output_tokens: 300}}\n"
                                "objective: {{latency: {{ttft_p95: 1s, tpot_p95: 40ms}}{}}}\n"
                                "layout: {{tensor: 8}}\nwhere: {{sizes: [Standard_ND96isr_H100_v5]}}\n",
                                objective))
            .candidates.front()
            .nodes;
    };
    EXPECT_EQ(nodes(""), nodes(", survive_one_replica_lost: false"));
    EXPECT_EQ(nodes(", survive_one_replica_lost: true"), nodes("") + 1);
}

// A prefix that the cache has is not computed again, and held once.
TEST(SearchServing, ACachedPrefixRaisesWhatAReplicaHolds) {
    const auto holds = [](std::string_view traffic) {
        return plan(closed(traffic, "sizes: [Standard_NC24ads_A100_v4]")).candidates.front().prediction;
    };
    const Prediction without = holds("requests_per_second: 2"),
                     with = holds("requests_per_second: 2, cached_prompt_tokens: 800");
    EXPECT_GT(with.knee_requests_per_s, 1.2 * without.knee_requests_per_s);
    EXPECT_LT(with.ttft_p95_s.mid, without.ttft_p95_s.mid);
}

// Guesses that are mostly right make tokens cheaper, wrong ones dearer.
TEST(SearchServing, SpeculationHelpsWhereGuessesAreRight) {
    const auto tpot = [](std::string_view speculation) {
        return plan(closed("requests_per_second: 1", "sizes: [Standard_NC24ads_A100_v4]") + std::string(speculation))
            .candidates.front()
            .prediction.tpot_p95_s.mid;
    };
    const double plain = tpot("");
    EXPECT_LT(tpot("speculation: {tokens_ahead: 2, acceptance: 0.85}\n"), 0.7 * plain);
    EXPECT_GT(tpot("speculation: {tokens_ahead: 2, acceptance: 0, draft_parameters: 1B}\n"), plain);
}

// Mixtures are also tried with data parallel attention, whose ranks do not all hold the same latent cache.
TEST(SearchServing, MixturesWithDataParallelAttention) {
    const auto holds = [](std::string_view layout) {
        return plan(
            fmt::format("kind: inference\nmodel: deepseek-v3\nprecision: fp8\ntraffic: {{prompt_tokens: 4000, "
                        "output_tokens: 500}}\nobjective: {{latency: {{ttft_p95: 10s, tpot_p95: 100ms}}}}\n"
                        "where: {{cloud: any, sizes: [Standard_ND96isr_H200_v5], nodes: 1}}\n{}",
                        layout));
    };
    const Plan free = holds(""), pinned = holds("layout: {tensor: 8}\n");
    ASSERT_TRUE(free.feasible()) << free.infeasible_because;
    ASSERT_TRUE(pinned.feasible()) << pinned.infeasible_because;
    EXPECT_GT(free.candidates.front().replica.data, 1) << free.candidates.front().replica.text();
    EXPECT_GT(free.candidates.front().prediction.requests_per_s, pinned.candidates.front().prediction.requests_per_s);
    EXPECT_EQ((ReplicaShape{.tensor = 8, .pipeline = 2}).text(), "tensor parallel 8, pipeline of 2 stages");
}

// FP8 is weight-only on an A100, and the plan says so; no engine keeps it on a T4, and the refusal says what would.
TEST(SearchServing, FormatsAreOfferedWhereTheStackRunsThem) {
    const std::string text = "kind: inference\nmodel: mistral-7b\nprecision: fp8\ntraffic: {requests_per_second: 1}\n";
    const Plan t4 = testing::plan(text + "where: {sizes: [Standard_NC4as_T4_v3]}\n");
    EXPECT_FALSE(t4.feasible());
    const Rejection* refused = testing::rejection(t4, "Standard_NC4as_T4_v3", Reason::precision_unsupported);
    ASSERT_NE(refused, nullptr);
    EXPECT_NE(refused->text.find("T4 has no fp8 units; "), std::string::npos) << refused->text;
    const Plan a100 = testing::plan(text + "where: {sizes: [Standard_NC24ads_A100_v4]}\n");
    ASSERT_TRUE(a100.feasible());
    bool said = false;
    for (const PlanNote& note : a100.candidates.front().notes) said |= note.text.starts_with("weight-only fp8");
    EXPECT_TRUE(said && a100.candidates.front().weight_only);
}

// Without a precision a T4 serves in fp16, and what follows the choice speaks of it.
TEST(SearchServing, APlanSpeaksOfThePrecisionThatItTook) {
    const Plan made = testing::plan(
        "kind: inference\nmodel: llama-3.2-3b\ntraffic: {requests_per_second: 0.2, prompt_tokens: 200, output_tokens: "
        "50}\n"
        "where: {sizes: [Standard_NC4as_T4_v3]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_EQ(made.candidates.front().precision, Precision::fp16);
    EXPECT_EQ(made.workload.precision, Precision::fp16);
    bool said = false;
    for (const std::string& line : made.workload.assumptions)
        said |= line == "precision fp16, since none is given and T4 has no BF16 units";
    EXPECT_TRUE(said);
}

// Prompts that take seconds wait for one another: behind a router that knows who is busy a fleet needs fewer replicas
// than where each has a random share, and never more; the limits are kept as surely.
TEST(SearchServing, ARouterSavesReplicasWherePromptsAreLong) {
    const std::string asked =
        "kind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 0.4, prompt_tokens: 60000, output_tokens: "
        "300}\nobjective: {survive_one_replica_lost: false}\n";
    const Plan made = plan_of(few_machines(), asked);
    ASSERT_TRUE(made.feasible());
    const Candidate& first = made.candidates.front();
    ASSERT_GT(first.replicas, 1);
    EXPECT_GE(first.prediction.latency_chance, 0.9);
    // Each by itself under the same load carries less than its share of the whole.
    const Workload workload = testing::workload(asked);
    const auto setup = make_serving_setup(workload, few_machines(), make_device(few_machines(), first.node_type));
    ASSERT_TRUE(setup.ok());
    const double alone = sustained_rate(*setup, first.replica, workload.objective.latency, 1.3);
    EXPECT_LT(alone * first.replicas, 0.4);
    bool said = false;
    for (const std::string& line : made.workload.assumptions) said |= line.find("least to do") != std::string::npos;
    EXPECT_TRUE(said);
}

// What answers in batches has idle moments to spare where there are many: a large fleet is busier than a small one.
TEST(SearchServing, ManyThatAnswerInBatchesAreBusierThanFew) {
    const auto busy = [](std::string_view rate) {
        const Plan made = plan_of(few_machines(),
                                  "kind: inference\nmodel: stable-diffusion-xl\ntraffic: "
                                  "{requests_per_second: " +
                                      std::string(rate) +
                                      "}\nobjective: {survive_one_replica_lost: false}\nwhere: "
                                      "{sizes: [Standard_NC40ads_H100_v5]}\n");
        EXPECT_TRUE(made.feasible());
        const Candidate& first = made.candidates.front();
        return first.prediction.requests_per_s / first.replicas;
    };
    EXPECT_GT(busy("12"), 1.1 * busy("0.5"));
}

// DeepSeek fits one machine of eight H200, or two of A100 for a little less: one machine a replica is what people run.
TEST(SearchServing, AReplicaOnOneMachineComesBeforeALittleCheaperOneOverTwo) {
    const Catalog machines = testing::catalog_of({"p4de.24xlarge", "p5en.48xlarge"});
    const Plan made = plan_of(machines,
                              "kind: inference\nmodel: deepseek-r1\ntraffic: {requests_per_second: 0.2, prompt_tokens: "
                              "2000, output_tokens: 1000}\nwhere: {cloud: aws}\n");
    ASSERT_TRUE(made.feasible());
    EXPECT_EQ(first_size(made), "p5en.48xlarge");
    const auto slower = std::find_if(made.foregone.begin(), made.foregone.end(),
                                     [](const Foregone& one) { return one.id == "slower"; });
    ASSERT_NE(slower, made.foregone.end());
    EXPECT_NE(slower->why.find("one machine holds a replica"), std::string::npos) << slower->why;
}

}  // namespace
}  // namespace stoker
