// A program that nobody told how to read is understood where it writes what training programs write, and nothing is
// made a step that is none.
#include "observe/output_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

struct Seen {
    const char* line;
    CountedUnit unit;
    double number;
    double of = 0, loss = -1;
};

TEST(OutputSteps, ReadsWhatTrainingProgramsWrite) {
    using enum CountedUnit;
    const Seen seen[] = {
        {"step 10 loss 2.31", step, 10, 0, 2.31},
        {"Step [10/100], Loss: 0.5", step, 10, 100, 0.5},
        {"iter 50: loss 2.3001, time 43.21ms, mfu 1.23%", step, 50, 0, 2.3001},
        {"global_step=7 lr=1e-4", step, 7},
        {"2026-11-26 10:00:01,123 INFO train: epoch 2 step 15 loss=0.25", step, 15, 0, 0.25},
        {"I1126 10:00:01.123 12 train.py:80] Iteration 40 (2.1 iter/s), loss = 4.5", step, 40, 0, 4.5},
        {" iteration       30/     300 | consumed samples:  960 | elapsed time per iteration (ms): 41.3 | lm loss: "
         "3.2E+00 | loss scale: 1.0 |",
         step, 30, 300, 3.2},
        {"[rank0] iter:    20 | train_loss=0.125 | lr=1e-3", step, 20, 0, 0.125},
        {"{'step': 10, 'loss': 2.5}", step, 10, 0, 2.5},
        {R"({"event": "train", "global_step": 3, "epoch": 0.03, "loss": 0.5})", step, 3, 0, 0.5},
        {"Epoch: [0][ 10/5005]\tTime  0.301 ( 0.4)\tLoss 6.9 (6.95)", step, 10, 5005, 6.9},
        {"Epoch [1][50/7330]  lr: 1.0e-02, loss: 1.25", step, 50, 7330, 1.25},
        {"Epoch 1/3 | 10/100 | loss 2.5", step, 10, 100, 2.5},
        {"batch 12 of 60", step, 12, 60},
        {" 12%|#2        | 12/100 [00:03<00:20,  4.1it/s, loss=2.5]", bar, 12, 100, 2.5},
        {"Epoch 0:  12%|#2   | 12/100 [00:03<00:20,  4.10it/s, v_num=0]", bar, 12, 100},
        {"35it [00:03, 11.1it/s]", bar, 35},
        {" 12/100 [==>...........................] - ETA: 3s - loss: 0.75", bar, 12, 100, 0.75},
        {"Epoch 0/1 \xe2\x94\x81\xe2\x94\x81\xe2\x94\x81 12/100 0:00:03 \xe2\x80\xa2 0:00:20 4.1it/s", bar, 12, 100},
        {"Epoch 3: train loss 0.5, val loss 0.75", epoch, 3, 0, 0.5},
        {"Epoch 3/10", epoch, 3, 10},
        {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 0.5", report, 640, 60000, 0.5},
        {"{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': 0.1}", report, 0, 0, 2.3},
        {"loss 0.5", report, 0, 0, 0.5}};
    for (const Seen& each : seen) {
        const auto read = read_counted_line(each.line);
        ASSERT_TRUE(read) << each.line;
        EXPECT_EQ(read->unit, each.unit) << each.line;
        EXPECT_EQ(read->number, each.number) << each.line;
        EXPECT_EQ(read->of.value_or(0), each.of) << each.line;
        EXPECT_EQ(read->line.values.empty() ? -1 : read->line.values[0].second, each.loss) << each.line;
    }
    EXPECT_TRUE(read_counted_line("step 12 | loss nan |")->line.lost);
}

TEST(OutputSteps, TakesNothingElse) {
    for (const char* line : {"",
                             "hello",
                             "2026-11-26 10:00:01 starting",
                             "Downloading 12/100 MB",
                             "step time 0.4 s",
                             "steps per second: 4.1",
                             "batch size: 32",
                             "loading step_10.pt",
                             "GPU memory 3/16 GB",
                             "eval step 10 loss 2.5",
                             "Validation DataLoader 0:  12%|#2  | 12/100 [00:03<00:20, 4.1it/s]",
                             "Evaluating: 5/50 [00:01<00:10, 4it/s]",
                             "step 10ms",
                             "11/26/2026 iteration",
                             "loss scale: up",
                             "no loss of data",
                             "val loss 2.5",
                             "http://a/b/1/2",
                             "epoch 0.25 done",
                             R"({"config": 3})"})
        EXPECT_FALSE(read_counted_line(line)) << line;
    EXPECT_FALSE(read_counted_line(std::string(1 << 20, '1')));
    EXPECT_FALSE(read_counted_line(std::string(1 << 20, 'a')));
}

std::vector<double> steps_in(const std::vector<std::string>& lines) {
    OutputSteps output;
    std::vector<double> steps;
    double at = 100;
    for (const std::string& line : lines)
        for (const StepLine& each : output.take(line, at += 1)) steps.push_back(*each.step);
    return steps;
}

// Lines before it is clear what counts are told later, with the time when they were written.
TEST(OutputSteps, DecidesAfterThreeRisesAndTellsTheFirstOnesToo) {
    OutputSteps output;
    EXPECT_TRUE(output.take("step 10 loss 3", 100).empty());
    EXPECT_TRUE(output.take("step 20 loss 3", 101).empty());
    EXPECT_TRUE(output.take("step 30 loss 3", 102).empty());
    const auto told = output.take("step 40 loss 3", 103);
    ASSERT_EQ(told.size(), 4u);
    EXPECT_EQ(told[0].step, 10);
    EXPECT_EQ(told[0].time_s, 100);
    EXPECT_EQ(output.take("step 50 loss 3", 104).size(), 1u);
    EXPECT_TRUE(output.take("step 50 loss 3", 105).empty());  // drawn again
    EXPECT_TRUE(output.take("something else 60", 106).empty());
}

TEST(OutputSteps, GoesOnThroughEpochs) {
    EXPECT_EQ(
        steps_in({"Epoch 1 step 1/3", "Epoch 1 step 2/3", "Epoch 1 step 3/3", "Epoch 2 step 1/3", "Epoch 2 step 2/3"}),
        (std::vector<double>{1, 2, 3, 4, 5}));
    // Not all of them are printed: how many there are is.
    EXPECT_EQ(steps_in({"step 4/10", "step 8/10", "step 4/10", "step 8/10", "step 4/10"}),
              (std::vector<double>{4, 8, 14, 18, 24}));
}

// Another line that counts as well comes more rarely, and one that counts epochs says less.
TEST(OutputSteps, TakesTheKindThatSaysMost) {
    std::vector<std::string> lines;
    for (int i = 0; i < 40; ++i) {
        if (i % 10 == 0) lines.push_back("step " + std::to_string(i) + ": train loss 4.1, val loss 4.2");
        lines.push_back("iter " + std::to_string(i) + ": loss 4.1, time 40.1ms");
    }
    EXPECT_EQ(steps_in(lines).size(), 40u);
    lines.clear();
    for (int i = 0; i < 6; ++i) lines.push_back("epoch " + std::to_string(i) + " begins");
    for (int i = 0; i < 6; ++i) lines.push_back("iter " + std::to_string(i));
    EXPECT_EQ(steps_in(lines), (std::vector<double>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
}

// Hugging Face's lines have no step, and 5e-05 next to 0.0001: one kind, also when the loss is no number any more.
TEST(OutputSteps, ALineWhoseNumbersTurnToWordsIsTheSameLine) {
    OutputSteps output;
    std::vector<StepLine> told;
    for (int i = 1; i <= 9; ++i)
        for (StepLine& each : output.take(i < 6   ? "{'loss': 2.3, 'learning_rate': 0.0001, 'epoch': 0.1}"
                                          : i < 8 ? "{'loss': nan, 'learning_rate': 5e-05, 'epoch': 0.1}"
                                                  : "{'loss': inf, 'learning_rate': 5e-05, 'epoch': 0.1}",
                                          100 + i))
            told.push_back(std::move(each));
    ASSERT_EQ(told.size(), 9u);
    EXPECT_FALSE(told[4].lost);
    EXPECT_TRUE(told[5].lost);
    EXPECT_EQ(told[5].step, 6);
    EXPECT_EQ(told[8].step, 9);
}

// However much a program writes, what is kept of it has a bound.
TEST(OutputSteps, KeepsLittle) {
    OutputSteps output;
    for (int i = 0; i < 30'000; ++i)
        EXPECT_TRUE(
            output.take("step" + std::string(1, static_cast<char>('a' + i % 20)) + " " + std::to_string(i % 2), 1)
                .empty());
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(output.take("step " + std::to_string(i), 1).empty());
}

}  // namespace
}  // namespace stoker
