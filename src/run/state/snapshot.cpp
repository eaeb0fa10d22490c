#include <fmt/format.h>

#include "base/codec.h"
#include "io/sha256.h"
#include "run/state/state.h"

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
void fields(V& visit, EngineWait& wait) {
    visit("began_us", wait.began_us);
    visit("cause", wait.cause);
    visit("detail", wait.detail);
    visit("since_us", wait.since_us);
    visit("starts_us", wait.starts_us);
}
template <class V>
void fields(V& visit, Attempt& attempt) {
    visit("cancelling", attempt.cancelling);
    visit("cause", attempt.cause);
    visit("charged_us", attempt.charged_us);
    visit("chosen", attempt.chosen);
    visit("created_us", attempt.created_us);
    visit("deadline_us", attempt.deadline_us);
    visit("detail", attempt.detail);
    visit("end_us", attempt.end_us);
    visit("ended_us", attempt.ended_us);
    visit("engine", attempt.engine);
    visit("engine_wait", attempt.engine_wait);
    visit("epoch", attempt.epoch);
    visit("gone", attempt.gone);
    visit("launch", attempt.launch);
    visit("launched", attempt.launched);
    visit("notice", attempt.notice);
    visit("noticed_us", attempt.noticed_us);
    visit("notified", attempt.notified);
    visit("number", attempt.number);
    visit("over_us", attempt.over_us);
    visit("places", attempt.places);
    visit("ranks", attempt.ranks);
    visit("released", attempt.released);
    visit("releasing", attempt.releasing);
    visit("resume_from", attempt.resume_from);
    visit("resume_step", attempt.resume_step);
    visit("running_us", attempt.running_us);
    visit("state", attempt.state);
    visit("unheard", attempt.unheard);
}
template <class V>
void fields(V& visit, Lease& lease) {
    visit("hard_max_at_us", lease.hard_max_at_us);
    visit("stop_at_us", lease.stop_at_us);
    visit("warned", lease.warned);
}
template <class V>
void fields(V& visit, StoredCheckpoints& stored) {
    visit("at_us", stored.at_us);
    visit("bytes", stored.bytes);
    visit("fault", stored.fault);
    visit("faults", stored.faults);
    visit("step", stored.step);
    visit("uploading", stored.uploading);
    visit("url", stored.url);
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
    visit("next_in_row", run.next_in_row);
    visit("not_before_us", run.not_before_us);
    visit("parent", run.parent);
    // Left out where it is what versions before tenants knew: they go on reading our snapshots, and we theirs.
    ProjectId project = run.project == kDefaultProject ? ProjectId{} : run.project;
    visit("project", project);
    if (project) run.project = project;
    visit("spec", run.spec);
    visit("started_us", run.started_us);
    visit("state", run.state);
    visit("step", run.step);
    visit("stored", run.stored);
    std::string by = run.submitted_by == kTokenOfBefore ? std::string() : run.submitted_by;
    visit("submitted_by", by);
    if (!by.empty()) run.submitted_by = std::move(by);
    visit("submitted_us", run.submitted_us);
    visit("used_us", run.used_us);
    visit("version", run.version);
}
template <class V>
void fields(V& visit, Operation& operation) {
    visit("attempt", operation.attempt);
    visit("changed_seq", operation.changed_seq);
    visit("detail", operation.detail);
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
    visit("health", node.health);
    visit("info", node.info);
    visit("state", node.state);
    visit("version", node.version);
}

template <class V>
void fields(V& visit, ClockMark& clock) {
    visit("at_us", clock.at_us);
    visit("boot_id", clock.boot_id);
    visit("monotonic_us", clock.monotonic_us);
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
// Left out when there is nothing in it: snapshots of versions that knew no such list keep their digests.
template <class V, class T>
void late_list(V& visit, std::string_view key, std::vector<T>& list) {
    std::optional<std::vector<T>> there;
    if (!list.empty()) there = list;
    visit(key, there);
    if (there) list = std::move(*there);
}
struct SnapshotCharge {
    ChargeKey key;
    ChargeSum sum;
};
// Left out when it is 0, as late_list.
template <class V>
void late_number(V& visit, std::string_view key, std::int64_t& number) {
    std::optional<std::int64_t> there;
    if (number != 0) there = number;
    visit(key, there);
    if (there) number = *there;
}
template <class V>
void fields(V& visit, SnapshotCharge& entry) {
    visit("gpu_micro_hours", entry.sum.gpu_micro_hours);
    late_number(visit, "left", entry.sum.left);
    visit("micro_hours", entry.sum.micro_hours);
    visit("microusd", entry.sum.microusd);
    visit("model", entry.key.model);
    visit("month", entry.key.month);
    visit("priced", entry.sum.priced);
    visit("project", entry.key.project);
    late_number(visit, "requests", entry.sum.requests);
    visit("resource", entry.key.resource);
    late_number(visit, "tokens", entry.sum.tokens);
    visit("user", entry.key.user);
}
struct SnapshotTokenDay {
    TokenDayKey key;
    ChargeSum sum;
};
template <class V>
void fields(V& visit, SnapshotTokenDay& entry) {
    visit("day_us", entry.key.day_us);
    visit("microusd", entry.sum.microusd);
    visit("model", entry.key.model);
    visit("project", entry.key.project);
    visit("requests", entry.sum.requests);
    visit("tokens", entry.sum.tokens);
    visit("user", entry.key.user);
}
struct SnapshotTokenCursor {
    std::string account;
    std::uint64_t up_to = 0;
};
template <class V>
void fields(V& visit, SnapshotTokenCursor& entry) {
    visit("account", entry.account);
    visit("up_to", entry.up_to);
}
struct SnapshotFairUse {
    ProjectId project;
    FairUse use;
};
template <class V>
void fields(V& visit, SnapshotFairUse& entry) {
    visit("at_us", entry.use.at_us);
    visit("milli_s", entry.use.milli_s);
    visit("project", entry.project);
}
struct SnapshotBody {
    State& state;
    std::vector<Run> runs{};
    std::vector<SnapshotOperation> operations{};
    // Other than the first of each.
    std::vector<OrganisationEntry> organisations{};
    std::vector<ProjectEntry> projects{};
    std::vector<KeyEntry> keys{};
    std::vector<UserEntry> users{};
    std::vector<LoginEntry> logins{};
    std::vector<QuotaEntry> quotas{};
    std::vector<BudgetEntry> budgets{};
    std::vector<SnapshotCharge> charges{};
    std::vector<SnapshotFairUse> fair_use{};
    std::vector<SnapshotTokenDay> token_days{};
    std::vector<SnapshotTokenCursor> token_cursors{};
};
template <class V>
void fields(V& visit, SnapshotBody& body) {
    State& state = body.state;
    visit("at_us", state.at_us);
    late_list(visit, "budgets", body.budgets);
    late_list(visit, "charges", body.charges);
    std::optional<ClockMark> clock;
    if (!state.clock.boot_id.empty()) clock = state.clock;
    visit("clock", clock);
    if (clock) state.clock = std::move(*clock);
    late_list(visit, "config", state.config);
    visit("core_version", state.core_version);
    visit("cursor", state.cursor);
    visit("durations_us", state.durations_us);
    visit("epoch", state.epoch);
    late_list(visit, "fair_use", body.fair_use);
    late_list(visit, "former_nodes", state.former_nodes);
    late_list(visit, "keys", body.keys);
    late_list(visit, "logins", body.logins);
    std::optional<std::uint64_t> logins_made;
    if (state.tenants.logins_made > 0) logins_made = state.tenants.logins_made;
    visit("logins_made", logins_made);
    if (logins_made) state.tenants.logins_made = *logins_made;
    visit("nodes", state.nodes);
    visit("operations", body.operations);
    late_list(visit, "organisations", body.organisations);
    late_list(visit, "projects", body.projects);
    late_list(visit, "quotas", body.quotas);
    visit("runs", body.runs);
    visit("runs_made", state.runs_made);
    visit("seq", state.seq);
    visit("site", state.site);
    visit("sites", state.sites);
    late_list(visit, "token_cursors", body.token_cursors);
    late_list(visit, "token_days", body.token_days);
    late_list(visit, "users", body.users);
}

}  // namespace

StateWriter::StateWriter(const State& state) : seq_(state.seq) {
    // The runs are written one by one rather than copied into the body or held as a tree: there may be a hundred
    // thousand of them. Only numbers and the site stand behind their place, so the last empty list of that name is it.
    SnapshotBody body{const_cast<State&>(state)};
    for (const auto& [id, operation] : state.operations) body.operations.push_back({id, operation});
    for (const auto& [id, entry] : state.tenants.organisations)
        if (id != kDefaultOrganisation) body.organisations.push_back(entry);
    for (const auto& [id, entry] : state.tenants.projects)
        if (id != kDefaultProject) body.projects.push_back(entry);
    for (const auto& [id, entry] : state.tenants.keys) body.keys.push_back(entry);
    for (const auto& [id, entry] : state.tenants.users) body.users.push_back(entry);
    for (const auto& [id, entry] : state.tenants.logins) body.logins.push_back(entry);
    for (const auto& [key, entry] : state.tenants.quotas) body.quotas.push_back(entry);
    for (const auto& [key, entry] : state.tenants.budgets) body.budgets.push_back(entry);
    for (const auto& [key, sum] : state.charges) body.charges.push_back({key, sum});
    for (const auto& [project, use] : state.fair_use) body.fair_use.push_back({project, use});
    for (const auto& [key, sum] : state.token_days) body.token_days.push_back({key, sum});
    for (const auto& [account, up_to] : state.token_cursors) body.token_cursors.push_back({account, up_to});
    head_ = codec::encode(body);
    constexpr std::string_view kPlace = "\"runs\":[]";
    const std::size_t place = head_.rfind(kPlace);
    CHECK(place != std::string::npos);
    const std::size_t list = place + kPlace.size() - 1;
    tail_ = head_.substr(list);
    head_.resize(list);
    next_ = state.runs.empty() ? RunId{} : state.runs.begin()->first;
    last_ = state.runs.empty() ? RunId{} : std::prev(state.runs.end())->first;
}

void StateWriter::before_change(const State& state, RunId run) {
    keep(state, run);
    // A graph is forgotten with its steps.
    if (const auto steps = state.steps.find(run); steps != state.steps.end())
        for (const RunId step : steps->second) keep(state, step);
}

void StateWriter::keep(const State& state, RunId run) {
    if (ended_ || !next_ || run < next_ || last_ < run || kept_.contains(run)) return;
    if (const Run* found = state.find(run)) kept_.emplace(run, codec::encode(*found));
}

std::optional<std::string> StateWriter::next(const State& state, std::size_t bytes) {
    if (ended_) return std::nullopt;
    std::string text;
    if (!std::exchange(began_, true)) text = std::move(head_);
    auto live = state.runs.lower_bound(next_);
    auto kept = kept_.begin();
    while (text.size() < bytes) {
        // Both are in order, and what was kept stands for what is there now.
        while (kept != kept_.end() && kept->first < next_) kept = kept_.erase(kept);
        const bool from_kept = kept != kept_.end() && (live == state.runs.end() || !(live->first < kept->first));
        const RunId id = from_kept ? kept->first : live == state.runs.end() ? RunId{} : live->first;
        if (!next_ || !id || last_ < id) {
            ended_ = true;
            return text += tail_;
        }
        if (!std::exchange(first_, false)) text += ',';
        text += from_kept ? kept->second : codec::encode(live->second);
        if (live != state.runs.end() && live->first == id) ++live;
        next_ = RunId{id.number + 1};
    }
    return text;
}

std::string encode_state(const State& state) {
    StateWriter writer(state);
    return *writer.next(state, std::string::npos);
}

Result<State> decode_state(std::string_view json) {
    State state;
    SnapshotBody body{state};
    if (!codec::decode_exactly(json, &body, codec::kShape<SnapshotBody>)) {
        TRY(const Document document, Document::parse_json(json, "snapshot", kSnapshotLimits));
        state = {};
        body.runs.clear();
        body.operations.clear();
        body.organisations.clear();
        body.projects.clear();
        body.keys.clear();
        body.users.clear();
        body.logins.clear();
        body.quotas.clear();
        body.budgets.clear();
        body.charges.clear();
        body.fair_use.clear();
        body.token_days.clear();
        body.token_cursors.clear();
        Problems problems;
        codec::read(document.root(), "", body, problems);
        if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    }
    for (Run& run : body.runs) {
        const RunId id = run.id;
        state.runs.append(id, std::move(run));
    }
    for (SnapshotOperation& entry : body.operations) state.operations.emplace(entry.id, std::move(entry.operation));
    for (const OrganisationEntry& entry : body.organisations) state.tenants.organisations[entry.id] = entry;
    for (const ProjectEntry& entry : body.projects) state.tenants.projects[entry.id] = entry;
    for (KeyEntry& entry : body.keys) state.tenants.add(std::move(entry));
    for (UserEntry& entry : body.users) state.tenants.add(std::move(entry));
    for (LoginEntry& entry : body.logins) state.tenants.add(std::move(entry));
    for (const QuotaEntry& entry : body.quotas) state.tenants.quotas[{entry.scope, entry.resource}] = entry;
    for (const BudgetEntry& entry : body.budgets) state.tenants.budgets[{entry.scope, entry.unit}] = entry;
    for (const SnapshotCharge& each : body.charges) state.charges[each.key] = each.sum;
    for (const SnapshotFairUse& each : body.fair_use) state.fair_use[each.project] = each.use;
    for (const SnapshotTokenDay& each : body.token_days) state.token_days[each.key] = each.sum;
    for (const SnapshotTokenCursor& each : body.token_cursors) state.token_cursors[each.account] = each.up_to;
    for (const auto& [id, run] : state.runs)
        if (!state.tenants.projects.contains(run.project))
            return Error(ErrorKind::invalid,
                         fmt::format("{} of the snapshot belongs to {}, and there is no such project", id.text(),
                                     run.project.text()));
    index_state(state);
    return state;
}

std::string digest(const State& state) {
    return hex(sha256(encode_state(state)));
}

}  // namespace stoker
