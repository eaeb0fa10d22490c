// Most machines are shared: who is slow for a reason of his own is told that one, however busy the neighbours are, and
// never a reason of his own for what they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "observe/diagnosis.h"

namespace stoker {
namespace {

MeasureSpread constant(double value) {
    return {.mean = value, .median = value, .low = value, .high = value, .count = 100};
}

// One rank whose steps take what is asked of them by number, seen as it is watched: second by second.
RunEvidence run_of(
    int steps, const std::function<double(int number)>& takes,
    const std::function<double(double at_s)>& foreign = [](double) { return 0.0; }) {
    RankEvidence rank;
    double now = 0, all = 0;
    for (int number = 1; number <= steps; ++number) {
        const double took = takes(number);
        all += took;
        now += took;
        const double second = std::floor(now);
        const auto at = [&](const char* name) -> CoursePoint& {
            Course& course = rank.courses[name];
            if (course.empty() || course.back().at_s != second) course.push_back({.at_s = second});
            return course.back();
        };
        CoursePoint& mean = at("compute_s");
        mean.mean = (mean.mean * mean.count + took) / (mean.count + 1);
        mean.count += 1;
        CoursePoint &shortest = at("shortest_s"), &longest = at("longest_s");
        shortest.mean = mean.count == 1 ? took : std::min(shortest.mean, took);
        if (took > longest.mean) {
            longest.mean = took;
            at("longest_step").max = number;
        }
        at("step").max = number;
        at("foreign_cpu").mean = foreign(second);
    }
    rank.courses["step_s"] = rank.courses["compute_s"];
    const double mean = all / steps;
    for (const auto& [name, value] : {std::pair{"step_s", mean},
                                      {"compute_s", mean},
                                      {"cpu", 0.95},
                                      {"run_wait", 0.02},
                                      {"foreign_cpu", 0.0},
                                      {"torch_threads", 1.0},
                                      {"wait_s", 0.0}})
        rank.measures[name] = constant(value);
    rank.steps = steps;
    RunEvidence evidence;
    evidence.ranks = {rank};
    evidence.machine_cpus = 2;
    evidence.planned.processors = 1;
    evidence.steady = SteadyState{.from_s = 0, .to_s = now, .steps = static_cast<double>(steps), .all_step_s = mean};
    return evidence;
}

void crowd(RunEvidence& evidence, double cpu = 0.5) {
    for (RankEvidence& rank : evidence.ranks) {
        rank.measures["cpu"] = constant(cpu);
        rank.measures["run_wait"] = constant(1 - cpu);
        rank.measures["foreign_cpu"] = constant(1.1);
    }
}

const Diagnosis* find(const Diagnoses& all, std::string_view name) {
    const auto found =
        std::find_if(all.found.begin(), all.found.end(), [&](const Diagnosis& each) { return each.name() == name; });
    return found == all.found.end() ? nullptr : &*found;
}

TEST(TwoReasons, APauseEverySoManyStepsIsTheProgramsOwn) {
    // Every twentieth step has an evaluation, and others take the processor from any step now and then.
    std::mt19937 random(5);
    std::uniform_real_distribution<double> chance(0, 1);
    const auto wavers = [&] { return 0.1 * (1 + 0.3 * chance(random)) + (chance(random) < 0.01 ? 0.4 : 0); };
    RunEvidence evaluates = run_of(200, [&](int number) { return wavers() + (number % 20 == 0 ? 1.0 : 0); });
    crowd(evaluates);
    const Diagnoses told = diagnose(evaluates);
    EXPECT_NE(find(told, "noisy-neighbour"), nullptr);
    const Diagnosis* pauses = find(told, "pauses");
    ASSERT_NE(pauses, nullptr);
    EXPECT_NE(pauses->what.find("one step in 20 takes up to"), std::string::npos) << pauses->what;
    EXPECT_NEAR(pauses->cost_s, 0.05, 0.012);
    // What comes at no beat is what neighbours do.
    RunEvidence hit = run_of(200, [&](int) { return wavers() + (chance(random) < 0.06 ? 1.0 : 0); });
    crowd(hit);
    EXPECT_EQ(find(diagnose(hit), "pauses"), nullptr);
    EXPECT_NE(find(diagnose(run_of(200, [&](int) { return wavers() + (chance(random) < 0.06 ? 1.0 : 0); })), "pauses"),
              nullptr);
}

// Several of a second, of which one is seen: an evaluation every 25 of steps that take some milliseconds.
TEST(TwoReasons, PausesOfShortStepsAreCountedByTheirBeat) {
    const RunEvidence evaluates =
        run_of(1500, [](int number) { return 0.005 * (1 + 0.05 * std::sin(number)) + (number % 25 == 0 ? 0.075 : 0); });
    const Diagnoses told = diagnose(evaluates);
    const Diagnosis* pauses = find(told, "pauses");
    ASSERT_NE(pauses, nullptr);
    EXPECT_NEAR(pauses->cost_s, 0.003, 0.0004);
    EXPECT_NE(pauses->what.find("one step in 25"), std::string::npos) << pauses->what;
}

// Who stands still is not told of neighbours that take a little.
TEST(TwoReasons, ASleepIsToldBesideANeighbour) {
    RunEvidence sleeps = run_of(250, [](int) { return 0.04; });
    sleeps.ranks[0].measures["cpu"] = constant(0.25);
    sleeps.ranks[0].measures["run_wait"] = constant(0.13);
    sleeps.ranks[0].measures["foreign_cpu"] = constant(1.7);
    const Diagnoses told = diagnose(sleeps);
    ASSERT_NE(find(told, "idle-in-step"), nullptr);
    EXPECT_NEAR(find(told, "idle-in-step")->cost_s, 0.0248, 0.001);
    const Diagnosis* neighbour = find(told, "noisy-neighbour");
    EXPECT_LE(neighbour == nullptr ? 0 : neighbour->cost_s, 0.13 * 0.04 + 1e-9);
}

// However much more the neighbours cost: what stands still is not what waits for a processor.
TEST(TwoReasons, ASleepIsToldBesideManyNeighbours) {
    RunEvidence sleeps = run_of(120, [](int) { return 0.1; });
    RankEvidence& rank = sleeps.ranks[0];
    for (const auto& [name, value] : {std::pair{"cpu", 0.07}, {"run_wait", 0.41}, {"foreign_cpu", 1.9}})
        rank.measures[name] = constant(value);
    ASSERT_NE(find(diagnose(sleeps), "idle-in-step"), nullptr);
    EXPECT_NEAR(find(diagnose(sleeps), "idle-in-step")->cost_s, 0.052, 0.001);
    // A third of a step may be what the looks at threads have missed; what the program tells has missed nothing.
    rank.measures["run_wait"] = constant(0.6);
    EXPECT_EQ(find(diagnose(sleeps), "idle-in-step"), nullptr);
    for (const auto& [name, value] : {std::pair{"cpu_s", 0.007}, {"queued_s", 0.06}})
        rank.measures[name] = constant(value);
    EXPECT_NE(find(diagnose(sleeps), "idle-in-step"), nullptr);
}

TEST(TwoReasons, FirstStepsBesideNeighboursAreWhatTheyWouldTakeAlone) {
    RunEvidence begins = run_of(55, [](int) { return 0.17; });
    begins.steady->warm_up_steps = 6;
    begins.steady->warm_up_s = 2.6;
    begins.steady->all_step_s = 0.2;
    EXPECT_NE(find(diagnose(begins), "warm-up"), nullptr);
    crowd(begins, 0.4);
    EXPECT_EQ(find(diagnose(begins), "warm-up"), nullptr);
    begins.steady->warm_up_s = 7;
    EXPECT_NE(find(diagnose(begins), "warm-up"), nullptr);
}

// Who is left a twentieth of a processor waits most of all.
TEST(TwoReasons, WhoHardlyGetsAProcessorWaitsForOne) {
    RunEvidence starved = run_of(200, [](int) { return 0.1; });
    starved.ranks[0].measures["cpu_s"] = constant(0.004);
    for (const auto& [name, value] : {std::pair{"cpu", 0.04}, {"run_wait", 0.62}, {"foreign_cpu", 1.96}})
        starved.ranks[0].measures[name] = constant(value);
    const Diagnoses told = diagnose(starved);
    ASSERT_NE(find(told, "noisy-neighbour"), nullptr);
    EXPECT_NEAR(find(told, "noisy-neighbour")->cost_s, 0.062, 0.001);
}

// A share of what is computed is none of the step: who waits for data nine tenths of it has no time to pause in.
TEST(TwoReasons, PausesAreAShareOfTheWholeStep) {
    RunEvidence waits = run_of(400, [](int number) { return number % 20 == 0 ? 0.05 : 0.01; });
    ASSERT_NE(find(diagnose(waits), "pauses"), nullptr);
    waits.ranks[0].measures["step_s"] = constant(0.1);
    waits.ranks[0].measures["wait_s"] = constant(0.088);
    EXPECT_EQ(find(diagnose(waits), "pauses"), nullptr);
}

TEST(TwoReasons, WhoComputesMoreInEachStepGetsSlowerByItself) {
    const auto grows = [](int number) { return 0.1 * (1 + 0.01 * number); };
    RunEvidence own = run_of(120, grows);
    own.ranks[0].courses["cpu_s"] = own.ranks[0].courses["compute_s"];
    for (CoursePoint& point : own.ranks[0].courses["cpu_s"]) point.mean *= 0.5;
    crowd(own);
    const Diagnoses both = diagnose(own);
    EXPECT_NE(find(both, "slower-with-time"), nullptr);
    EXPECT_NE(find(both, "noisy-neighbour"), nullptr);
    // As much processor time as ever, and somebody begins to take more: told of nobody's program.
    RunEvidence others = run_of(
        120, [](int number) { return number <= 60 ? 0.1 : 0.16; }, [](double at_s) { return at_s < 6 ? 0.0 : 0.8; });
    others.ranks[0].courses["cpu_s"] = others.ranks[0].courses["compute_s"];
    for (CoursePoint& point : others.ranks[0].courses["cpu_s"]) point.mean = 0.1;
    EXPECT_EQ(find(diagnose(others), "slower-with-time"), nullptr);
    // Two threads of a core are slower side by side, by the processor's clock as well.
    others.ranks[0].courses["cpu_s"] = others.ranks[0].courses["compute_s"];
    EXPECT_EQ(find(diagnose(others), "slower-with-time"), nullptr);
}

// A progress bar is drawn ten times a second, however many steps that is: the shortest of its means rises by itself.
TEST(TwoReasons, FewerDrawingsOfABarAreNoSlowerSteps) {
    RunEvidence bar = run_of(200, [](int) { return 0.1; });
    Course& shortest = bar.ranks[0].courses["shortest_s"];
    for (std::size_t i = 0; i < shortest.size(); ++i) shortest[i].mean = i < shortest.size() / 2 ? 0.07 : 0.1;
    EXPECT_EQ(find(diagnose(bar), "slower-with-time"), nullptr);
}

TEST(TwoReasons, APoolThatIsTooWideIsToldBesideANeighbour) {
    RunEvidence wide = run_of(100, [](int) { return 0.16; });
    wide.ranks.push_back(wide.ranks[0]);
    wide.ranks[1].rank = 1;
    crowd(wide, 0.4);
    for (RankEvidence& rank : wide.ranks) {
        rank.measures["torch_threads"] = constant(7);
        rank.measures["run_wait"] = constant(1.4);
    }
    const Diagnoses told = diagnose(wide);
    const Diagnosis *limit = find(told, "cpu-limit"), *neighbour = find(told, "noisy-neighbour");
    ASSERT_NE(limit, nullptr);
    ASSERT_NE(neighbour, nullptr);
    EXPECT_NE(limit->fix.find("OMP_NUM_THREADS=1"), std::string::npos) << limit->fix;
    EXPECT_NEAR(limit->cost_s + neighbour->cost_s, 0.16 * 1.4 / 1.8, 1e-6);  // what they wait is shared, not told twice
    for (RankEvidence& rank : wide.ranks) rank.measures["torch_threads"] = constant(1);
    EXPECT_EQ(find(diagnose(wide), "cpu-limit"), nullptr);
}

// Of a program that tells no threads the processors that it uses say that it has several.
TEST(TwoReasons, SeveralThreadsNeedNoHookToWait) {
    RunEvidence wide = run_of(60, [](int) { return 0.2; });
    wide.ranks[0].measures.erase("torch_threads");
    wide.ranks[0].measures["cpu"] = constant(1.3);
    wide.ranks[0].measures["run_wait"] = constant(1.4);
    ASSERT_NE(find(diagnose(wide), "cpu-limit"), nullptr);
    EXPECT_GT(find(diagnose(wide), "cpu-limit")->cost_s, 0.05);
}

// Pools that fit have a worker of a loader beside them now and then, which is no crowd; but for two that fit each by
// itself, of which one spins while the other computes.
TEST(TwoReasons, AWorkerBesideAPoolIsNoCrowd) {
    RunEvidence run = run_of(60, [](int) { return 0.09; });
    run.planned.processors = 2;
    RankEvidence& rank = run.ranks[0];
    rank.measures["torch_threads"] = constant(2);
    rank.measures["cpu"] = constant(1.98);
    rank.measures["run_wait"] = constant(1.0);
    rank.measures.erase("queued_s");
    EXPECT_EQ(find(diagnose(run), "cpu-limit"), nullptr);
    rank.measures["openblas_threads"] = constant(2);
    EXPECT_NE(find(diagnose(run), "cpu-limit"), nullptr);
    // More than half as many again is one.
    rank.measures.erase("openblas_threads");
    rank.measures["run_wait"] = constant(1.4);
    EXPECT_NE(find(diagnose(run), "cpu-limit"), nullptr);
}

TEST(TwoReasons, WhatTheProgramTellsIsNotHiddenByAnotherReason) {
    RunEvidence both = run_of(100, [](int) { return 0.1; });
    both.ranks[0].measures["wait_s"] = constant(0.02);
    both.ranks[0].measures["sync_s"] = constant(0.015);
    both.ranks[0].measures["blocked"] = constant(0.1);
    both.ranks[0].measures["disk_write"] = constant(1e5);
    const Diagnoses told = diagnose(both);
    EXPECT_NE(find(told, "starved-input"), nullptr);
    EXPECT_NE(find(told, "waits-for-disk"), nullptr);
}

// A sleep in the step is no queueing in it: what collectives wait for processors is not put on the link.
TEST(TwoReasons, NeighboursAreNoSlowLink) {
    RunEvidence sleeps = run_of(100, [](int) { return 0.04; });
    sleeps.ranks.push_back(sleeps.ranks[0]);
    sleeps.ranks[1].rank = 1;
    for (RankEvidence& rank : sleeps.ranks)
        for (const auto& [name, value] : {std::pair{"step_s", 0.0511},
                                          {"compute_s", 0.0397},
                                          {"allreduce_s", 0.0114},
                                          {"allreduce_min_s", 0.0119},
                                          {"cpu", 0.2},
                                          {"run_wait", 0.43},
                                          {"foreign_cpu", 1.6}})
            rank.measures[name] = constant(value);
    EXPECT_EQ(find(diagnose(sleeps), "slow-link"), nullptr);
    EXPECT_NE(find(diagnose(sleeps), "noisy-neighbour"), nullptr);
    // What stays on a machine is work for its processors.
    RunEvidence local = sleeps;
    for (RankEvidence& rank : local.ranks)
        for (const auto& [name, value] : {std::pair{"step_s", 0.04},
                                          {"compute_s", 0.01},
                                          {"allreduce_s", 0.029},
                                          {"allreduce_min_s", 0.025},
                                          {"cpu", 0.44},
                                          {"run_wait", 0.3},
                                          {"net_sent", 100.0}})
            rank.measures[name] = constant(value);
    EXPECT_EQ(find(diagnose(local), "slow-link"), nullptr);
    // Ranks that sleep in their collectives need no processor there.
    RunEvidence asleep = local;
    for (RankEvidence& rank : asleep.ranks) {
        rank.measures["cpu"] = constant(0.27);
        rank.measures["run_wait"] = constant(0.02);
    }
    EXPECT_NE(find(diagnose(asleep), "slow-link"), nullptr);
    asleep.planned.collectives_s = 0.002;
    ASSERT_NE(find(diagnose(asleep), "slow-link"), nullptr);
    EXPECT_NE(find(diagnose(asleep), "slow-link")->what.find("(planned 2.0 ms)"), std::string::npos);
    // Nobody else is there either, and the plan knows of less: a small network whose collectives are all waking.
    local.planned.collectives_s = 0.0001;
    for (RankEvidence& rank : local.ranks) rank.measures["foreign_cpu"] = constant(0);
    EXPECT_EQ(find(diagnose(local), "slow-link"), nullptr);
    // To another machine it is the link again.
    for (std::size_t i = 0; i < local.ranks.size(); ++i) {
        local.ranks[i].node = i == 0 ? "n1" : "n2";
        local.ranks[i].measures["net_sent"] = constant(2e7);
    }
    EXPECT_NE(find(diagnose(local), "slow-link"), nullptr);
    // Too short to know how long threads wait, and a machine that is full: nobody can say, and a late rank that
    // computes as much as the others is none.
    for (RankEvidence& rank : sleeps.ranks) {
        rank.measures.erase("run_wait");
        rank.measures["cpu_s"] = constant(0.01);
    }
    sleeps.ranks[0].measures["compute_s"] = constant(0.06);
    EXPECT_EQ(find(diagnose(sleeps), "slow-link"), nullptr);
    EXPECT_EQ(find(diagnose(sleeps), "straggler"), nullptr);
    sleeps.ranks[0].measures["cpu_s"] = constant(0.03);
    EXPECT_NE(find(diagnose(sleeps), "straggler"), nullptr);
}

// Beside neighbours a rank that is late without computing more may sleep: then it is not ready for a processor either.
TEST(TwoReasons, ARankThatSleepsIsLateByItsOwnDoing) {
    RunEvidence late = run_of(200, [](int) { return 0.05; });
    late.ranks.push_back(late.ranks[0]);
    late.ranks[1].rank = 1;
    crowd(late, 0.1);
    for (RankEvidence& rank : late.ranks)
        for (const auto& [name, value] : {std::pair{"step_s", 0.05},
                                          {"compute_s", 0.014},
                                          {"allreduce_s", 0.036},
                                          {"cpu_s", 0.005},
                                          {"run_wait", 0.3}})
            rank.measures[name] = constant(value);
    late.ranks[1].measures["compute_s"] = constant(0.045);
    late.ranks[1].measures["allreduce_s"] = constant(0.005);
    const Diagnoses told = diagnose(late);
    const Diagnosis* straggler = find(told, "straggler");
    ASSERT_NE(straggler, nullptr);
    EXPECT_EQ(straggler->rank, 1);
    EXPECT_NE(straggler->fix.find("py-spy"), std::string::npos);
    // As late, and ready for a processor all the time: that is the neighbours' doing.
    late.ranks[1].measures["run_wait"] = constant(0.85);
    EXPECT_EQ(find(diagnose(late), "straggler"), nullptr);
    // What it computes more waits for a processor as all else does.
    late.ranks[1].measures["cpu_s"] = constant(0.012);
    EXPECT_NE(find(diagnose(late), "straggler"), nullptr);
}

// All threads of a rank wait together, those that only carry bytes too. The hook says what the thread of the steps
// waits.
TEST(TwoReasons, WhatTheThreadOfTheStepsWaitsTellsASleepFromAQueue) {
    RunEvidence late = run_of(200, [](int) { return 0.063; });
    late.ranks.push_back(late.ranks[0]);
    late.ranks[1].rank = 1;
    crowd(late, 0.08);
    for (RankEvidence& rank : late.ranks)
        for (const auto& [name, value] : {std::pair{"step_s", 0.063},
                                          {"compute_s", 0.005},
                                          {"allreduce_s", 0.058},
                                          {"cpu_s", 0.005},
                                          {"queued_s", 0.012},
                                          {"run_wait", 0.93}})
            rank.measures[name] = constant(value);
    late.ranks[1].measures["compute_s"] = constant(0.04);
    late.ranks[1].measures["allreduce_s"] = constant(0.023);
    const Diagnoses told = diagnose(late);
    ASSERT_NE(find(told, "straggler"), nullptr);
    ASSERT_NE(find(told, "noisy-neighbour"), nullptr);
    EXPECT_NEAR(find(told, "noisy-neighbour")->cost_s, 0.012 + 0.023, 1e-9);  // and the collectives of the last one
    late.ranks[1].measures["queued_s"] = constant(0.045);
    EXPECT_EQ(find(diagnose(late), "straggler"), nullptr);
    // Who waits for a GPU is neither on a processor nor ready for one.
    late.ranks[1].measures["queued_s"] = constant(0.012);
    late.planned.devices = true;
    EXPECT_EQ(find(diagnose(late), "straggler"), nullptr);
}

// The one worker of a loader gets a processor when the neighbours leave it one.
TEST(TwoReasons, AWorkerThatWaitsForAProcessorIsNoSlowLoader) {
    RunEvidence loads = run_of(170, [](int) { return 0.065; });
    RankEvidence& rank = loads.ranks[0];
    for (const auto& [name, value] : {std::pair{"wait_s", 0.0065}, {"compute_s", 0.057}, {"processes", 2.0}})
        rank.measures[name] = constant(value);
    EXPECT_NE(find(diagnose(loads), "starved-input"), nullptr);
    crowd(loads, 0.55);
    rank.measures["run_wait"] = constant(2.2);
    EXPECT_EQ(find(diagnose(loads), "starved-input"), nullptr);
    rank.measures["processes"] = constant(1);
    EXPECT_NE(find(diagnose(loads), "starved-input"), nullptr);
}

}  // namespace
}  // namespace stoker
