// Deployment: a plan's candidate made concrete for an engine, with what was promised of it. Here Plan and Run meet:
// what is rendered for people to keep, and what is started here, is read from it, and a run is held against its
// prediction.
//
// It decides nothing new: degrees, nodes and numbers are the candidate's, the program is what the file says. Where both
// speak, the rule is one: two statements of the file that contradict each other are refused with their places; against
// what the planner chose, the file wins where the run is started here, and the plan wins in what is rendered. Who lost
// is told in `notes`. Pure: the same candidate, workload and catalogue give the same Deployment, byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "catalog/catalog.h"
#include "deploy/checkpoint_policy.h"
#include "deploy/lease_spec.h"
#include "deploy/prediction_spec.h"
#include "deploy/questions.h"
#include "deploy/rank_needs.h"
#include "deploy/start_policy.h"
#include "plan/plan.h"
#include "sizing/disk.h"

namespace stoker {

// Why a setting is as it is, for --explain.
struct Because {
    std::string setting;  // its place in to_json: "environment.NCCL_SOCKET_IFNAME"
    std::string reason;
    std::string source;  // a document, the plan, or the place in the file
};

// What the nodes have to be for each other: nothing; one placement group or InfiniBand domain; apart, so that the loss
// of one leaves enough.
enum class NodePlacement : std::uint8_t { any, together, apart };
std::string_view to_string(NodePlacement placement);

// Which devices of its node a rank has: none; those behind its local rank, as many as it needs; or a share of one.
enum class GpuBinding : std::uint8_t { none, by_local_rank, share };
std::string_view to_string(GpuBinding binding);

// How nodes reach each other.
struct Fabric {
    std::string kind;               // infiniband, efa, roce, ethernet, loopback; empty: one node, nothing to reach
    std::string generation;         // HDR, NDR
    double gbps_per_gpu = 0;        // 0: no RDMA
    double ethernet_gbps = 0;       // of a node; 0: not known
    double scale_up_bandwidth = 0;  // bytes/s between the GPUs of a node, each and one way; 0: none
    int scale_up_domain = 1;        // GPUs that it joins
};

// All nodes are alike.
struct NodeSet {
    std::string cloud;    // azure, aws, on-prem, this-machine
    std::string machine;  // VM size, or the name of the machine
    int count = 1;
    std::string region, zone;  // zone empty: any
    Pricing pricing = Pricing::on_demand;
    int kept = 0;             // of `count`: had on demand and never taken away, where the others are spot
    bool one_of_two = false;  // a part of a service whose other nodes are had the other way (render/pools.h)
    std::string os = "linux";
    int vcpus = 0, cores = 0;  // of one node, as all of these
    double memory_bytes = 0;
    std::string gpu, gpu_vendor;
    double gpus = 0;  // may be a fraction
    double gpu_memory_bytes = 0;
    NodePlacement placement = NodePlacement::any;
    Fabric fabric;
    std::string image;          // of the VM; empty: what is installed there
    std::optional<MigCut> mig;  // a node is one part of a GPU that is cut; the machine is here
    std::optional<Disk> disk;
    bool spot() const { return pricing == Pricing::spot; }
};

struct RankSet {
    int count = 1, per_node = 1;  // count = nodes x per_node, but for a last node of replicas that is not full
    RankNeeds each;
    GpuBinding binding = GpuBinding::none;
};

struct TrainingWork {
    ParallelLayout layout;
    double global_batch = 0, sequence = 0, steps = 0;
    Method method = Method::full;
    LoraSpec lora;
    std::string optimizer;
    bool compiled = false, flash_attention = true;
};

// A service, or a pile of requests.
struct ServingWork {
    ReplicaShape shape;
    int replicas = 1, nodes_per_replica = 1;
    Precision kv_precision = Precision::bf16;
    double context_tokens = 0;  // prompt and output of a long request: what an engine must be able to hold
    double max_sequences = 0, token_budget = 0;                     // bounds of a batch of the engine
    double kv_tokens = 0;                                           // that fit in a replica
    double memory_fraction = 0;                                     // of a device, that the engine may take
    double requests_per_second = 0, requests = 0, concurrency = 0;  // 0: not said
    LatencySpec latency;
};

// What stands before the model of a service and needs no GPU.
struct FrontWork {
    std::string image, health;
    std::vector<std::string> command;
    int port = 8080;
    std::int64_t cpu_milli = 0, memory_bytes = 0;  // of one pod
    double busy = 0;                               // share of its CPUs that it is held at
    int least = 1, replicas = 1, most = 1;         // always; at the rate of the file; ever
    std::string machine;                           // of a pool of its own; empty: none is known there
    int machines = 0, most_machines = 0;           // at the rate of the file; ever
    std::int64_t microusd_per_hour = 0;            // of `machines`; 0: no price is known
};

struct FileToWrite {
    std::string path;  // below the folder that is rendered into
    std::string content;
    int mode = 0644;
};

struct Deployment {
    std::string name;    // what files and resources are called after; letters, digits, - . and _
    std::string target;  // a row of render/targets.h
    std::string title;   // "Train llama-3-8b on 150B tokens"
    WorkloadKind kind = WorkloadKind::training;
    Orchestrator orchestrator = Orchestrator::none;
    std::string framework;
    std::string framework_version;  // of an engine, where the file names one
    ModelSpec model;
    bool model_known = false;
    Precision precision = Precision::bf16;
    bool sensitive = false;  // of people, or under seal: its machines have no public address

    NodeSet nodes;
    RankSet ranks;
    std::optional<TrainingWork> training;
    std::optional<ServingWork> serving;
    std::optional<FrontWork> front;

    std::map<std::string, std::string> environment;  // of every rank; what a launcher gives each is not here
    std::vector<std::string> command;                // argv; empty: the file does not say what to run
    std::string folder;                              // working directory
    std::string image;                               // container; empty: the machine as it is
    CheckpointPolicy checkpoint;
    double checkpoint_bytes = 0;  // of one, of all ranks together; 0: not predicted
    LeaseSpec lease;
    StartPolicy policy;
    std::optional<PrerequisitesSpec> prerequisites;  // what must be there before it starts
    std::int64_t walltime_s = 0;                     // what a queue is asked for; 0: it has no end
    std::vector<FileToWrite> files;

    PredictionSpec prediction;
    std::vector<Because> because;    // of the settings that are not obvious
    std::vector<std::string> notes;  // what was said and does not stand
};

// How the work is started, as its run section says (run/spec/start_spec.h).
struct StartSpec {
    std::vector<std::string> command;
    std::map<std::string, std::string> environment;
    std::string folder, image;
    int ranks = 1, nodes = 0;
    RankNeeds per_rank;
    CheckpointPolicy checkpoint;
    LeaseSpec lease;
    StartPolicy policy;
    std::optional<PrerequisitesSpec> prerequisites;
    std::int64_t timeout_s = 0;
};

struct DeploymentOptions {
    std::string name, target;
    const StartSpec* start = nullptr;  // none: the file does not say
    // Of a run on this machine: where a measurement of it belongs to, and what earlier ones taught.
    std::string place;
    const Calibration* learnt = nullptr;
};

// invalid: two statements of the file contradict each other. conflict: the candidate cannot run, or is none of this
// workload.
Result<Deployment> make_deployment(const Candidate& candidate, const Workload& workload, const Catalog& catalog,
                                   const DeploymentOptions& options);

// The prediction of a candidate in the form that a run keeps: every number is the candidate's.
PredictionSpec prediction_of(const Candidate& candidate, const Workload& workload, const Catalog& catalog,
                             const DeploymentOptions& options = {});

// In the order in which it is written down above; what is empty is left out.
Json to_json(const Deployment& deployment);

}  // namespace stoker
