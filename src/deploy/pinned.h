// A workload as it will run, where nothing is left to choose: so many ranks on the cores of this machine, each of them
// a machine of its own to the planner, joined by the loopback device.
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
// A rank of a run on this machine, taken for a machine of its own.
bool is_rank_here(const NodeType& node);

// What runs of it teach is kept under: its kind, and of what was counted by stoker_torch.profile() the network it is.
std::string network_word(const ModelSpec& model);

// It has an end: not a service, which is priced and predicted by the hour.
bool has_an_end(const Workload& workload);

// A training is data parallel over the ranks; of a service every rank is a replica with its share of the requests; of a
// pile every rank takes its part. Limits of time, money and latency are left out: they choose, they do not predict.
// invalid: the file's layout contradicts the ranks, with its place. unsupported: the planner cannot know.
Result<Workload> pinned_to_ranks(const Workload& workload, int ranks, const CheckpointPolicy& checkpoint);

// What was estimated for one replica of a service, for so many that share its requests.
Candidate for_all_ranks(Candidate one, const Workload& workload, int ranks);

}  // namespace stoker
