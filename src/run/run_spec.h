// RunSpec: what somebody wants to have run. Immutable once submitted; its digest names it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/json.h"
#include "base/result.h"

namespace stoker {

// The places of all ranks are one record of the journal.
inline constexpr int kMaxRanks = 512;

enum class RunKind : std::uint8_t { train, batch, notebook, graph };
// In this order: who goes first.
enum class RunClass : std::uint8_t { guaranteed, interactive, spot };
// What a failed step of a graph means: `fail` starts nothing more, `continue_others` ends what depends on it only and
// the graph fails in the end, `ignore` counts it as done.
enum class OnFailure : std::uint8_t { fail, continue_others, ignore };
// A gang on several nodes: on as few switches as there is room for, or on one switch or not at all.
enum class TopologyWish : std::uint8_t { prefer, require };

constexpr std::array<std::pair<RunKind, std::string_view>, 4> enum_names(RunKind) {
    return {{{RunKind::train, "train"},
             {RunKind::batch, "batch"},
             {RunKind::notebook, "notebook"},
             {RunKind::graph, "graph"}}};
}
constexpr std::array<std::pair<RunClass, std::string_view>, 3> enum_names(RunClass) {
    return {{{RunClass::guaranteed, "guaranteed"}, {RunClass::interactive, "interactive"}, {RunClass::spot, "spot"}}};
}
constexpr std::array<std::pair<TopologyWish, std::string_view>, 2> enum_names(TopologyWish) {
    return {{{TopologyWish::prefer, "prefer"}, {TopologyWish::require, "require"}}};
}
constexpr std::array<std::pair<OnFailure, std::string_view>, 3> enum_names(OnFailure) {
    return {{{OnFailure::fail, "fail"}, {OnFailure::continue_others, "continue"}, {OnFailure::ignore, "ignore"}}};
}

// What one rank takes of its node.
struct RankNeeds {
    std::int64_t cpu_milli = 1000;
    std::int64_t memory_bytes = 0;  // 0: none set aside, no limit
    int gpus = 0;
    int gpu_milli = 1000;   // of each; below 1000 with one GPU only
    std::string gpu_model;  // empty: any
    friend bool operator==(const RankNeeds&, const RankNeeds&) = default;
};

// Complete checkpoints go into an object store, too, while the run goes on.
struct UploadPolicy {
    std::string to;      // io/object_store_url.h; the server puts its name and the run's behind it
    int keep = 3;        // newest complete ones in the store
    int every = 1;       // each n-th
    bool at_end = true;  // and the last one, when the run has ended
    std::string tier;    // of the store: COOL, STANDARD_IA; empty: its own
    friend bool operator==(const UploadPolicy&, const UploadPolicy&) = default;
};

struct CheckpointPolicy {
    std::string folder;           // empty: none are written; relative: below the run's own folder
    std::int64_t interval_s = 0;  // 0: the program's own
    int keep = 3;                 // newest complete ones
    std::string restore_from;     // where upload put those of another run; used when there is none in the folder
    std::optional<UploadPolicy> upload;
    friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};

// Counted from the first start. 0: no end.
struct LeaseSpec {
    std::int64_t stop_after_s = 0;  // then: checkpoint and stop; a person may move it
    std::int64_t hard_max_s = 0;    // then: stop, whatever it is doing; nobody may move it
    bool stop_when_done = true;     // the place is given back when the work ends
    friend bool operator==(const LeaseSpec&, const LeaseSpec&) = default;
};

// Where the work comes from, so that it can be had again.
struct SourceSpec {
    std::string file;          // the workload file, as given
    std::string file_sha256;   // of its bytes
    std::string commit;        // of the git work tree around the folder; empty: there is none
    std::string dirty_sha256;  // of `git diff HEAD` and the untracked files' names and contents; empty: clean
    friend bool operator==(const SourceSpec&, const SourceSpec&) = default;
};

// What has to be there before anything is held. Looked at where the work will run.
struct PrerequisitesSpec {
    std::vector<std::string> commands;        // found in PATH
    std::vector<std::string> python_modules;  // "torch", found by `python`
    std::string python = "python3";
    std::vector<std::string> paths;  // readable files and folders: data, scripts
    std::int64_t disk_bytes = 0;     // free where the run's folder lies
    std::string driver;              // lowest version of the NVIDIA driver: "535.104"; empty: any or none
    friend bool operator==(const PrerequisitesSpec&, const PrerequisitesSpec&) = default;
};

// Where its steps are seen, beside STOKER_METRICS_FILE (observe/step_file.h).
struct ObserveSpec {
    std::string heartbeat;     // a file; relative: below the working directory
    std::string step_pattern;  // of a line of its output
    friend bool operator==(const ObserveSpec&, const ObserveSpec&) = default;
};

// What the planner said about this run before it started; what it is held against afterwards. 0: not predicted.
struct PredictedTerm {
    std::string name;  // as in the plan: "matmul", "exposed_all_reduce"
    double seconds = 0;
    friend bool operator==(const PredictedTerm&, const PredictedTerm&) = default;
};
// What the constants said before anything that runs taught was put in, and where a measurement of this run may teach
// something: machine_key() of app/this_machine.h.
struct PublishedSpec {
    std::string place;
    double compute_s = 0, other_s = 0, exchange_s = 0, memory_bytes = 0;
    std::int64_t calibrated_on = 0;  // runs; 0: nothing was put in
    // Of memory_bytes what a step allocates and frees, and the case among others. Left out where not known, as in older
    // specs.
    std::optional<double> transient_bytes, hidden, layers, sequence, tokens;
    friend bool operator==(const PublishedSpec&, const PublishedSpec&) = default;
};
struct PredictionSpec {
    std::string machine;  // node type
    int nodes = 0;
    std::string layout;                                  // in words
    double step_s = 0, step_low_s = 0, step_high_s = 0;  // 80 % interval
    std::vector<PredictedTerm> step_terms;               // add up to step_s
    double tokens_per_step = 0, flops_per_step = 0;      // of the whole gang
    double steps = 0;
    double run_s = 0, run_low_s = 0, run_high_s = 0;
    std::int64_t memory_bytes = 0;  // of one rank: device memory, or of the host where there is no device
    std::int64_t memory_low_bytes = 0, memory_high_bytes = 0;
    double mfu = 0;
    std::string bottleneck;
    std::int64_t cost_microusd = 0;
    std::string catalogue;  // version
    // How it is meant to compute. Left out of the canonical text where it is not known, as in older specs.
    std::optional<int> precision_bits;
    std::optional<bool> recompute, compiled;
    std::optional<PublishedSpec> published;
    friend bool operator==(const PredictionSpec&, const PredictionSpec&) = default;
};

struct GraphStep;
struct RunSpec {
    std::string name;
    RunKind kind = RunKind::batch;
    std::vector<std::string> command;  // argv
    std::map<std::string, std::string> environment;
    std::string folder;  // working directory
    std::string image;   // empty: the machine as it is
    int ranks = 1;       // all start or none
    int nodes = 0;       // exactly that many, ranks spread evenly; 0: as few as possible
    RankNeeds per_rank;
    std::optional<TopologyWish> topology;  // none: prefer; see queue_timeout_s

    int max_restarts = 0;        // after user errors and out of memory
    int max_attempts = 20;       // whatever the cause
    std::int64_t timeout_s = 0;  // of all attempts together; 0: none
    std::int64_t grace_s = 30;   // between TERM and KILL
    // Given up when it has not started by then; none or 0: it waits. Left out of the canonical text when there is none,
    // so that specs written before it existed keep their digest.
    std::optional<std::int64_t> queue_timeout_s;
    std::vector<int> transient_exit_codes = {75};  // EX_TEMPFAIL of sysexits.h: try again, count nothing
    CheckpointPolicy checkpoint;
    LeaseSpec lease;
    std::optional<PrerequisitesSpec> prerequisites;
    std::optional<ObserveSpec> observe;
    std::optional<SourceSpec> source;
    std::optional<PredictionSpec> prediction;
    std::map<std::string, std::string> parameters;  // of a point of a sweep: lr -> 1e-4
    std::map<std::string, std::string> labels;      // of the owner; nothing follows from them

    int priority = 0;  // -100 to 100; each step weighs as much as an hour of waiting
    RunClass run_class = RunClass::guaranteed;
    std::string user = "local", project = "local", organisation = "local";
    std::vector<GraphStep> steps;  // of a graph
};

struct GraphStep {
    std::string name;
    std::vector<std::string> depends_on;
    OnFailure on_failure = OnFailure::fail;
    int retries = 0;  // in place of the run's max_restarts
    RunSpec run;
};

template <class V>
void fields(V& visit, RankNeeds& needs) {
    visit("cpu_milli", needs.cpu_milli);
    visit("gpu_milli", needs.gpu_milli);
    visit("gpu_model", needs.gpu_model);
    visit("gpus", needs.gpus);
    visit("memory_bytes", needs.memory_bytes);
}
template <class V>
void fields(V& visit, UploadPolicy& spec) {
    visit("at_end", spec.at_end);
    visit("every", spec.every);
    visit("keep", spec.keep);
    visit("tier", spec.tier);
    visit("to", spec.to);
}
template <class V>
void fields(V& visit, CheckpointPolicy& spec) {
    visit("folder", spec.folder);
    visit("interval_s", spec.interval_s);
    visit("keep", spec.keep);
    visit("restore_from", spec.restore_from);
    visit("upload", spec.upload);
}
template <class V>
void fields(V& visit, LeaseSpec& spec) {
    visit("hard_max_s", spec.hard_max_s);
    visit("stop_after_s", spec.stop_after_s);
    visit("stop_when_done", spec.stop_when_done);
}
template <class V>
void fields(V& visit, SourceSpec& spec) {
    visit("commit", spec.commit);
    visit("dirty_sha256", spec.dirty_sha256);
    visit("file", spec.file);
    visit("file_sha256", spec.file_sha256);
}
template <class V>
void fields(V& visit, PrerequisitesSpec& spec) {
    visit("commands", spec.commands);
    visit("disk_bytes", spec.disk_bytes);
    visit("driver", spec.driver);
    visit("paths", spec.paths);
    visit("python", spec.python);
    visit("python_modules", spec.python_modules);
}
template <class V>
void fields(V& visit, ObserveSpec& spec) {
    visit("heartbeat", spec.heartbeat);
    visit("step_pattern", spec.step_pattern);
}
template <class V>
void fields(V& visit, PredictedTerm& term) {
    visit("name", term.name);
    visit("seconds", term.seconds);
}
template <class V>
void fields(V& visit, PublishedSpec& spec) {
    visit("calibrated_on", spec.calibrated_on);
    visit("compute_s", spec.compute_s);
    visit("exchange_s", spec.exchange_s);
    visit("hidden", spec.hidden);
    visit("layers", spec.layers);
    visit("memory_bytes", spec.memory_bytes);
    visit("other_s", spec.other_s);
    visit("place", spec.place);
    visit("sequence", spec.sequence);
    visit("tokens", spec.tokens);
    visit("transient_bytes", spec.transient_bytes);
}
template <class V>
void fields(V& visit, PredictionSpec& spec) {
    visit("bottleneck", spec.bottleneck);
    visit("catalogue", spec.catalogue);
    visit("compiled", spec.compiled);
    visit("cost_microusd", spec.cost_microusd);
    visit("flops_per_step", spec.flops_per_step);
    visit("layout", spec.layout);
    visit("machine", spec.machine);
    visit("memory_bytes", spec.memory_bytes);
    visit("memory_high_bytes", spec.memory_high_bytes);
    visit("memory_low_bytes", spec.memory_low_bytes);
    visit("mfu", spec.mfu);
    visit("nodes", spec.nodes);
    visit("precision_bits", spec.precision_bits);
    visit("published", spec.published);
    visit("recompute", spec.recompute);
    visit("run_high_s", spec.run_high_s);
    visit("run_low_s", spec.run_low_s);
    visit("run_s", spec.run_s);
    visit("step_high_s", spec.step_high_s);
    visit("step_low_s", spec.step_low_s);
    visit("step_s", spec.step_s);
    visit("step_terms", spec.step_terms);
    visit("steps", spec.steps);
    visit("tokens_per_step", spec.tokens_per_step);
}
template <class V>
void fields(V& visit, RunSpec& spec);
template <class V>
void fields(V& visit, GraphStep& step) {
    visit("depends_on", step.depends_on);
    visit("name", step.name);
    visit("on_failure", step.on_failure);
    visit("retries", step.retries);
    visit("run", step.run);
}
template <class V>
void fields(V& visit, RunSpec& spec) {
    visit("checkpoint", spec.checkpoint);
    visit("class", spec.run_class);
    visit("command", spec.command);
    visit("environment", spec.environment);
    visit("folder", spec.folder);
    visit("grace_s", spec.grace_s);
    visit("image", spec.image);
    visit("kind", spec.kind);
    visit("labels", spec.labels);
    visit("lease", spec.lease);
    visit("max_attempts", spec.max_attempts);
    visit("max_restarts", spec.max_restarts);
    visit("name", spec.name);
    visit("nodes", spec.nodes);
    visit("observe", spec.observe);
    visit("organisation", spec.organisation);
    visit("parameters", spec.parameters);
    visit("per_rank", spec.per_rank);
    visit("prediction", spec.prediction);
    visit("prerequisites", spec.prerequisites);
    visit("priority", spec.priority);
    visit("project", spec.project);
    visit("queue_timeout_s", spec.queue_timeout_s);
    visit("ranks", spec.ranks);
    visit("source", spec.source);
    visit("steps", spec.steps);
    visit("timeout_s", spec.timeout_s);
    visit("topology", spec.topology);
    visit("transient_exit_codes", spec.transient_exit_codes);
    visit("user", spec.user);
}

// Structure and content, all problems together; `read` places them in what the user wrote.
Result<RunSpec> read_run_spec(const Node& node);
Status check_run_spec(const RunSpec& spec);

// Canonical: the same spec gives the same bytes, and so the same digest, on every machine.
Json to_json(const RunSpec& spec);
std::string canonical_json(const RunSpec& spec);
Result<RunSpec> parse_run_spec(std::string_view json);
std::string digest(const RunSpec& spec);  // SHA-256 of the canonical JSON, in hex

// The steps so that each comes after what it depends on; a cycle is refused with its path.
Result<std::vector<std::size_t>> order_of_steps(const RunSpec& graph);

}  // namespace stoker
