// What the journal holds: every change of the state as one numbered record. Numbers and names are for ever; a body that
// changes gets a new format, and every older one stays readable.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/cause.h"
#include "base/ids.h"
#include "base/result.h"
#include "deploy/driver.h"
#include "govern/actor.h"
#include "io/journal.h"
#include "run/spec/run_spec.h"
#include "run/state/node_health.h"
#include "run/state/records_tenants.h"
#include "run/state/states.h"

namespace stoker {

// Where a rank is: the node and which of its devices, a bit each.
struct RankPlace {
    std::string node;
    std::uint32_t devices = 0;
    friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

enum class Verb : std::uint8_t { launch, notify, cancel, release };
// `accepted`: the engine has it in its queue; rank_started tells when it runs. `absent`: a complete listing taken after
// the call does not show it, so nothing of it exists.
enum class Answer : std::uint8_t { confirmed, rejected, unknown, absent, accepted };
// checking: takes work when its health check is over. quarantined: failed it, or was repaired too often. suspect: slow
// again and again.
enum class NodeState : std::uint8_t { ready, draining, lost, checking, quarantined, suspect };

struct CoreStarted {
    static constexpr std::uint32_t kKind = 1;
    std::string site;
    std::uint64_t epoch = 0;
    // What the machine's monotonic clock said at this record, and of which boot that is; a journal may lack both.
    std::string boot_id;
    std::optional<std::int64_t> monotonic_us;
};
struct RunSubmitted {
    static constexpr std::uint32_t kKind = 2;
    RunId run;
    RunSpec spec;
    std::string key;           // of idempotency; empty: none
    RunId parent;              // the graph it is a step of
    std::string step;          // its name there
    std::vector<RunId> needs;  // runs that must end well before
    ProjectId project{};       // that it belongs to; none: the default one, as ever before there were others
};
struct RunMoved {
    static constexpr std::uint32_t kKind = 3;
    RunId run;
    RunEvent event = RunEvent::submit;
    Cause cause = Cause::none;
    std::string detail;
    std::int64_t not_before_us = 0;  // of retry
};
struct RunHeld {
    static constexpr std::uint32_t kKind = 4;
    RunId run;
    bool held = false;
};
// Admits the run, takes the places and intends the launch, whose operation is this record's number.
struct AttemptCreated {
    static constexpr std::uint32_t kKind = 5;
    AttemptId attempt;
    std::vector<RankPlace> places;
    std::string resume_from;  // a complete checkpoint; empty: from the start
    std::int64_t resume_step = 0;
    std::string engine{};  // of several, where it goes; empty: there is one
    std::string chosen{};  // why there, where it could have gone elsewhere
};
struct AttemptMoved {
    static constexpr std::uint32_t kKind = 6;
    AttemptId attempt;
    AttemptEvent event = AttemptEvent::place;
    Cause cause = Cause::none;
    std::string detail;
};
// The attempt will be stopped at the deadline, and its ranks are told.
struct NoticeGiven {
    static constexpr std::uint32_t kKind = 7;
    AttemptId attempt;
    std::int64_t deadline_us = 0;
    Cause cause = Cause::none;
};
struct OperationIntended {
    static constexpr std::uint32_t kKind = 8;
    Verb verb = Verb::cancel;
    AttemptId attempt;   // none: for something of ours that belongs to nobody
    OperationId target;  // the launch it acts on
    int signal = 0;
    std::int64_t grace_s = 0;
};
struct OperationAnswered {
    static constexpr std::uint32_t kKind = 9;
    OperationId operation;
    Answer answer = Answer::unknown;
    Cause cause = Cause::none;
    std::string detail;
};
struct OperationResent {
    static constexpr std::uint32_t kKind = 10;
    OperationId operation;
};
struct FactSeen {
    static constexpr std::uint32_t kKind = 11;
    Fact fact;
};
struct NodeSeen {
    static constexpr std::uint32_t kKind = 12;
    NodeInfo node;
};
struct NodeMoved {
    static constexpr std::uint32_t kKind = 13;
    std::string node;
    NodeState state = NodeState::ready;
    Cause cause = Cause::none;
};
struct LeaseMoved {
    static constexpr std::uint32_t kKind = 14;
    RunId run;
    std::int64_t stop_at_us = 0;
    bool warned = false;
};
// The attempt goes on: its lease was renewed, or the machine stays.
struct NoticeWithdrawn {
    static constexpr std::uint32_t kKind = 15;
    AttemptId attempt;
};
// The run, and with a graph its steps, ended long ago; only the journal knows them from here on.
struct RunForgotten {
    static constexpr std::uint32_t kKind = 16;
    RunId run;
};
// A checkpoint is about to be put into the object store; CheckpointStored tells how that went.
struct CheckpointUploading {
    static constexpr std::uint32_t kKind = 17;
    RunId run;
    std::int64_t step = 0;
    std::string url;  // of the run in the store
};
struct CheckpointStored {
    static constexpr std::uint32_t kKind = 18;
    RunId run;
    std::int64_t step = 0;
    std::int64_t bytes = 0;
    std::string fault;  // why it is not there; empty: it is, whole
};

// What the server is told to be, in words (server/server_config.h). Older versions are never changed.
struct ConfigChanged {
    static constexpr std::uint32_t kKind = 25;
    std::uint64_t version = 0;  // the one before, plus 1
    std::string text, note, digest;
    std::map<std::string, std::string> overrides;  // of the command line, by key; they go before the text
};
// It is not offered any more, and nothing runs there.
struct NodeRemoved {
    static constexpr std::uint32_t kKind = 26;
    std::string node;
};

// The journal had more records than it has now, and somebody said to go on: numbers of runs that may have been given
// are not given again, and what carries these sites' marks is ours.
struct JournalLost {
    static constexpr std::uint32_t kKind = 27;
    std::uint64_t runs_made = 0, records = 0;  // as far as anything tells
    std::vector<std::string> sites;
    std::string detail;
};

// Somebody changed what waits: the spec is another from here on.
struct RunEdited {
    static constexpr std::uint32_t kKind = 28;
    RunId run;
    RunSpec spec;
};

using AnyRecordBody =
    std::variant<CoreStarted, RunSubmitted, RunMoved, RunHeld, AttemptCreated, AttemptMoved, NoticeGiven,
                 OperationIntended, OperationAnswered, OperationResent, FactSeen, NodeSeen, NodeMoved, LeaseMoved,
                 NoticeWithdrawn, RunForgotten, CheckpointUploading, CheckpointStored, NodeChecked, NodeBlamed,
                 ConfigChanged, NodeRemoved, JournalLost, RunEdited, OrganisationMade, ProjectMade, KeyMade, KeyRevoked,
                 UserSet, PasswordSet, LoginMade, LoginEnded, KeyEnds, QuotaSet, BudgetSet, BudgetReached, UsageCharged,
                 TokensCharged>;
// Copying, moving and ending one is compiled once, in records.cpp: left to each file that holds records, it was the
// larger part of what compiling that file took.
struct RecordBody : AnyRecordBody {
    using AnyRecordBody::variant;
    RecordBody();
    RecordBody(const RecordBody&);
    RecordBody(RecordBody&&) noexcept;
    RecordBody& operator=(const RecordBody&);
    RecordBody& operator=(RecordBody&&) noexcept;
    ~RecordBody();
};

struct Record {
    std::uint64_t seq = 0;
    std::int64_t at_us = 0;
    std::uint64_t epoch = 0;
    Actor actor{};
    std::string trace;
    RecordBody body;
};

std::string_view name_of_kind(std::uint32_t kind);  // "run.submitted"; for the audit trail
std::uint32_t kind_of(const RecordBody& body);
Cause cause_of(const RecordBody& body);
std::string encode_body(const RecordBody& body);
// As people and other programs are shown it: what is written down for the server alone is left out.
std::string shown_body(std::uint32_t kind, std::string_view json);
Result<RecordBody> decode_body(std::uint32_t kind, std::uint32_t format, std::string_view json, std::uint64_t seq);

constexpr std::array<std::pair<Verb, std::string_view>, 4> enum_names(Verb) {
    return {{{Verb::launch, "launch"}, {Verb::notify, "notify"}, {Verb::cancel, "cancel"}, {Verb::release, "release"}}};
}
constexpr std::array<std::pair<Answer, std::string_view>, 5> enum_names(Answer) {
    return {{{Answer::confirmed, "confirmed"},
             {Answer::rejected, "rejected"},
             {Answer::unknown, "unknown"},
             {Answer::absent, "absent"},
             {Answer::accepted, "accepted"}}};
}
constexpr std::array<std::pair<NodeState, std::string_view>, 6> enum_names(NodeState) {
    return {{{NodeState::ready, "ready"},
             {NodeState::draining, "draining"},
             {NodeState::lost, "lost"},
             {NodeState::checking, "checking"},
             {NodeState::quarantined, "quarantined"},
             {NodeState::suspect, "suspect"}}};
}
constexpr std::array<std::pair<FactKind, std::string_view>, 6> enum_names(FactKind) {
    return {{{FactKind::rank_started, "rank_started"},
             {FactKind::rank_ended, "rank_ended"},
             {FactKind::gang_ended, "gang_ended"},
             {FactKind::node_lost, "node_lost"},
             {FactKind::notice, "notice"},
             {FactKind::waits, "waits"}}};
}

template <class V>
void fields(V& visit, RankPlace& place) {
    visit("devices", place.devices);
    visit("node", place.node);
}
template <class V>
void fields(V& visit, DeviceInfo& device) {
    visit("id", device.id);
    visit("memory_bytes", device.memory_bytes);
    visit("model", device.model);
}
template <class V>
void fields(V& visit, NodeInfo& node) {
    visit("boot_id", node.boot_id);
    visit("cpu_milli", node.cpu_milli);
    visit("devices", node.devices);
    visit("doctor", node.doctor);
    visit("engine", node.engine);
    visit("link_bytes_per_s", node.link_bytes_per_s);
    visit("memory_bytes", node.memory_bytes);
    visit("name", node.name);
    visit("topology", node.topology);
}
template <class V>
void fields(V& visit, Fact& fact) {
    visit("at_us", fact.at_us);
    visit("cause", fact.cause);
    visit("cursor", fact.cursor);
    visit("detail", fact.detail);
    visit("epoch", fact.epoch);
    visit("exit_code", fact.exit_code);
    visit("kind", fact.kind);
    visit("node", fact.node);
    visit("operation", fact.operation);
    visit("peak_memory_bytes", fact.peak_memory_bytes);
    visit("pid", fact.pid);
    visit("rank", fact.rank);
    visit("run_us", fact.run_us);
    visit("seconds", fact.seconds);
    visit("signal", fact.signal);
}
template <class V>
void fields(V& visit, CoreStarted& body) {
    visit("boot_id", body.boot_id);
    visit("epoch", body.epoch);
    visit("monotonic_us", body.monotonic_us);
    visit("site", body.site);
}
template <class V>
void fields(V& visit, RunSubmitted& body) {
    visit("key", body.key);
    visit("needs", body.needs);
    visit("parent", body.parent);
    visit("project", body.project);
    visit("run", body.run);
    visit("spec", body.spec);
    visit("step", body.step);
}
template <class V>
void fields(V& visit, RunMoved& body) {
    visit("cause", body.cause);
    visit("detail", body.detail);
    visit("event", body.event);
    visit("not_before_us", body.not_before_us);
    visit("run", body.run);
}
template <class V>
void fields(V& visit, RunHeld& body) {
    visit("held", body.held);
    visit("run", body.run);
}
template <class V>
void fields(V& visit, AttemptCreated& body) {
    visit("attempt", body.attempt);
    visit("chosen", body.chosen);
    visit("engine", body.engine);
    visit("places", body.places);
    visit("resume_from", body.resume_from);
    visit("resume_step", body.resume_step);
}
template <class V>
void fields(V& visit, AttemptMoved& body) {
    visit("attempt", body.attempt);
    visit("cause", body.cause);
    visit("detail", body.detail);
    visit("event", body.event);
}
template <class V>
void fields(V& visit, NoticeGiven& body) {
    visit("attempt", body.attempt);
    visit("cause", body.cause);
    visit("deadline_us", body.deadline_us);
}
template <class V>
void fields(V& visit, OperationIntended& body) {
    visit("attempt", body.attempt);
    visit("grace_s", body.grace_s);
    visit("signal", body.signal);
    visit("target", body.target);
    visit("verb", body.verb);
}
template <class V>
void fields(V& visit, OperationAnswered& body) {
    visit("answer", body.answer);
    visit("cause", body.cause);
    visit("detail", body.detail);
    visit("operation", body.operation);
}
template <class V>
void fields(V& visit, OperationResent& body) {
    visit("operation", body.operation);
}
template <class V>
void fields(V& visit, FactSeen& body) {
    visit("fact", body.fact);
}
template <class V>
void fields(V& visit, NodeSeen& body) {
    visit("node", body.node);
}
template <class V>
void fields(V& visit, NodeMoved& body) {
    visit("cause", body.cause);
    visit("node", body.node);
    visit("state", body.state);
}
template <class V>
void fields(V& visit, LeaseMoved& body) {
    visit("run", body.run);
    visit("stop_at_us", body.stop_at_us);
    visit("warned", body.warned);
}
template <class V>
void fields(V& visit, NoticeWithdrawn& body) {
    visit("attempt", body.attempt);
}
template <class V>
void fields(V& visit, RunForgotten& body) {
    visit("run", body.run);
}

template <class V>
void fields(V& visit, CheckpointUploading& body) {
    visit("run", body.run);
    visit("step", body.step);
    visit("url", body.url);
}
template <class V>
void fields(V& visit, CheckpointStored& body) {
    visit("bytes", body.bytes);
    visit("fault", body.fault);
    visit("run", body.run);
    visit("step", body.step);
}
template <class V>
void fields(V& visit, ConfigChanged& body) {
    visit("digest", body.digest);
    visit("note", body.note);
    visit("overrides", body.overrides);
    visit("text", body.text);
    visit("version", body.version);
}
template <class V>
void fields(V& visit, NodeRemoved& body) {
    visit("node", body.node);
}
template <class V>
void fields(V& visit, RunEdited& body) {
    visit("run", body.run);
    visit("spec", body.spec);
}
template <class V>
void fields(V& visit, JournalLost& body) {
    visit("detail", body.detail);
    visit("records", body.records);
    visit("runs_made", body.runs_made);
    visit("sites", body.sites);
}
}  // namespace stoker
