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
#include "deploy/checkpoint_policy.h"
#include "deploy/lease_spec.h"
#include "deploy/prediction_spec.h"
#include "deploy/questions.h"
#include "deploy/rank_needs.h"
#include "deploy/start_policy.h"

namespace stoker {

inline constexpr std::size_t kMostAfter = 100;

enum class RunKind : std::uint8_t { train, batch, notebook, graph };
// What a failed step of a graph means: `fail` starts nothing more, `continue_others` ends what depends on it only and
// the graph fails in the end, `ignore` counts it as done.
enum class OnFailure : std::uint8_t { fail, continue_others, ignore };
constexpr std::array<std::pair<RunKind, std::string_view>, 4> enum_names(RunKind) {
    return {{{RunKind::train, "train"},
             {RunKind::batch, "batch"},
             {RunKind::notebook, "notebook"},
             {RunKind::graph, "graph"}}};
}
constexpr std::array<std::pair<OnFailure, std::string_view>, 3> enum_names(OnFailure) {
    return {{{OnFailure::fail, "fail"}, {OnFailure::continue_others, "continue"}, {OnFailure::ignore, "ignore"}}};
}

// How another run has to have ended before this one starts: well, in any way, or not well.
enum class AfterEnd : std::uint8_t { ok, any, failed };
constexpr std::array<std::pair<AfterEnd, std::string_view>, 3> enum_names(AfterEnd) {
    return {{{AfterEnd::ok, "ok"}, {AfterEnd::any, "any"}, {AfterEnd::failed, "failed"}}};
}
struct AfterRun {
    std::string run;  // "r-5"
    AfterEnd end = AfterEnd::ok;
    friend bool operator==(const AfterRun&, const AfterRun&) = default;
};

// Submitted again at each of these times (repeat.h): the next of the row waits as soon as this one has begun, and
// begins when its time has come and this one has ended. One that is cancelled before it began ends the row.
struct RepeatSpec {
    std::string every;                  // "6h", or cron in UTC
    std::optional<std::int64_t> times;  // so many in all; none: for ever
    // Of the row, told by the server.
    std::int64_t number = 1, missed = 0;  // missed: times that passed just before this one without a run
    std::string previous, first;          // "r-5"; empty: this is the first
    friend bool operator==(const RepeatSpec&, const RepeatSpec&) = default;
};

// Who is told that the run has ended. `to`: https://..., mailto:ADDRESS, or `program`, which server.yaml names.
enum class NotifyOn : std::uint8_t { any, ok, failed };
constexpr std::array<std::pair<NotifyOn, std::string_view>, 3> enum_names(NotifyOn) {
    return {{{NotifyOn::any, "any"}, {NotifyOn::ok, "ok"}, {NotifyOn::failed, "failed"}}};
}
struct NotifySpec {
    std::string to;
    NotifyOn on = NotifyOn::any;
    friend bool operator==(const NotifySpec&, const NotifySpec&) = default;
};
inline constexpr std::size_t kMostNotify = 10;
inline constexpr std::string_view kNotifyProgram = "program", kNotifyMail = "mailto:";

// Where the work comes from, so that it can be had again.
struct SourceSpec {
    std::string file;          // the workload file, as given
    std::string file_sha256;   // of its bytes
    std::string commit;        // of the git work tree around the folder; empty: there is none
    std::string dirty_sha256;  // of `git diff HEAD` and the untracked files' names and contents; empty: clean
    friend bool operator==(const SourceSpec&, const SourceSpec&) = default;
};

struct GraphStep;
struct RunSpec {
    std::string name;
    RunKind kind = RunKind::batch;
    std::vector<std::string> command;  // argv
    std::map<std::string, std::string> environment;
    std::string folder;                 // working directory
    std::string image;                  // empty: the machine as it is
    std::optional<std::string> engine;  // deploy/engines; none: the server's
    int ranks = 1;                      // all start or none
    int nodes = 0;                      // exactly that many, ranks spread evenly; 0: as few as possible
    RankNeeds per_rank;
    std::optional<TopologyWish> topology;  // none: prefer; see queue_timeout_s

    int max_restarts = 0;        // after user errors and out of memory
    int max_attempts = 20;       // whatever the cause
    std::int64_t timeout_s = 0;  // of all attempts together; 0: none
    std::int64_t grace_s = 30;   // between TERM and KILL
    // Given up when it has not started by then; none or 0: it waits. Left out of the canonical text when there is none,
    // so that specs written before it existed keep their digest.
    std::optional<std::int64_t> queue_timeout_s;
    // As queue_timeout_s, left out where there is none.
    std::optional<std::vector<AfterRun>> after;
    std::optional<std::int64_t> begin_at_us;  // does not start before; UTC
    std::optional<std::int64_t> parallel;     // of a graph: at most so many steps at once
    std::optional<RepeatSpec> repeat;
    std::optional<std::vector<NotifySpec>> notify;
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
void fields(V& visit, SourceSpec& spec) {
    visit("commit", spec.commit);
    visit("dirty_sha256", spec.dirty_sha256);
    visit("file", spec.file);
    visit("file_sha256", spec.file_sha256);
}
template <class V>
void fields(V& visit, AfterRun& after) {
    visit("end", after.end);
    visit("run", after.run);
}
template <class V>
void fields(V& visit, RepeatSpec& repeat) {
    visit("every", repeat.every);
    visit("first", repeat.first);
    visit("missed", repeat.missed);
    visit("number", repeat.number);
    visit("previous", repeat.previous);
    visit("times", repeat.times);
}
template <class V>
void fields(V& visit, NotifySpec& notify) {
    visit("on", notify.on);
    visit("to", notify.to);
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
    visit("after", spec.after);
    visit("begin_at_us", spec.begin_at_us);
    visit("checkpoint", spec.checkpoint);
    visit("class", spec.run_class);
    visit("command", spec.command);
    visit("engine", spec.engine);
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
    visit("notify", spec.notify);
    visit("observe", spec.observe);
    visit("organisation", spec.organisation);
    visit("parallel", spec.parallel);
    visit("parameters", spec.parameters);
    visit("per_rank", spec.per_rank);
    visit("prediction", spec.prediction);
    visit("prerequisites", spec.prerequisites);
    visit("priority", spec.priority);
    visit("project", spec.project);
    visit("queue_timeout_s", spec.queue_timeout_s);
    visit("ranks", spec.ranks);
    visit("repeat", spec.repeat);
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
