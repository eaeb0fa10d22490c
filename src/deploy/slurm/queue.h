// What Slurm says, read: jobs of squeue, nodes and settings of scontrol, and why a job is pending. No side effects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cause.h"
#include "base/ids.h"
#include "base/result.h"
#include "deploy/driver.h"

namespace stoker::slurm {

// pending: also configuring and requeued. over: it has ended, whatever its state says about how.
enum class JobPhase : std::uint8_t { pending, running, completing, over };
struct Job {
    std::string number;  // a hint for people; "12", "12_3"
    OperationId operation;
    JobPhase phase = JobPhase::pending;
    std::string state, reason, nodes;  // in Slurm's words
    std::int64_t submitted_s = 0;
    std::int64_t starts_s = 0;  // of a pending job, as Slurm expects; 0: it does not say
    std::int64_t priority = 0;
    friend bool operator==(const Job&, const Job&) = default;
};

inline constexpr std::string_view kJobPrefix = "stoker-";
// For squeue -o with SLURM_TIME_FORMAT=%s. The reason, which may have any letter in it, comes last.
inline constexpr const char* kQueueFormat = "%A|%j|%T|%V|%S|%N|%Q|%r";

// Only jobs that carry our mark; lines that are none of ours are passed over.
std::vector<Job> read_queue(std::string_view text);
JobPhase phase_of(std::string_view state);
// What runs without a time limit Slurm takes to end in a year: that is no expectation, and 0 here.
std::int64_t expected_start(std::int64_t submitted_s, std::int64_t starts_s);
// How an attempt ended whose job is in this state: "PREEMPTED", "CANCELLED by 1000".
Cause cause_of_state(std::string_view state);

struct PendingReason {
    Cause cause = Cause::engine_queue;
    bool never = false;  // until somebody changes the job or the cluster
    std::string meaning;
};
// `words` as squeue prints them. What the table has not is engine_queue, with Slurm's words as they are.
PendingReason read_reason(std::string_view words);
// "job 12: Resources (nothing that is large enough is free; 3 of 16 GPUs are free)", at most kMaxDetailBytes.
std::string detail_of(const Job& job, const std::string& numbers = {});

// Key=value of scontrol -o; a value goes on to the next " Key=".
std::map<std::string, std::string> read_fields(std::string_view line);
// "Key   = value" of `scontrol show config`, keys as they are.
std::map<std::string, std::string> read_settings(std::string_view text);

struct SlurmNode {
    NodeInfo info;
    std::string state, reason;
    std::vector<std::string> partitions, gpu_types;  // gpu_types: of gres
    bool usable = false;                             // takes work, now or when it has been powered on
    std::int64_t cores_used = 0, gpus_used = 0;      // where that was asked
};
// Of a state as scontrol has it: MIXED+DRAIN, IDLE*.
bool takes_work(std::string_view state);
// Devices of the node and the types of their gres.
void put_gpus(SlurmNode& node, std::string_view gres, const std::map<std::string, std::string>& gpu_models);
// What Slurm knows of its health. It measures nothing itself, so that only what is wrong is sure; what it compares with
// its configuration at each registration of the node (processors, memory, GPUs) is passed.
HealthReport report_of_node(const SlurmNode& node, HealthLevel level);
// Lines of `scontrol show node -o`, with -d what is used too; gpu_models: gres type -> name in the catalogue.
std::vector<SlurmNode> read_nodes(std::string_view text, const std::map<std::string, std::string>& gpu_models);
// "gpu:a100:8(S:0-1),shard:32" -> 8 GPUs of type a100.
struct GresGpus {
    std::string type;
    int count = 0;
};
std::vector<GresGpus> read_gres(std::string_view text);
std::int64_t gpus_in(std::string_view gres);

// Lines of `scontrol show topology`: node -> "spine/leaf", outermost first. Names of nodes come expanded by
// `expand` ("n[1-3]" -> n1, n2, n3).
std::map<std::string, std::string> read_topology(std::string_view text);
std::vector<std::string> expand_hosts(std::string_view list);

}  // namespace stoker::slurm
