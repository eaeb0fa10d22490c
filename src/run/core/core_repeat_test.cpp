// Runs that come again, and runs that are told otherwise while they wait.
#include "run/core/core_testing.h"

namespace stoker {
namespace {

class RowTest : public CoreTest {
protected:
    void SetUp() override {
        CoreTest::SetUp();
        machine();
    }
    const stoker::Run& run(std::uint64_t number) const { return *core_->state().find(RunId{number}); }
    std::size_t runs() const { return core_->state().runs.size(); }
    RunSpec every(std::string words) {
        RunSpec spec = job();
        spec.repeat = RepeatSpec{.every = std::move(words)};
        return spec;
    }
    void begins(OperationId op) {
        ASSERT_TRUE(answer(op, Certainty::confirmed));
        ASSERT_TRUE(tell(SawFact{fact(FactKind::rank_started, op)}));
    }
    void ends(OperationId op) {
        Fact end = fact(FactKind::rank_ended, op, Cause::ok);
        end.exit_code = 0;
        ASSERT_TRUE(tell(SawFact{end}));
        ASSERT_TRUE(tell(SawFact{fact(FactKind::gang_ended, op, Cause::ok)}));
    }
};

// A nightly run that shifts by its own length, runs twice at once or leaves out a night without a word is not nightly.
TEST_F(RowTest, TheNextWaitsForItsTimeAndForTheOneBefore) {
    ASSERT_TRUE(tell(Submit{.spec = every("1h")}));
    const OperationId first = effect(Verb::launch)->operation;
    const std::int64_t began = run(1).submitted_us;
    begins(first);
    ASSERT_EQ(runs(), 2u);  // it began at once, and the next stands in the queue
    EXPECT_EQ(run(2).spec.begin_at_us, began + 3600 * kSecondUs);
    EXPECT_EQ(run(2).spec.repeat->first, "r-1");
    EXPECT_EQ(run(2).submitted_by, run(1).submitted_by);
    tick(3 * 3600 + 60);  // the first runs for three hours
    EXPECT_EQ(run(2).state, RunState::queued);
    EXPECT_EQ(runs(), 2u);
    ends(first);
    ASSERT_TRUE(answer(effect(Verb::release)->operation, Certainty::confirmed));
    EXPECT_EQ(run(1).state, RunState::succeeded);
    ASSERT_EQ(runs(), 3u);
    EXPECT_EQ(run(3).spec.begin_at_us, began + 4 * 3600 * kSecondUs);  // on the beat of the first
    EXPECT_EQ(run(3).spec.repeat->missed, 2);                          // told: those of 2 h and 3 h
    EXPECT_EQ(run(3).spec.repeat->number, 3);
    // A server that starts anew submits nothing twice.
    open();
    tick(1);
    EXPECT_EQ(runs(), 3u);
    EXPECT_TRUE(run(2).next_in_row);
}

// Whoever ends the row means the row: nothing comes back the next night; `times` ends it by itself.
TEST_F(RowTest, CancellingWhatWaitsEndsTheRowAndSoDoesItsLast) {
    ASSERT_TRUE(tell(Submit{.spec = every("1h")}));
    begins(effect(Verb::launch)->operation);
    ASSERT_EQ(runs(), 2u);
    ASSERT_TRUE(tell(CancelRun{RunId{2}}));
    tick(3 * 86'400);
    EXPECT_EQ(runs(), 2u);
    RunSpec twice = every("1h");
    twice.repeat->times = 1;
    ASSERT_TRUE(tell(Submit{.spec = twice}));
    begins(effect(Verb::launch)->operation);
    EXPECT_EQ(runs(), 3u);
    RunSpec forged = every("1h");
    forged.repeat->previous = "r-1";
    EXPECT_FALSE(tell(Submit{.spec = forged}));
}

// An edit that loses its place in the queue, or reaches what has begun, changes results behind somebody's back.
TEST_F(RowTest, OnlyWhatWaitsIsEditedAndTheQueueFollows) {
    ASSERT_TRUE(tell(Submit{.spec = job()}));
    RunSpec waiting = job();
    waiting.begin_at_us = now_us_ + 3600 * kSecondUs;
    ASSERT_TRUE(tell(Submit{.spec = waiting}));
    RunSpec now = run(2).spec;
    now.begin_at_us.reset();
    now.priority = 50;
    now.command = {"other"};
    ASSERT_TRUE(tell(EditRun{RunId{2}, now}));
    EXPECT_EQ(run(2).spec.command, std::vector<std::string>{"other"});
    EXPECT_NE(run(2).state, RunState::queued);  // there is room, and nothing it waits for
    EXPECT_EQ(core_->state().queue.size(), 0u);
    EXPECT_FALSE(tell(EditRun{RunId{2}, job()}));  // it has begun
    RunSpec foreign = run(1).spec;
    foreign.user = "somebody";
    EXPECT_FALSE(tell(EditRun{RunId{1}, foreign}));
    EXPECT_EQ(decode_state(encode_state(core_->state()))->find(RunId{2})->spec.priority, 50);
}

}  // namespace
}  // namespace stoker
