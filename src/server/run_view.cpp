#include "server/run_view.h"

#include <algorithm>

#include "base/api_time.h"
#include "run/state/rules.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostScanned = 20'000;

AttemptView view_of_attempt(const State& state, const Run& run, const Attempt& attempt) {
    AttemptView view;
    view.id = {run.id, attempt.number};
    view.state = attempt.state;
    view.cause = attempt.cause;
    view.detail = attempt.detail;
    view.engine = attempt.engine;
    view.chosen = attempt.chosen;
    view.resume_from = attempt.resume_from;
    view.resume_step = attempt.resume_step;
    view.operation = attempt.launch.seq == 0 ? "" : attempt.launch.text();
    view.created_at = rfc3339(attempt.created_us);
    view.running_at = rfc3339(attempt.running_us);
    view.ended_at = rfc3339(attempt.ended_us);
    view.stops_at = rfc3339(attempt.deadline_us);
    view.notice = attempt.notice;
    if (const auto& wait = attempt.engine_wait)
        view.engine_wait = EngineWaitView{.cause = wait->cause,
                                          .detail = wait->detail,
                                          .since = rfc3339(wait->since_us),
                                          .starts_at = rfc3339(wait->starts_us),
                                          .began_at = rfc3339(wait->began_us)};
    for (std::size_t i = 0; i < attempt.places.size(); ++i) {
        RankView& rank = view.ranks.emplace_back();
        rank.rank = static_cast<int>(i);
        rank.node = attempt.places[i].node;
        rank.devices = device_names(state, rank.node, attempt.places[i].devices);
        if (i >= attempt.ranks.size()) continue;
        const RankStatus& status = attempt.ranks[i];
        rank.started = status.started;
        rank.ended = status.ended;
        rank.exit_code = status.exit_code;
        rank.signal = status.signal;
        rank.cause = status.cause;
        rank.pid = status.pid;
        rank.peak_memory_bytes = status.peak_memory_bytes;
        rank.ended_at = rfc3339(status.ended_us);
    }
    return view;
}

bool fits(const Run& run, const ListQuery& query) {
    if (!query.states.empty() && std::find(query.states.begin(), query.states.end(), run.state) == query.states.end())
        return false;
    return (query.name.empty() || run.spec.name == query.name) && (query.user.empty() || run.spec.user == query.user) &&
           (!query.parent || run.parent == query.parent);
}

}  // namespace

std::vector<std::string> device_names(const State& state, const std::string& node, std::uint32_t devices) {
    std::vector<std::string> names;
    const NodeInfo* found = state.find_node(node);
    for (unsigned i = 0; i < 32; ++i) {
        if ((devices >> i & 1) == 0) continue;
        const bool known = found != nullptr && i < found->devices.size();
        names.push_back(known ? found->devices[i].id : std::to_string(i));
    }
    return names;
}

RunItem item_of(const State&, const Run& run, std::int64_t now_us) {
    RunItem item;
    item.id = run.id;
    item.version = run.version;
    item.name = run.spec.name;
    item.kind = run.spec.kind;
    item.state = run.state;
    item.cause = run.cause;
    item.detail = run.detail;
    if (waits_at_engine(run)) {
        item.waits_at_engine = true;
        item.cause = run.attempts.back().engine_wait->cause;
        item.detail = run.attempts.back().engine_wait->detail;
    }
    item.held = run.held;
    item.user = run.spec.user;
    item.project = run.spec.project;
    item.run_class = run.spec.run_class;
    item.priority = run.spec.priority;
    item.ranks = run.spec.ranks;
    item.gpus = run.spec.ranks * run.spec.per_rank.gpus;
    item.parent = run.parent;
    item.step = run.step;
    item.attempts = static_cast<std::int64_t>(run.attempts.size());
    if (!run.attempts.empty()) item.engine = run.attempts.back().engine;
    if (!run.attempts.empty())
        for (const RankPlace& place : run.attempts.back().places)
            if (!place.node.empty() && std::find(item.nodes.begin(), item.nodes.end(), place.node) == item.nodes.end())
                item.nodes.push_back(place.node);
    item.submitted_at = rfc3339(run.submitted_us);
    item.started_at = rfc3339(run.started_us);
    item.ended_at = rfc3339(run.ended_us);
    item.used_s = static_cast<double>(used_us(run, now_us)) / 1e6;
    item.labels = run.spec.labels;
    item.parameters = run.spec.parameters;
    return item;
}

namespace {

// Told to begin or to end, and nobody knows whether it was: what the engine says of it.
std::string what_keeps_it(const State& state, const Run& run) {
    const Attempt* attempt = run.live_attempt();
    if (attempt == nullptr) return {};
    const Verb told = attempt->cancelling ? Verb::cancel : Verb::launch;
    for (const auto& [id, operation] : state.operations)
        if (operation.verb == told && operation.attempt == AttemptId{run.id, attempt->number} &&
            !operation.detail.empty())
            return operation.detail;
    return {};
}

}  // namespace

RunView view_of_run(const EngineView& view, const Run& run) {
    const State& state = view.state;
    RunView out;
    out.run = item_of(state, run, view.now_us);
    out.spec = run.spec;
    if (out.run.detail.empty()) out.run.detail = what_keeps_it(state, run);
    for (const Attempt& attempt : run.attempts) out.attempts.push_back(view_of_attempt(state, run, attempt));
    if (run.lease.stop_at_us != 0 || run.lease.hard_max_at_us != 0)
        out.lease = LeaseView{.stop_at = rfc3339(run.lease.stop_at_us),
                              .hard_max_at = rfc3339(run.lease.hard_max_at_us),
                              .warned = run.lease.warned};
    if (run.stored) {
        StoredView& stored = out.stored.emplace();
        stored.url = run.stored->url;
        if (run.stored->step >= 0) stored.step = run.stored->step;
        if (run.stored->uploading >= 0) stored.uploading = run.stored->uploading;
        stored.bytes = run.stored->bytes;
        stored.stored_at = rfc3339(run.stored->at_us);
        stored.warning = run.stored->fault;
        stored.failures = run.stored->faults;
    }
    out.needs = run.needs;
    const auto steps = state.steps.find(run.id);
    if (steps != state.steps.end())
        for (const RunId id : steps->second)
            if (const Run* step = state.find(id))
                out.steps.push_back(
                    {.step = step->step, .run = id, .state = step->state, .cause = step->cause, .needs = step->needs});
    out.folder = run_folder(view.folder, run.id).path;
    out.not_before = rfc3339(run.not_before_us);
    out.now = rfc3339(view.now_us);
    return out;
}

WhyView view_of_why(const Why& why) {
    WhyView view{.code = why.code, .text = why.text, .numbers = {}, .blockers = why.blockers, .unblock = why.unblock};
    for (const auto& [name, value] : why.numbers) view.numbers[name] = value;
    return view;
}

EtaView view_of_eta(const Eta& eta) {
    return {.p50_s = eta.p50_s, .p90_s = eta.p90_s, .text = eta.text};
}

RunPage list_runs(const State& state, const ListQuery& query, std::int64_t now_us) {
    RunPage page;
    page.now = rfc3339(now_us);
    std::size_t scanned = 0;
    RunId last;
    bool more = false;
    const auto take = [&](const Run& run) {
        if (page.items.size() == query.limit || scanned == kMostScanned) {
            more = true;
            return false;
        }
        ++scanned;
        last = run.id;
        const bool seen =
            query.actor.level == Level::provider || reaches(query.actor, state.tenants.tenant_of(run.project));
        if (seen && fits(run, query)) page.items.push_back(item_of(state, run, now_us));
        return true;
    };
    if (query.newest_first) {
        auto at = query.after ? state.runs.lower_bound(query.after) : state.runs.end();
        while (at != state.runs.begin() && take((--at)->second)) {
        }
    } else {
        auto at = query.after ? state.runs.upper_bound(query.after) : state.runs.begin();
        for (; at != state.runs.end() && take(at->second); ++at) {
        }
    }
    if (more) page.next_cursor = cursor_of(query, last);
    return page;
}

std::string cursor_of(const ListQuery& query, RunId after) {
    return (query.newest_first ? "n" : "o") + std::to_string(after.number);
}

bool read_cursor(std::string_view text, ListQuery& query) {
    if (text.empty() || text[0] != (query.newest_first ? 'n' : 'o')) return false;
    const auto number = ids_detail::number(text.substr(1));
    if (!number) return false;
    query.after = RunId{*number};
    return true;
}

}  // namespace stoker::api
