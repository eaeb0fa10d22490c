// Who asks why a run is slow is told the reason that is there, and none where nothing is wrong or nothing is known.
// Longer than 500 lines because all rules are asked about one healthy run.
#include "observe/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "observe/collect.h"
#include "observe/diagnoses/rule_text.h"

namespace stoker {
namespace {

MeasureSpread at(double value) {
    return {.mean = value, .median = value, .low = value, .high = value, .count = 100};
}

// Twenty seconds of five measurements each, that waver by a percent.
Course course_of(const std::function<double(int second)>& value) {
    Course course;
    for (int i = 0; i < 20; ++i) {
        const double here = value(i) * (i % 2 == 0 ? 1 : 1.01);
        course.push_back({.at_s = 10.0 + i, .min = here, .mean = here, .max = here, .count = 5});
    }
    return course;
}

// Two ranks with nothing wrong: a step of 200 ms, 2 ms of them waiting, 20 in collectives.
RunEvidence healthy() {
    RunEvidence evidence;
    for (int rank = 0; rank < 2; ++rank)
        evidence.ranks.push_back({rank,
                                  {{"step_s", at(0.2)},
                                   {"compute_s", at(0.178)},
                                   {"wait_s", at(0.002)},
                                   {"allreduce_s", at(0.02)},
                                   {"allreduce_min_s", at(0.012)},
                                   {"checkpoint_s", at(0.001)},
                                   {"cpu", at(0.98)},
                                   {"run_wait", at(0.05)},
                                   {"throttled", at(0)},
                                   {"major_faults", at(0.1)},
                                   {"swap", at(0)},
                                   {"threads", at(4)},
                                   {"foreign_cpu", at(0.1)},
                                   {"steal", at(0)},
                                   {"disk_free", at(9e9)},
                                   {"disk_write", at(1e6)},
                                   {"blocked", at(0)},
                                   {"net_loopback", at(2e7)},
                                   {"net_sent", at(1e3)},
                                   {"net_named", at(2e7)},
                                   {"tokens", at(1024)},
                                   {"param_bits", at(32)},
                                   {"autocast_bits", at(0)},
                                   {"recomputed", at(0)},
                                   {"compiled", at(0)},
                                   {"cpu_s", at(0.17)},
                                   {"gc_s", at(0.001)},
                                   {"torch_threads", at(1)}},
                                  {},
                                  {{"step_s", course_of([](int) { return 0.2; })},
                                   {"compute_s", course_of([](int) { return 0.178; })},
                                   {"shortest_s", course_of([](int) { return 0.174; })},
                                   {"longest_s", course_of([](int) { return 0.186; })},
                                   {"rss", course_of([](int) { return 1e9; })}},
                                  100});
    evidence.last_step = 100;
    evidence.done_after_s = 20;
    evidence.machine_cpus = 4;
    evidence.silent_s = 1;
    evidence.steady = SteadyState{.from_s = 10, .to_s = 30, .steps = 100, .all_step_s = 0.201};
    evidence.planned = {.step_s = 0.2,
                        .step_low_s = 0.17,
                        .step_high_s = 0.23,
                        .wait_s = 0.002,
                        .collectives_s = 0.01,
                        .processors = 1,
                        .tokens = 1024,
                        .samples = 8,
                        .steps = 100,
                        .run_low_s = 17,
                        .precision_bits = 32,
                        .recompute = false,
                        .compiled = false,
                        .interface = "lo"};
    return evidence;
}

std::string first_name(const RunEvidence& evidence) {
    const Diagnoses all = diagnose(evidence);
    return all.found.empty() ? "" : std::string(all.found.front().name());
}

// A reader of `stoker doctor --run`, of the blame of a node and of a gap is told by the row of a rule what it means; a
// rule that was added without saying so would be blamed on the model, or blame a node that is innocent.
TEST(DiagnosisRules, SayWhatEachMeansToOthers) {
    std::set<std::string_view> names;
    std::set<JudgeDiagnosis> judges;
    std::map<HealthLayer, int> layers;
    std::vector<std::string> follow, beside, before, late, never, anywhere;
    for (const DiagnosisRule& rule : diagnosis_rules()) {
        if (rule.name.starts_with("gpu-") || rule.name == "tcp-not-infiniband")
            continue;  // diagnoses/gpu_rules_test.cpp
        ASSERT_NE(rule.judge, nullptr) << rule.name;
        EXPECT_TRUE(names.insert(rule.name).second && judges.insert(rule.judge).second) << rule.name;
        EXPECT_EQ(find_diagnosis_rule(rule.name), &rule);
        ++layers[rule.layer];
        const std::string name(rule.name);
        if (rule.cost == CostLies::beside_step) beside.push_back(name);
        if (rule.cost == CostLies::before_steady) before.push_back(name);
        if (rule.late_rank) late.push_back(name);
        if (rule.clears == ClearsNode::never) never.push_back(name);
        if (rule.clears == ClearsNode::on_any_rank) anywhere.push_back(name);
        for (const JudgeDiagnosis reason : rule.follows_from) {
            const auto& rules = diagnosis_rules();
            const auto found = std::find_if(rules.begin(), rules.end(),
                                            [&](const DiagnosisRule& each) { return each.judge == reason; });
            ASSERT_NE(found, rules.end()) << rule.name << " follows from no rule";
            EXPECT_NE(found, rules.begin() + (&rule - rules.data())) << rule.name << " follows from itself";
            follow.push_back(name + " < " + std::string(found->name));
        }
    }
    EXPECT_EQ(layers[HealthLayer::network], 3);
    EXPECT_EQ(layers[HealthLayer::device], 7);
    EXPECT_EQ(layers[HealthLayer::model], 14);
    EXPECT_EQ(follow, (std::vector<std::string>{"starved-input < memory-pressure", "straggler < cpu-limit",
                                                "straggler < memory-pressure", "slower-with-time < memory-leak"}));
    EXPECT_EQ(beside, (std::vector<std::string>{"disk-slow", "checkpoint-stalls"}));
    EXPECT_EQ(before, (std::vector<std::string>{"warm-up"}));
    EXPECT_EQ(late, (std::vector<std::string>{"straggler"}));
    EXPECT_EQ(never, (std::vector<std::string>{"noisy-neighbour", "straggler"}));
    EXPECT_EQ(anywhere, (std::vector<std::string>{"cpu-limit"}));
    EXPECT_EQ(find_diagnosis_rule("of-next-year"), nullptr);
}

// Rules of GPUs are asked about runs that have some.
std::size_t rules_asked(const RunEvidence& evidence) {
    const auto& rules = diagnosis_rules();
    return static_cast<std::size_t>(std::count_if(rules.begin(), rules.end(), [&](const DiagnosisRule& rule) {
        return rule.judge(evidence).kind != DiagnosisVerdict::Kind::elsewhere;
    }));
}

TEST(Diagnoses, NothingIsClaimedOfAHealthyRun) {
    const Diagnoses all = diagnose(healthy());
    EXPECT_TRUE(all.found.empty());
    EXPECT_EQ(all.ruled_out.size(), rules_asked(healthy()));
    EXPECT_GE(all.ruled_out.size(), 24u);
    for (const auto& [name, reason] : all.ruled_out) EXPECT_FALSE(reason.empty()) << name;
}

TEST(Diagnoses, WithoutMeasurementsAllAreSilentAndSayWhatTheyNeed) {
    const Diagnoses all = diagnose({});
    EXPECT_TRUE(all.found.empty() && all.ruled_out.empty());
    EXPECT_EQ(all.not_known.size(), rules_asked({}));
    EXPECT_GE(all.not_known.size(), 24u);
    for (const auto& [name, reason] : all.not_known) EXPECT_TRUE(reason.starts_with("needs ")) << name;
    // Each takes any one measure away without a fall.
    const RunEvidence whole = healthy();
    for (const auto& [name, spread] : whole.ranks[0].measures) {
        RunEvidence less = healthy();
        for (RankEvidence& rank : less.ranks) rank.measures.erase(name);
        EXPECT_TRUE(diagnose(less).found.empty()) << name;
    }
}

TEST(Diagnoses, ASlowLoaderOfAnySizeIsFound) {
    for (const double wait : {0.015, 0.05, 0.2, 2.0}) {
        RunEvidence evidence = healthy();
        for (RankEvidence& rank : evidence.ranks) {
            rank.measures["wait_s"] = at(wait);
            rank.measures["step_s"] = at(0.198 + wait);
            rank.measures["read_calls"] = at(4100);
            rank.measures["call_read"] = at(4100 * 3000.0);
        }
        EXPECT_EQ(first_name(evidence), "starved-input") << wait;
        const Diagnosis finding = diagnose(evidence).found.front();
        EXPECT_NEAR(finding.cost_s, wait - 0.002, 1e-9);
        EXPECT_NE(finding.fix.find("pack"), std::string::npos);
    }
    // Fourteen workers that compute gain nothing on four processors; fourteen that wait for a store do.
    RunEvidence slow = healthy();
    for (RankEvidence& rank : slow.ranks) {
        rank.measures["wait_s"] = at(2.5);
        rank.measures["step_s"] = at(2.7);
        rank.measures["workers"] = at(1);
        rank.measures["cpu"] = at(1.4);
    }
    EXPECT_EQ(diagnose(slow).found.front().fix,
              "prepare the samples ahead (stoker prepare): at their pace 14 workers would keep up, and there are 4 "
              "processors; until then DataLoader(..., num_workers=4, prefetch_factor=4, persistent_workers=True)");
    for (RankEvidence& rank : slow.ranks) rank.measures["cpu"] = at(0.2);
    EXPECT_EQ(diagnose(slow).found.front().fix.find("DataLoader(..., num_workers=14"), 0U);
    // Reads in the training process itself that sleep: what is in use is the step's, and workers help on one processor.
    for (RankEvidence& rank : slow.ranks) {
        rank.measures["wait_s"] = at(0.08);
        rank.measures["step_s"] = at(0.2);
        rank.measures["workers"] = at(0);
        rank.measures["cpu"] = at(0.6);
        rank.measures["cpu_limit"] = at(1);
    }
    EXPECT_EQ(diagnose(slow).found.front().fix.find("DataLoader(..., num_workers=2"), 0U)
        << diagnose(slow).found.front().fix;
    for (RankEvidence& rank : slow.ranks) rank.measures["cpu"] = at(0.98);
    EXPECT_EQ(diagnose(slow).found.front().fix.find("prepare the samples ahead"), 0U);
    // One long wait at the start is no loader to be changed.
    RunEvidence start = healthy();
    start.ranks[0].measures["wait_s"] = {.mean = 0.05, .median = 0.002, .low = 0.001, .high = 0.003, .count = 100};
    EXPECT_EQ(first_name(start), "");
}

TEST(Diagnoses, AQuotaAndACrowdAreFound) {
    RunEvidence quota = healthy();
    for (RankEvidence& rank : quota.ranks) {
        rank.measures["throttled"] = at(0.5);
        rank.measures["cpu_limit"] = at(0.5);
    }
    EXPECT_EQ(first_name(quota), "cpu-limit");
    RunEvidence crowd = healthy();
    for (RankEvidence& rank : crowd.ranks) {
        rank.measures["run_wait"] = at(3);
        rank.measures["threads"] = at(16);
        rank.measures["torch_threads"] = at(8);
    }
    EXPECT_EQ(first_name(crowd), "cpu-limit");
    EXPECT_NEAR(diagnose(crowd).found.front().cost_s, 0.03, 1e-3);  // no more than the plan leaves
    crowd.planned.step_s.reset();
    EXPECT_NEAR(diagnose(crowd).found.front().cost_s, 0.2 * 0.7538, 1e-3);  // of the whole step: all wait for all
    EXPECT_NE(diagnose(crowd).found.front().fix.find("OMP_NUM_THREADS"), std::string::npos);
    for (RankEvidence& rank : crowd.ranks) {
        rank.measures["cpus_allowed"] = at(1);
        rank.measures["first_cpu"] = at(0);
    }
    EXPECT_NE(diagnose(crowd).found.front().what.find("affinity"), std::string::npos);
    for (RankEvidence& rank : crowd.ranks) rank.measures["foreign_cpu"] = at(2);  // whoever else is there
    EXPECT_EQ(first_name(crowd), "cpu-limit");
    // Waiting for others is their doing; what one rank alone waits is told of that rank.
    crowd = healthy();
    for (RankEvidence& rank : crowd.ranks) {
        rank.measures["run_wait"] = at(0.45);
        rank.measures["cpu"] = at(0.5);
        rank.measures["foreign_cpu"] = at(2);
    }
    EXPECT_EQ(first_name(crowd), "noisy-neighbour");
    for (RankEvidence& rank : crowd.ranks) {  // they wait so long that more are ready than fit, and hardly run at all
        rank.measures["run_wait"] = at(2.7);
        rank.measures["cpu"] = at(0.2);
    }
    EXPECT_EQ(first_name(crowd), "noisy-neighbour");
    EXPECT_EQ(diagnose(crowd).found.size(), 1u);
    for (RankEvidence& rank : crowd.ranks) {
        rank.measures["run_wait"] = at(0.45);
        rank.measures["cpu"] = at(0.5);
    }
    crowd.ranks[0].measures["run_wait"] = at(0.05);
    EXPECT_EQ(first_name(crowd), "");
    crowd.ranks[1].measures["compute_s"] = at(0.3);
    EXPECT_EQ(first_name(crowd), "straggler");
    // A quota that stops a rank is waiting as well, and nobody else's doing.
    for (RankEvidence& rank : quota.ranks) {
        rank.measures["run_wait"] = at(0.8);
        rank.measures["foreign_cpu"] = at(2);
    }
    EXPECT_EQ(first_name(quota), "cpu-limit");
    EXPECT_EQ(diagnose(quota).found.size(), 1u);
    RunEvidence idle = healthy();
    idle.planned.processors = 4;
    EXPECT_EQ(first_name(idle), "cpu-limit");
    EXPECT_NE(diagnose(idle).found.front().fix.find("--env OMP_NUM_THREADS=4"), std::string::npos);
    for (RankEvidence& rank : idle.ranks)
        rank.measures["workers"] = at(3);  // what is left is what one thread computes with
    EXPECT_EQ(first_name(idle), "");
}

TEST(Diagnoses, SwapAndALimitThatIsReachedAreFound) {
    RunEvidence swap = healthy();
    for (RankEvidence& rank : swap.ranks) {
        rank.measures["swap"] = at(4e8);
        rank.measures["major_faults"] = at(800);
    }
    EXPECT_EQ(first_name(swap), "memory-pressure");
    // What was swapped out long ago and is not needed harms nobody; nor does a limit that the page cache fills.
    for (RankEvidence& rank : swap.ranks) rank.measures["major_faults"] = at(0.2);
    EXPECT_EQ(first_name(swap), "");
    RunEvidence full = healthy();
    for (RankEvidence& rank : full.ranks) {
        rank.measures["memory_limit"] = at(1e9);
        rank.measures["memory_used"] = at(0.999e9);
        rank.measures["limit_hits"] = at(40);
    }
    EXPECT_EQ(first_name(full), "");
    for (RankEvidence& rank : full.ranks) rank.measures["major_faults"] = at(50);
    EXPECT_EQ(first_name(full), "memory-pressure");
}

TEST(Diagnoses, TheSlowRankIsNamed) {
    RunEvidence evidence = healthy();
    evidence.ranks[1].measures["compute_s"] = at(0.3);
    evidence.ranks[0].measures["allreduce_s"] = at(0.142);
    for (RankEvidence& rank : evidence.ranks) rank.measures["step_s"] = at(0.322);
    EXPECT_EQ(first_name(evidence), "straggler");
    EXPECT_EQ(diagnose(evidence).found.front().rank, 1);
    EXPECT_NE(diagnose(evidence).found.front().evidence.at(0).find("142 ms"), std::string::npos);
    // On several nodes that of the rank is named, and only what goes on there speaks for or against it.
    name_nodes(evidence, {"node-a", "node-b"});
    evidence.ranks[0].measures["foreign_cpu"] = at(7);
    evidence.ranks[1].measures["foreign_cpu"] = at(0);
    for (RankEvidence& rank : evidence.ranks) rank.measures["machine_cpus"] = at(8);
    const Diagnosis told = diagnose(evidence).found.front();
    EXPECT_NE(told.what.find("rank 1 on node-b works"), std::string::npos) << told.what;
    EXPECT_NE(told.fix.find("stoker nodes check node-b"), std::string::npos) << told.fix;
    for (const std::string& line : told.evidence) EXPECT_EQ(line.find("other programs"), std::string::npos) << line;
    evidence.ranks.resize(1);
    EXPECT_EQ(first_name(evidence), "");
}

TEST(Diagnoses, CheckpointStallsAndTheDearestFirst) {
    RunEvidence evidence = healthy();
    for (RankEvidence& rank : evidence.ranks)
        rank.measures["checkpoint_s"] = {.mean = 0.04, .median = 0, .low = 0, .high = 0, .count = 100};
    EXPECT_EQ(first_name(evidence), "checkpoint-stalls");
    for (RankEvidence& rank : evidence.ranks) rank.measures["wait_s"] = at(0.1);
    const Diagnoses both = diagnose(evidence);
    ASSERT_EQ(both.found.size(), 2u);
    EXPECT_EQ(both.found[0].name(), "starved-input");
    EXPECT_EQ(both.found[1].name(), "checkpoint-stalls");
}

TEST(Diagnoses, ASlowLinkIsNoLateRank) {
    RunEvidence slow = healthy();
    for (RankEvidence& rank : slow.ranks) {
        rank.measures["allreduce_s"] = at(0.15);
        rank.measures["allreduce_min_s"] = at(0.14);
        rank.measures["step_s"] = at(0.33);
        rank.measures["cpu"] = at(0.58);  // it sleeps in them
    }
    EXPECT_EQ(first_name(slow), "slow-link");
    EXPECT_NEAR(diagnose(slow).found.front().cost_s, 0.12, 0.01);
    EXPECT_EQ(diagnose(slow).found.front().what.find("between"), std::string::npos) << "all on one machine";
    for (std::size_t i = 0; i < slow.ranks.size(); ++i) slow.ranks[i].node = i == 0 ? "n1" : "n2";
    EXPECT_NE(diagnose(slow).found.front().what.find(", between n1 and n2"), std::string::npos);
    EXPECT_NE(diagnose(slow).found.front().fix.find("stoker doctor network --peer n1 at n2"), std::string::npos);
    slow.ranks[1].measures["allreduce_min_s"] = at(0.01);  // this one never waits: the other is waited for
    EXPECT_EQ(first_name(slow), "");
    RunEvidence elsewhere = healthy();
    for (RankEvidence& rank : elsewhere.ranks) rank.measures["net_sent"] = at(1e9);
    EXPECT_EQ(first_name(elsewhere), "wrong-interface");
}

// Pages that are read back from swap slow one rank more than the other: to look for a slow rank would be no help.
TEST(Diagnoses, AStragglerThatLacksMemoryLacksMemory) {
    RunEvidence evidence = healthy();
    for (RankEvidence& rank : evidence.ranks) {
        rank.measures["swap"] = at(1e8);
        rank.measures["major_faults"] = at(200);
    }
    evidence.ranks[1].measures["compute_s"] = at(0.3);
    const Diagnoses all = diagnose(evidence);
    ASSERT_GE(all.found.size(), 2u);
    EXPECT_EQ(all.found[0].name(), "memory-pressure");
    EXPECT_EQ(all.found[1].name(), "straggler");
}

// Whoever exports NCCL_SOCKET_IFNAME=eth0 everywhere is told nothing about runs that never leave their machine.
TEST(Diagnoses, AWrongInterfaceIsAnotherDeviceAndNotLoopback) {
    const auto with = [](double named, double sent, double loopback) {
        RunEvidence evidence = healthy();
        evidence.planned.interface = "ib0";
        for (RankEvidence& rank : evidence.ranks) {
            rank.measures["net_named"] = at(named);
            rank.measures["net_sent"] = at(sent);
            rank.measures["net_loopback"] = at(loopback);
        }
        return first_name(evidence);
    };
    EXPECT_EQ(with(1e3, 1e9, 1e4), "wrong-interface");
    EXPECT_EQ(with(1e9, 1.01e9, 1e4), "");
    EXPECT_EQ(with(0, 2e4, 1e9), "");  // one machine
    EXPECT_EQ(with(0, 2e5, 1e4), "");  // hardly anything is sent
}

TEST(Diagnoses, WhatThePlanDidNotHaveIsTold) {
    const auto with = [](const char* name, double value) {
        RunEvidence evidence = healthy();
        for (RankEvidence& rank : evidence.ranks) rank.measures[name] = at(value);
        return first_name(evidence);
    };
    EXPECT_EQ(with("tokens", 512), "batch-smaller");
    EXPECT_EQ(with("tokens", 1010), "");
    // Images have no tokens.
    RunEvidence images = healthy();
    images.planned.tokens.reset();
    for (RankEvidence& rank : images.ranks) rank.measures["samples"] = at(6);
    EXPECT_EQ(first_name(images), "batch-smaller");
    EXPECT_EQ(with("autocast_bits", 16), "other-precision");
    EXPECT_EQ(with("recomputed", 4), "recompute-on");
    // What the first pass took is what the second costs, whatever share of the step it is.
    RunEvidence again = healthy();
    for (RankEvidence& rank : again.ranks) rank.measures["recomputed"] = at(4), rank.measures["recompute_s"] = at(0.04);
    EXPECT_DOUBLE_EQ(diagnose(again).found.front().cost_s, 0.04);
    RunEvidence eager = healthy();
    eager.planned.compiled = true;
    EXPECT_EQ(first_name(eager), "eager-not-compiled");
    eager.planned = {};
    EXPECT_EQ(first_name(eager), "");
}

TEST(Diagnoses, AHangIsTheFirstThingTold) {
    RunEvidence hung = healthy();
    hung.silent_s = 40;
    for (RankEvidence& rank : hung.ranks) {
        rank.measures["wait_s"] = at(0.1);
        rank.afterwards = {{"cpu", at(0.01)}};
    }
    EXPECT_EQ(first_name(hung), "hung-collective");
    EXPECT_FALSE(diagnose(hung).found.front().rank);
    hung.ranks[1].afterwards["stopped"] = at(1);
    EXPECT_EQ(diagnose(hung).found.front().rank, 1);
    // One computes: an evaluation, say, or a loop that never ends. How long pauses were until then tells them apart.
    hung.ranks[1].afterwards = {{"cpu", at(1)}};
    hung.silent_s = 20;
    EXPECT_EQ(first_name(hung), "starved-input");
    hung.silent_s = 34;
    EXPECT_EQ(first_name(hung), "hung-collective");
    EXPECT_EQ(diagnose(hung).found.front().rank, 1);
    hung.ranks[0].courses["step_s"][7].max = 12;
    EXPECT_EQ(first_name(hung), "starved-input");
    hung.ranks[0].courses.clear();
    // All compute, as ranks that spin in a collective do.
    hung.ranks[0].afterwards = {{"cpu", at(1)}};
    EXPECT_EQ(first_name(hung), "starved-input");
    hung.silent_s = 70;
    EXPECT_EQ(first_name(hung), "hung-collective");
    hung.ranks[0].afterwards["disk_write"] = at(2e8);  // a checkpoint
    EXPECT_EQ(first_name(hung), "starved-input");
}

TEST(Diagnoses, ALossThatIsNoNumberComesFirst) {
    RunEvidence lost = healthy();
    for (RankEvidence& rank : lost.ranks) rank.measures["wait_s"] = at(0.1);
    lost.ranks[1].courses["not_finite"] = {{.at_s = 15, .min = 31, .mean = 60, .max = 100, .count = 70}};
    ASSERT_EQ(first_name(lost), "loss-not-finite");
    const Diagnosis told = diagnose(lost).found.front();
    EXPECT_TRUE(told.stops);
    EXPECT_NE(told.what.find("since step 31"), std::string::npos) << told.what;
    // All ranks write it, a look a second; after the last look came a part of a second's steps.
    RunEvidence all = lost;
    all.last_step = 1316;
    for (RankEvidence& rank : all.ranks) {
        rank.courses["not_finite"].clear();
        for (int i = 0; i <= 9; ++i)
            rank.courses["not_finite"].push_back(
                {.at_s = 15.0 + i, .min = 30.0 + 129 * i, .mean = 30.0 + 129 * i, .max = 30.0 + 129 * i, .count = 1});
    }
    EXPECT_EQ(diagnose(all).found.front().what, "the loss is nan or inf since step 30");
    // One that came back is told, and not first.
    lost.ranks[1].courses["not_finite"] = {{.at_s = 15, .min = 31, .mean = 31.5, .max = 32, .count = 2}};
    ASSERT_EQ(diagnose(lost).found.size(), 2u);
    EXPECT_EQ(first_name(lost), "starved-input");
    EXPECT_NE(diagnose(lost).found.back().what.find("between steps 31 and 32"), std::string::npos);
}

TEST(Diagnoses, StepsThatTakeLongerAndLongerAreTold) {
    for (const auto& [shape, sudden] :
         {std::pair(std::function<double(int)>([](int i) { return i < 10 ? 0.178 : 0.25; }), true),
          std::pair(std::function<double(int)>([](int i) { return 0.178 * (1 + 0.02 * i); }), false)}) {
        RunEvidence slower = healthy();
        for (RankEvidence& rank : slower.ranks)
            rank.courses["shortest_s"] = rank.courses["compute_s"] = course_of(shape);
        ASSERT_EQ(first_name(slower), "slower-with-time") << sudden;
        EXPECT_NEAR(diagnose(slower).found.front().cost_s, 0.036, 0.012) << sudden;
        EXPECT_EQ(diagnose(slower).found.front().what.find("longer and longer") == std::string::npos, sudden);
        // Somebody else began to work: that is the reason, and enough.
        for (RankEvidence& rank : slower.ranks) {
            rank.measures["run_wait"] = at(0.45);
            rank.measures["cpu"] = at(0.5);
            rank.measures["foreign_cpu"] = at(2);
        }
        EXPECT_EQ(first_name(slower), "noisy-neighbour");
        EXPECT_EQ(diagnose(slower).found.size(), 1u);
    }
    // Up and down is no rise, and neither is a beginning that was slow.
    for (const std::function<double(int)>& shape :
         {std::function<double(int)>([](int i) { return i % 4 < 2 ? 0.178 : 0.25; }),
          std::function<double(int)>([](int i) { return i < 10 ? 0.25 : 0.178; })}) {
        RunEvidence other = healthy();
        for (RankEvidence& rank : other.ranks) rank.courses["shortest_s"] = course_of(shape);
        EXPECT_EQ(first_name(other), "");
    }
}

TEST(Diagnoses, MemoryThatDoesNotComeToRestIsTold) {
    const auto with = [](const std::function<double(int)>& bytes) {
        RunEvidence evidence = healthy();
        evidence.ranks[1].courses["rss"] = course_of([&](int i) { return bytes(i) / (i % 2 == 0 ? 1 : 1.01); });
        evidence.ranks[1].measures["memory_limit"] = at(4e9);
        return evidence;
    };
    const RunEvidence leak = with([](int i) { return 5e8 + 5e7 * i; });
    ASSERT_EQ(first_name(leak), "memory-leak");
    const Diagnosis told = diagnose(leak).found.front();
    EXPECT_EQ(told.rank, 1);
    EXPECT_NE(told.what.find("10 MB a step"), std::string::npos) << told.what;
    EXPECT_NE(told.evidence.back().find("the limit of 4.0 GB"), std::string::npos) << told.evidence.back();
    EXPECT_EQ(first_name(with([](int i) { return 5e8 + 1e9 * (1 - std::exp(-0.3 * i)); })), "");  // a cache fills
    EXPECT_EQ(first_name(with([](int i) { return i % 2 == 0 ? 5e8 : 9e8; })), "");
}

TEST(Diagnoses, PausesBetweenStepsAreToldWithTheirReasonWhereItIsKnown) {
    RunEvidence pauses = healthy();
    for (RankEvidence& rank : pauses.ranks) {
        Course &steps = rank.courses["compute_s"], &longest = rank.courses["longest_s"];
        for (std::size_t i = 0; i < steps.size(); i += 4) longest[i].mean = 0.9, steps[i].mean = 0.178 + 0.72 / 5;
    }
    ASSERT_EQ(first_name(pauses), "pauses");
    EXPECT_NEAR(diagnose(pauses).found.front().cost_s, 0.036, 0.006);
    EXPECT_NE(diagnose(pauses).found.front().what.find("takes up to 900 ms, the others 177 ms"), std::string::npos)
        << diagnose(pauses).found.front().what;
    for (RankEvidence& rank : pauses.ranks) rank.measures["gc_s"] = at(0.03);
    EXPECT_EQ(first_name(pauses), "garbage-collection");
    EXPECT_EQ(diagnose(pauses).found.size(), 1u);
    // One long step in twenty seconds is nothing to look for.
    RunEvidence once = healthy();
    once.ranks[0].courses["longest_s"][5].mean = 2;
    once.ranks[0].courses["compute_s"][5].mean = 0.6;
    EXPECT_EQ(first_name(once), "");
}

TEST(Diagnoses, ALogThatIsSyncedAtEachStepIsWaitingForTheDisk) {
    RunEvidence synced = healthy();
    for (RankEvidence& rank : synced.ranks) {
        rank.measures["blocked"] = at(0.4);
        rank.measures["cpu_s"] = at(0.1);
    }
    ASSERT_EQ(first_name(synced), "waits-for-disk");
    EXPECT_NEAR(diagnose(synced).found.front().cost_s, 0.0774, 1e-3);
    for (RankEvidence& rank : synced.ranks) rank.measures["cpu_s"] = at(0.178);  // its processor was never idle
    EXPECT_EQ(first_name(synced), "");
}

TEST(Diagnoses, ARunThatEndsTooEarlyIsTold) {
    RunEvidence early = healthy();
    early.last_step = 40;
    EXPECT_EQ(first_name(early), "");  // it took as long as was planned: it counts otherwise
    early.done_after_s = 8;
    EXPECT_EQ(first_name(early), "ended-early");
    early.done_after_s.reset();  // it goes on, or was cancelled
    EXPECT_EQ(first_name(early), "");
}

TEST(Diagnoses, DisksThatAreFullOrSlow) {
    RunEvidence full = healthy();
    full.ranks[1].measures["disk_free"] = at(1e6);
    EXPECT_EQ(first_name(full), "disk-full");
    RunEvidence slow = healthy();
    for (RankEvidence& rank : slow.ranks) {
        rank.measures["checkpoint_s"] = {.mean = 0.05, .median = 0, .low = 0, .high = 0, .count = 100};
        rank.measures["blocked"] = at(0.3);
    }
    EXPECT_EQ(first_name(slow), "disk-slow");
    // Much was written meanwhile: the checkpoints are large, and the disk is not to blame.
    for (RankEvidence& rank : slow.ranks) rank.measures["disk_write"] = at(1e8);
    EXPECT_EQ(first_name(slow), "checkpoint-stalls");
}

TEST(Diagnoses, FirstStepsAreNoMeasure) {
    RunEvidence slow = healthy();
    slow.steady->warm_up_steps = 5;
    slow.steady->warm_up_s = 6;
    slow.steady->all_step_s = 0.25;
    EXPECT_EQ(first_name(slow), "warm-up");
    slow.steady->warm_up_s = 1.5;
    EXPECT_EQ(first_name(slow), "");
}

TEST(Diagnoses, ARankThatIsStarvedIsNoStragglerFirst) {
    RunEvidence evidence = healthy();
    evidence.ranks[1].measures["wait_s"] = at(0.05);
    evidence.ranks[1].measures["compute_s"] = at(0.3);
    const Diagnoses all = diagnose(evidence);
    ASSERT_EQ(all.found.size(), 2u);
    EXPECT_EQ(all.found[0].name(), "starved-input");
    EXPECT_EQ(all.found[1].name(), "straggler");
}

TEST(Thresholds, SayWhatTheyWereSetOn) {
    ASSERT_FALSE(diagnosis_thresholds().empty());
    for (const DiagnosisThreshold& each : diagnosis_thresholds()) {
        EXPECT_GT(each.value, 0) << each.name;
        EXPECT_FALSE(each.unit.empty() || each.set_on.empty()) << each.name;
    }
}

TEST(MeasureSpread, IsThatOfTheValues) {
    const MeasureSpread spread = spread_of({5, 1, 3, 2, 4});
    EXPECT_EQ(spread.median, 3);
    EXPECT_EQ(spread.mean, 3);
    EXPECT_EQ(spread.low, 1);
    EXPECT_EQ(spread.high, 5);
    EXPECT_EQ(spread_of({}).count, 0u);
    EXPECT_EQ(milliseconds_text(0.018), "18 ms");
    EXPECT_EQ(percent_text(0.07), "7.0 %");
}

// Who reads the fix sets the pool that is too wide, and not one that is right already.
TEST(Diagnoses, ThePoolThatIsTooWideIsNamed) {
    RunEvidence blas = healthy();
    blas.planned.pools = {{"OMP_NUM_THREADS", 1}, {"OPENBLAS_NUM_THREADS", 3}};
    for (RankEvidence& rank : blas.ranks) {
        rank.measures["throttled"] = at(0.06);
        rank.measures["cpu_limit"] = at(1);
        rank.measures["openblas_threads"] = at(3);
        rank.measures["step_s"] = at(0.35);
        rank.measures["compute_s"] = at(0.328);
    }
    ASSERT_EQ(first_name(blas), "cpu-limit");
    Diagnosis found = diagnose(blas).found.front();
    EXPECT_EQ(found.fix.rfind("--env OPENBLAS_NUM_THREADS=1", 0), 0u) << found.fix;
    EXPECT_EQ(found.fix.find("OMP_NUM_THREADS"), std::string::npos) << found.fix;
    // What the limit stopped is a part of it alone: the rest is burnt by threads that wait for each other.
    EXPECT_NEAR(found.cost_s, 0.35 - 0.2, 1e-3);
    // Two pools that fit each by itself, and not both: one of them spins while the other computes.
    RunEvidence turns = healthy();
    turns.planned.processors = 2;
    turns.planned.pools = {{"OMP_NUM_THREADS", 2}, {"OPENBLAS_NUM_THREADS", 2}};
    for (RankEvidence& rank : turns.ranks) {
        rank.measures["run_wait"] = at(2);
        rank.measures["cpu"] = at(1.9);
        rank.measures["torch_threads"] = at(2);
        rank.measures["openblas_threads"] = at(2);
    }
    ASSERT_EQ(first_name(turns), "cpu-limit");
    EXPECT_NE(diagnose(turns).found.front().fix.find("OMP_WAIT_POLICY=PASSIVE"), std::string::npos);
    // The program asks for what its environment does not.
    turns.planned.pools = {{"OMP_NUM_THREADS", 1}};
    for (RankEvidence& rank : turns.ranks) rank.measures["torch_threads"] = at(8);
    EXPECT_NE(diagnose(turns).found.front().fix.find("torch.set_num_threads(2)"), std::string::npos);
}

// One rank with several threads on one processor is as slow as several ranks there.
TEST(Diagnoses, OneRankIsKeptOnFewerProcessorsThanItHasThreads) {
    RunEvidence pinned = healthy();
    pinned.ranks.pop_back();
    pinned.planned.processors = 2;
    for (const auto& [name, value] :
         {std::pair{"run_wait", 0.9}, {"cpu", 0.95}, {"cpus_allowed", 1.0}, {"first_cpu", 0.0}, {"torch_threads", 2.0}})
        pinned.ranks[0].measures[name] = at(value);
    ASSERT_EQ(first_name(pinned), "cpu-limit");
    EXPECT_EQ(diagnose(pinned).found.front().what, "an affinity keeps the threads of a rank on only 1 of 4 processors");
    pinned.planned.processors = 1;
    pinned.ranks[0].measures["torch_threads"] = at(1);  // one thread needs one; the other waits are not its own
    pinned.ranks[0].measures["run_wait"] = at(0.1);
    EXPECT_EQ(first_name(pinned), "");
}

// A log that is synced in each step costs what fsync took, to the millisecond, where the program tells it.
TEST(Diagnoses, WhatTheProgramTellsOfItsSyncsIsTheCost) {
    RunEvidence synced = healthy();
    for (RankEvidence& rank : synced.ranks) rank.measures["sync_s"] = at(0.03);
    ASSERT_EQ(first_name(synced), "waits-for-disk");
    EXPECT_NEAR(diagnose(synced).found.front().cost_s, 0.03, 1e-9);
    const std::vector<EvidenceFigure> figures = diagnose(synced).found.front().figures;
    ASSERT_FALSE(figures.empty());  // for programs: name, value, unit and what it is held against
    EXPECT_EQ(figures[0].name, "sync_share");
    EXPECT_NEAR(figures[0].value, 0.15, 1e-9);
    EXPECT_EQ(figures[0].threshold, diagnosis_threshold("sync.share"));
    for (RankEvidence& rank : synced.ranks) {
        rank.measures["sync_s"] = at(0.001);
        rank.measures["blocked"] = at(0.5);
        rank.measures["disk_write"] = at(1e6);
    }
    EXPECT_EQ(first_name(synced), "");  // what is seen from outside is not more than that
}

// Where other programs crowd the machine, the rank that they hit hardest is not called a slow one; one that computes
// more is.
TEST(Diagnoses, ANeighbourMakesNoStraggler) {
    RunEvidence crowded = healthy();
    for (RankEvidence& rank : crowded.ranks) {
        rank.measures["run_wait"] = at(0.5);
        rank.measures["cpu"] = at(0.5);
        rank.measures["foreign_cpu"] = at(2);
        rank.measures["cpu_s"] = at(0.1);
    }
    crowded.ranks[1].measures["compute_s"] = at(0.22);
    EXPECT_EQ(first_name(crowded), "noisy-neighbour");
    EXPECT_EQ(diagnose(crowded).found.size(), 1u);
    crowded.ranks[1].measures["cpu_s"] = at(0.14);
    EXPECT_EQ(diagnose(crowded).found.size(), 2u);
}

// A program that stands in a sleep or waits for a service between its steps computes nothing, and that is told with
// what it costs; waiting that has a rule of its own is not told twice.
TEST(Diagnoses, TimeInWhichNothingHappensIsTold) {
    RunEvidence sleeps = healthy();
    for (RankEvidence& rank : sleeps.ranks) {
        rank.measures["step_s"] = at(0.25);
        rank.measures["compute_s"] = at(0.228);
        rank.measures["cpu"] = at(0.7);
        rank.measures["cpu_s"] = at(0.16);
        rank.measures["run_wait"] = at(0);
    }
    ASSERT_EQ(first_name(sleeps), "idle-in-step");
    EXPECT_NEAR(diagnose(sleeps).found.front().cost_s, 0.068, 1e-6);
    // Ready threads that find no processor, a quota, a disk: all of them leave processors idle, for a reason that is
    // known.
    for (const auto& [name, value] : {std::pair{"run_wait", 0.25}, {"blocked", 0.25}}) {
        RunEvidence known = sleeps;
        for (RankEvidence& rank : known.ranks) rank.measures[name] = at(value);
        EXPECT_NE(first_name(known), "idle-in-step") << name;
    }
    RunEvidence devices = sleeps;
    devices.planned.devices = true;
    EXPECT_NE(first_name(devices), "idle-in-step");
    // One rank that tells its steps and nothing else; of two of them nobody knows how long they wait for each other.
    RunEvidence printed = healthy();
    printed.planned = {};
    for (RankEvidence& rank : printed.ranks) {
        for (const char* told :
             {"wait_s", "allreduce_s", "allreduce_min_s", "compute_s", "cpu_s", "gc_s", "checkpoint_s"})
            rank.measures.erase(told);
        rank.measures["cpu"] = at(0.5);
        rank.measures["run_wait"] = at(0.1);
    }
    EXPECT_NE(first_name(printed), "idle-in-step");
    printed.ranks.pop_back();
    ASSERT_EQ(first_name(printed), "idle-in-step");
    EXPECT_NEAR(diagnose(printed).found.front().cost_s, 0.08, 1e-6);
    printed.ranks[0].measures["cpu"] = at(0.8);
    EXPECT_EQ(first_name(printed), "");
    // A pause now and then is told as that, and not as idle time once more.
    printed.ranks[0].measures["cpu"] = at(0.6);
    printed.ranks[0].courses["compute_s"] = {};
    printed.ranks[0].courses["longest_s"] = course_of([](int i) { return i % 2 == 0 ? 0.9 : 0.17; });
    printed.ranks[0].courses["shortest_s"] = course_of([](int) { return 0.13; });
    ASSERT_EQ(first_name(printed), "pauses");
    EXPECT_EQ(diagnose(printed).found.size(), 1u);
}

// A program that prints every hundredth step is silent in between.
TEST(Diagnoses, StepsThatAreToldRarelyAreNoHang) {
    RunEvidence rare = healthy();
    rare.silent_s = 25;
    rare.done_after_s.reset();
    for (RankEvidence& rank : rare.ranks) rank.afterwards["cpu"] = at(0.01);
    EXPECT_EQ(first_name(rare), "hung-collective");
    rare.told_apart_s = 12;
    EXPECT_EQ(first_name(rare), "");
}

// A run of nine seconds is long enough for a change that is large.
TEST(Diagnoses, AJumpWithinAShortRunIsTold) {
    const auto first = [](const Course& whole) { return Course(whole.begin(), whole.begin() + 7); };
    for (const double after : {0.2, 0.3}) {
        RunEvidence evidence = healthy();
        for (RankEvidence& rank : evidence.ranks)
            rank.courses["shortest_s"] = rank.courses["compute_s"] =
                first(course_of([&](int i) { return i < 4 ? 0.17 : after; }));
        EXPECT_EQ(first_name(evidence), after > 0.25 ? "slower-with-time" : "") << after;
    }
}

// Under a quota that stops all ranks, the one that it stops most is no straggler.
TEST(Diagnoses, AQuotaMakesNoStraggler) {
    RunEvidence quota = healthy();
    for (RankEvidence& rank : quota.ranks) rank.measures["throttled"] = at(rank.rank == 0 ? 0.35 : 0.3);
    quota.ranks[0].measures["compute_s"] = at(0.22);
    EXPECT_EQ(diagnose(quota).found.size(), 1u);
    EXPECT_EQ(first_name(quota), "cpu-limit");
}

}  // namespace
}  // namespace stoker
