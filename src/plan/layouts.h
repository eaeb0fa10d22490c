// The layouts worth evaluating for a number of devices: every way to divide the model that its shape allows.
#pragma once

#include <vector>

#include "sizing/training.h"

namespace stoker {

struct LayoutSpace {
    int devices = 1;  // in all
    int devices_per_node = 1;
    int domain = 1;  // devices that reach each other at full speed
    bool pairs_only = false, gpu = true;
    int layers = 1, heads = 1, kv_heads = 1, experts = 0;
    double sequence = 1;
    double global_batch = 1;  // sequences or images per step
    // A step takes exactly the global batch. False where no number of these machines can share it evenly: then the
    // nearest batch that they can, and the plan says so.
    bool exact_batch = true;
    bool transformer = true, mla = false, flash = true, adapters_only = false;
    bool any_framework = true;   // none is named: each layout gets the one that can run it
    bool modules = false;        // parts of a layer can be recomputed by themselves, and chunks of layers differ by one
    bool whole_experts = false;  // are spread over tensor ranks too, each on one
    bool some_layers = false;    // full recompute can be had for a part of the layers
    bool pipelines = true;  // the stack has them; fine-tuning is done with FSDP and DeepSpeed, where nobody uses any
    LayoutSpec pinned;
    int zero_least = 0, zero_most = 3;        // stages of ZeRO that the framework has
    int zero_most_cut = 3;                    // the same where the model itself is cut
    bool node_groups = true;                  // states can be divided within a node and copied on each
    bool divides = true, interleaves = true;  // tensor and pipeline parallelism; chunks of layers on a stage
    // What people run is simple where that costs little: a layout may be so much slower for each step of simplicity,
    // and for doing without a pipeline where one node with fast links holds all devices. 0: the fastest, however odd.
    double simpler_share = 0, simpler_most = 0, pipeline_inside_share = 0;  // simpler_most 0: of any sum
    double plain_share = 0;  // by so much may ranks that keep all states be slower than any other
    // What cuts the model itself takes a stack of its own, which has to save so much of the devices' time for each
    // example; more than this share of it nobody gives up for a plain script.
    double set_up_device_s = 0, set_up_most = 0;
};

// The time of a layout that takes `seconds` an example, with what its oddness has to make up for: a factor of at least
// 1, below it where nothing is divided.
// `megatron`: it runs under the stack that cuts models though it cuts none.
double oddness(const LayoutSpace& space, const ParallelLayout& layout, double seconds, bool megatron = false);
// What setting up its stack is worth, as a share of its time; 0 of what a plain script does.
double set_up_share(const LayoutSpace& space, const ParallelLayout& layout, double seconds, bool megatron = false);

// Divisions of the devices, without micro-batch and recompute, in a fixed order: less communication first.
// A division whose ranks outnumber the batch is left out and counted in `too_many_ranks`; one whose ranks cannot share
// an exact batch evenly, in `uneven`.
struct Divisions {
    std::vector<ParallelLayout> layouts;
    std::int64_t too_many_ranks = 0, uneven = 0;
    int uneven_ranks = 0;  // of the first of them
};
Divisions divisions(const LayoutSpace& space);
// Whether any division of so many devices shares the batch evenly.
bool shares_batch(LayoutSpace space);

// Sets micro_batches for a micro-batch size; false when no whole number of them makes the global batch, or, where that
// need not be exact, comes within an eighth of it.
bool fit_batch(ParallelLayout& layout, int micro_batch, const LayoutSpace& space);
// The micro-batch sizes to try, ascending.
std::vector<int> micro_batches(const LayoutSpace& space, const ParallelLayout& division);

}  // namespace stoker
