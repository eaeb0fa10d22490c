#include "run/decide/why.h"

#include <gmock/gmock.h>

#include "run/decide/testing.h"

namespace stoker {
namespace {

using run_testing::World;
using testing::Contains;
using testing::HasSubstr;

// What is offered must really start it: each offer is tried by submitting it.
TEST(WhyTest, OffersOnlyWhatStartsIt) {
    World world;
    world.node("a", 8);
    RunSpec running = World::spec(1, 5);
    running.timeout_s = 600;
    world.submit(running);
    world.pass();
    const RunId waits = world.submit(World::spec(2, 3));
    const Why answer = why(world.state, waits, world.now_us);
    EXPECT_EQ(answer.code, Cause::capacity_busy);
    EXPECT_THAT(answer.text,
                HasSubstr("2 ranks of 1 CPU, 3 GPU fit, but not beside what runs now; it starts in at most"));
    EXPECT_THAT(answer.numbers, Contains(std::pair<std::string, std::int64_t>("gpu_milli_free", 3000)));
    EXPECT_EQ(answer.unblock, (std::vector<std::string>{"1 rank instead of 2", "1 GPUs a rank instead of 3"}));
}

TEST(WhyTest, EveryWaitHasItsCode) {
    World world;
    world.node("a", 2);
    const RunId huge = world.submit(World::spec(1, 4));
    EXPECT_EQ(why(world.state, huge, world.now_us).code, Cause::capacity_none);
    EXPECT_THAT(why(world.state, huge, world.now_us).text, HasSubstr("even when nothing else runs"));
    world.put(RunHeld{huge, true});
    EXPECT_EQ(why(world.state, huge, world.now_us).code, Cause::held);
    const RunId next = world.submit(World::spec(1, 1));
    EXPECT_EQ(why(world.state, next, world.now_us).code, Cause::order_behind);
    const RunId need = next;
    const RunId id{world.state.runs_made + 1};
    world.put(RunSubmitted{.run = id, .spec = World::spec(1, 1), .key = "", .parent = {}, .step = "", .needs = {need}});
    EXPECT_EQ(why(world.state, id, world.now_us).code, Cause::dependency_waiting);
    EXPECT_EQ(why(world.state, id, world.now_us).blockers, std::vector<RunId>{need});
    world.pass();
    EXPECT_EQ(why(world.state, next, world.now_us).code, Cause::none);
    EXPECT_EQ(why(world.state, {99}, world.now_us).code, Cause::none);
}

// A gang that insists on one switch is told that this is what keeps it, and what would start it.
TEST(WhyTest, ASwitchThatIsTooSmallIsTheReason) {
    World world;
    for (const char* name : {"a", "b", "c"}) {
        world.node(name, 8);
        world.state.nodes.at(name).info.topology = name == std::string("c") ? "leaf-2" : "leaf-1";
    }
    RunSpec wide = World::spec(3, 8);
    wide.topology = TopologyWish::require;
    const RunId id = world.submit(wide);
    const Why answer = why(world.state, id, world.now_us);
    EXPECT_EQ(answer.code, Cause::capacity_none);
    EXPECT_THAT(answer.text, HasSubstr("it requires one switch, and the largest of 2 has 2 nodes"));
    EXPECT_THAT(answer.unblock, Contains("topology: prefer instead of require"));
    EXPECT_THAT(answer.unblock, Contains("2 ranks instead of 3"));
    wide.ranks = 2;
    const RunId narrow = world.submit(wide);
    const Decisions decisions = world.pass();
    ASSERT_TRUE(world.starts(decisions, narrow));
    for (const RankPlace& place : decisions.admit.back().places) EXPECT_NE(place.node, "c");
}

// An image that is not here yet keeps its run waiting, and nobody else.
TEST(WhyTest, AnImageOnItsWayIsTheReason) {
    World world;
    world.node("a", 8);
    RunSpec spec = World::spec(1, 1);
    spec.image = "docker.io/library/box@sha256:" + std::string(64, 'a');
    const RunId id = world.submit(spec), other = world.submit(World::spec(1, 1));
    SchedulerOptions options;
    options.images[spec.image] = {.ready = false, .detail = "fetched 1 MB of 3 MB"};
    const Decisions decisions = schedule(world.state, world.now_us, options);
    EXPECT_EQ(world.waits(decisions, id), Cause::image_pulling);
    EXPECT_TRUE(world.starts(decisions, other));
    EXPECT_EQ(decisions.images, std::set<std::string>{spec.image});
    const Why answer = why(world.state, id, world.now_us, options);
    EXPECT_EQ(answer.code, Cause::image_pulling);
    EXPECT_THAT(answer.text, HasSubstr("fetched 1 MB of 3 MB"));
    options.images[spec.image].ready = true;
    EXPECT_TRUE(world.starts(schedule(world.state, world.now_us, options), id));
}

// A number that is made up is worse than none.
TEST(EtaTest, SaysWhenNoEndCanBeTold) {
    World world;
    world.node("a", 1);
    world.submit(World::spec(1, 1));
    world.pass();
    const RunId waits = world.submit(World::spec(1, 1));
    EXPECT_FALSE(eta(world.state, waits, world.now_us).p50_s);
    EXPECT_THAT(eta(world.state, waits, world.now_us).text, HasSubstr("no estimate"));
}

// What a person reads is in words, not in the names that programs go by.
TEST(EtaTest, SaysInWordsWhyThereIsNoEstimate) {
    World world;
    world.node("a", 1);
    RunSpec later = World::spec(1, 1);
    later.begin_at_us = world.now_us + 3'600'000'000;
    const RunId waits = world.submit(later);
    EXPECT_EQ(eta(world.state, waits, world.now_us).text, "no estimate: it was told to begin later");
}

// With earlier runs of the same name the estimate is theirs; it lies where those ended.
TEST(EtaTest, LearnsFromEarlierRuns) {
    World world;
    world.node("a", 1);
    for (int i = 0; i < 20; ++i) {
        const RunId id = world.submit(World::spec(1, 1));
        world.pass();
        world.now_us += (100 + 10 * i) * kSecondUs;
        world.end(id);
    }
    world.submit(World::spec(1, 1));
    world.pass();
    const RunId waits = world.submit(World::spec(1, 1));
    const Eta estimate = eta(world.state, waits, world.now_us);
    ASSERT_TRUE(estimate.p50_s && estimate.p90_s);
    EXPECT_GE(*estimate.p50_s, 150);
    EXPECT_LE(*estimate.p50_s, 240);
    EXPECT_GE(*estimate.p90_s, 240);
    EXPECT_LE(*estimate.p90_s, 350);  // the longest took 290; twenty of them may have been the short ones
    EXPECT_EQ(eta(world.state, waits, world.now_us).p50_s, estimate.p50_s);
}

// A first run of its name that was planned: the next one knows about when it starts. One that outlives its plan is no
// reason to say nothing.
TEST(EtaTest, GoesByThePlanWhereNothingElseIsKnown) {
    World world;
    world.node("a", 1);
    RunSpec planned = World::spec(1, 1);
    planned.prediction = PredictionSpec{.run_s = 600, .run_low_s = 500, .run_high_s = 720};
    world.submit(planned);
    world.pass();
    const RunId waits = world.submit(World::spec(1, 1));
    world.now_us += 100 * kSecondUs;
    const Eta early = eta(world.state, waits, world.now_us);
    ASSERT_TRUE(early.p50_s && early.p90_s) << early.text;
    EXPECT_NEAR(*early.p50_s, 500, 60);
    EXPECT_GE(*early.p90_s, 550);
    EXPECT_LE(*early.p90_s, 700);
    world.now_us += 1100 * kSecondUs;
    const Eta late = eta(world.state, waits, world.now_us);
    ASSERT_TRUE(late.p50_s) << late.text;
    EXPECT_LE(*late.p50_s, 600);
}

// Somebody behind ten thousand others wants to know today or next month; the answer may take no longer for it. Here it
// is known: four at a time, about 100 s each.
TEST(EtaTest, ALongQueueIsAnsweredInBoundedSteps) {
    World world;
    world.node("a", 4);
    RunSpec spec = World::spec(1, 1);
    for (int i = 0; i < 40; ++i) {
        const RunId id = world.submit(spec);
        world.pass();
        world.now_us += (90 + i % 3 * 10) * kSecondUs;
        world.end(id);
    }
    for (int i = 0; i < 4; ++i) world.submit(spec);
    world.pass();
    std::vector<RunId> waits;
    for (int i = 0; i < 10'000; ++i) waits.push_back(world.submit(spec));
    double before = 0;
    for (const std::size_t place : {100, 300, 301, 2'000, 9'999}) {
        const Eta estimate = eta(world.state, waits[place], world.now_us);
        ASSERT_TRUE(estimate.p50_s && estimate.p90_s) << place << ": " << estimate.text;
        const double right = 100 * (static_cast<double>(place) / 4 + 1);
        EXPECT_NEAR(*estimate.p50_s, right, 0.15 * right) << place;
        EXPECT_GE(*estimate.p90_s, *estimate.p50_s);
        EXPECT_GT(*estimate.p50_s, 0.95 * before);
        EXPECT_LE(estimate.steps, kMostEtaSteps);
        EXPECT_EQ(estimate.text.empty(), place <= 300) << estimate.text;
        before = *estimate.p50_s;
    }
}

}  // namespace
}  // namespace stoker
