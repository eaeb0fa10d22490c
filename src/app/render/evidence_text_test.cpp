// What is said of published runs and constants has to be readable and complete: who measured what, and what we say.
#include "app/render/evidence_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(EvidenceText, TellsTheClosestRunMeasuredAndPredicted) {
    PublishedEvidence e;
    EXPECT_TRUE(evidence_lines(e).empty());
    e.asked = true, e.runs = 4000, e.runs_near = 12;
    EXPECT_EQ(evidence_lines(e).front(), "none of 4,000 published runs is anything like this");
    e.closest = PublishedRun{.id = "T1",
                             .title = "llama on 8 x H100",
                             .source = "somebody",
                             .metric = "step_s",
                             .measured = 10,
                             .predicted = 11,
                             .low = 9,
                             .high = 13,
                             .distance = 0.9};
    EXPECT_EQ(
        evidence_lines(e).front(),
        "12 of 4,000 published runs lie near; closest: llama on 8 x H100: measured 10 s per step, we predict 11 s "
        "per step (+10 %) [T1: somebody; 0.9 doublings away]");
    e.missing = "no published training run on a T4 is known";
    EXPECT_EQ(evidence_lines(e).size(), 2u);
    EXPECT_EQ(metric_text("out_tokens_per_s", 412), "412 output tokens/s");
    EXPECT_EQ(metric_text("ttft_ms", 250), "250 ms to the first token");
}

// Who reads that a figure is far off asks first in which direction; rates and times run in opposite ones.
TEST(EvidenceText, WhatIsFarOffSaysWhichWasSlower) {
    PublishedRun run;
    run.metric = "step_s", run.measured = 10, run.predicted = 9;
    EXPECT_EQ(off_text(run), "10 % off");
    run.predicted = 10.1;
    EXPECT_EQ(off_text(run), "within 1 %");
    run.predicted = 4;
    EXPECT_EQ(off_text(run), "60 % off: it took 2.5 x as long");
    run.predicted = 20;
    EXPECT_EQ(off_text(run), "100 % off: it was 2.0 x as fast");
    run.metric = "out_tokens_per_s";
    EXPECT_EQ(off_text(run), "100 % off: it took 2.0 x as long");
    run.predicted = 5;
    EXPECT_EQ(off_text(run), "50 % off: it was 2.0 x as fast");
}

// One outlier among the near runs is told with what the others showed.
TEST(EvidenceText, WhatOthersShowedStandsBesideAnOutlier) {
    PublishedRun run;
    run.metric = "step_s", run.measured = 10, run.predicted = 4;
    run.other_sources = 3, run.together = 1.4;
    EXPECT_EQ(off_text(run), "60 % off: it took 2.5 x as long; together with 3 other sources near it 1.4 x");
    run.predicted = 9;
    EXPECT_EQ(off_text(run), "10 % off");
    run.measured = 10, run.predicted = 20, run.other_sources = 1, run.together = 0.8;
    EXPECT_EQ(off_text(run), "100 % off: it was 2.0 x as fast; together with 1 other source near it 1.2 x");
    // Of a first token the rest of the answer says nothing.
    run.metric = "ttft_ms", run.measured = 480, run.predicted = 200, run.other_sources = 0;
    EXPECT_EQ(off_text(run), "58 % off: its first token took 2.4 x as long");
}

TEST(EvidenceText, WhatSetsARunApartIsListedUpToFour) {
    PublishedRun run;
    EXPECT_EQ(unlike_text(run), "");
    run.unlike = {"8 x the GPUs", "another GPU", "fp8", "2 x the sequence", "another framework"};
    EXPECT_EQ(unlike_text(run), ": 8 x the GPUs, another GPU, fp8, 2 x the sequence");
}

TEST(EvidenceText, ConstantsHaveTheChangeAtBothEndsAndTheirSource) {
    Plan plan;
    EXPECT_TRUE(because_lines(plan).empty());
    ConstantEffect e;
    e.name = "gemm_k0", e.source = "fitted on 10 rows of a, b; more", e.spread = "over the folds of the fit";
    e.value = 350, e.low = 300, e.high = 400;
    e.when_low.step = -0.015, e.when_high.step = 0.12;
    plan.because.push_back(e);
    EXPECT_EQ(because_lines(plan).front(), "gemm_k0 350 (300 - 400): step -1.5 +12 % [fitted on 10 rows of a, b]");
    plan.because.assign(20, e);
    EXPECT_EQ(because_lines(plan).size(), 16u);
    EXPECT_EQ(because_lines(plan).back(), "5 more in -o json");
}

}  // namespace
}  // namespace stoker
