// What a training framework makes of this machine's cores: measured by data/probe/torch_cpu.py, kept beside what stoker
// bench cpu measured itself, and used instead of the published constants when a run on this machine is predicted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "doctor/this_machine.h"

namespace stoker {

struct MatmulRate {
    std::string precision;  // "fp32"
    int threads = 1, hidden = 0, tokens = 0;
    double flops_per_second = 0;  // of one process with so many threads
};
struct AllReduceTime {
    int ranks = 0;
    double bytes = 0, seconds = 0;
};
// Attention, forward and backward, of each score: tokens x heads x sequence.
struct AttentionCost {
    int sequence = 0, head = 0;
    double seconds = 0;
};
// What a gated layer does beside products and attention, forward and backward, of each token and hidden element.
struct ElementwiseCost {
    double elements = 0, seconds = 0;
};
// Ranks that compute at once, a thread each.
struct TogetherRate {
    int ranks = 0;
    double share_of_alone = 1;  // what is left of the rate that one has alone
    double resident_bytes = 0;  // of a rank with the framework and its collectives, before a model
};
struct FrameworkSpeed {
    std::string framework, python;  // "torch 1.13.0", "/usr/bin/python3"
    std::string measured;           // day
    std::vector<MatmulRate> matmul;
    std::vector<AllReduceTime> all_reduce;
    std::vector<TogetherRate> together;
    std::vector<AttentionCost> attention;                              // empty: measured by an older stoker
    std::vector<ElementwiseCost> elementwise;                          // the same
    double optimizer_s = 0;                                            // of a parameter and step of AdamW; 0: the same
    double operator_s = 0, import_s = 0, memory_bytes_per_second = 0;  // of one thread
};

// Runs the probe, about a minute, or 15 seconds when quick. unavailable: no such Python, no torch in it, or it took
// longer than 5 minutes.
Result<FrameworkSpeed> measure_framework(const std::string& python, bool quick, const std::string& day);

Json framework_json(const FrameworkSpeed& speed);
Result<FrameworkSpeed> read_framework(const Node& node);
Status save_framework(const std::string& path, const Machine& machine, const FrameworkSpeed& speed);
// not_found when this machine has none.
Result<FrameworkSpeed> load_framework(const std::string& path, const Machine& machine);

// The model and a rank's part of a step.
struct RankShape {
    double hidden = 0, tokens = 0, sequence = 0, head = 0;
};
// What a rank of a run reaches: rates of the shapes around its own, with what the other ranks leave it.
struct RankRates {
    double flops_per_second = 0, memory_bytes_per_second = 0;
    double loopback_bytes_per_second = 0, loopback_latency_s = 0;  // 0: one rank, or not measured
    double operator_s = 0;
    double attention_s = 0, elementwise_s = 0, optimizer_s = 0;  // of a score, an element, a parameter; 0: not measured
    double head = 0;                                             // that attention_s is of
};
// Whether the framework was measured to compute in that precision at a rate that is worth planning with.
bool framework_computes(const FrameworkSpeed& speed, std::string_view precision);
RankRates rates_of_rank(const FrameworkSpeed& speed, const std::string& precision, int ranks, int threads,
                        const RankShape& shape);

// Puts them into a catalogue of the caller's in place of the published constants, each with its source.
void use_rates(const RankRates& rates, const FrameworkSpeed& speed, Catalog& catalog);

}  // namespace stoker
