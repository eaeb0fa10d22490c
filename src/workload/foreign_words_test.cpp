// When this breaks, who comes from another tool is told that a key is unknown and is shown a list of forty others.
#include "workload/foreign_words.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/run_section.h"
#include "workload/testing.h"

namespace stoker {
namespace {

const std::string kTraining = "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 10B}\n";

// What is said of the line behind a file that is right.
std::string said(const std::string& line, const std::string& file = kTraining) {
    const auto read = testing::read(file + line + "\n");
    if (read) return "nothing";
    const Problem& first = read.error().problems().front();
    return fmt::format("{}:{} {} -> {}", first.pos.line, first.pos.column, first.message, first.remedy);
}

TEST(ForeignWords, AreAnsweredWithWhatToWrite) {
    const auto answered = [](const std::string& line, const std::string& with) {
        const std::string all = said(line);
        EXPECT_NE(all.find(with), std::string::npos) << all;
        EXPECT_EQ(all.find("known keys"), std::string::npos) << all;
        EXPECT_EQ(all.find("did you mean"), std::string::npos) << all;
    };
    answered("notify: me@example.org", "--notify https://HOST/PATH, mailto:ADDRESS");
    answered("power: 10.2", "capex: {power_watts: 10200}");
    answered("objective: {power_kw: 10.2}", "capex: {power_watts: 10200}");
    answered("trials: 20", "run: {sweep: ");
    answered("then: eval.yaml", "run: {steps: ");
    answered("image: nvcr.io/x:1", "run: {image: ");
    answered("run: {command: [a], file_mounts: {/a: s3://b}}", "requires: {paths: ");
    answered("where: {subscription: a}", "--usage and --skus");
    answered("learning-rate: 3e-4", "run: {command: ");
    answered("where: {gpu: RTX 4090}", "nodes: [{gpu: RTX-4090");
}

// The words of trainers, engines and clusters: each has an answer of its own, none a list of forty keys.
TEST(ForeignWords, OfTrainersEnginesAndClustersAreAnswered) {
    const auto answered = [](const std::string& line, const std::string& with) {
        const std::string all = said(line);
        EXPECT_NE(all.find(with), std::string::npos) << all;
        EXPECT_EQ(all.find("known keys"), std::string::npos) << all;
    };
    answered("max_steps: 100000", "steps times tokens of a step");
    answered("gradient_accumulation_steps: 8", "batch: {global_examples: 256}");
    answered("peft: lora", "kind: fine-tuning");
    answered("load_in_4bit: true", "method: qlora");
    answered("fsdp: full_shard", "layout: {zero: 3}");
    answered("mixed_precision: bf16", "write precision: bf16");
    answered("torch_compile: true", "compiled: true");
    answered("max_cost: 1000", "objective: {budget: $20k}");
    answered("wandb: true", "step_pattern");
    answered("save_steps: 500", "checkpoint: {every: 30m}");
    answered("eval_steps: 500", "run: {steps: ");
    answered("network: infiniband", "topology: require");
    answered("where: {vram: 80GB}", "accelerators: [a100-sxm-80gb");
    answered("where: {gpus_per_node: 8}", "where: {gpus: 64}");
    answered("where: {exclude_regions: [westus]}", "regions: [...]");
    answered("where: {country: germany}", "residency: eu");
    answered("where: {savings_plan: true}", "commitment: 1y");
    answered("where: {quota: 100}", "--usage usage.json");
    answered("where: {scheduler: slurm}", "orchestrator: slurm");
    answered("where: {inventory: n.yaml}", "cloud: on-prem");
    answered("max_model_len: 8192", "deploy FILE --render");
    answered("cuda: 12.4", "framework_version");
    answered("objective: {uptime: 99.9}", "survive_one_replica_lost");
    answered("objective: {due: friday}", "deadline: 14d");
    answered("run: {command: [a], nproc_per_node: 8}", "ranks_per_node: 8");
    answered("run: {command: [a], artifacts: [b]}", "upload: {to: ");
    answered("run: {command: [a], git: u}", "folder: code");
    const std::string endpoint = "version: 1\nkind: inference\nmodel: llama-3-8b\n";
    EXPECT_NE(said("traffic: {requests_per_second: 2, prompt_tokens: 100, output_tokens: 100, peak_rps: 10}", endpoint)
                  .find("busiest time"),
              std::string::npos);
    EXPECT_NE(
        said("traffic: {requests_per_second: 2, prompt_tokens: 100, output_tokens: 100, cache_hit_rate: 0.5}", endpoint)
            .find("cached_prompt_tokens"),
        std::string::npos);
    EXPECT_NE(said("traffic: {requests_per_second: 2, prompt_tokens: 100, output_tokens: 100, dau: 10}", endpoint)
                  .find("active_share"),
              std::string::npos);
    EXPECT_NE(said("traffic: {requests_per_second: 2, prompt_tokens: 100, output_tokens: 100, cameras: 10}", endpoint)
                  .find("each frame is a request"),
              std::string::npos);
}

// A file that is only run is read by another table.
// What a first file has: the size under the word of another cloud, hours of cores, one figure of latency, a country.
TEST(ForeignWords, OfFirstFilesAreAnswered) {
    const std::string serving = "version: 1\nkind: inference\nmodel: llama-3-8b\ntraffic: {requests_per_second: 2}\n";
    const auto answered = [](const std::string& all, const std::string& with) {
        EXPECT_NE(all.find(with), std::string::npos) << all;
        EXPECT_EQ(all.find("did you mean"), std::string::npos) << all;
    };
    answered(said("where: {instance: p4d.24xlarge}"), "where: {sizes: [");
    answered(said("core_hours: 5000"), "vcpu_hours: 5000");
    answered(said("objective: {latency: 500ms}", serving), "latency: {ttft_p95: 500ms}");
    answered(said("where: {regions: [eu]}", serving), "write residency: eu");
    answered(said("where: {regions: [Germany]}", serving), "write residency: germany");
    answered(said("data: {size: 2TB, tokens: 10B}", "version: 1\nkind: training\nmodel: llama-3-8b\n"),
             "data: {bytes: 2TB}");
    answered(said("", "version: 1\nkind: distillation\nmodel: qwen3-1.7b\n"), "the teacher writes");
}

TEST(ForeignWords, AreAnsweredInFilesThatAreOnlyRun) {
    const auto document = Document::parse_yaml("version: 1\nrun: {command: [a], cron: \"0 2 * * *\"}\n", "f.yaml");
    const auto read = read_run_file_form(*document);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().problems().front().remedy.find("--every"), std::string::npos);
}

TEST(ForeignWords, StandAtTheirPlaces) {
    EXPECT_TRUE(said("objective: {power: 10.2}").starts_with("5:13 unknown key 'power' in objective -> "));
    EXPECT_TRUE(said("users: 5", "version: 1\nkind: notebook\nmemory: 32GiB\n").starts_with("4:1 unknown key 'users'"));
}

// The nearest words are still guessed where nobody knows better, and a key that has a place elsewhere is sent there.
TEST(ForeignWords, LeaveTheRestAlone) {
    EXPECT_NE(said("objectiv: {}").find("did you mean objective?"), std::string::npos);
    EXPECT_NE(said("budget: $20k").find("objective.budget"), std::string::npos);
    EXPECT_EQ(said("objective: {budget: $20k}"), "nothing");
}

TEST(ForeignWords, BudgetsOfATimeAndOfOtherMoney) {
    const auto remedy = [](const std::string& budget) {
        const std::string all = said("objective: {budget: " + budget + "}");
        return all.substr(all.find(" -> ") + 4);
    };
    EXPECT_TRUE(remedy("$3000/month").starts_with("write budget: $3000: of a service"));
    EXPECT_TRUE(remedy("3k per month").starts_with("write budget: 3k: of a service"));
    EXPECT_TRUE(remedy("$100/day").starts_with("write what all of it may cost"));
    EXPECT_TRUE(remedy("3000 EUR").starts_with("prices of the catalogue are in US dollars"));
    EXPECT_EQ(remedy("{amount: 3000}"), "write one amount, as budget: $3000");
}

}  // namespace
}  // namespace stoker
