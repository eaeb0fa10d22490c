// When a run may start at all: after others, at a time, beside its siblings, and not while a person holds it.
#include "run/core/core_testing.h"
#include "run/decide/why.h"

namespace stoker {
namespace {

class CoreStartTest : public CoreTest {
protected:
    RunSpec after(RunId run, AfterEnd end) {
        RunSpec spec = job();
        spec.after = {{run.text(), end}};
        return spec;
    }
    // The launched run ends, as its only rank says.
    void end(const OperationId& launch, Cause cause) {
        Fact ended = fact(FactKind::rank_ended, launch, cause);
        ended.exit_code = cause == Cause::ok ? 0 : 1;
        ASSERT_TRUE(tell(SawFact{ended}));
        ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, launch, cause)}));
    }
    Cause waits(RunId run) { return why(core_->state(), run, now_us_).code; }
    static RunSpec array(int steps, std::int64_t parallel) {
        RunSpec graph;
        graph.name = "array";
        graph.kind = RunKind::graph;
        graph.parallel = parallel;
        for (int i = 0; i < steps; ++i)
            graph.steps.push_back(
                {.name = "i" + std::to_string(i), .on_failure = OnFailure::continue_others, .run = job()});
        return graph;
    }
    std::size_t live() const { return core_->state().live.size(); }
};

TEST_F(CoreStartTest, ARunStartsAfterTheEndThatItNames) {
    machine(8);
    const RunId first = tell(Submit{.spec = job()})->run;
    const OperationId launch = effect(Verb::launch)->operation;
    const RunId ok = tell(Submit{.spec = after(first, AfterEnd::ok)})->run;
    const RunId any = tell(Submit{.spec = after(first, AfterEnd::any)})->run;
    const RunId failed = tell(Submit{.spec = after(first, AfterEnd::failed)})->run;
    ASSERT_TRUE(answer(launch, Certainty::confirmed));
    for (const RunId run : {ok, any, failed}) EXPECT_EQ(waits(run), Cause::dependency_waiting);
    end(launch, Cause::user_error);
    tick(1);
    EXPECT_EQ(state_of(first), RunState::failed);
    EXPECT_EQ(state_of(ok), RunState::cancelled);
    EXPECT_EQ(core_->state().find(ok)->cause, Cause::dependency);
    EXPECT_EQ(state_of(any), RunState::starting);
    EXPECT_EQ(state_of(failed), RunState::starting);
    // The condition is in the journal.
    open();
    EXPECT_EQ(core_->state().find(failed)->needs, std::vector<RunId>{first});
    EXPECT_EQ(core_->state().find(failed)->spec.after->front().end, AfterEnd::failed);
}

TEST_F(CoreStartTest, AfterARunThatIsNotThereIsRefused) {
    machine(1);
    EXPECT_EQ(tell(Submit{.spec = after(RunId{7}, AfterEnd::ok)}).error().kind(), ErrorKind::not_found);
    RunSpec odd = job();
    odd.after = {{"nightly", AfterEnd::ok}};
    EXPECT_THAT(tell(Submit{.spec = odd}).error().text(), HasSubstr("is no run"));
}

// As sbatch --hold: a run that was held a moment after it was submitted may have begun in between.
TEST_F(CoreStartTest, ARunIsHeldFromItsFirstMoment) {
    open({.site = "tests", .log_root = "/logs"});
    machine(1);
    const RunId run = tell(Submit{.spec = job(), .held = true})->run;
    tick(10);
    EXPECT_EQ(effect(Verb::launch), nullptr);
    EXPECT_TRUE(core_->state().find(run)->held);
    ASSERT_TRUE(tell(HoldRun{.run = run, .held = false}));
    EXPECT_NE(effect(Verb::launch), nullptr);
}

TEST_F(CoreStartTest, WhatIsWaitedForIsNotForgotten) {
    CoreOptions options{.site = "tests", .log_root = "/logs"};
    options.max_ended = 1;
    open(options);
    machine(1);
    const RunId first = tell(Submit{.spec = job()})->run;
    const OperationId launch = effect(Verb::launch)->operation;
    ASSERT_TRUE(answer(launch, Certainty::confirmed));
    const RunId waiting = tell(Submit{.spec = after(first, AfterEnd::any)})->run;
    ASSERT_TRUE(tell(HoldRun{waiting}));
    end(launch, Cause::ok);
    ASSERT_NE(effect(Verb::release), nullptr);
    ASSERT_TRUE(answer(effect(Verb::release)->operation, Certainty::confirmed));
    for (int i = 0; i < 3; ++i) {
        const RunId other = tell(Submit{.spec = job()})->run;
        ASSERT_TRUE(tell(CancelRun{other}));
    }
    tick(10);
    EXPECT_NE(core_->state().find(first), nullptr);
    ASSERT_TRUE(tell(CancelRun{waiting}));
    tick(10);
    EXPECT_EQ(core_->state().find(first), nullptr);
}

// The core asks to be called by then, and starts it without anything else happening.
TEST_F(CoreStartTest, ARunThatBeginsLaterBeginsThen) {
    machine(1);
    RunSpec spec = job();
    spec.begin_at_us = now_us_ + 3600 * kSecondUs;
    spec.queue_timeout_s = 60;  // of waiting that could have started it
    const RunId run = tell(Submit{.spec = spec})->run;
    EXPECT_EQ(waits(run), Cause::begin_later);
    EXPECT_EQ(effect(Verb::launch), nullptr);
    tick(600);
    EXPECT_EQ(effect(Verb::launch), nullptr);
    ASSERT_GT(turn_.wake_us, 0);
    EXPECT_LE(turn_.wake_us, *spec.begin_at_us);
    open();  // also after a restart
    ASSERT_TRUE(tell(Listed{{.asked_seq = core_->state().seq, .ours = {}}}));
    now_us_ = *spec.begin_at_us;
    tick(0);
    ASSERT_NE(effect(Verb::launch), nullptr);
    EXPECT_EQ(effect(Verb::launch)->attempt.run, run);
}

TEST_F(CoreStartTest, AnArrayRunsAsManyAtOnceAsItMay) {
    machine(8);
    const RunId graph = tell(Submit{.spec = array(5, 2)})->run;
    tick(1);
    EXPECT_EQ(live(), 2U);
    const std::vector<RunId> steps = core_->state().steps.at(graph);
    EXPECT_EQ(waits(steps[2]), Cause::parallel_limit);
    // Others are not held up by it.
    const RunId other = tell(Submit{.spec = job()})->run;
    EXPECT_EQ(state_of(other), RunState::starting);
    std::size_t most = 0;
    for (int i = 0; i < 40 && !is_terminal(state_of(graph)); ++i) {
        for (const RunId step : steps) {
            const Attempt* attempt = core_->state().find(step)->live_attempt();
            if (attempt == nullptr) continue;
            const OperationId launch = attempt->launch;
            (void)answer(launch, Certainty::confirmed);
            end(launch, Cause::ok);
            break;
        }
        tick(1);
        std::size_t running = 0;
        for (const RunId step : steps) running += core_->state().live.contains(step) ? 1 : 0;
        most = std::max(most, running);
    }
    EXPECT_EQ(most, 2U);
    EXPECT_EQ(state_of(graph), RunState::succeeded);
}

TEST_F(CoreStartTest, AHeldGraphStartsNoFurtherStep) {
    machine(8);
    const RunId graph = tell(Submit{.spec = array(3, 1)})->run;
    tick(1);
    const RunId second = core_->state().steps.at(graph)[1];
    ASSERT_TRUE(tell(HoldRun{graph}));
    const OperationId launch = core_->state().find(core_->state().steps.at(graph)[0])->live_attempt()->launch;
    ASSERT_TRUE(answer(launch, Certainty::confirmed));
    end(launch, Cause::ok);
    tick(5);
    EXPECT_EQ(live(), 0U);
    EXPECT_EQ(waits(second), Cause::held);
    ASSERT_TRUE(tell(HoldRun{.run = graph, .held = false}));
    EXPECT_EQ(state_of(second), RunState::starting);
}

}  // namespace
}  // namespace stoker
