// Who asks why a run is slow reads the cause with what to do about it, or what was ruled out; never more than is known.
#include "app/client/explanation_text.h"

#include <gmock/gmock.h>

#include "app/client/explanation_against.h"
#include "app/client/explanation_timeline.h"
#include "base/text.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::Not;

api::ExplanationView starved() {
    api::ExplanationView view{.run = {7}, .state = RunState::succeeded, .cause = Cause::ok};
    view.attempt = "a-7.1";
    view.steps = 90;
    view.warm_up_steps = 10;
    view.gap_s = 0.1;
    view.outside = true;
    view.terms = {
        {.term = "step", .unit = "s", .measured = 0.3, .predicted = 0.2, .low = 0.18, .high = 0.25, .verdict = "above"},
        {.term = "memory",
         .unit = "bytes",
         .measured = 1.5e9,
         .predicted = 1.4e9,
         .low = 1.2e9,
         .high = 1.6e9,
         .verdict = "inside"},
        {.term = "cost", .unit = "microusd", .predicted = 1e6, .note = "no price book"}};
    view.diagnoses = {{.name = "starved-input",
                       .what = "90 ms a step waiting for data",
                       .evidence = {"30 % of the step on rank 1", "0 loader workers"},
                       .cost_s = 0.09,
                       .share_of_gap = 0.9,
                       .expected_gain = 0.3,
                       .fix = "DataLoader(..., num_workers=2)",
                       .rank = 1}};
    view.ruled_out = {{"cpu-limit", "none is throttled"}, {"disk-slow", "0 ms"}, {"checkpoint-stalls", "0 ms"}};
    view.not_known = {{"straggler", "needs compute_s of two ranks"}};
    return view;
}

// An engineer at a GPU asks for the board's memory and what its units do; 1.4 GiB of the machine says neither.
TEST(ExplanationText, OfARunOnGpusTheBoardIsTold) {
    api::ExplanationView view = starved();
    view.terms = {{.term = "step", .unit = "s", .measured = 0.2},
                  {.term = "gpu-memory", .unit = "bytes", .measured = 42.0 * (1 << 30)},
                  {.term = "memory", .unit = "bytes", .measured = 1.5e9},
                  {.term = "time", .unit = "s", .measured = 22.3}};
    view.gpu = api::GpuUseView{.count = 1,
                               .busy_share = 0.84,
                               .tensor_share = 0.1,
                               .bandwidth_share = 0.001,
                               .power_w = 480.4,
                               .power_limit_w = 700,
                               .memory_held_bytes = 45.0 * (1 << 30),
                               .memory_size_bytes = 139.8 * (1 << 30)};
    std::string text = explanation_text(view, Style{});
    EXPECT_THAT(text,
                HasSubstr("  GPU          84 % busy, tensor cores 10 %, memory bandwidth under 1 %, 480 of 700 W\n"
                          "  GPU memory   42.0 GiB measured (of 140 GiB, the allocator holds 45.0 GiB, host 1.4 GiB)\n"
                          "  time         22.3 s measured\n"));
    EXPECT_THAT(text, Not(HasSubstr("  memory ")));
    view.gpu = api::GpuUseView{.count = 8, .busy_share = 0.97, .power_w = 300};
    view.terms[1].measured.reset();
    view.terms[1].predicted = 70.0 * (1 << 30);
    text = explanation_text(view, Style{});
    EXPECT_THAT(text, HasSubstr("8 boards: 97 % busy, 300 W each\n"));
    EXPECT_THAT(text, HasSubstr("not measured, 70.0 GiB predicted (host 1.4 GiB)"));
}

TEST(ExplanationText, NamesCauseEvidenceShareGainAndFix) {
    const std::string text = explanation_text(starved(), Style{});
    for (const char* part :
         {"r-7 succeeded, 90 steps of a rank looked at after 10 of warm-up", "300 ms measured, 200 ms predicted",
          "50 % more than predicted", "1.4 GiB measured", "inside", "not measured, $1.00 predicted", "no price book",
          "starved-input (rank 1)", "30 % of the step on rank 1; 0 loader workers", "90 % of the gap",
          "up to 30 % less", "num_workers=2", "disk-slow, checkpoint-stalls: 0 ms",
          "straggler: needs compute_s of two ranks"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(text, Not(HasSubstr("not explained")));
    for (const std::string_view line : split_lines(text)) EXPECT_LE(display_width(line), 100u);
    const std::string summary = explanation_summary(starved());
    EXPECT_THAT(summary, HasSubstr("starved-input: 90 ms a step waiting for data (up to 30 % of a step)"));
    EXPECT_THAT(summary, HasSubstr("stoker explain r-7"));
}

// It failed before its first step: why is the answer, and thirty rules that had nothing to judge are none.
TEST(ExplanationText, WhatFailedSaysWhyAndNoMore) {
    api::ExplanationView view = starved();
    view.state = RunState::failed;
    view.cause = Cause::user_error;
    view.steps = view.warm_up_steps = 0;
    view.terms.clear();
    view.gap_s.reset();
    view.diagnoses = {{.name = "module-missing",
                       .what = "a Python module is not installed here",
                       .evidence = {"ModuleNotFoundError: No module named 'apex'", "train.py:3"},
                       .fix = "pip install NAME",
                       .stops = true}};
    const std::string text = explanation_text(view, Style{});
    for (const char* part : {"r-7 failed (user_error)", "No module named 'apex'; train.py:3", "pip install NAME"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(text, Not(HasSubstr("Could not be known")));
    view.diagnoses.clear();
    view.outside = true;
    EXPECT_THAT(explanation_text(view, Style{}), Not(HasSubstr("better than planned")));
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("stoker describe r-7"));
}

TEST(ExplanationText, SaysWhenNothingIsFoundOrKnown) {
    api::ExplanationView view = starved();
    view.diagnoses.clear();
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("No diagnosis explains what is outside."));
    EXPECT_THAT(explanation_summary(view), HasSubstr("no diagnosis explains"));
    // Faster than planned is an answer, and no riddle.
    view.terms[0].measured = 0.15;
    view.terms[0].verdict = "below";
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("25 % less than predicted"));
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("It does better than planned"));
    view.outside = false;
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("Nothing found that slows it down."));
    EXPECT_EQ(explanation_summary(view), "");
    view.attempt.clear();
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("has not run itself"));
    view.state = RunState::queued;
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("has not started yet; what it waits for: stoker describe"));
    view = starved();
    view.diagnoses.clear();
    view.ruled_out.clear();
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("Nothing can be said"));
    view = starved();
    view.unexplained_s = 0.08;
    EXPECT_THAT(explanation_text(view, Style{}),
                HasSubstr("Of the gap of 100 ms a step, 20 ms are explained and 80 ms are not."));
    view.unexplained_s = 0.0005;
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("That is the gap of 100 ms a step."));
    view.unexplained_s = -0.05;
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("Together 150 ms a step, more than the gap of 100 ms"));
    view.unexplained_s = 0.1;
    EXPECT_THAT(explanation_text(view, Style{}), HasSubstr("The gap of 100 ms a step is not explained."));
}

api::ExplanationView with_timeline() {
    api::ExplanationView view = starved();
    view.timeline = api::TimelineView{.from_s = 100, .each_s = 1, .step_s = {0.2, 0.2, 0.4, 0.2, 0, 0.2}};
    view.diagnoses[0].spans = {{.from_s = 102, .to_s = 103}};
    return view;
}

// When it was slow is seen at a look, and which cause it was then; a second without a step is a gap.
TEST(ExplanationText, TheStepsAreDrawnWithTheCauseBelow) {
    const std::string text = explanation_text(with_timeline(), Style{});
    EXPECT_THAT(text, HasSubstr("  steps        ▄▄█▄ ▄\n                 ^ starved-input\n"));
    EXPECT_THAT(text, HasSubstr("a column is 1 s; 200 ms to 400 ms a step"));
    EXPECT_THAT(explanation_text(starved(), Style{}), Not(HasSubstr("a column is")));
}

// The page stands alone, and nothing of a run's words is taken for its markup.
TEST(ExplanationHtml, IsAPageWithAPicture) {
    api::ExplanationView view = with_timeline();
    view.diagnoses[0].what = "<script>alert(1)</script>";
    const std::string page = explanation_html(view);
    EXPECT_THAT(page, HasSubstr("<svg"));
    EXPECT_THAT(page, HasSubstr("class=\"cause\""));
    EXPECT_THAT(page, HasSubstr("starved-input: &lt;script&gt;"));
    EXPECT_THAT(page, Not(HasSubstr("<script>")));
    EXPECT_THAT(page, Not(HasSubstr("http")));
    EXPECT_THAT(explanation_html(starved()), HasSubstr("No steps were seen"));
}

// Two runs beside each other: what differs by how much, and which cause only one of them has.
TEST(ExplanationAgainst, SaysWhatOneHasAndTheOtherHasNot) {
    api::ExplanationView healthy = starved();
    healthy.run = {3};
    healthy.diagnoses.clear();
    healthy.terms[0].measured = 0.2;
    const std::string text = against_text(starved(), healthy, Style{});
    EXPECT_THAT(text, HasSubstr("50 % more"));
    EXPECT_THAT(text, HasSubstr("alike"));
    EXPECT_THAT(text, HasSubstr("only r-7: starved-input"));
    EXPECT_THAT(against_text(healthy, starved(), Style{}), HasSubstr("33 % less"));
    healthy.terms[0].measured = 0.15;  // twice that is 0.3 to the last digit
    const std::string json = against_json(starved(), healthy).dump();
    EXPECT_THAT(json, HasSubstr("\"ratio\": 2\n"));
    EXPECT_THAT(json, HasSubstr("\"both\": []"));
}

}  // namespace
}  // namespace stoker
