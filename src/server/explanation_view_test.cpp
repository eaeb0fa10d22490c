// Programs that read GET /runs/{run}/explanation keep their keys, words and times, however explain is made inside.
#include "server/explanation_view.h"

#include <gtest/gtest.h>

#include "base/codec.h"

namespace stoker::api {
namespace {

TEST(ExplanationView, SaysAllThatWasExplainedInTheWordsOfTheApi) {
    ExplainedRun run{.run = {7}, .state = RunState::succeeded, .cause = Cause::ok, .attempt = {{7}, 2}};
    run.from_us = 1'795'255'210'000'000;
    run.to_us = 1'795'255'230'000'120;
    run.gap_s = 0.125, run.outside = true, run.point_s = 1, run.steps = 30;
    run.terms.push_back({.kind = HeldTermKind::step,
                         .measured = 0.25,
                         .predicted = 0.125,
                         .low = 0.1,
                         .high = 0.2,
                         .verdict = PlanVerdict::above});
    run.terms.push_back({.kind = HeldTermKind::memory, .measured = 100, .note = "why"});
    run.terms.push_back({.kind = HeldTermKind::cost, .predicted = 3});
    run.diagnoses.push_back({.name = "straggler", .what = "w", .evidence = {"e"}, .cost_s = 0.5, .rank = 1});
    run.diagnoses.back().figures = {{.name = "longer_share", .value = 0.5, .unit = "of a step", .threshold = 0.12}};
    run.diagnoses.back().spans = {{.from_s = 10, .to_s = 12}};
    run.timeline = {.from_s = 9, .each_s = 2, .step_s = {0.5, 0.25}};
    run.ruled_out.push_back({"disk-full", "there is room"});
    EXPECT_EQ(
        codec::encode(view_of_explanation(run)),
        R"({"attempt":"a-7.2","cause":"ok","causes":[{"cause":"straggler","cost_s":0.5,"evidence":["e"],)"
        R"("expected_gain":0,"figures":[{"name":"longer_share","threshold":0.12,"unit":"of a step","value":0.5}],"rank":1,)"
        R"("spans":[{"from_s":10,"to_s":12}],"stops":false,"what":"w"}],"from":"2026-11-21T10:00:10.000000Z",)"
        R"("gap_s":0.125,"not_known":[],"outside":true,"point_s":1,"ruled_out":[{"cause":"disk-full",)"
        R"("reason":"there is room"}],"run":"r-7","state":"succeeded","steps":30,"terms":[{"high":0.2,"low":0.1,)"
        R"("measured":0.25,"predicted":0.125,"term":"step","unit":"s","verdict":"above"},{"measured":100,)"
        R"("note":"why","term":"memory","unit":"bytes"},{"predicted":3,"term":"cost","unit":"microusd"}],)"
        R"("timeline":{"allreduce_s":[],"checkpoint_s":[],"each_s":2,"from_s":9,"longest_s":[],"rank":0,)"
        R"("step_s":[0.5,0.25],"wait_s":[]},)"
        R"("to":"2026-11-21T10:00:30.000120Z","warm_up_steps":0})");
}

}  // namespace
}  // namespace stoker::api
