// What the API says about things, as plain structs. Each names its fields once: the answers are written from them, and
// so are their schemas (schema_visitor.h), which therefore cannot differ. Times are RFC 3339 texts, empty ones are left
// out, as are empty texts, ids and optionals.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "deploy/driver.h"
#include "run/spec/run_spec.h"
#include "run/state/records.h"
#include "run/state/states.h"

namespace stoker::api {

struct RunItem {
    RunId id;
    std::uint64_t version = 0;
    std::string name;
    RunKind kind = RunKind::batch;
    RunState state = RunState::queued;
    Cause cause = Cause::none;
    std::string detail;
    bool held = false;
    std::string user, project;
    RunClass run_class = RunClass::guaranteed;
    int priority = 0, ranks = 1, gpus = 0;  // gpus: of all ranks
    RunId parent;
    std::string step;
    std::int64_t attempts = 0;
    std::vector<std::string> nodes;  // of the last attempt
    std::string engine;              // the same, of several
    std::string submitted_at, started_at, ended_at;
    double used_s = 0;  // on machines, all attempts together
    std::map<std::string, std::string> labels, parameters;
    std::optional<Cause> wait_cause{};    // why it waits; where it was asked for
    std::optional<bool> waits_at_engine;  // true, or left out: cause and detail are then the engine's
};

struct RankView {
    int rank = 0;
    std::string node;
    std::vector<std::string> devices;
    bool started = false, ended = false;
    std::optional<int> exit_code, signal;
    Cause cause = Cause::none;
    std::int64_t pid = 0, peak_memory_bytes = 0;
    std::string ended_at;
};
// Of an engine that queues.
struct EngineWaitView {
    Cause cause = Cause::none;
    std::string detail, since, starts_at, began_at;
};
struct AttemptView {
    AttemptId id;
    AttemptState state = AttemptState::launching;
    Cause cause = Cause::none;
    std::string detail, resume_from, operation;
    std::string engine, chosen;  // of several: which, and why
    std::int64_t resume_step = 0;
    std::string created_at, running_at, ended_at, stops_at;
    Cause notice = Cause::none;
    std::optional<EngineWaitView> engine_wait;
    std::vector<RankView> ranks;
};
struct WhyView {
    Cause code = Cause::none;
    std::string text;
    std::map<std::string, std::int64_t> numbers;
    std::vector<RunId> blockers;
    std::vector<std::string> unblock;
};
struct EtaView {
    std::optional<double> p50_s, p90_s;
    std::string text;
};
struct LeaseView {
    std::string stop_at, hard_max_at;
    bool warned = false;
};
struct CheckpointItem {
    std::string folder;
    std::int64_t step = 0;
    bool complete = false;
    std::string fault;
};
struct CheckpointsView {
    std::string folder;  // empty: the run writes none
    std::optional<CheckpointItem> newest;
    std::int64_t complete = 0, torn = 0;
    std::vector<CheckpointItem> items;
};
struct StoredView {
    std::string url;                              // of the run in the object store
    std::optional<std::int64_t> step, uploading;  // the newest that is there whole; the one on its way
    std::int64_t bytes = 0;
    std::string stored_at, warning;  // why the last upload failed
    std::int64_t failures = 0;       // in a row
};
struct StepView {
    std::string step;
    RunId run;
    RunState state = RunState::queued;
    Cause cause = Cause::none;
    std::vector<RunId> needs;
};
struct RunView {
    RunItem run;
    std::string digest;
    RunSpec spec;
    std::vector<AttemptView> attempts;
    std::optional<WhyView> why;
    std::optional<EtaView> eta;
    std::optional<LeaseView> lease;
    std::optional<CheckpointsView> checkpoints;
    std::optional<StoredView> stored;
    std::vector<RunId> needs;
    std::vector<StepView> steps;
    std::map<std::string, double> metrics;  // last values
    std::optional<std::int64_t> cost_microusd;
    std::string folder, not_before;
    std::string runs_as;  // of work on this machine: "server" is the server's own user; empty: nothing is known of it
    std::string now;      // the server's time, which ages are told by: the reader's clock may differ
};

struct RunPage {
    std::vector<RunItem> items;
    std::string next_cursor, now;
};
struct Changed {
    RunId run;
    std::uint64_t version = 0;
    bool repeated = false;
};
struct Submitted {
    RunId run;
    std::uint64_t version = 0;
    std::string digest;
    bool repeated = false;
};
struct PlaceView {
    int rank = 0;
    std::string node;
    std::vector<std::string> devices;
    std::string step;  // of a graph or an array
};
// A step of a graph or an array that would not start now.
struct WaitingStep {
    std::string step;
    std::vector<std::string> needs;  // steps before it that have to end first; else a place is missing
    std::optional<WhyView> why;
};
struct WhatIfView {
    bool starts_now = false;
    std::string digest;
    std::string engine, chosen;  // of several: where it would go, and why
    std::vector<PlaceView> places;
    std::optional<WhyView> why;
    std::optional<EtaView> eta;
    std::int64_t steps = 0;  // of a graph or an array: how many it has
    std::vector<WaitingStep> waiting;
};

struct SeriesView {
    std::string name;
    std::int64_t points_seen = 0;
    std::vector<std::vector<double>> points;  // [step, value]
};
struct MetricsView {
    std::vector<SeriesView> series;
    std::int64_t lines = 0, bad_lines = 0;
    bool cut = false;  // the file is longer than what is read; the oldest are missing
};
struct ArtifactItem {
    std::string path;
    std::int64_t bytes = 0;
    std::string modified_at;
};
struct ArtifactList {
    std::vector<ArtifactItem> items;
    bool cut = false;  // there are more
};

struct UsageLine {
    std::string key;
    double node_hours = 0, cpu_hours = 0, gpu_hours = 0;
    std::int64_t cost_microusd = 0;
    bool priced = true;                     // false: something of it has no price
    std::int64_t tokens = 0, requests = 0;  // that gateways were charged for: of whole days, UTC
};
struct UsageView {
    std::string from, to, by, currency, source;
    std::vector<UsageLine> items;
    UsageLine total;
};

struct VersionView {
    std::string version, commit, compiler, api, site;
    std::uint64_t epoch = 0, seq = 0;
    bool recovering = false, embedded = false;
    std::string engine;
    bool gang = false, limits_memory = false, isolates_devices = false, queues = false, binds = false;
};
struct HealthView {
    std::string status, reason;
};
struct BackupView {
    std::string file;
    std::int64_t bytes = 0;
    std::uint64_t seq = 0;
};

template <class V>
void fields(V& visit, RunItem& v) {
    visit("attempts", v.attempts);
    visit("cause", v.cause);
    visit("class", v.run_class);
    visit("detail", v.detail);
    visit("ended_at", v.ended_at);
    visit("engine", v.engine);
    visit("gpus", v.gpus);
    visit("held", v.held);
    visit("id", v.id);
    visit("kind", v.kind);
    visit("labels", v.labels);
    visit("name", v.name);
    visit("nodes", v.nodes);
    visit("parameters", v.parameters);
    visit("parent", v.parent);
    visit("priority", v.priority);
    visit("project", v.project);
    visit("ranks", v.ranks);
    visit("started_at", v.started_at);
    visit("state", v.state);
    visit("step", v.step);
    visit("submitted_at", v.submitted_at);
    visit("used_s", v.used_s);
    visit("user", v.user);
    visit("version", v.version);
    visit("wait_cause", v.wait_cause);
    visit("waits_at_engine", v.waits_at_engine);
}
template <class V>
void fields(V& visit, RankView& v) {
    visit("cause", v.cause);
    visit("devices", v.devices);
    visit("ended", v.ended);
    visit("ended_at", v.ended_at);
    visit("exit_code", v.exit_code);
    visit("node", v.node);
    visit("peak_memory_bytes", v.peak_memory_bytes);
    visit("pid", v.pid);
    visit("rank", v.rank);
    visit("signal", v.signal);
    visit("started", v.started);
}
template <class V>
void fields(V& visit, EngineWaitView& v) {
    visit("began_at", v.began_at);
    visit("cause", v.cause);
    visit("detail", v.detail);
    visit("since", v.since);
    visit("starts_at", v.starts_at);
}
template <class V>
void fields(V& visit, AttemptView& v) {
    visit("cause", v.cause);
    visit("chosen", v.chosen);
    visit("created_at", v.created_at);
    visit("detail", v.detail);
    visit("ended_at", v.ended_at);
    visit("engine", v.engine);
    visit("engine_wait", v.engine_wait);
    visit("id", v.id);
    visit("notice", v.notice);
    visit("operation", v.operation);
    visit("ranks", v.ranks);
    visit("resume_from", v.resume_from);
    visit("resume_step", v.resume_step);
    visit("running_at", v.running_at);
    visit("state", v.state);
    visit("stops_at", v.stops_at);
}
template <class V>
void fields(V& visit, WhyView& v) {
    visit("blockers", v.blockers);
    visit("code", v.code);
    visit("numbers", v.numbers);
    visit("text", v.text);
    visit("unblock", v.unblock);
}
template <class V>
void fields(V& visit, EtaView& v) {
    visit("p50_s", v.p50_s);
    visit("p90_s", v.p90_s);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, LeaseView& v) {
    visit("hard_max_at", v.hard_max_at);
    visit("stop_at", v.stop_at);
    visit("warned", v.warned);
}
template <class V>
void fields(V& visit, CheckpointItem& v) {
    visit("complete", v.complete);
    visit("fault", v.fault);
    visit("folder", v.folder);
    visit("step", v.step);
}
template <class V>
void fields(V& visit, CheckpointsView& v) {
    visit("complete", v.complete);
    visit("folder", v.folder);
    visit("items", v.items);
    visit("newest", v.newest);
    visit("torn", v.torn);
}
template <class V>
void fields(V& visit, StoredView& v) {
    visit("bytes", v.bytes);
    visit("failures", v.failures);
    visit("step", v.step);
    visit("stored_at", v.stored_at);
    visit("uploading", v.uploading);
    visit("url", v.url);
    visit("warning", v.warning);
}
template <class V>
void fields(V& visit, StepView& v) {
    visit("cause", v.cause);
    visit("needs", v.needs);
    visit("run", v.run);
    visit("state", v.state);
    visit("step", v.step);
}
template <class V>
void fields(V& visit, RunView& v) {
    visit("attempts", v.attempts);
    visit("checkpoints", v.checkpoints);
    visit("cost_microusd", v.cost_microusd);
    visit("digest", v.digest);
    visit("eta", v.eta);
    visit("folder", v.folder);
    visit("lease", v.lease);
    visit("metrics", v.metrics);
    visit("needs", v.needs);
    visit("not_before", v.not_before);
    visit("now", v.now);
    visit("run", v.run);
    visit("runs_as", v.runs_as);
    visit("spec", v.spec);
    visit("steps", v.steps);
    visit("stored", v.stored);
    visit("why", v.why);
}
template <class V>
void fields(V& visit, RunPage& v) {
    visit("items", v.items);
    visit("next_cursor", v.next_cursor);
    visit("now", v.now);
}
template <class V>
void fields(V& visit, Changed& v) {
    visit("repeated", v.repeated);
    visit("run", v.run);
    visit("version", v.version);
}
template <class V>
void fields(V& visit, Submitted& v) {
    visit("digest", v.digest);
    visit("repeated", v.repeated);
    visit("run", v.run);
    visit("version", v.version);
}
template <class V>
void fields(V& visit, PlaceView& v) {
    visit("devices", v.devices);
    visit("node", v.node);
    visit("rank", v.rank);
    visit("step", v.step);
}
template <class V>
void fields(V& visit, WaitingStep& v) {
    visit("needs", v.needs);
    visit("step", v.step);
    visit("why", v.why);
}
template <class V>
void fields(V& visit, WhatIfView& v) {
    visit("chosen", v.chosen);
    visit("digest", v.digest);
    visit("engine", v.engine);
    visit("eta", v.eta);
    visit("places", v.places);
    visit("starts_now", v.starts_now);
    visit("steps", v.steps);
    visit("waiting", v.waiting);
    visit("why", v.why);
}
template <class V>
void fields(V& visit, SeriesView& v) {
    visit("name", v.name);
    visit("points", v.points);
    visit("points_seen", v.points_seen);
}
template <class V>
void fields(V& visit, MetricsView& v) {
    visit("bad_lines", v.bad_lines);
    visit("cut", v.cut);
    visit("lines", v.lines);
    visit("series", v.series);
}
template <class V>
void fields(V& visit, ArtifactItem& v) {
    visit("bytes", v.bytes);
    visit("modified_at", v.modified_at);
    visit("path", v.path);
}
template <class V>
void fields(V& visit, ArtifactList& v) {
    visit("cut", v.cut);
    visit("items", v.items);
}
template <class V>
void fields(V& visit, UsageLine& v) {
    visit("cost_microusd", v.cost_microusd);
    visit("cpu_hours", v.cpu_hours);
    visit("gpu_hours", v.gpu_hours);
    visit("key", v.key);
    visit("node_hours", v.node_hours);
    visit("priced", v.priced);
    visit("requests", v.requests);
    visit("tokens", v.tokens);
}
template <class V>
void fields(V& visit, UsageView& v) {
    visit("by", v.by);
    visit("currency", v.currency);
    visit("from", v.from);
    visit("items", v.items);
    visit("source", v.source);
    visit("to", v.to);
    visit("total", v.total);
}
template <class V>
void fields(V& visit, VersionView& v) {
    visit("api", v.api);
    visit("binds", v.binds);
    visit("commit", v.commit);
    visit("compiler", v.compiler);
    visit("embedded", v.embedded);
    visit("engine", v.engine);
    visit("epoch", v.epoch);
    visit("gang", v.gang);
    visit("isolates_devices", v.isolates_devices);
    visit("limits_memory", v.limits_memory);
    visit("queues", v.queues);
    visit("recovering", v.recovering);
    visit("seq", v.seq);
    visit("site", v.site);
    visit("version", v.version);
}
template <class V>
void fields(V& visit, HealthView& v) {
    visit("reason", v.reason);
    visit("status", v.status);
}
template <class V>
void fields(V& visit, BackupView& v) {
    visit("bytes", v.bytes);
    visit("file", v.file);
    visit("seq", v.seq);
}

}  // namespace stoker::api
