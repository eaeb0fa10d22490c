#include "run/spec/run_spec.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

RunSpec spec_of_a_run() {
    RunSpec spec;
    spec.name = "train-7b";
    spec.kind = RunKind::train;
    spec.command = {"python3", "train.py", "--name", "a \"b\" \xc3\xa9"};
    spec.environment = {{"B", "2"}, {"A", "1"}};
    spec.folder = "/work";
    spec.ranks = 4;
    spec.nodes = 2;
    spec.per_rank = {.cpu_milli = 4000, .memory_bytes = 1 << 30, .gpus = 2, .gpu_milli = 1000, .gpu_model = "H100"};
    spec.checkpoint.folder = "/ck";
    spec.lease = {.stop_after_s = 3600, .hard_max_s = 7200};
    spec.transient_exit_codes = {};
    return spec;
}

RunSpec graph_of(const std::vector<std::pair<std::string, std::vector<std::string>>>& steps) {
    RunSpec graph;
    graph.name = "g";
    graph.kind = RunKind::graph;
    for (const auto& [name, needs] : steps) {
        GraphStep& step = graph.steps.emplace_back();
        step.name = name;
        step.depends_on = needs;
        step.run.command = {"true"};
    }
    return graph;
}

std::string message_of(const RunSpec& spec) {
    const auto status = check_run_spec(spec);
    return status ? "" : status.error().text();
}

// What is kept must read back as it was, also where a default would fill in.
TEST(RunSpecTest, ReadsBackWhatItWrote) {
    const RunSpec spec = spec_of_a_run();
    const auto again = parse_run_spec(canonical_json(spec));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(canonical_json(*again), canonical_json(spec));
    EXPECT_EQ(digest(*again), digest(spec));
    EXPECT_TRUE(again->transient_exit_codes.empty());
}

// The digest names a run for ever: the bytes it is made of may not drift. A change here needs a new record format.
TEST(RunSpecTest, CanonicalJsonIsFrozen) {
    RunSpec spec;
    spec.name = "n";
    spec.command = {"true"};
    EXPECT_EQ(canonical_json(spec),
              R"({"checkpoint":{"interval_s":0,"keep":3},"class":"guaranteed","command":["true"],"grace_s":30,)"
              R"("kind":"batch","lease":{"hard_max_s":0,"stop_after_s":0,"stop_when_done":true},"max_attempts":20,)"
              R"("max_restarts":0,"name":"n","nodes":0,"organisation":"local","per_rank":{"cpu_milli":1000,)"
              R"("gpu_milli":1000,"gpus":0,"memory_bytes":0},"priority":0,"project":"local","ranks":1,"steps":[],)"
              R"("timeout_s":0,"transient_exit_codes":[75],"user":"local"})");
}

// Somebody with five mistakes should not need five tries.
TEST(RunSpecTest, TellsEveryProblemAtOnce) {
    RunSpec spec;
    spec.ranks = 3;
    spec.nodes = 2;
    spec.per_rank = {.gpus = 2, .gpu_milli = 500};
    spec.folder = "relative";
    spec.max_attempts = 0;
    spec.environment["A=B"] = "x";
    const std::string text = message_of(spec);
    for (const char* part :
         {"no name", "no command", "3 ranks cannot be spread evenly over 2 nodes", "a part is taken of one GPU only",
          "is not an absolute path", "max_attempts is 0", "'A=B' is no name of an environment variable"})
        EXPECT_THAT(text, HasSubstr(part));
}

// A misspelled key would silently be a default.
TEST(RunSpecTest, RefusesUnknownKeysAndWrongTypesWithTheirPlace) {
    const auto spec = parse_run_spec(R"({"name": "n", "comand": ["x"], "command": ["x"], "ranks": 1.5,
 "kind": "trian", "priority": "high"})");
    ASSERT_FALSE(spec);
    const std::string text = spec.error().text();
    EXPECT_THAT(text, HasSubstr("unknown key comand (did you mean command?)"));
    EXPECT_THAT(text, HasSubstr("run:1:"));
    EXPECT_THAT(text, HasSubstr("ranks: expected a whole number"));
    EXPECT_THAT(text, HasSubstr("kind: expected one of train, batch, notebook, graph, found 'trian'"));
    EXPECT_THAT(text, HasSubstr("priority: expected a whole number"));
}

// Bytes that are not UTF-8 would come back from the journal as other bytes.
TEST(RunSpecTest, RefusesWhatTheJournalCannotKeep) {
    RunSpec spec = spec_of_a_run();
    spec.command.push_back("\xff");
    EXPECT_THAT(message_of(spec), HasSubstr("not UTF-8"));
    spec = spec_of_a_run();
    spec.environment["K"] = std::string("a\0b", 3);
    EXPECT_THAT(message_of(spec), HasSubstr("zero byte"));
}

TEST(RunSpecTest, ShowsACycleWithItsPath) {
    EXPECT_THAT(message_of(graph_of({{"a", {"c"}}, {"b", {"a"}}, {"c", {"b"}}, {"d", {}}})),
                HasSubstr("the steps depend on each other: a -> c -> b -> a"));
    EXPECT_THAT(message_of(graph_of({{"a", {"a"}}})), HasSubstr("a -> a"));
}

TEST(RunSpecTest, OrdersStepsAfterTheirNeeds) {
    const RunSpec graph = graph_of({{"c", {"b", "a"}}, {"b", {"a"}}, {"a", {}}});
    EXPECT_EQ(message_of(graph), "");
    EXPECT_EQ(*order_of_steps(graph), (std::vector<std::size_t>{2, 1, 0}));
    // Deep chains may not use up the stack.
    std::vector<std::pair<std::string, std::vector<std::string>>> chain;
    for (int i = 0; i < 10'000; ++i)
        chain.push_back(
            {std::to_string(i), i < 9'999 ? std::vector{std::to_string(i + 1)} : std::vector<std::string>{}});
    EXPECT_TRUE(check_run_spec(graph_of(chain)));
}

TEST(RunSpecTest, TellsWhichStepIsWrong) {
    RunSpec graph = graph_of({{"a", {}}, {"b", {"aa"}}});
    graph.steps[0].run.ranks = 0;
    const std::string text = message_of(graph);
    EXPECT_THAT(text, HasSubstr("step a: ranks is 0"));
    EXPECT_THAT(text, HasSubstr("step b depends on aa, which is no step"));
}

// A name with a blank cannot be set by a shell, an sbatch line or a container engine: it is refused by its name.
TEST(RunSpecTest, EnvironmentNamesAreNames) {
    RunSpec spec;
    spec.name = "job";
    spec.command = {"true"};
    spec.environment = {{"GOOD_1", "a b"}, {"dotted.name-x", ""}};
    EXPECT_TRUE(check_run_spec(spec).ok());
    for (const char* name : {"", "A B", " A", "A\t", "A=B", "A\n", "\x7f"}) {
        RunSpec wrong = spec;
        wrong.environment[name] = "1";
        const Status status = check_run_spec(wrong);
        ASSERT_FALSE(status.ok()) << name;
        EXPECT_NE(status.error().text().find("is no name of an environment variable"), std::string::npos)
            << status.error().text();
    }
}

// A client's author finds the place in the body.
TEST(RunSpecTest, WhatIsWrongHasItsPlace) {
    const auto wrong = parse_run_spec(
        "{\"name\": \"x\", \"command\": [\"true\"],\n \"environment\": {\"GOOD\": \"1\",\n  \"A B\": \"1\"},\n"
        " \"priority\": 1000}");
    ASSERT_FALSE(wrong.ok());
    ASSERT_EQ(wrong.error().problems().size(), 2U);
    EXPECT_EQ(wrong.error().problems()[0].pos.line, 4);
    EXPECT_EQ(wrong.error().problems()[1].pos.line, 3);
}

}  // namespace
}  // namespace stoker
