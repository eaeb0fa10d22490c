// A workload as it will run: so many ranks on the cores of this machine, each of them a machine of its own to the
// planner, joined by the loopback device; or ranks on GPUs of one machine.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "deploy/checkpoint_policy.h"
#include "plan/plan.h"
#include "workload/workload.h"

namespace stoker {

inline constexpr std::string_view kHere = "this-machine";   // the cloud
inline constexpr std::string_view kRankAsMachine = "rank";  // the node type
inline constexpr std::string_view kGpusHere = "gpus";       // the node type of ranks on GPUs, which are one machine
// A rank of a run on this machine, taken for a machine of its own.
bool is_rank_here(const NodeType& node);
// That, or all GPUs of a run on one machine.
bool is_run_here(const NodeType& node);

// What runs of it teach is kept under: its kind, and of what was counted by stoker_torch.profile() the network it is.
std::string network_word(const ModelSpec& model);

// It has an end: not a service, which is priced and predicted by the hour.
bool has_an_end(const Workload& workload);

// A training is data parallel over the ranks; of a service every rank is a replica with its share of the requests; of a
// pile every rank takes its part. Limits of time, money and latency are left out: they choose, they do not predict.
// invalid: the file's layout contradicts the ranks, with its place. unsupported: the planner cannot know.
Result<Workload> pinned_to_ranks(const Workload& workload, int ranks, const CheckpointPolicy& checkpoint);

// The same on GPUs, so many for each rank. Of a training what a file leaves open of its layout is taken as most
// programs have it, data parallel with whole batches at once; `open` leaves that to the planner instead, for where it
// does not fit.
Result<Workload> pinned_to_gpus(const Workload& workload, int ranks, int gpus_per_rank,
                                const CheckpointPolicy& checkpoint, bool open);

// What was estimated for one replica of a service, for so many that share its requests.
Candidate for_all_ranks(Candidate one, const Workload& workload, int ranks);

}  // namespace stoker
