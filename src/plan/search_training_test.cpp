// Pruning loses nothing: the bounded search shows what the exhaustive one shows.
#include "plan/search_training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

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
                      .global_batch = 512,
                      .exact_batch = false};  // no division of 96 shares 512 evenly
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

// 48 ranks cannot make a batch of 512: refused where another number of machines can, else an eighth of slack.
TEST(Layouts, RoundTheGlobalBatchOnlyWhereNothingSharesIt) {
    ParallelLayout layout;
    layout.data = 48;
    LayoutSpace space{.global_batch = 512};
    EXPECT_FALSE(fit_batch(layout, 1, space));
    space.exact_batch = false;
    EXPECT_TRUE(fit_batch(layout, 1, space));
    EXPECT_EQ(layout.micro_batches, 11);
    EXPECT_FALSE(fit_batch(layout, 8, space));
}

// Data x micro-batch x accumulation is the batch, for every division and micro-batch of every number of devices.
TEST(Layouts, TheBatchThatWasAskedForIsTheBatch) {
    for (const double batch : {1.0, 7.0, 96.0, 100.0, 256.0, 500.0, 976.0, 1024.0, 4096.0})
        for (const int devices : {1, 2, 6, 8, 24, 36, 64, 96}) {
            LayoutSpace space{.devices = devices,
                              .devices_per_node = 8,
                              .domain = 8,
                              .layers = 36,
                              .heads = 32,
                              .kv_heads = 8,
                              .sequence = 4096,
                              .global_batch = batch};
            const Divisions all = divisions(space);
            EXPECT_EQ(all.layouts.empty(), !shares_batch(space)) << batch << " over " << devices;
            for (ParallelLayout layout : all.layouts)
                for (const int micro : micro_batches(space, layout)) {
                    // Interleaving takes micro-batches in groups as long as the pipeline.
                    const bool fits = fit_batch(layout, micro, space);
                    ASSERT_TRUE(fits || layout.virtual_stages > 1);
                    if (!fits) continue;
                    EXPECT_DOUBLE_EQ(layout.global_batch(), batch);
                    EXPECT_TRUE(layout.virtual_stages == 1 || layout.micro_batches % layout.pipeline == 0);
                }
        }
}

// Whatever divides the layers of a stage is a depth of interleaving, up to the six of MegaScale.
TEST(Layouts, InterleaveAsTheLayersDivide) {
    LayoutSpace space{.devices = 64,
                      .devices_per_node = 8,
                      .domain = 8,
                      .layers = 96,
                      .heads = 64,
                      .kv_heads = 64,
                      .sequence = 2048,
                      .global_batch = 256};
    space.pinned.tensor = 8;
    space.pinned.pipeline = 8;
    std::set<int> depths;
    for (const ParallelLayout& layout : divisions(space).layouts) depths.insert(layout.virtual_stages);
    EXPECT_EQ(depths, (std::set<int>{1, 2, 3, 4, 6}));
    space.pinned.virtual_stages = 6;
    EXPECT_FALSE(divisions(space).layouts.empty());
    space.pinned.virtual_stages = 5;
    EXPECT_TRUE(divisions(space).layouts.empty());
}

// Simple layouts before odd ones that are hardly faster: what people can start today.
TEST(SearchTraining, LayoutsAreTheOnesThatPeopleRun) {
    // A node with fast links holds it: nobody stacks the layers of an 8B in a pipeline there.
    for (const std::string_view model : {"llama-3-8b", "llama-2-13b"}) {
        for (const std::string_view kind :
             {"kind: training\ndata: {tokens: 5B, sequence: 4096}\n",
              "kind: fine-tuning\nmethod: full\ndata: {examples: 50000, sequence: 2048}\n"}) {
            const Plan made = testing::plan(
                fmt::format("{}model: {}\nwhere: {{sizes: [Standard_ND96isr_H100_v5], nodes: 1}}\n", kind, model));
            ASSERT_TRUE(made.feasible()) << model << made.infeasible_because;
            EXPECT_EQ(made.candidates.front().layout.pipeline, 1) << model << kind;
            EXPECT_EQ(made.candidates.front().layout.virtual_stages, 1) << model << kind;
        }
    }
    const Plan large = testing::plan(
        "kind: training\nmodel: llama-3-70b\ndata: {tokens: 100B, sequence: 8192}\nwhere: {sizes: "
        "[Standard_ND96isr_H100_v5], nodes: 64}\n");
    ASSERT_TRUE(large.feasible());
    EXPECT_LE(large.candidates.front().layout.virtual_stages, 6);
}

// Who trains for an hour was told to set up Megatron for 86 cents: a stack of its own has to save what that takes.
TEST(SearchTraining, AStackOfItsOwnIsForRunsThatPayForIt) {
    LayoutSpace space;
    space.devices = 8, space.simpler_share = 0.05, space.simpler_most = 0.08;
    ParallelLayout plain, cut;
    plain.data = 8, plain.zero = 2;
    cut.tensor = 2, cut.data = 4;
    const double small = oddness(space, cut, 1);
    space.set_up_device_s = 8, space.set_up_most = 0.3;
    EXPECT_DOUBLE_EQ(oddness(space, plain, 1), 1);
    EXPECT_DOUBLE_EQ(oddness(space, cut, 1), 1.3);      // as much again as an example takes: no more than this
    EXPECT_DOUBLE_EQ(oddness(space, cut, 10), 1.1);     // a tenth of it
    EXPECT_DOUBLE_EQ(oddness(space, cut, 1e4), small);  // months: nothing of its own

    const Plan hour = testing::plan(
        "kind: training\nmodel: {parameters: 7B}\ndata: {tokens: 50M, sequence: 4096}\nwhere: "
        "{sizes: [Standard_NC80adis_H100_v5], nodes: 1}\n");
    ASSERT_TRUE(hour.feasible());
    const Candidate& c = hour.candidates.front();
    EXPECT_EQ(c.framework, "fsdp");
    EXPECT_EQ(c.layout.tensor, 1);
    const auto told = std::find_if(c.notes.begin(), c.notes.end(),
                                   [](const PlanNote& note) { return note.kind == NoteKind::simpler; });
    ASSERT_NE(told, c.notes.end());
    EXPECT_NE(told->text.find("under Megatron would take"), std::string::npos) << told->text;
}

// A large mixture is cut as the published runs cut it: experts over the ranks of an NVLink domain or more, no ZeRO-3
// beside them, and modules recomputed rather than whole layers where that is enough.
TEST(SearchTraining, MixturesAreCutAsTheyAreTrained) {
    const Plan made = testing::plan(
        "kind: training\nmodel: deepseek-v3\ndata: {tokens: 14.8T, sequence: 4096}\nobjective: {deadline: "
        "120d}\nwhere: "
        "{sizes: [Standard_ND128isr_NDR_GB200_v6]}\n");
    ASSERT_TRUE(made.feasible());
    const Candidate& c = made.candidates.front();
    EXPECT_GE(c.layout.expert, 8);
    EXPECT_LE(c.layout.zero, 1);
    EXPECT_NE(c.layout.recompute, Recompute::full);
    EXPECT_EQ(c.framework, "megatron");
    // NVIDIA's 256 GB200 reach 0.25 of the FP8 peak (Megatron-Bridge 26.08, T00218), and forced balance helps them.
    EXPECT_GT(c.prediction.mfu, 0.15);
    EXPECT_LT(c.prediction.mfu, 0.26);
}

// Without a framework in the file, optimizer states go to the host where a stack does that: in DeepSpeed, beside which
// nothing cuts the model.
TEST(SearchTraining, StatesOnTheHostAreDeepSpeeds) {
    const Plan made = testing::plan(
        "kind: fine-tuning\nmethod: full\nmodel: llama-3-8b\ndata: {tokens: 10M, sequence: 2048}\nwhere: {sizes: "
        "[Standard_NC64as_T4_v3], nodes: 1}\n");
    for (const Candidate& c : made.candidates)
        if (c.layout.offload) {
            EXPECT_EQ(c.layout.tensor, 1);
            EXPECT_EQ(c.framework, "deepspeed");
        }
}

// Every training among the examples is planned with the batch that it asks for, or says which it takes.
TEST(SearchTraining, ExamplesKeepTheirBatch) {
    int trainings = 0;
    for (const auto& entry : std::filesystem::directory_iterator(STOKER_SOURCE_DIR "/examples")) {
        if (entry.path().extension() != ".yaml") continue;
        std::ifstream in(entry.path());
        const std::string text((std::istreambuf_iterator<char>(in)), {});
        auto document = Document::parse_yaml(text, entry.path().filename().string());
        if (!document) continue;
        const auto read = read_workload(*document, testing::catalog(), {});
        if (!read || !is_training(read->kind)) continue;
        const Plan made = testing::plan(*read);
        if (!made.feasible()) continue;
        ++trainings;
        for (const Candidate& candidate : made.candidates) {
            const bool exact = std::abs(candidate.layout.global_batch() - *read->batch.global_examples) < 0.5;
            const bool said = std::any_of(candidate.notes.begin(), candidate.notes.end(), [](const PlanNote& note) {
                return note.text.find("global batch") != std::string::npos;
            });
            EXPECT_TRUE(exact || said) << entry.path() << ": " << candidate.layout.global_batch();
        }
    }
    EXPECT_GE(trainings, 4);
}

// A batch that no number of the machines can make is the nearest, and the plan says so.
TEST(SearchTraining, ABatchThatCannotBeSharedIsSaid) {
    const Plan made = testing::plan(
        "kind: fine-tuning\nmodel: llama-3-8b\nmethod: lora\ndata: {examples: 50k, sequence: 2048}\n"
        "batch: {global_examples: 100}\nwhere: {sizes: [Standard_ND96isr_H100_v5]}\n");
    ASSERT_TRUE(made.feasible()) << made.infeasible_because;
    EXPECT_NE(made.candidates.front().layout.global_batch(), 100);
    EXPECT_TRUE(std::any_of(made.workload.assumptions.begin(), made.workload.assumptions.end(),
                            [](const std::string& line) { return line.find("instead of 100") != std::string::npos; }));
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

// A middle above every published MFU is a record that nobody is promised: its time is that of the record.
TEST(SearchTraining, NoStepIsToldShorterThanTheBestPublishedMfuMakesIt) {
    const Catalog few = testing::catalog_of({"Standard_ND96amsr_A100_v4", "Standard_ND96asr_v4"});
    const auto most = [](std::string_view name) { return testing::catalog().constant(name)->value; };
    for (const std::string_view model : {"vit-h-14", "vit-l-16", "vit-b-16"}) {
        const Plan plan = testing::plan_of(
            few, fmt::format("kind: training\nmodel: {}\ndata: {{examples: 1281167, epochs: 90}}\n", model));
        ASSERT_TRUE(plan.feasible());
        for (const Candidate& c : plan.candidates)
            EXPECT_LE(c.prediction.mfu, most("mfu_most_16_ampere_vision") + 1e-9) << model;
    }
    const Plan plan = testing::plan_of(few,
                                       "kind: training\nmodel: 13B\nframework: megatron\ndata: {tokens: 260B, "
                                       "sequence: 4096}\nwhere: {nodes: 10}\n");
    ASSERT_TRUE(plan.feasible());
    const Prediction& p = plan.candidates.front().prediction;
    EXPECT_LE(p.mfu, most("mfu_most_16_ampere_megatron") + 1e-9);
    double seconds = 0;
    for (const double term : p.seconds) seconds += term;
    EXPECT_NEAR(seconds, p.step_s.mid, 1e-6 * seconds);
}

// Who is told to cut a model in two for the kernels of the stack that cuts pays for exchange that nobody needs.
TEST(SearchTraining, TheStackThatCutsIsTriedWithoutACut) {
    const Plan made = testing::plan(
        "kind: training\nmodel: smollm2-1.7b\ndata: {tokens: 600B, sequence: 4096}\nbatch: {global_tokens: 2M}\n"
        "where: {cloud: gcp, sizes: [a3-ultragpu-8g], nodes: 2}\n");
    ASSERT_TRUE(made.feasible());
    const Candidate& best = made.candidates.front();
    EXPECT_EQ(best.framework, "megatron");
    EXPECT_EQ(best.layout.tensor, 1);
    EXPECT_EQ(best.layout.pipeline, 1);
    EXPECT_EQ(best.layout.data, 16);
}

// Where memory is what limits, and nothing but model parallelism divides the states, the fewest devices of one model
// are as many as hold them: need by usable memory, rounded up to a product of degrees that can be. States on the host
// make do with fewer, and are no reason to call that the answer.
TEST(SearchTraining, TheFewestDevicesOfOneModelHoldItsStates) {
    for (const auto& [model, nodes] : {std::pair("llama-2-13b", 1), std::pair("llama-2-70b", 4)}) {
        double fewest = kInfinity, need = 0, usable = 0;
        for (const int tensor : {1, 2, 4, 8})
            for (const int pipeline : {1, 2, 4, 5, 8}) {
                const Workload asked = testing::workload(fmt::format(
                    "kind: training\nmodel: {}\ndata: {{tokens: 1B, sequence: 512}}\nbatch: {{global_examples: 64}}\n"
                    "layout: {{tensor: {}, pipeline: {}, zero: 0, micro_batch: 1, recompute: full, offload: false}}\n"
                    "where: {{sizes: [Standard_ND96amsr_A100_v4], nodes: {}}}\n",
                    model, tensor, pipeline, nodes));
                const auto made = estimate(asked, testing::catalog(), testing::quick());
                if (!made || tensor * pipeline > 8 * nodes) continue;
                const Prediction& p = made->prediction;
                const auto bytes = [&](MemoryTerm term) { return p.bytes[static_cast<std::size_t>(term)]; };
                const double states =
                    bytes(MemoryTerm::weights) + bytes(MemoryTerm::gradients) + bytes(MemoryTerm::optimizer);
                usable = p.memory_capacity_bytes;
                if (tensor * pipeline == 8) need = std::max(need, 8 * states);
                if (made->refused == Reason::none) fewest = std::min(fewest, double(tensor * pipeline));
            }
        ASSERT_GT(need, 0) << model;
        const double least = std::ceil(need / usable);
        EXPECT_GE(fewest, least) << model;
        EXPECT_LE(fewest, std::exp2(std::ceil(std::log2(least)))) << model;  // the next product of degrees
    }
}

TEST(SearchTraining, StatesOnTheHostAreNotTheAnswerWhereDevicesHoldThem) {
    for (const std::string_view model : {"llama-2-13b", "qwen2.5-32b", "llama-2-70b"}) {
        const Plan made = testing::plan(fmt::format(
            "kind: training\nmodel: {}\ndata: {{tokens: 1B, sequence: 4096}}\nwhere: {{regions: [eastus]}}\n", model));
        ASSERT_TRUE(made.feasible()) << model;
        const Candidate& c = made.candidates.front();
        EXPECT_FALSE(c.layout.offload) << model;
        const double trained = made.workload.model.published_parameters;
        EXPECT_GE(c.devices_used * c.prediction.memory_capacity_bytes, 16 * trained) << model;
    }
}

}  // namespace
}  // namespace stoker
