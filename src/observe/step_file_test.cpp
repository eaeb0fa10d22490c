// How fast a training is can be told from what it writes, whatever it writes and however its file is treated.
#include "observe/step_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;

struct StepFileTest : testing::Test {
    std::string path = testing::TempDir() + "steps-" + std::to_string(::getpid()) + "-" +
                       testing::UnitTest::GetInstance()->current_test_info()->name();
    StepFileTest() { fs::remove(path); }
    ~StepFileTest() override { fs::remove(path); }
    void append(const std::string& text) const { std::ofstream(path, std::ios::app | std::ios::binary) << text; }
    static double value(const StepLine& line, const std::string& name) {
        for (const auto& [each, number] : line.values)
            if (each == name) return number;
        return -1;
    }
};

TEST_F(StepFileTest, OnlyWholeLinesAndOnlyOnce) {
    StepReader reader({.kind = StepSource::Kind::lines, .path = path});
    EXPECT_TRUE(reader.poll(0).empty());
    append("{\"step\": 1, \"step_s\": 0.5, \"wait_s\": 0.1}\n{\"step\": 2, \"st");
    auto lines = reader.poll(1);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(value(lines[0], "wait_s"), 0.1);
    EXPECT_TRUE(reader.poll(2).empty());
    append("ep_s\": 0.75, \"rank\": 3, \"time\": 1700000000.5, \"name\": \"x\", \"flag\": true}\nnonsense\n[1]\n\n");
    lines = reader.poll(3);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].step, 2);
    EXPECT_EQ(lines[0].rank, 3);
    EXPECT_EQ(lines[0].time_s, 1700000000.5);
    EXPECT_EQ(value(lines[0], "step_s"), 0.75);
    EXPECT_EQ(reader.bad_lines(), 2);
}

TEST_F(StepFileTest, AFileThatIsReplacedOrCutBeginsAnew) {
    TailReader tail(path);
    append("one\ntw");
    EXPECT_EQ(tail.next(), std::vector<std::string>{"one"});
    std::ofstream(path + ".new") << "three\n";
    fs::rename(path + ".new", path);
    EXPECT_EQ(tail.next(), std::vector<std::string>{"three"});
    fs::resize_file(path, 0);
    EXPECT_TRUE(tail.next().empty());
    append("4\n");
    EXPECT_EQ(tail.next(), std::vector<std::string>{"4"});
    fs::remove(path);
    EXPECT_TRUE(tail.next().empty());
    append("5\n");
    tail.skip_to_end();
    append("6\n");
    EXPECT_EQ(tail.next(), std::vector<std::string>{"6"});
}

TEST_F(StepFileTest, NothingAProgramWritesCanMakeItGrow) {
    TailReader tail(path, {.max_line = 100, .max_read = 1000, .max_behind = 5000});
    append(std::string(400, 'x') + "\nshort\n");
    EXPECT_EQ(tail.next(), std::vector<std::string>{"short"});
    EXPECT_EQ(tail.dropped_lines(), 1);
    append(std::string(2500, 'x'));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(tail.next().empty());
    append("yz\nlast\n");
    EXPECT_EQ(tail.next(), std::vector<std::string>{"last"});
    EXPECT_EQ(tail.dropped_lines(), 2);
    std::string many;
    for (int i = 0; i < 4000; ++i) many += std::to_string(100'000 + i) + "\n";
    append(many);
    const auto lines = tail.next();
    EXPECT_GT(tail.skipped_bytes(), 0);
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back(), "103999");
    EXPECT_EQ(lines.front().size(), 6u);
    // Something that would make us wait is not read.
    fs::remove(path);
    ASSERT_EQ(::symlink("/dev/zero", path.c_str()), 0);
    EXPECT_TRUE(tail.next().empty());
}

TEST_F(StepFileTest, APatternFindsTheNumbersInTheOutput) {
    const auto pattern = StepPattern::parse("step {step}/{} loss {loss} {step_s} s/step");
    ASSERT_TRUE(pattern.ok());
    const auto line = pattern->match("rank 0: step 120/1000 loss   2.31 0.231 s/step 553 tokens/s");
    ASSERT_TRUE(line);
    EXPECT_EQ(line->step, 120);
    EXPECT_EQ(value(*line, "loss"), 2.31);
    EXPECT_EQ(value(*line, "step_s"), 0.231);
    for (const char* other :
         {"", "step", "step x/3 loss 1 1 s/step", "step 1/2 loss nano 1 s/step", "step nan/2 loss 1 1 s/step",
          "step 1/2 loss 1e999 1 s/step", "substep 1/2 loss 1 1 s/step", "step 1/2 loss 1"})
        EXPECT_FALSE(pattern->match(other)) << other;
    const auto hugging = StepPattern::parse("{'loss': {loss},");
    EXPECT_FALSE(hugging.ok());
    const auto keras = StepPattern::parse("Iteration {step} (");
    ASSERT_TRUE(keras.ok());
    EXPECT_EQ(keras->match("I1120 12:00:01 Iteration 40 (2.1 iter/s)")->step, 40);
    for (const char* bad : {"loss {loss}", "step {step}{loss}", "step {step", "{a b} {step}", ""})
        EXPECT_FALSE(StepPattern::parse(bad).ok()) << bad;
    EXPECT_FALSE(StepPattern::parse(std::string(2000, 'x')).ok());
}

// A loss that becomes NaN is the commonest disaster of a training: its steps go on being seen, and it is told since
// when.
TEST_F(StepFileTest, ALossThatIsNoNumberHidesNoStep) {
    const auto pattern = StepPattern::parse("it {step} | loss {loss} |");
    StepReader output({.kind = StepSource::Kind::output, .path = path, .pattern = *pattern});
    append("it 1 | loss 2.5 |\nit 2 | loss nan |\nit 3 | loss -inf |\n");
    const auto seen = output.poll(100);
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(value(seen[0], "not_finite"), -1);
    EXPECT_EQ(value(seen[1], "not_finite"), 2);
    EXPECT_EQ(value(seen[2], "not_finite"), -1);  // once a look: since when is what is asked
    EXPECT_EQ(value(seen[2], "loss"), -1);
    for (const char* line :
         {R"({"step": 4, "loss": NaN, "note": "NaN \" NaN", "step_s": 0.5})",
          R"({"step": 4, "train_loss": -Infinity, "step_s": 0.5})", R"({"step": 4, "loss": "nan", "step_s": 0.5})"}) {
        const auto read = parse_step_line(line);
        ASSERT_TRUE(read) << line;
        EXPECT_TRUE(read->lost) << line;
        EXPECT_EQ(read->step, 4);
        EXPECT_EQ(value(*read, "step_s"), 0.5) << line;
    }
    // Before the first evaluation there is none, and that is no disaster.
    for (const char* line :
         {R"({"step": 4, "val_loss": NaN})", R"({"step": 4, "accuracy": NaN})", R"({"step": 4, "loss": "info"})"})
        EXPECT_FALSE(parse_step_line(line)->lost) << line;
    EXPECT_FALSE(parse_step_line(R"({"step": 4, "loss": NaNNaN})"));
}

TEST_F(StepFileTest, StepTimesAreWorkedOutWhereTheyAreNotSaid) {
    const auto pattern = StepPattern::parse("step {step}");
    StepReader reader({.kind = StepSource::Kind::output, .path = path, .pattern = *pattern});
    append("hello\nstep 1\n");
    EXPECT_EQ(reader.poll(100).size(), 1u);
    append("step 2\nstep 3\nstep 5\n");
    const auto lines = reader.poll(102);
    ASSERT_EQ(lines.size(), 3u);
    // Each is a step, so that as many count as there were.
    for (const StepLine& line : lines) EXPECT_EQ(value(line, "step_s"), 0.5);
    // A new attempt counts from its checkpoint: no step took the time in between.
    append("step 4\n");
    EXPECT_EQ(value(reader.poll(500)[0], "step_s"), -1);
    append("step 6\n");
    EXPECT_EQ(value(reader.poll(504)[0], "step_s"), 2);
}

TEST_F(StepFileTest, AHeartbeatFileIsEnough) {
    StepReader reader({.kind = StepSource::Kind::heartbeat, .path = path});
    EXPECT_TRUE(reader.poll(0).empty());
    const auto beat = [&](const std::string& text) { std::ofstream(path, std::ios::trunc) << text; };
    beat("10\n");
    EXPECT_EQ(reader.poll(1e5).at(0).step, 10);
    EXPECT_TRUE(reader.poll(1e5 + 1).empty());
    beat("14\n");
    EXPECT_EQ(value(reader.poll(1e5 + 2).at(0), "step_s"), 0.5);
    beat("{\"step\": 15, \"loss\": 2}");
    EXPECT_EQ(value(reader.poll(1e5 + 3).at(0), "loss"), 2);
    beat("what");
    EXPECT_TRUE(reader.poll(1e5 + 4).empty());
    EXPECT_EQ(reader.bad_lines(), 1);
}

}  // namespace
}  // namespace stoker
