#include "run/decide/choose_engine.h"

#include <gmock/gmock.h>

#include "run/decide/testing.h"
#include "run/decide/why.h"

namespace stoker {
namespace {

using run_testing::World;
using ::testing::HasSubstr;

// This machine with 8 GPUs, and a cluster of 16 behind a queue of its own.
class ChooseEngine : public ::testing::Test, protected World {
protected:
    ChooseEngine() {
        add("big", 8, "local");
        add("n1@slurm-b", 8, "slurm-b");
        add("n2@slurm-b", 8, "slurm-b");
        options_.engines = {{.name = "local", .runs_images = true}, {.name = "slurm-b", .binds = true}};
    }
    void add(const std::string& name, int gpus, const std::string& engine) {
        NodeInfo info{.name = name, .cpu_milli = 64'000, .memory_bytes = std::int64_t{512} << 30, .boot_id = "b1"};
        for (int i = 0; i < gpus; ++i) info.devices.push_back({.id = std::to_string(i), .model = "H100"});
        info.engine = engine;
        put(NodeSeen{info});
    }
    // A pass, carried out; the admission of this run, if it starts.
    std::optional<Admission> started(RunId id) {
        std::optional<Admission> mine;
        last_ = schedule(state, now_us, options_);
        for (const Admission& each : last_.admit) {
            const stoker::Run& run = *state.find(each.run);
            put(AttemptCreated{.attempt = {run.id, static_cast<std::uint32_t>(run.attempts.size() + 1)},
                               .places = each.places,
                               .resume_from = "",
                               .engine = each.engine,
                               .chosen = each.chosen});
            if (each.run == id) mine = each;
        }
        return mine;
    }
    std::string engine_of(RunId id) {
        const auto admission = started(id);
        return admission ? admission->engine : std::string("none");
    }
    RunSpec for_seconds(int gpus, std::int64_t seconds) {
        RunSpec spec = World::spec(1, gpus);
        spec.timeout_s = seconds;
        spec.grace_s = 0;
        return spec;
    }
    void accepted(RunId id) {
        put(OperationAnswered{
            .operation = state.find(id)->attempts.back().launch, .answer = Answer::accepted, .detail = ""});
    }
    // Its own queue says so; 0: it does not say when.
    void waits_there(RunId id, double seconds) {
        const Attempt& attempt = state.find(id)->attempts.back();
        put(FactSeen{{.kind = FactKind::waits,
                      .operation = attempt.launch,
                      .epoch = 1,
                      .at_us = now_us,
                      .cause = Cause::capacity_busy,
                      .seconds = seconds,
                      .detail = "(Resources)"}});
    }

    SchedulerOptions options_;
    Decisions last_;
};

// What the near one has room for stays near; what it is too full for goes to the cluster, and is told why.
TEST_F(ChooseEngine, TheNearestFirstAndBeyondItWhenThatIsFull) {
    const RunId first = submit(for_seconds(8, 3600));
    EXPECT_EQ(engine_of(first), "local");
    const auto burst = started(submit(World::spec(2, 8)));
    ASSERT_TRUE(burst);
    EXPECT_EQ(burst->engine, "slurm-b");
    EXPECT_EQ(burst->places[0].node, "");  // it chooses the nodes itself
    EXPECT_THAT(burst->chosen, HasSubstr("sent to slurm-b: local has nothing that large"));
    // A gang is on one engine, although 8 and 16 GPUs are free of both together.
    EXPECT_EQ(engine_of(submit(World::spec(3, 8))), "none");
}

TEST_F(ChooseEngine, ABurstSaysHowFullTheNearOneIsAndUntilWhen) {
    started(submit(for_seconds(8, 3600)));
    const auto burst = started(submit(World::spec(1, 1)));
    ASSERT_TRUE(burst);
    EXPECT_EQ(burst->engine, "slurm-b");
    EXPECT_THAT(burst->chosen, HasSubstr("sent to slurm-b: local has 0 of 8 GPUs free until about"));
    EXPECT_THAT(burst->chosen, HasSubstr(" UTC"));
}

// A cluster tells where ranks are, and not which GPUs they have: they hold them all the same, before and after.
TEST_F(ChooseEngine, GpusThatAClusterGaveOutAreTaken) {
    const auto on_cluster = [](int ranks, int gpus) {
        RunSpec spec = World::spec(ranks, gpus);
        spec.engine = "slurm-b";
        return spec;
    };
    const RunId wide = submit(on_cluster(2, 8));
    ASSERT_TRUE(started(wide));
    const RunId next = submit(on_cluster(1, 1));
    const auto is_kept_back = [&](const char* when) {
        EXPECT_EQ(engine_of(next), "none") << when;
        EXPECT_EQ(waits(last_, next), Cause::capacity_busy) << when;
        EXPECT_FALSE(eta(state, next, now_us, options_).p50_s) << when << ": nothing tells when the first one ends";
    };
    is_kept_back("before its nodes are known");
    for (const int rank : {0, 1})
        put(FactSeen{{.kind = FactKind::rank_started,
                      .operation = state.find(wide)->attempts.back().launch,
                      .epoch = 1,
                      .at_us = now_us,
                      .rank = rank,
                      .node = rank == 0 ? "n1@slurm-b" : "n2@slurm-b"}});
    ASSERT_EQ(state.find(wide)->attempts.back().places[1].node, "n2@slurm-b");
    is_kept_back("once they are");
}

// Whoever names an engine gets that one, also when another one is free.
TEST_F(ChooseEngine, ARunThatNamesOneWaitsForIt) {
    started(submit(World::spec(1, 8)));
    RunSpec here = World::spec(1, 1);
    here.engine = "local";
    const RunId waits_here = submit(here);
    EXPECT_EQ(engine_of(waits_here), "none");
    EXPECT_EQ(waits(last_, waits_here), Cause::capacity_busy);
    here.engine = "any";
    EXPECT_EQ(engine_of(submit(here)), "slurm-b");
}

// A lost engine: what is open goes elsewhere, what has to go there says so, and nothing is placed on its nodes.
TEST_F(ChooseEngine, NothingNewGoesToOneThatDoesNotAnswer) {
    options_.engines[1].fault = "connection refused";
    RunSpec there = World::spec(1, 1);
    there.engine = "slurm-b";
    const RunId named = submit(there), open = submit(World::spec(1, 1)), large = submit(World::spec(2, 8));
    EXPECT_EQ(engine_of(open), "local");
    EXPECT_EQ(waits(last_, named), Cause::engine_away);
    EXPECT_EQ(waits(last_, large), Cause::engine_away);
    const Why told = why(state, named, now_us, options_);
    EXPECT_THAT(told.text, HasSubstr("slurm-b does not answer"));
    EXPECT_THAT(told.text, HasSubstr("connection refused"));
    options_.engines[1].fault.clear();
    EXPECT_EQ(engine_of(named), "slurm-b");
}

// Its own queue is as long as it says: what is free here sooner is waited for, and what is not goes there.
TEST_F(ChooseEngine, TheQueueOfAnEngineCountsByWhenItExpectsToStart) {
    started(submit(for_seconds(8, 600)));
    const RunId queued = submit(World::spec(1, 4));
    ASSERT_EQ(engine_of(queued), "slurm-b");
    accepted(queued);
    waits_there(queued, 7200);
    const RunId soon = submit(World::spec(1, 4));
    EXPECT_EQ(engine_of(soon), "none");
    EXPECT_EQ(waits(last_, soon), Cause::capacity_busy);
    waits_there(queued, 60);
    EXPECT_EQ(engine_of(soon), "slurm-b");
    EXPECT_THAT(state.find(soon)->attempts.back().chosen, HasSubstr("local has 0 of 8 GPUs free"));
}

// Where nobody can tell when, what costs less; both have a price.
TEST_F(ChooseEngine, WhereNobodyKnowsWhenThePriceDecides) {
    add("far@cheap", 8, "cheap");
    options_.engines = {{.name = "local"}, {.name = "slurm-b", .binds = true}, {.name = "cheap", .binds = true}};
    auto book = std::make_shared<PriceBook>();
    book->prices = {{.resource = PricedResource::gpu, .microusd_per_hour = 3'000'000},
                    {.resource = PricedResource::gpu, .node = "far@cheap", .microusd_per_hour = 1'000'000}};
    options_.budgets.prices = book;
    started(submit(World::spec(1, 8)));
    for (const char* name : {"slurm-b", "cheap"}) {
        RunSpec there = World::spec(1, 1);
        there.engine = name;
        const RunId id = submit(there);
        ASSERT_EQ(engine_of(id), name);
        accepted(id);
        waits_there(id, 0);
    }
    EXPECT_EQ(engine_of(submit(World::spec(1, 1))), "cheap");
}

// An engine without images, or one that has refused the run, does not get it again while another one may.
TEST_F(ChooseEngine, WhatAnEngineCannotRunGoesToAnother) {
    RunSpec spec = World::spec(1, 1);
    spec.image = "/bundles/one";
    started(submit(World::spec(1, 8)));
    const RunId with_image = submit(spec);
    EXPECT_EQ(engine_of(with_image), "none");
    EXPECT_EQ(waits(last_, with_image), Cause::capacity_busy);
    const RunId refused = submit(World::spec(1, 1));
    ASSERT_EQ(engine_of(refused), "slurm-b");
    const AttemptId attempt{refused, 1};
    put(OperationAnswered{.operation = state.find(refused)->attempts.back().launch,
                          .answer = Answer::rejected,
                          .cause = Cause::user_error,
                          .detail = "no parts of GPUs"});
    put(AttemptMoved{attempt, AttemptEvent::refuse, Cause::user_error, ""});
    put(RunMoved{.run = refused, .event = RunEvent::retry, .cause = Cause::user_error, .detail = ""});
    put(RunMoved{.run = refused, .event = RunEvent::back_off_over, .cause = Cause::user_error, .detail = ""});
    EXPECT_EQ(engine_of(refused), "none");
    EXPECT_THAT(engines_text(state, refused, now_us, options_), HasSubstr("slurm-b has refused it"));
}

// A run that waits is told of each engine, and its estimate counts the room of all.
TEST_F(ChooseEngine, WhatWaitsIsToldOfEachEngine) {
    started(submit(for_seconds(8, 3600)));
    started(submit(World::spec(2, 8)));
    const RunId next = submit(World::spec(1, 1));
    EXPECT_EQ(engine_of(next), "none");
    const Why told = why(state, next, now_us, options_);
    EXPECT_EQ(told.code, Cause::capacity_busy);
    EXPECT_THAT(told.text, HasSubstr("local has 0 of 8 GPUs free until about"));
    EXPECT_THAT(told.text, HasSubstr("slurm-b has 0 of 16 GPUs free"));
    ASSERT_TRUE(last_.reservation);
    EXPECT_EQ(last_.reservation->places[0].node, "big");
    EXPECT_TRUE(eta(state, next, now_us, options_).p50_s.has_value());
}

}  // namespace
}  // namespace stoker
