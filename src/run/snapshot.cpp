#include <fmt/format.h>

#include "io/sha256.h"
#include "run/codec.h"
#include "run/state.h"

namespace stoker {

template <class V>
void fields(V& visit, RankStatus& rank) {
    visit("cause", rank.cause);
    visit("ended", rank.ended);
    visit("ended_us", rank.ended_us);
    visit("exit_code", rank.exit_code);
    visit("peak_memory_bytes", rank.peak_memory_bytes);
    visit("pid", rank.pid);
    visit("signal", rank.signal);
    visit("started", rank.started);
}
template <class V>
void fields(V& visit, Attempt& attempt) {
    visit("cancelling", attempt.cancelling);
    visit("cause", attempt.cause);
    visit("created_us", attempt.created_us);
    visit("deadline_us", attempt.deadline_us);
    visit("detail", attempt.detail);
    visit("end_us", attempt.end_us);
    visit("ended_us", attempt.ended_us);
    visit("epoch", attempt.epoch);
    visit("gone", attempt.gone);
    visit("launch", attempt.launch);
    visit("launched", attempt.launched);
    visit("notice", attempt.notice);
    visit("notified", attempt.notified);
    visit("number", attempt.number);
    visit("places", attempt.places);
    visit("ranks", attempt.ranks);
    visit("released", attempt.released);
    visit("releasing", attempt.releasing);
    visit("resume_from", attempt.resume_from);
    visit("resume_step", attempt.resume_step);
    visit("running_us", attempt.running_us);
    visit("state", attempt.state);
}
template <class V>
void fields(V& visit, Lease& lease) {
    visit("hard_max_at_us", lease.hard_max_at_us);
    visit("stop_at_us", lease.stop_at_us);
    visit("warned", lease.warned);
}
template <class V>
void fields(V& visit, Run& run) {
    visit("attempts", run.attempts);
    visit("cause", run.cause);
    visit("counted_failures", run.counted_failures);
    visit("detail", run.detail);
    visit("ended_us", run.ended_us);
    visit("failures_in_row", run.failures_in_row);
    visit("held", run.held);
    visit("id", run.id);
    visit("key", run.key);
    visit("lease", run.lease);
    visit("needs", run.needs);
    visit("not_before_us", run.not_before_us);
    visit("parent", run.parent);
    visit("spec", run.spec);
    visit("started_us", run.started_us);
    visit("state", run.state);
    visit("step", run.step);
    visit("submitted_us", run.submitted_us);
    visit("used_us", run.used_us);
    visit("version", run.version);
}
template <class V>
void fields(V& visit, Operation& operation) {
    visit("attempt", operation.attempt);
    visit("changed_seq", operation.changed_seq);
    visit("grace_s", operation.grace_s);
    visit("next_us", operation.next_us);
    visit("signal", operation.signal);
    visit("target", operation.target);
    visit("tries", operation.tries);
    visit("unknown", operation.unknown);
    visit("verb", operation.verb);
}
template <class V>
void fields(V& visit, NodeStatus& node) {
    visit("cause", node.cause);
    visit("info", node.info);
    visit("state", node.state);
    visit("version", node.version);
}

namespace {

// A snapshot is our own writing, checked by its digest; its size is bounded by memory only.
constexpr ReadLimits kSnapshotLimits{
    .max_bytes = std::size_t{4} << 30, .max_nodes = std::size_t{1} << 31, .max_depth = 100, .max_aliases = 0};

// The members of a snapshot, in lists instead of maps with ids as keys.
struct SnapshotOperation {
    OperationId id;
    Operation operation;
};
template <class V>
void fields(V& visit, SnapshotOperation& entry) {
    visit("id", entry.id);
    visit("operation", entry.operation);
}
struct SnapshotBody {
    State& state;
    std::vector<Run> runs{};
    std::vector<SnapshotOperation> operations{};
};
template <class V>
void fields(V& visit, SnapshotBody& body) {
    State& state = body.state;
    visit("at_us", state.at_us);
    visit("core_version", state.core_version);
    visit("cursor", state.cursor);
    visit("durations_us", state.durations_us);
    visit("epoch", state.epoch);
    visit("nodes", state.nodes);
    visit("operations", body.operations);
    visit("runs", body.runs);
    visit("runs_made", state.runs_made);
    visit("seq", state.seq);
    visit("site", state.site);
    visit("sites", state.sites);
}

}  // namespace

std::string encode_state(const State& state) {
    // The runs are written one by one rather than copied into the body or held as a tree: there may be a hundred
    // thousand of them. Only numbers and the site stand behind their place, so the last empty list of that name is it.
    SnapshotBody body{const_cast<State&>(state)};
    for (const auto& [id, operation] : state.operations) body.operations.push_back({id, operation});
    std::string text = codec::encode(body);
    constexpr std::string_view kPlace = "\"runs\":[]";
    const std::size_t place = text.rfind(kPlace);
    CHECK(place != std::string::npos);
    const std::size_t list = place + kPlace.size() - 1;
    const std::string rest = text.substr(list);
    text.resize(list);
    bool first = true;
    for (const auto& [id, run] : state.runs) {
        if (!std::exchange(first, false)) text += ',';
        CHECK(codec::append(text, run));
    }
    return text += rest;
}

Result<State> decode_state(std::string_view json) {
    State state;
    SnapshotBody body{state};
    if (!codec::TextReader(json).whole(body)) {
        TRY(const Document document, Document::parse_json(json, "snapshot", kSnapshotLimits));
        state = {};
        body.runs.clear();
        body.operations.clear();
        Problems problems;
        codec::read(document.root(), "", body, problems);
        if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    }
    for (Run& run : body.runs) {
        const RunId id = run.id;
        state.runs.emplace_hint(state.runs.end(), id, std::move(run));
    }
    for (SnapshotOperation& entry : body.operations) state.operations.emplace(entry.id, std::move(entry.operation));
    index_state(state);
    return state;
}

std::string digest(const State& state) {
    return hex(sha256(encode_state(state)));
}

}  // namespace stoker
