// Of a run on GPUs the reason is told that is there, with its part of a step, and none on the healthy twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "observe/diagnosis.h"
#include "observe/gpu_source.h"
#include "observe/thresholds.h"

namespace stoker {
namespace {

MeasureSpread at(double value) {
    return {.mean = value, .median = value, .low = value, .high = value, .count = 100};
}

void set(RankEvidence& rank, std::string_view name, double value) {
    rank.measures[std::string(name)] = at(value);
}

// Four ranks of an H100 each, at full load under their power limit, which is usual.
RunEvidence healthy_on_gpus() {
    RunEvidence evidence;
    for (int number = 0; number < 4; ++number) {
        RankEvidence rank{.rank = number, .measures = {}, .afterwards = {}};
        rank.steps = 100;
        for (const auto& [name, value] : std::map<std::string, double>{{"step_s", 0.3},
                                                                       {"compute_s", 0.26},
                                                                       {"wait_s", 0.004},
                                                                       {"allreduce_s", 0.03},
                                                                       {"checkpoint_s", 0},
                                                                       {"cpu", 1.1},
                                                                       {"run_wait", 0.01},
                                                                       {"throttled", 0},
                                                                       {"disk_read", 1e5},
                                                                       {"net_sent", 1e4},
                                                                       {"param_bits", 32},
                                                                       {"autocast_bits", 16},
                                                                       {"gpu_count", 1},
                                                                       {"gpu_lost", 0},
                                                                       {"gpu_util", 0.97},
                                                                       {"gpu_sm", 0.85},
                                                                       {"gpu_tensor", 0.38},
                                                                       {"gpu_dram", 0.45},
                                                                       {"gpu_fp64", 0},
                                                                       {"gpu_fp32", 0.04},
                                                                       {"gpu_memory", 60e9},
                                                                       {"gpu_memory_size", 85e9},
                                                                       {"gpu_power", 690},
                                                                       {"gpu_power_limit", 700},
                                                                       {"gpu_power_default", 700},
                                                                       {"gpu_temperature", 64},
                                                                       {"gpu_margin", 23},
                                                                       {"gpu_clock", 1.755e9},
                                                                       {"gpu_clock_max", 1.98e9},
                                                                       {"gpu_held_heat", 0},
                                                                       {"gpu_held_power", 0.7},
                                                                       {"gpu_held_brake", 0},
                                                                       {"gpu_lanes", 16},
                                                                       {"gpu_lanes_max", 16},
                                                                       {"gpu_gen", 5},
                                                                       {"gpu_gen_max", 5},
                                                                       {"gpu_pcie", 1e9},
                                                                       {"gpu_nvlink", 2e11},
                                                                       {"gpu_links", 18},
                                                                       {"gpu_links_down", 0},
                                                                       {"gpu_ecc_corrected", 0},
                                                                       {"gpu_ecc_uncorrected", 0},
                                                                       {"gpu_remap_pending", 0},
                                                                       {"gpu_replays", 0},
                                                                       {"gpu_xid", 0},
                                                                       {"gpu_other", 0},
                                                                       {"gpu_other_sm", 0},
                                                                       {"cuda_reserved", 70e9},
                                                                       {"cuda_peak", 66e9},
                                                                       {"cuda_retries", 0},
                                                                       {"longest_s", 0.27},
                                                                       {"ib_ports", 8},
                                                                       {"ib_bytes", 3e10}})
            set(rank, name, value);
        evidence.ranks.push_back(std::move(rank));
    }
    evidence.steady = SteadyState{.from_s = 10, .to_s = 40, .steps = 100, .all_step_s = 0.3};
    evidence.planned = {.step_s = 0.3, .step_low_s = 0.25, .step_high_s = 0.35, .precision_bits = 16};
    return evidence;
}

void on_two_nodes(RunEvidence& evidence) {
    for (RankEvidence& rank : evidence.ranks) rank.node = rank.rank < 2 ? "node-a" : "node-b";
}

struct Fault {
    std::string_view name;
    std::function<void(RunEvidence&)> put;
    double least_s = 0, most_s = 0;  // what it costs a step
    std::string_view says;           // in its line, its evidence or its fix
};

const std::vector<Fault>& faults() {
    static const std::vector<Fault> all = {
        {"gpu-heat",
         [](RunEvidence& e) {
             set(e.ranks[2], "gpu_held_heat", 0.4), set(e.ranks[2], "gpu_clock", 1.2e9),
                 set(e.ranks[2], "gpu_temperature", 88);
             set(e.ranks[2], "gpu_margin", 1);
         },
         0.07, 0.09, "88 degrees, 1 below where the board slows down"},
        {"gpu-power",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_power_limit", 350), set(rank, "gpu_power", 349);
         },
         0.04, 0.06, "nvidia-smi -pl 700"},
        {"gpu-power",
         [](RunEvidence& e) { set(e.ranks[1], "gpu_held_brake", 0.3), set(e.ranks[1], "gpu_clock", 1.4e9); }, 0.04,
         0.06, "power supply"},
        {"gpu-straggler", [](RunEvidence& e) { set(e.ranks[3], "gpu_clock", 1.5e9); }, 0.03, 0.04, "nvidia-smi -rgc"},
        {"gpu-pcie", [](RunEvidence& e) { set(e.ranks[0], "gpu_lanes", 4), set(e.ranks[0], "gpu_pcie", 2.4e10); }, 0.1,
         0.3, "generation 5 with 4 lanes; 5 with 16 are possible"},
        {"gpu-nvlink", [](RunEvidence& e) { set(e.ranks[0], "gpu_links_down", 6); }, 0.009, 0.011, "6 of 18 NVLinks"},
        {"tcp-not-infiniband",
         [](RunEvidence& e) {
             on_two_nodes(e);
             for (RankEvidence& rank : e.ranks)
                 set(rank, "ib_bytes", 0), set(rank, "net_sent", 1.1e9), set(rank, "allreduce_s", 0.4),
                     set(rank, "step_s", 0.7);
         },
         0.39, 0.41, "NCCL_IB_DISABLE"},
        {"gpu-host-bound",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_util", 0.5), set(rank, "gpu_sm", 0.3), set(rank, "cpu", 1.0);
         },
         0.14, 0.15, "reduce-overhead"},
        {"gpu-starved",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) {
                 rank.measures.erase("wait_s"), rank.measures.erase("compute_s");
                 set(rank, "gpu_util", 0.4), set(rank, "gpu_sm", 0.3), set(rank, "cpu", 3.5),
                     set(rank, "call_read", 2e8);
             }
         },
         0.17, 0.19, "num_workers"},
        {"gpu-idle",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_util", 0.5), set(rank, "gpu_sm", 0.3), set(rank, "cpu", 0.2);
         },
         0.14, 0.15, "py-spy"},
        {"gpu-precision",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_tensor", 0), set(rank, "gpu_fp32", 0.6), set(rank, "autocast_bits", 0);
             e.planned.precision_bits.reset();
         },
         0.15, 0.16, "set_float32_matmul_precision"},
        {"gpu-precision", [](RunEvidence& e) { set(e.ranks[0], "gpu_fp64", 0.3), set(e.ranks[0], "gpu_tensor", 0.1); },
         0.07, 0.08, "double precision"},
        {"gpu-tensor-idle",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_tensor", 0.01), set(rank, "gpu_fp32", 0.1);
         },
         0.02, 0.03, "multiples of 8"},
        // An H200, 27 November 2026: 1 GiB of pageable memory handed over in each step.
        {"gpu-copies",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_pcie", 4e9);
         },
         0.07, 0.08, "pin_memory=True"},
        // An H200, 27 November 2026: a decoder whose attention writes its scores out, eager: 97 TFLOP/s of 751.
        {"gpu-unfused",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_tensor", 0.10), set(rank, "gpu_sm", 0.84);
         },
         0.18, 0.20, "scaled_dot_product_attention"},
        {"gpu-unfused",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_tensor", 0.15), set(rank, "gpu_sm", 0.78), set(rank, "gpu_dram", 0.7),
                     set(rank, "compiled", 1);
         },
         0.15, 0.17, "is so by its nature"},
        {"gpu-memory-errors", [](RunEvidence& e) { set(e.ranks[1], "gpu_remap_pending", 1); }, 0, 0,
         "wait to be replaced"},
        {"gpu-memory-errors", [](RunEvidence& e) { set(e.ranks[1], "gpu_ecc_corrected", 0.5); }, 0, 0, "corrects 0.5"},
        {"gpu-memory-errors",
         [](RunEvidence& e) {
             e.ranks[1].courses["gpu_ecc_uncorrected"] = {{20, 0, 0.5, 1, 2}};
         },
         0, 0, "resume from a checkpoint"},
        {"gpu-error",
         [](RunEvidence& e) {
             e.ranks[1].courses["gpu_xid"] = {{20, 0, 40, 79, 2}};
         },
         0, 0, "Xid 79"},
        {"gpu-error",
         [](RunEvidence& e) {
             e.ranks[1].courses["gpu_lost"] = {{20, 0, 0.5, 1, 2}};
         },
         0, 0, "does not answer"},
        {"gpu-neighbour", [](RunEvidence& e) { set(e.ranks[0], "gpu_other", 2), set(e.ranks[0], "gpu_other_sm", 0.3); },
         0.07, 0.08, "MIG"},
        {"gpu-fragmentation",
         [](RunEvidence& e) { set(e.ranks[0], "cuda_reserved", 83e9), set(e.ranks[0], "cuda_peak", 50e9); }, 0, 0,
         "expandable_segments"},
        {"gpu-fragmentation",
         [](RunEvidence& e) {
             e.ranks[0].measures["cuda_retries"] = {.mean = 5, .median = 5, .low = 1, .high = 11, .count = 20};
             set(e.ranks[0], "longest_s", 1.26);
         },
         0.09, 0.11, "freed its cache 10 times"},
    };
    return all;
}

std::string words_of(const Diagnosis& found) {
    std::string all = found.what + "\n" + found.fix;
    for (const std::string& line : found.evidence) all += "\n" + line;
    return all;
}

TEST(GpuDiagnoses, EachFaultIsToldWithItsCostAndItsFix) {
    for (const Fault& fault : faults()) {
        RunEvidence evidence = healthy_on_gpus();
        fault.put(evidence);
        const Diagnoses all = diagnose(evidence);
        ASSERT_FALSE(all.found.empty()) << fault.name;
        const Diagnosis& found = all.found.front();
        EXPECT_EQ(found.name(), fault.name) << words_of(found);
        EXPECT_GE(found.cost_s, fault.least_s) << words_of(found);
        EXPECT_LE(found.cost_s, fault.most_s) << words_of(found);
        EXPECT_NE(words_of(found).find(fault.says), std::string::npos) << words_of(found);
        EXPECT_FALSE(found.fix.empty());
        EXPECT_FALSE(found.evidence.empty()) << fault.name;
        // One fault, one finding.
        EXPECT_EQ(all.found.size(), 1u) << fault.name << ", and "
                                        << (all.found.size() > 1 ? words_of(all.found[1]) : "");
    }
}

TEST(GpuDiagnoses, EachRuleHasAFault) {
    std::set<std::string_view> shown;
    for (const Fault& fault : faults()) shown.insert(fault.name);
    for (const DiagnosisRule& rule : gpu_diagnosis_rules()) EXPECT_TRUE(shown.contains(rule.name)) << rule.name;
}

TEST(GpuDiagnoses, NothingIsClaimedOfHealthyTwins) {
    EXPECT_TRUE(diagnose(healthy_on_gpus()).found.empty());
    std::vector<std::pair<std::string_view, std::function<void(RunEvidence&)>>> twins = {
        {"idle boards let their links fall",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 rank.measures["gpu_gen"] = {.mean = 3, .median = 5, .low = 1, .high = 5, .count = 9};
         }},
        {"gradients to another machine cross PCIe",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_pcie", 3e10), rank.node = rank.rank < 2 ? "a" : "b";
         }},
        {"without NVLink collectives cross PCIe",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_pcie", 3e10), rank.measures.erase("gpu_links");
         }},
        {"clocks of boards of one kind differ by a few percent",
         [](RunEvidence& e) { set(e.ranks[2], "gpu_clock", 1.7e9); }},
        {"boards of two kinds",
         [](RunEvidence& e) { set(e.ranks[2], "gpu_clock", 1.2e9), set(e.ranks[2], "gpu_clock_max", 1.41e9); }},
        {"a hot board that nothing holds down", [](RunEvidence& e) { set(e.ranks[0], "gpu_temperature", 84); }},
        {"work that waits for memory needs no tensor cores",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_tensor", 0.01), set(rank, "gpu_dram", 0.8);
         }},
        // The same H200, by its own counters.
        {"products of 8192^3 by cuBLAS",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_sm", 0.96), set(rank, "gpu_tensor", 0.93), set(rank, "gpu_dram", 0.16);
         }},
        {"copies within the device",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_sm", 0.92), set(rank, "gpu_tensor", 0), set(rank, "gpu_dram", 0.81);
         }},
        {"a board that hardly works multiplies little",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks) set(rank, "gpu_sm", 0.35), set(rank, "gpu_tensor", 0.05);
         }},
        {"a program that computes with 32 bits as it was meant to",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 set(rank, "gpu_tensor", 0.10), set(rank, "autocast_bits", 0), set(rank, "param_bits", 32);
             e.planned.precision_bits = 32;
         }},
        {"InfiniBand carries the collectives", on_two_nodes},
        {"a few corrected errors in days", [](RunEvidence& e) { set(e.ranks[0], "gpu_ecc_corrected", 1e-4); }},
        {"a card without counters of its units or of memory errors",
         [](RunEvidence& e) {
             for (RankEvidence& rank : e.ranks)
                 for (const char* name :
                      {"gpu_sm", "gpu_tensor", "gpu_dram", "gpu_fp64", "gpu_fp32", "gpu_ecc_corrected",
                       "gpu_ecc_uncorrected", "gpu_remap_pending", "gpu_links", "gpu_links_down"})
                     rank.measures.erase(name);
         }},
        {"the memory is nearly full, and used",
         [](RunEvidence& e) { set(e.ranks[0], "cuda_reserved", 83e9), set(e.ranks[0], "cuda_peak", 80e9); }},
    };
    for (const auto& twin : twins) {
        RunEvidence evidence = healthy_on_gpus();
        twin.second(evidence);
        const Diagnoses all = diagnose(evidence);
        EXPECT_TRUE(all.found.empty()) << twin.first << ": " << words_of(all.found.front());
    }
}

// Whoever is alone on a GPU is told so; of a neighbour, whether it works, or that the driver does not say.
TEST(GpuDiagnoses, OfNeighboursItIsSaidWhatIsKnown) {
    const auto said = [](std::optional<double> others, std::optional<double> sm) {
        RunEvidence evidence = healthy_on_gpus();
        for (RankEvidence& rank : evidence.ranks) {
            rank.measures.erase("gpu_other"), rank.measures.erase("gpu_other_sm");
            if (others) set(rank, "gpu_other", *others);
            if (sm) set(rank, "gpu_other_sm", *sm);
        }
        const Diagnoses all = diagnose(evidence);
        for (const auto* notes : {&all.ruled_out, &all.not_known})
            for (const auto& note : *notes)
                if (note.first == "gpu-neighbour") return note.second;
        return std::string("nothing");
    };
    EXPECT_EQ(said(0, 0), "no other program is on the GPUs");
    EXPECT_EQ(said(1, 0), "1 other process is on the GPUs, at work 0.0 % of the time");
    EXPECT_NE(said(2, std::nullopt).find("how much the 2 other processes"), std::string::npos) << said(2, std::nullopt);
    EXPECT_EQ(said(std::nullopt, std::nullopt), "needs the processes on the GPUs, by pids of this machine");
}

// What could be better at most is told behind what is a fault, however little that costs; and it counts to no gap.
TEST(GpuDiagnoses, AHintIsToldAfterAFault) {
    RunEvidence evidence = healthy_on_gpus();
    for (RankEvidence& rank : evidence.ranks) set(rank, "gpu_tensor", 0.10);
    set(evidence.ranks[3], "gpu_clock", 1.5e9);
    const Diagnoses all = diagnose(evidence);
    ASSERT_EQ(all.found.size(), 2u);
    EXPECT_EQ(all.found[0].name(), "gpu-straggler");
    EXPECT_EQ(all.found[1].name(), "gpu-unfused");
    EXPECT_GT(all.found[1].cost_s, all.found[0].cost_s);
    EXPECT_EQ(all.found[1].cost_range.low_s, 0);
    EXPECT_EQ(all.found[1].rule->cost, CostLies::at_most);
}

// Without the hook nobody knows with how many bits it computes: that is said, and not guessed.
TEST(GpuDiagnoses, AHintNeedsToKnowTheBits) {
    RunEvidence evidence = healthy_on_gpus();
    for (RankEvidence& rank : evidence.ranks) {
        set(rank, "gpu_tensor", 0.10);
        for (const char* name : {"param_bits", "autocast_bits"}) rank.measures.erase(name);
    }
    const Diagnoses all = diagnose(evidence);
    EXPECT_TRUE(all.found.empty());
    EXPECT_TRUE(std::any_of(all.not_known.begin(), all.not_known.end(),
                            [](const auto& each) { return each.first == "gpu-unfused"; }));
}

// A host that waits for its data makes the GPU idle; that is one reason and not two.
TEST(GpuDiagnoses, WhatTheHostWaitsForIsToldOnce) {
    RunEvidence evidence = healthy_on_gpus();
    for (RankEvidence& rank : evidence.ranks)
        set(rank, "wait_s", 0.12), set(rank, "compute_s", 0.15), set(rank, "gpu_util", 0.45);
    const Diagnoses all = diagnose(evidence);
    ASSERT_EQ(all.found.size(), 1u);
    EXPECT_EQ(all.found[0].name(), "starved-input");
}

TEST(GpuDiagnoses, OfARunWithoutGpusNothingIsSaidAtAll) {
    RunEvidence evidence = healthy_on_gpus();
    for (RankEvidence& rank : evidence.ranks)
        for (const GpuMeasure& each : gpu_measures()) rank.measures.erase(std::string(each.name));
    for (RankEvidence& rank : evidence.ranks)
        for (const char* name : {"cuda_reserved", "ib_ports", "ib_bytes"}) rank.measures.erase(name);
    const Diagnoses all = diagnose(evidence);
    for (const auto* notes : {&all.ruled_out, &all.not_known})
        for (const auto& note : *notes) {
            EXPECT_FALSE(note.first.starts_with("gpu-")) << note.second;
            EXPECT_NE(note.first, "tcp-not-infiniband") << note.second;
        }
}

GpuReading board(int index, std::vector<GpuHolder> holders, double util) {
    return {.uuid = "GPU-" + std::to_string(index),
            .index = index,
            .holders_told = true,
            .holders = std::move(holders),
            .values = {{"gpu_util", util}, {"gpu_margin", 20.0 - index}, {"gpu_memory", 1e9}}};
}

// A rank has the boards that its processes are on; what others do there is told apart from what the run's ranks do.
TEST(GpuReadingsOfARank, AreOfTheBoardsThatItsProcessesHold) {
    const std::vector<GpuReading> boards = {board(0, {{10, 0.5}}, 0.9), board(1, {{11, 0.4}, {99, 0.2}}, 0.8),
                                            board(2, {}, 0), board(3, {{20, -1}, {98, -1}}, 0.7)};
    const auto of = [&](std::vector<std::int64_t> own, std::string_view visible = {}) {
        std::map<std::string, double> values;
        for (const auto& [name, value] : gpu_values_of(boards, own, {10, 11, 20}, visible))
            values[std::string(name)] = value;
        return values;
    };
    auto both = of({10, 11});
    EXPECT_EQ(both["gpu_count"], 2);
    EXPECT_NEAR(both["gpu_util"], 0.85, 1e-9);  // of several boards the mean, the sum or the worst
    EXPECT_EQ(both["gpu_margin"], 19);
    EXPECT_EQ(both["gpu_memory"], 2e9);
    EXPECT_EQ(both["gpu_other"], 1);
    EXPECT_NEAR(both["gpu_other_sm"], 0.2, 1e-9);
    auto one = of({20});
    EXPECT_EQ(one["gpu_other"], 1);
    EXPECT_FALSE(one.contains("gpu_other_sm"));  // how much the other one works is not told
    EXPECT_TRUE(of({30}).empty());
    // A rank of a run whose pids mean something holds what it holds, whatever its environment allows.
    EXPECT_TRUE(of({30}, "0,1").empty());
}

TEST(GpuReadingsOfARank, GoByTheEnvironmentWherePidsMeanNothing) {
    const std::vector<GpuReading> boards = {board(0, {{9001, -1}}, 0.9), board(1, {{9002, -1}}, 0.8), board(2, {}, 0)};
    const auto count = [&](std::string_view visible) {
        for (const auto& [name, value] : gpu_values_of(boards, {7}, {7}, visible))
            if (name == "gpu_count") return value;
        return 0.0;
    };
    EXPECT_EQ(count("1"), 1);
    EXPECT_EQ(count("0,1"), 2);
    EXPECT_EQ(count("GPU-0"), 1);
    EXPECT_EQ(count("2"), 0);     // nobody is on it
    EXPECT_EQ(count("-1,0"), 0);  // as CUDA reads it: nothing behind what names no device
    EXPECT_EQ(count("zero"), 0);
    EXPECT_EQ(count(""), 0);
}

}  // namespace
}  // namespace stoker
