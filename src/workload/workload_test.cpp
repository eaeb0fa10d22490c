#include "workload/workload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "catalog/model_count.h"
#include "workload/testing.h"

namespace stoker {
namespace {

using testing::assumptions, testing::bad, testing::catalog, testing::good, testing::has, testing::no_files,
    testing::read;

// The first workload file of the manual: every word of it lands where the planner looks.
TEST(Workload, ReadsATrainingFile) {
    const Workload w = good(R"(
version: 1
kind: training            # training, fine-tuning, inference, batch-inference, embedding, preprocessing, notebook, simulation
model: llama-3-8b
data: {tokens: 150B, sequence: 8192}
precision: bf16
objective: {minimize: cost, deadline: 14d}
where: {cloud: azure, regions: [eastus, westeurope], spot: allowed}
)");
    EXPECT_EQ(w.kind, WorkloadKind::training);
    EXPECT_EQ(w.model.name, "llama-3-8b");
    EXPECT_TRUE(w.model_known);
    EXPECT_DOUBLE_EQ(w.total_tokens(), 150e9);
    EXPECT_DOUBLE_EQ(w.sequence(), 8192);
    EXPECT_DOUBLE_EQ(w.objective.deadline->v, 14 * 86'400);
    EXPECT_EQ(w.where.regions, (std::vector<std::string>{"eastus", "westeurope"}));
    EXPECT_EQ(w.where.spot, SpotUse::allowed);
    EXPECT_DOUBLE_EQ(*w.batch.global_tokens, *w.batch.global_examples * 8192);
    EXPECT_EQ(w.title(), "Train llama-3-8b on 150B tokens");
}

// Four million tokens are 976.6 sequences: a round figure, and the number that ranks can share is meant and said. A
// whole number of sequences stands as it is.
TEST(Workload, ABatchInTokensIsANumberOfSequencesThatRanksShare) {
    const auto batch = [](std::string_view tokens) {
        return good(
            fmt::format("version: 1\nkind: training\nmodel: llama-3-8b\ndata: {{tokens: 10B, sequence: 4096}}\n"
                        "batch: {{global_tokens: {}}}\n",
                        tokens));
    };
    EXPECT_DOUBLE_EQ(*batch("4M").batch.global_examples, 1024);
    EXPECT_TRUE(has(assumptions(batch("4M")), "nearest to 4,000,000 tokens"));
    EXPECT_DOUBLE_EQ(*batch("409600").batch.global_examples, 100);
    for (const double sequence : {1000.0, 3000.0, 4096.0}) {
        const Workload w = good(fmt::format(
            "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {{tokens: 10B, sequence: {}}}\n", sequence));
        const auto examples = static_cast<std::uint64_t>(*w.batch.global_examples);
        EXPECT_EQ(examples & (examples - 1), 0u) << examples;  // a default divides by any power of two below it
    }
}

// A learned position table ends; rotary positions only get worse.
TEST(Workload, LearnedPositionsAreALimit) {
    const std::string bert =
        bad("version: 1\nkind: fine-tuning\nmodel: bert-base\ndata: {examples: 10k, sequence: 8192}\n");
    EXPECT_TRUE(has(bert, "bert-base has learned positions for 512 tokens, the file asks for 8,192")) << bert;
    EXPECT_TRUE(has(bert, "takes 8,192 tokens")) << bert;
    EXPECT_TRUE(has(bert, "4:")) << bert;
    good("version: 1\nkind: fine-tuning\nmodel: llama-2-7b\ndata: {examples: 10k, sequence: 8192}\n");
    good("version: 1\nkind: inference\nmodel: gpt2\ntraffic: {requests_per_second: 1}\n");  // its defaults fit
    // Thousands of machines for prompts that no engine takes are no answer; positions stretched as published are.
    const std::string far =
        bad("version: 1\nkind: inference\nmodel: llama-3-8b\n"
            "traffic: {requests_per_second: 1, prompt_tokens: 2500000, output_tokens: 200}\n");
    EXPECT_TRUE(has(far, "llama-3-8b was made for 8,192 tokens, the file asks for 2,500,200")) << far;
    EXPECT_TRUE(has(far, "4:")) << far;
    good(
        "version: 1\nkind: inference\nmodel: llama-3-8b\n"
        "traffic: {requests_per_second: 1, prompt_tokens: 100000, output_tokens: 200}\n");
}

// Years of a reservation, yes and no, and a data set of so many bytes are what the reference says they are.
TEST(Workload, ReadsWhatTheReferenceSays) {
    const Workload w = good(
        "version: 1\nkind: training\nmodel: {parameters: 1B, tied_embeddings: yes}\n"
        "data: {tokens: 1B, sequence: 1000, bytes: 4GB}\nwhere: {commitment: 1y}\ncompiled: no\n");
    EXPECT_NEAR(w.where.commitment->v, 365.25 * 86'400, 1);
    EXPECT_TRUE(w.model.tied_embeddings);
    EXPECT_FALSE(w.compiled);
    EXPECT_NEAR(w.data.bytes_per_example->v, 4000, 1);
}

TEST(Workload, ReadsAnInferenceFile) {
    const Workload w = good(R"(
version: 1
kind: inference
model: llama-3-70b
precision: fp8
traffic: {requests_per_second: 12, prompt_tokens: 1500, output_tokens: 300}
objective: {minimize: cost, latency: {ttft_p95: 800ms, tpot_p95: 50ms}}
)");
    EXPECT_EQ(w.precision, Precision::fp8);
    EXPECT_DOUBLE_EQ(*w.traffic.requests_per_second, 12);
    EXPECT_DOUBLE_EQ(w.objective.latency.ttft_p95->v, 0.8);
    EXPECT_DOUBLE_EQ(w.objective.latency.tpot_p95->v, 0.05);
    EXPECT_TRUE(w.where.clouds.empty());
}

// Only a size is known: a shape is assumed, and said; so are the batch and the precision.
TEST(Workload, ReadsAFineTuningFile) {
    const Workload w = good(R"(
version: 1
kind: fine-tuning
model: {parameters: 7B}   # nothing else known: the nearest known architecture is assumed, and said
method: qlora
data: {examples: 52000, sequence: 2048, epochs: 3}
objective: {minimize: time, budget: 200 USD}
where: {cloud: azure, sizes: [Standard_NC24ads_A100_v4, Standard_NV36ads_A10_v5, Standard_NC16as_T4_v3]}
)");
    EXPECT_EQ(w.method, Method::qlora);
    EXPECT_TRUE(w.model.assumed);
    EXPECT_NEAR(parameters_of(w.model), 7e9, 0.05 * 7e9);
    EXPECT_DOUBLE_EQ(w.total_examples(), 156'000);
    EXPECT_EQ(w.objective.budget->micro(), 200'000'000);
    EXPECT_EQ(w.where.sizes.size(), 3u);
    EXPECT_TRUE(has(assumptions(w), "only 7B parameters are known"));
    EXPECT_TRUE(has(assumptions(w), "precision bf16"));
    EXPECT_TRUE(has(assumptions(w), "global batch of 64 sequences"));
    EXPECT_EQ(w.at.count("precision"), 0u);
}

// The forms of `model`: shape, family, number, path, and a size beside a shape that does not fit it.
TEST(Workload, ModelsComeInManyForms) {
    const auto model = [](std::string_view form, const FileLoader& load = no_files) {
        return good(fmt::format("version: 1\nkind: training\nmodel: {}\ndata: {{tokens: 1T}}\n", form), load);
    };
    const Workload shape =
        model("{parameters: 70B, layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 128256}");
    EXPECT_NEAR(parameters_of(shape.model), 70.55e9, 0.1e9);
    EXPECT_FALSE(has(assumptions(shape), "WARNING"));

    const Workload wrong =
        model("{parameters: 13B, layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 128256}");
    EXPECT_TRUE(has(assumptions(wrong), "WARNING: the file says 13B parameters, its shape has 70.6B"))
        << assumptions(wrong);

    const Workload family = model("{family: llama, parameters: 70B}");
    EXPECT_TRUE(has(assumptions(family), "shape of llama-"));
    const Workload between = model("{family: qwen, parameters: 20B}");
    EXPECT_NEAR(parameters_of(between.model), 20e9, 0.05 * 20e9);
    EXPECT_TRUE(has(assumptions(between), "scaled from qwen")) << assumptions(between);

    for (const char* form : {"7B", "{params: 7B}", "7e9", "{parameters: 7000M}"})
        EXPECT_NEAR(parameters_of(model(form).model), 7e9, 0.35e9) << form;
    EXPECT_NEAR(parameters_of(model("{layers: 12, hidden: 768}").model), 110e6, 40e6);

    const FileLoader config = [](const std::string& path) {
        return Document::parse_json(
            R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192})",
            path);
    };
    for (const char* form : {"models/mine/config.json", "{config: models/mine/config.json}"}) {
        const Workload w = model(form, config);
        EXPECT_EQ(w.model.name, "mine");
        EXPECT_NEAR(parameters_of(w.model), 8.03e9, 0.01e9);
    }
}

// Any PyTorch model has a plan by what a step of it was counted to do; a count that is none is said, with its place.
TEST(Workload, AProfileIsAModel) {
    std::string profile =
        R"({"stoker_profile": 1, "network": "rnn", "parameters": 66560, "forward_flops": 2621440.0,
        "activation_bytes": 40960, "sample_unit": "sentence"})";
    const FileLoader load = [&](const std::string& path) { return Document::parse_json(profile, path); };
    const auto read = [&] {
        return read_workload(*Document::parse_yaml("version: 1\nkind: training\nmodel: {config: net.json}\n"
                                                   "data: {examples: 10000}\n",
                                                   "job.yaml"),
                             *Catalog::embedded(), load);
    };
    const auto workload = read();
    ASSERT_TRUE(workload) << workload.error().text();
    EXPECT_EQ(parameters_of(workload->model), 66560);
    EXPECT_EQ(workload->model.forward_flops_per_sample, 2621440);
    EXPECT_EQ(workload->model.sample_unit, "sentence");
    EXPECT_EQ(workload->model.family, "rnn");
    profile = R"({"stoker_profile": 1, "parameters": 66560, "forward_flops": "many"})";
    ASSERT_FALSE(read());
    EXPECT_TRUE(has(read().error().text(), "forward_flops: a number above 0"));
    EXPECT_TRUE(has(read().error().text(), "net.json:1:"));
}

// R1, R2: what is not said is asked for by name, all of it at once, with its place.
TEST(Workload, UnansweredQuestionsAreAsked) {
    const std::string nothing = bad("version: 1\nprecision: bf16\n");
    EXPECT_TRUE(has(nothing, "training or inference?"));
    EXPECT_TRUE(has(nothing, "how many parameters does the model have?"));
    EXPECT_TRUE(has(bad("version: 1\nkind: training\nmodel: gpt2\n"), "how many tokens or examples?"));
    EXPECT_TRUE(has(bad("version: 1\nkind: inference\nmodel: gpt2\n"), "how many requests per second?"));
    EXPECT_TRUE(has(bad("version: 1\nkind: fine-tuning\nmodel: gpt2\n"), "how many examples or tokens?"));
    EXPECT_TRUE(has(bad("version: 1\nkind: batch-inference\nmodel: gpt2\n"), "how many requests in all?"));
    EXPECT_TRUE(
        has(bad("version: 1\nkind: training\nmodel: {family: llama}\ndata: {tokens: 1B}\n"), "how many parameters"));
    EXPECT_EQ(good("kind: notebook\n").kind, WorkloadKind::notebook) << "a file that names no version is of the first";
    EXPECT_TRUE(has(bad("version: 3\nkind: notebook\n"), "this Stoker reads version 1"));
    for (const char* kind : {"notebook", "preprocessing", "simulation"}) {
        const Workload w = good(fmt::format("version: 1\nkind: {}\n", kind));
        EXPECT_FALSE(w.model_known);
        EXPECT_FALSE(w.assumptions.empty());
        EXPECT_TRUE(w.memory.has_value());
    }
}

// Words from elsewhere are not taken silently, but ours is named.
TEST(Workload, OtherNamesOfKindsAreAnsweredWithOurs) {
    EXPECT_TRUE(has(bad("version: 1\nkind: serving\nmodel: gpt2\ntraffic: {requests_per_second: 1}\n"),
                    "did you mean inference?"));
    EXPECT_TRUE(has(bad("version: 1\nkind: train\nmodel: gpt2\ndata: {tokens: 1B}\n"), "did you mean training?"));
    EXPECT_TRUE(has(bad("version: 1\nkind: finetune\nmodel: gpt2\ndata: {tokens: 1B}\n"), "did you mean fine-tuning?"));
    EXPECT_EQ(good("version: 1\nkind: Fine_Tuning\nmodel: gpt2\ndata: {tokens: 1B}\n").kind, WorkloadKind::fine_tuning);
}

// Problems come together, in the order of the file.
TEST(Workload, AllProblemsAreReportedTogether) {
    const auto workload = read(R"(version: 1
kind: training
model: {layers: 32, hidden: 4096, heads: 30, kv_heads: 7}
data: {tokens: -5, sequnce: 10}
precision: bf61
where: {cloud: azur, regions: [estus], spot: perhaps}
)");
    ASSERT_FALSE(workload.ok());
    const auto& problems = workload.error().problems();
    EXPECT_EQ(problems.size(), 8u) << workload.error().text();
    for (std::size_t i = 0; i < problems.size(); ++i) {
        EXPECT_TRUE(problems[i].pos.line > 0) << problems[i].message;
        if (i > 0) {
            EXPECT_LE(problems[i - 1].pos.line, problems[i].pos.line);
        }
    }
}

// Each value is fine, the pair is not.
TEST(Workload, ContradictionsAreFound) {
    const auto training = [](std::string_view more) {
        return bad(fmt::format(
            "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {{tokens: 1B, sequence: 8192}}\n{}\n", more));
    };
    EXPECT_TRUE(has(training("layout: {tensor: 5}"), "5 does not divide the 32 heads"));
    EXPECT_TRUE(has(training("layout: {pipeline: 64}"), "64 stages, but llama-3-8b has 32 layers"));
    EXPECT_TRUE(has(training("layout: {expert: 8}"), "has no experts"));
    EXPECT_TRUE(has(training("layout: {context: 3}"), "does not divide sequences"));
    EXPECT_TRUE(has(training("traffic: {requests_per_second: 3}"), "traffic belongs to inference"));
    EXPECT_TRUE(has(training("objective: {latency: {ttft_p95: 1s}}"), "objective.latency belongs to inference"));
    EXPECT_TRUE(has(training("method: lora"), "write kind: fine-tuning"));
    EXPECT_TRUE(has(training("precision: int8"), "nothing is trained in it"));
    EXPECT_TRUE(has(training("interruptible: false\nwhere: {spot: allowed}"), "contradicts interruptible: false"));
    EXPECT_TRUE(has(training("batch: {global_tokens: 4M, global_examples: 4}"), "give one of the two"));
    EXPECT_TRUE(has(training("where: {cloud: azure, sizes: [p5.48xlarge]}"), "is a size of aws"));
    EXPECT_TRUE(has(training("where: {nodes: 8, max_nodes: 4}"), "is less than nodes"));
    EXPECT_TRUE(has(bad("version: 1\nkind: training\nmodel: resnet-50\ndata: {tokens: 1B}\n"), "learns from images"));
    EXPECT_TRUE(has(bad("version: 1\nkind: notebook\ntraffic: {requests: 3}\n"), "not to notebook"));
}

// Zero, negative, endless and not a number: each is refused with a place, and none gets as far as arithmetic.
TEST(Workload, ImpossibleNumbersAreRefused) {
    const auto tokens = [](std::string_view value) {
        return bad(fmt::format("version: 1\nkind: training\nmodel: gpt2\ndata: {{tokens: {}}}\n", value));
    };
    for (const char* value : {"0", "-1", "nan", ".nan", ".inf", "1e400", "1e19", "12 apples", "[1]", "true"})
        EXPECT_TRUE(has(tokens(value), "workload.yaml:4:16")) << value;
    const auto model = [](std::string_view value) {
        return bad(fmt::format("version: 1\nkind: training\ndata: {{tokens: 1B}}\nmodel: {{parameters: {}}}\n", value));
    };
    for (const char* value : {"0", "-7B", "1e16", "1000000000000000000000000000000", "10^30", "nan"})
        EXPECT_TRUE(has(model(value), "workload.yaml:4:21")) << value;
    const auto objective = [](std::string_view value) {
        return bad(fmt::format("version: 1\nkind: notebook\nobjective: {{{}}}\n", value));
    };
    for (const char* value : {"deadline: 0", "deadline: -1d", "deadline: 1e300d", "budget: 0", "budget: -5 USD"})
        EXPECT_TRUE(has(objective(value), "workload.yaml:3:")) << value;
    EXPECT_TRUE(has(bad("version: 1\nkind: training\nmodel: gpt2\ndata: {tokens: 1B, sequence: 11M}\n"),
                    "sequence: 11M is out of bounds"));
}

// Names are spelled as the catalogue spells them, and the nearest one is offered for those that it does not know.
TEST(Workload, NamesOfPlacesAreLookedUp) {
    const Workload w = good(
        "version: 1\nkind: notebook\nwhere: {cloud: Azure, regions: 'East US, westeurope', sizes: nc4as-t4-v3, "
        "residency: [EU, Switzerland]}\n");
    EXPECT_EQ(w.where.clouds, std::vector<std::string>{"azure"});
    EXPECT_EQ(w.where.regions, (std::vector<std::string>{"eastus", "westeurope"}));
    EXPECT_EQ(w.where.sizes, std::vector<std::string>{"Standard_NC4as_T4_v3"});
    EXPECT_EQ(w.where.residency, (std::vector<std::string>{"eu", "switzerland"}));
    EXPECT_EQ(good("version: 1\nkind: notebook\nwhere: {sizes: [p5.48xlarge]}\n").where.clouds,
              std::vector<std::string>{"aws"});
    EXPECT_TRUE(has(bad("version: 1\nkind: notebook\nwhere: {regions: [estus]}\n"), "did you mean eastus?"));
    EXPECT_TRUE(
        has(bad("version: 1\nkind: notebook\nwhere: {residency: [atlantis]}\n"), "no geography named 'atlantis'"));
    EXPECT_TRUE(
        has(bad("version: 1\nkind: notebook\nwhere: {nodes: nodes.yaml}\n"), "nodes: nodes.yaml: no such file"));
}

// Nodes of the user's own may be named under sizes, and on-prem is then what is meant.
TEST(Workload, OwnNodesAreKnownByName) {
    const FileLoader nodes = [](const std::string& path) {
        return Document::parse_yaml("nodes: [{name: lab-a100, gpus: 8}]", path);
    };
    const Workload w = good("version: 1\nkind: notebook\nwhere: {nodes: nodes.yaml, sizes: [lab-a100]}\n", nodes);
    EXPECT_EQ(w.where.nodes_file, "nodes.yaml");
    EXPECT_EQ(w.where.clouds, std::vector<std::string>{"on-prem"});
    EXPECT_EQ(w.where.sizes, std::vector<std::string>{"lab-a100"});
    EXPECT_DOUBLE_EQ(*good("version: 1\nkind: notebook\nwhere: {nodes: 8}\n").where.nodes, 8);
}

// Larger models learn from larger batches, as published; a batch is never larger than the data.
// A width that nobody gave is one that people train, whatever the size: matmuls like multiples of 128.
TEST(Workload, AMadeUpShapeHasAWidthThatPeopleTrain) {
    for (const std::string_view size : {"60M", "100M", "250M", "350M", "760M", "1.9B", "5B", "20B", "42B", "120B"}) {
        const Workload w =
            good(fmt::format("version: 1\nkind: training\nmodel: {{parameters: {}}}\ndata: {{tokens: 10B}}\n", size));
        EXPECT_EQ(w.model.hidden % 128, 0) << size << " " << w.model.hidden;
        EXPECT_EQ(w.model.heads % std::max(1, w.model.kv_heads), 0) << size;
        const double wanted = *parse_count(size);
        EXPECT_NEAR(parameters_of(w.model), wanted, 0.1 * wanted) << size;
    }
}

// A default that is made for clusters leaves a short run steps to learn in.
TEST(Workload, AShortRunHasSteps) {
    const Workload w = good("version: 1\nkind: training\nmodel: gpt2\ndata: {tokens: 1M, sequence: 256}\n");
    EXPECT_LE(*w.batch.global_examples * 100, w.total_examples());
    EXPECT_GE(*w.batch.global_examples, 16);
}

// R12: health and security records are guarded without being asked for, unless the file says otherwise.
TEST(Workload, SensitiveUsesAreGuarded) {
    const std::string medical =
        "version: 1\nkind: training\nuse_case: medical-imaging\nmodel: vit-b-16\ndata: {examples: 1M}\n";
    EXPECT_TRUE(good(medical).sensitive);
    EXPECT_FALSE(good(medical + "sensitive: false\n").sensitive);
}

// Every question of every kind names a key that the file has; answering the required ones makes a file that reads.
TEST(Workload, AnswersToTheQuestionsMakeAFile) {
    ASSERT_EQ(questions_for("").size(), 1u);
    EXPECT_EQ(questions_for("").front().choices.size(), 8u);
    const std::vector<std::string> kinds = questions_for("").front().choices;
    for (const std::string& kind : kinds) {
        Json required = Json::object(), all = required;
        for (const Question& question : questions_for(kind)) {
            const std::string answer = question.key == "kind"          ? kind
                                       : question.key == "where.sizes" ? "Standard_D16s_v5"
                                                                       : question.example;
            std::vector<std::string> path;
            for (std::size_t from = 0; from <= question.key.size();) {
                const std::size_t dot = std::min(question.key.find('.', from), question.key.size());
                path.push_back(question.key.substr(from, dot - from));
                from = dot + 1;
            }
            const std::function<void(Json&, std::size_t)> put = [&](Json& at, std::size_t depth) {
                if (depth + 1 == path.size()) {
                    at.set(path[depth], answer);
                    return;
                }
                Json child = at.find(path[depth]) != nullptr ? *at.find(path[depth]) : Json::object();
                put(child, depth + 1);
                at.set(path[depth], child);
            };
            put(all, 0);
            if (question.required) put(required, 0);
        }
        EXPECT_EQ(to_string(good(required.dump_yaml()).kind), kind);
        EXPECT_EQ(to_string(good(all.dump_yaml()).kind), kind) << all.dump_yaml();
    }
}

// "64 H100": the GPUs and their number are asked for by name, and what no machine can make up is refused with its
// place.
TEST(Workload, AcceleratorsAndTheirNumberAreChecked) {
    const std::string head = "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\nwhere: ";
    const Workload w = good(head + "{gpus: 64, accelerators: h100 sxm}\n");
    EXPECT_EQ(w.where.accelerators, std::vector<std::string>{"h100 sxm"});
    for (const NodeType& type : catalog().node_types()) {
        if (!w.where.takes(type)) continue;
        EXPECT_EQ(*w.where.pinned_nodes(type) * type.whole_gpus(), 64) << type.name;
    }
    EXPECT_TRUE(has(bad(head + "{gpus: 12, accelerators: [H100-SXM]}\n"), "12 is no multiple"));
    EXPECT_TRUE(has(bad(head + "{gpus: 12, accelerators: [H100-SXM]}\n"), "workload.yaml:5:15"));
    EXPECT_TRUE(has(bad(head + "{accelerators: [H100-SXN]}\n"), "did you mean H100-SXM"));
    EXPECT_TRUE(has(bad(head + "{gpus: 8, nodes: 1}\n"), "keep one of the two"));
    EXPECT_TRUE(has(bad(head + "{gpus: 0}\n"), "at least 1"));
    EXPECT_TRUE(has(bad("version: 1\nkind: notebook\nwhere: {gpus: 8}\n"), "where.gpus belongs to training"));
}

// Who asks for A10 or L4 is not sold an A100 or an L40S, since their names begin alike.
TEST(Workload, ANumberOfAnAcceleratorIsNamedWhole) {
    const auto one = [](std::string_view name) -> const Accelerator& {
        return *std::find_if(catalog().accelerators().begin(), catalog().accelerators().end(),
                             [&](const Accelerator& a) { return a.name == name; });
    };
    EXPECT_FALSE(matches_accelerator("A10", one("A100-SXM-80GB")));
    EXPECT_FALSE(matches_accelerator("l4", one("L40S")));
    EXPECT_TRUE(matches_accelerator("A10", one("A10")));
    EXPECT_TRUE(matches_accelerator("a100", one("A100-SXM-80GB")));
    EXPECT_TRUE(matches_accelerator("mi300", one("MI300X")));
    EXPECT_TRUE(matches_accelerator("h100 sxm", one("H100-SXM")));
    EXPECT_TRUE(matches_accelerator("nvidia", one("L4")));
}

// Keys as other tools call them, and keys in the wrong mapping, are pointed to ours.
TEST(Workload, KeysOfOtherToolsAreRecognised) {
    const std::string head = "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\n";
    for (const auto& [key, meant] : {std::pair{"gpus: 64", "where.gpus"},
                                     {"seq_len: 4096", "data.sequence"},
                                     {"batch_size: 64", "batch.global_examples"},
                                     {"dtype: bf16", "precision"},
                                     {"region: eastus", "where.regions"},
                                     {"instance_type: x", "where.sizes"},
                                     {"deadline: 3d", "objective.deadline"},
                                     {"ttft_p95: 1s", "objective.latency.ttft_p95"},
                                     {"tp: 8", "layout.tensor"},
                                     {"zero_stage: 3", "layout.zero"},
                                     {"tensor_parallel: 8", "layout.tensor"}})
        EXPECT_TRUE(has(bad(head + key + "\n"), std::string("did you mean ") + meant + "?")) << bad(head + key + "\n");
}

// Values as other tools spell them, and values of the other trade.
TEST(Workload, ValuesOfOtherToolsAreRecognised) {
    const std::string head = "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\n";
    for (const auto& [line, said] : {std::pair{"precision: float16", "did you mean fp16?"},
                                     {"precision: mixed", "did you mean bf16?"},
                                     {"where: {spot: yes}", "did you mean allowed?"},
                                     {"where: {spot: false}", "did you mean never?"},
                                     {"objective: {minimize: price}", "did you mean cost?"},
                                     {"framework: torch", "did you mean pytorch?"},
                                     {"framework: vllm", "vllm does not train"},
                                     {"where: {regions: useast}", "did you mean eastus?"},
                                     {"where: {regions: us-east-1}", "us-east-1 is a region of aws"},
                                     {"batch: {global_tokens: 10}", "less than one sequence of 4,096"},
                                     {"where: {cloud: on-prem}", "on-prem are not described"}})
        EXPECT_TRUE(has(bad(head + line + "\n"), said)) << bad(head + line + "\n");
    EXPECT_EQ(good(head + "orchestrator: AzureML\n").orchestrator, "azure-ml");
    EXPECT_TRUE(has(bad("version: 1\nkind: [training]\nmodel: gpt2\n"), "expected one word, found a list"));
}

// The shipped examples and templates read, and every use case has its template.
TEST(Workload, ShippedFilesRead) {
    namespace fs = std::filesystem;
    const fs::path root = STOKER_SOURCE_DIR;
    const auto text_of = [](const fs::path& path) {
        std::ifstream in(path);
        std::stringstream text;
        text << in.rdbuf();
        return text.str();
    };
    int count = 0;
    for (const char* folder : {"examples", "examples/story", "data/templates"}) {
        for (const auto& entry : fs::directory_iterator(root / folder)) {
            const std::string file = entry.path().filename().string();
            const bool of_others = file.ends_with("-nodes.yaml") || file == "prices.yaml" || file == "server.yaml";
            if (!file.ends_with(".yaml") || of_others) continue;
            const FileLoader load = [&](const std::string& name) {
                return Document::parse(text_of(entry.path().parent_path() / name), name);
            };
            const Workload w = good(text_of(entry.path()), load);
            EXPECT_FALSE(w.title().empty()) << entry.path();
            if (std::string_view(folder) == "data/templates") {
                EXPECT_EQ(w.use_case, entry.path().stem().string());
            }
            ++count;
        }
    }
    EXPECT_GE(count, 36);
    for (const std::string& name : use_case_names())
        EXPECT_TRUE(fs::exists(root / "data/templates" / (name + ".yaml"))) << name;
}

// Own machines of one kind need no second file.
TEST(Workload, DescribesItsNodesItself) {
    const Workload w = good(
        "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\n"
        "where: {nodes: [{name: rack, gpu: H100-SXM, gpus: 8, vcpus: 96, memory: 1TiB, count: 4}], sizes: [rack]}\n");
    EXPECT_TRUE(w.where.nodes_here && w.where.describes_nodes());
    EXPECT_EQ(w.where.clouds, std::vector<std::string>{"on-prem"});
    EXPECT_FALSE(w.where.nodes);
    EXPECT_FALSE(good("version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\nwhere: {nodes: 4}\n")
                     .where.describes_nodes());
}

}  // namespace
}  // namespace stoker
