// Workload: what the user wants done, in the words of the workload file. The same file later runs, serves and is
// checked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/table.h"
#include "base/units.h"
#include "catalog/catalog.h"
#include "workload/run_section.h"

namespace stoker {

enum class WorkloadKind : std::uint8_t {
    training,
    fine_tuning,
    inference,        // real time, behind an endpoint
    batch_inference,  // a pile of prompts, tokens per dollar
    embedding,
    preprocessing,
    notebook,
    simulation  // rendering, CAD, CAE
};
std::string_view to_string(WorkloadKind kind);
inline bool is_training(WorkloadKind k) {
    return k == WorkloadKind::training || k == WorkloadKind::fine_tuning;
}

enum class Method : std::uint8_t { full, lora, qlora };
enum class Minimize : std::uint8_t { cost, time, energy };
enum class SpotUse : std::uint8_t { never, allowed, only };
std::string_view to_string(Method method);
// What one example of a fine-tuning teaches: its tokens; the two answers of a pair (dpo, ipo, orpo, simpo); one answer
// that was judged (kto). dpo, ipo and kto compare with a frozen reference.
enum class Loss : std::uint8_t { sft, dpo, ipo, kto, orpo, simpo };
std::string_view to_string(Loss loss);
std::string tuned_words(Method method, Loss loss);  // " with LoRA and DPO"
std::string_view to_string(Minimize minimize);
std::string_view to_string(SpotUse spot);

struct DataSpec {
    std::optional<double> tokens;    // in all, epochs included only when `epochs` is absent
    std::optional<double> examples;  // sequences, images, ...
    std::optional<double> sequence;  // tokens of one sequence
    std::optional<double> epochs;
    std::optional<Bytes> bytes;  // size of the data set on storage
    std::optional<Bytes> bytes_per_example;
    std::optional<Bytes> storage_bandwidth_per_second;  // what the storage delivers to all nodes together, bytes/s
    std::optional<Seconds> decode_per_example;          // CPU time of one vCPU to decode and augment one example
    std::optional<double> image_size;                   // pixels of an edge, where the model's own size is known
    std::string region, cloud;                          // where it lies: canonical; empty: not said
    std::map<std::string, SourcePos> at;
};

// read_workload fills in both global figures (one from the other, or a default that the assumptions name) for training
// and fine-tuning.
struct BatchSpec {
    std::optional<double> global_tokens, global_examples, micro;
    std::map<std::string, SourcePos> at;
};

struct TrafficSpec {
    std::optional<double> requests_per_second;
    std::optional<double> prompt_tokens, output_tokens;  // means
    std::optional<double> prompt_tokens_cv, output_tokens_cv,
        arrival_cv;                  // coefficient of variation; arrival 1: Poisson
    std::optional<double> requests;  // batch: how many in all
    // Instead of a rate, a closed loop: clients who each wait for their answer, and think before they ask again.
    std::optional<double> concurrency;
    std::optional<double> users, active_share;   // people; the share of them who are at it at the busiest time
    std::optional<double> requests_per_minute;   // of one active user: a rate again
    std::optional<double> streams;               // speech models: conversations that are heard as they are spoken
    std::optional<Seconds> think_time;           // from an answer to the next request
    std::optional<double> steps;                 // diffusion models: of denoising, for one image
    std::optional<bool> guidance;                // diffusion models: every step computes with and without the prompt
    std::optional<Seconds> audio;                // speech models: mean length of what is heard in one request
    std::optional<double> cached_prompt_tokens;  // mean tokens of a prompt that the engine has in its cache already
    std::optional<double> image_size;            // pixels of an edge, where the model's own size is known
    std::string region, cloud;                   // where the requests come from: canonical; empty: not said
    std::map<std::string, SourcePos> at;
};

// "0.1", "0.02 - 0.4", or the bracket that Azure shows, "5-10%": of one spot node in an hour. One figure alone stands
// for half to double of it.
std::optional<Range> parse_eviction_rate(std::string_view text);

// "12 requests/s", "1.2 videos/min": what is rare is told by a longer span.
std::string rate_text(double per_second, std::string_view unit, int digits = 6);

// Speculative decoding: guesses that one step of the model checks together.
struct SpeculationSpec {
    double tokens_ahead = 0, acceptance = 0.7;  // acceptance: that a guess is right when those before it were
    double draft_parameters = 0;                // of a draft model; 0: the model's own layers for it (MTP)
};

struct LatencySpec {
    std::optional<Seconds> ttft_p50, ttft_p95, ttft_p99, tpot_p50, tpot_p95, tpot_p99, e2e_p95,
        p95;  // p95: one request, small models
    std::map<std::string, SourcePos> at;
    bool any() const { return ttft_p50 || ttft_p95 || ttft_p99 || tpot_p50 || tpot_p95 || tpot_p99 || e2e_p95 || p95; }
};

struct ObjectiveSpec {
    Minimize minimize = Minimize::cost;
    std::optional<Seconds> deadline;
    std::optional<Usd> budget;
    LatencySpec latency;
    std::optional<double> confidence;  // with which deadline and budget are to be kept; absent: the catalogue's default
    bool survive_one_replica_lost = true;
    std::map<std::string, SourcePos> at;
};

struct WhereSpec {
    std::vector<std::string> clouds;        // canonical names; empty: azure. "any": all
    std::vector<std::string> regions;       // canonical; empty: all
    std::vector<std::string> sizes;         // canonical names; empty: all
    std::vector<std::string> accelerators;  // words such as h100, amd, tpu; empty: all. See matches_accelerator
    std::vector<std::string> residency;     // geographies that data may not leave
    SpotUse spot = SpotUse::never;
    std::string os = "linux";
    std::optional<double> max_nodes, nodes;    // nodes: exactly
    std::optional<double> gpus;                // training: exactly so many in all, on as many nodes as that makes
    std::string nodes_file;                    // on-prem nodes in YAML
    bool nodes_here = false;                   // they are described in the workload file itself
    std::vector<std::string> names_here;       // what those are called
    std::optional<Seconds> commitment;         // reserved prices may be used when the work lasts this long
    std::optional<Range> evictions_per_hour;   // of one spot node; absent: the user's settings, then the catalogue's
    std::optional<double> on_demand_replicas;  // of a service on spot: so many are never taken away
    std::map<std::string, SourcePos> at;

    bool describes_nodes() const { return nodes_here || !nodes_file.empty(); }
    // Whether a number of these machines makes up `gpus`.
    bool takes(const NodeType& type) const;
    // How many of these machines are asked for, by `nodes` or by `gpus`; absent: that is the planner's to find out.
    std::optional<int> pinned_nodes(const NodeType& type) const;
};

// Degrees pinned by the user; what is absent is searched. `stoker estimate` needs all that matter.
struct LayoutSpec {
    std::optional<double> tensor, pipeline, virtual_stages, context, expert, data, zero, micro_batch, shard_group,
        recompute_layers;
    std::optional<std::string> recompute;  // none, selective, full
    std::optional<bool> sequence_parallel, offload;
    std::map<std::string, SourcePos> at;
};

struct LoraSpec {
    double rank = 16;
    std::string targets = "all-linear";  // all-linear, attention
};

struct CheckpointSettings {
    std::optional<Seconds> every;
    std::optional<Bytes> write_bandwidth_per_second;
    bool asynchronous = false;
    std::map<std::string, SourcePos> at;
};

// The data disk of every VM (R244). Absent fields are the planner's to choose.
struct DiskSpec {
    std::optional<std::string> type;  // standard-hdd, standard-ssd, premium-ssd, premium-ssd-v2, ultra
    std::optional<Bytes> size, throughput_per_second;
    std::map<std::string, SourcePos> at;
};

// What stands before a model and needs no GPU: a gateway, what prepares requests and finishes answers. It has machines
// and a scaling of its own.
struct FrontSpec {
    std::string image;
    std::vector<std::string> command;  // empty: the image's own
    std::optional<double> port;
    std::string health;                      // a path that answers when it is ready
    std::optional<Seconds> cpu_per_request;  // time of one vCPU
    std::optional<double> cpus;              // of one pod
    std::optional<Bytes> memory;             // of one pod
    std::map<std::string, SourcePos> at;
};

struct Workload {
    int version = 1;
    std::string name;
    WorkloadKind kind = WorkloadKind::training;
    ModelSpec model;                // resolved: from the catalogue, a config.json, the fields given, or assumed
    std::string model_written;      // its name as the file has it, without an owner; empty: as the catalogue has it
    std::string parameters_differ;  // in words: the file says so many, the shape that is planned has others
    bool model_known =
        false;  // false where no model is needed (notebook, preprocessing, simulation) and none was given
    DataSpec data;
    BatchSpec batch;
    Precision precision = Precision::bf16;
    Precision kv_precision = Precision::bf16;
    // Where the file says nothing: what to take, the first that a device runs (sizing/precision.h). `precision` is the
    // first of them until a plan has chosen a device. Empty: `precision` it is, on any device.
    std::vector<Precision> precision_order;
    bool kv_precision_given = false;
    Method method = Method::full;
    Loss loss = Loss::sft;
    LoraSpec lora;
    std::string optimizer = "adamw";  // adamw, adam8bit, sgd, adafactor, muon
    std::string framework;  // megatron, fsdp, deepspeed, pytorch; vllm, tensorrt-llm, sglang, llama.cpp; empty: chosen
    std::string framework_version;  // of an engine, "0.6"; empty: today's
    bool compiled = false;          // torch.compile or the like
    bool flash_attention = true;
    TrafficSpec traffic;
    FrontSpec front;  // its image is empty: there is none
    SpeculationSpec speculation;
    ObjectiveSpec objective;
    WhereSpec where;
    LayoutSpec layout;
    CheckpointSettings checkpoint;
    DiskSpec disk;
    std::string orchestrator;  // wanted: aks, azure-ml, vmss, cyclecloud-slurm, batch, ray, slurm, local; empty: chosen
    std::string use_case;      // chatbot, medical-imaging, ...: sets defaults, see templates
    bool sensitive = false;    // isolation, private network, audit
    bool interruptible = true;                    // may be stopped and resumed
    double models_served = 1;                     // several models on one machine
    std::optional<Bytes> memory;                  // preprocessing, notebook, simulation: what the work needs
    std::optional<double> vcpu_hours, gpu_hours;  // preprocessing, simulation: amount of work, when known
    std::optional<Seconds> period;                // notebook, endpoint: how long it is kept
    std::vector<std::string> needs;               // software: pytorch, jupyter, mpi, ...
    std::optional<RunSection> run;                // how it is started; nothing is planned by it
    std::vector<std::string> assumptions;         // everything taken for granted, in words, for the plan to show
    SourcePos pos;
    std::map<std::string, SourcePos>
        at;  // only what the file says: at.count("precision") == 0 means that bf16 was assumed

    // Quantities every later stage wants, derived once by read_workload.
    double sequence() const;  // tokens per sequence, 1 for images
    // What a frozen reference adds to the work of learning, which it only reads: a third of that on all weights, half
    // of that on adapters.
    double reference_share() const;
    bool learns_pairs() const;  // two sequences for each of data.examples
    // Sequences, images or requests processed, epochs included, the reference's reading as so many more sequences; 0:
    // no end, or not known.
    double total_examples() const;
    double total_tokens() const;
    // At once: `concurrency`, or the active ones of `users`; 0: requests come at a rate, or nothing is said.
    double clients() const;
    // An endpoint without any load: what do the machines that are pinned hold?
    bool asks_for_capacity() const;
    std::string title() const;  // "Train llama-3-8b on 150 B tokens"
};

// Reads a file the workload names (config.json, nodes): a door that the caller opens, since sizing has no side effects.
using FileLoader = std::function<Result<Document>(const std::string& path)>;

// All that is wrong is reported together, each with its place and remedy. Unanswered questions are asked by name.
Result<Workload> read_workload(const Document& document, const Catalog& catalog, const FileLoader& load);

// A word of where.accelerators names an accelerator, the start of its name (tpu, trainium, a100) or its vendor.
bool matches_accelerator(std::string_view word, const Accelerator& accelerator);

// Words of use_case. Each has a file data/templates/NAME.yaml.
const std::vector<std::string>& use_case_names();

// The questions of a workload that is not written yet, in the order to ask them. `key` is the path in the file.
struct Question {
    std::string key, text, why, example;
    std::vector<std::string> choices;
    bool required = false;  // false: the answer may be left out, and a default is taken and named in the plan
};
std::vector<Question> questions_for(std::string_view kind);  // kind empty: only the first question

// This precision and no other, as if the file said it.
void fix_precision(Workload& workload, Precision precision);
// The cache of keys and values beside weights of a precision, where the file does not say.
Precision kv_precision_beside(Precision weights);

const RecordInfo& workload_record();  // for the schema and the reference page

}  // namespace stoker
