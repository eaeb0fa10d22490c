#include "workload/stages.h"

#include <gmock/gmock.h>

#include "workload/testing.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

Result<std::vector<Stage>> split(std::string_view text) {
    auto document = Document::parse_yaml(text, "workload.yaml");
    EXPECT_TRUE(document.ok());
    return split_stages(*document);
}

std::string refusal(std::string_view text) {
    const auto stages = split(text);
    EXPECT_FALSE(stages.ok()) << text;
    return stages ? "" : stages.error().text();
}

constexpr std::string_view kTuneThenServe = R"(version: 1
name: bot
model: llama-3-8b
objective: {minimize: cost}
where: {regions: [westeurope]}
stages:
  - name: tune
    kind: fine-tuning
    method: lora
    data: {examples: 1000, sequence: 1024}
    objective: {deadline: 1d}
  - name: serve
    after: [tune]
    kind: inference
    model: mistral-7b
    traffic: {requests_per_second: 1, prompt_tokens: 100, output_tokens: 100}
)";

// What stands outside holds for each; a stage's own words go before it, key by key inside of a mapping.
TEST(Stages, EachIsAWorkloadOfItsOwn) {
    const auto stages = split(kTuneThenServe);
    ASSERT_TRUE(stages.ok()) << stages.error().text();
    ASSERT_EQ(stages->size(), 2u);
    EXPECT_EQ((*stages)[1].after, std::vector<int>{0});
    const auto tune = read_workload((*stages)[0].document, testing::catalog(), testing::no_files);
    ASSERT_TRUE(tune.ok()) << tune.error().text();
    EXPECT_EQ(tune->name, "tune");
    EXPECT_EQ(tune->model.name, "llama-3-8b");
    EXPECT_EQ(tune->objective.minimize, Minimize::cost);
    EXPECT_EQ(tune->objective.deadline->v, 86400);
    const auto serve = read_workload((*stages)[1].document, testing::catalog(), testing::no_files);
    ASSERT_TRUE(serve.ok()) << serve.error().text();
    EXPECT_EQ(serve->model.name, "mistral-7b");
    EXPECT_FALSE(serve->objective.deadline.has_value());
    EXPECT_EQ(serve->where.regions, std::vector<std::string>{"westeurope"});
}

// A mistake inside of a stage is told where it stands in the file, not where the stage begins.
TEST(Stages, ValuesKeepTheirPlaces) {
    const auto stages = split(
        "version: 1\nmodel: llama-3-8b\nstages:\n  - name: tune\n    kind: fine-tuning\n    method: lorra\n"
        "    data: {examples: 1000, sequence: 1024}\n");
    ASSERT_TRUE(stages.ok());
    const auto tune = read_workload((*stages)[0].document, testing::catalog(), testing::no_files);
    ASSERT_FALSE(tune.ok());
    EXPECT_EQ(tune.error().problems().front().pos.line, 6);
}

// Planned like it is run: a stage that says nothing follows what the step of its name follows.
TEST(Stages, FollowTheStepsOfTheirNames) {
    const auto stages = split(
        "version: 1\nmodel: llama-3-8b\nrun: {steps: [{name: a, command: x}, {name: b, command: y, after: [a, "
        "clean]}]}\n"
        "stages: [{name: a, kind: fine-tuning}, {name: b, kind: inference}]\n");
    ASSERT_TRUE(stages.ok()) << stages.error().text();
    EXPECT_TRUE((*stages)[0].after.empty());
    EXPECT_EQ((*stages)[1].after, std::vector<int>{0});
    EXPECT_EQ((*stages)[0].document.root().find("run"), nullptr);
}

// Names and order are told together, each with its place and what to write.
TEST(Stages, MistakesHaveTheirPlaces) {
    EXPECT_THAT(refusal("version: 1\nstages: {}\n"), HasSubstr("expected a list of stages, found a mapping"));
    EXPECT_THAT(refusal("version: 1\nstages: [{kind: training}]\n"), HasSubstr("the stage has no name"));
    EXPECT_THAT(refusal("version: 1\nstages: [{name: a}, {name: a}]\n"), HasSubstr("a second stage is named a"));
    EXPECT_THAT(refusal("version: 1\nkind: training\nstages: [{name: a}]\n"), HasSubstr("workload.yaml:2:7"));
    EXPECT_THAT(refusal("version: 1\nstages: [{name: a, after: [b]}]\n"), HasSubstr("after names no other stage: b"));
    EXPECT_THAT(refusal("version: 1\nstages: [{name: a, after: b}]\n"), HasSubstr("after: [b]"));
    EXPECT_THAT(refusal("version: 1\nstages: [{name: a, run: {command: x}}]\n"),
                HasSubstr("run is said of the whole file"));
    EXPECT_THAT(refusal("version: 1\nstages: [{name: a, after: [b]}, {name: b, after: [a]}]\n"),
                HasSubstr("a waits for a stage that waits for it"));
}

// stoker run reads the run section of the same file.
TEST(Stages, TheRunPartIsARunFile) {
    const auto document = Document::parse_yaml(
        "version: 1\nmodel: llama-3-8b\nrun: {steps: [{name: a, command: x}]}\nstages: [{name: a, kind: training}]\n",
        "workload.yaml");
    ASSERT_TRUE(document.ok());
    const auto run = read_run_file_form(run_part(*document));
    ASSERT_TRUE(run.ok()) << run.error().text();
    EXPECT_EQ(run->run.steps.size(), 1u);
}

}  // namespace
}  // namespace stoker
