// What each command does: checks first, then records; a command that is refused leaves none.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

// With these, the places of the largest gang fit into one record.
constexpr std::size_t kMaxNodeName = 64;

Error wrong_state(const Run& run, std::string_view what) {
    return Error(ErrorKind::conflict,
                 fmt::format("{} is {} and cannot be {}", run.id.text(), to_string(run.state), what));
}

// A server has one engine. (deploy/engines refuses names that are none.)
Status check_engine(const RunSpec& spec, const std::string& own) {
    const auto check = [&](const RunSpec& each) -> Status {
        if (own.empty() || !each.engine || *each.engine == own) return done();
        return Error(
            ErrorKind::unsupported,
            fmt::format("the run wants the engine {}, and this server drives {}", printable(*each.engine), own), {},
            "leave `engine` out, or send it to a server that drives it");
    };
    TRY_VOID(check(spec));
    for (const GraphStep& step : spec.steps) TRY_VOID(check(step.run));
    return done();
}

// A step as a run of its own: what the graph says once holds for all of its steps.
RunSpec spec_of_step(const RunSpec& graph, const GraphStep& step) {
    RunSpec spec = step.run;
    spec.name = graph.name + "/" + step.name;
    spec.max_restarts = step.retries;
    spec.user = graph.user;
    spec.project = graph.project;
    spec.organisation = graph.organisation;
    spec.priority = graph.priority;
    spec.run_class = graph.run_class;
    if (spec.folder.empty()) spec.folder = graph.folder;
    if (!spec.engine) spec.engine = graph.engine;
    if (step.depends_on.empty()) {
        spec.after = graph.after;
        spec.begin_at_us = graph.begin_at_us;
    }
    for (const auto& [key, value] : graph.environment) spec.environment.emplace(key, value);
    return spec;
}

// As it will read back from the journal: valid UTF-8, of bounded length, finite.
Fact storable(Fact fact) {
    fact.detail = printable(fact.detail, kMaxDetailBytes);
    fact.node = printable(fact.node, kMaxNodeName);
    if (!std::isfinite(fact.seconds)) fact.seconds = 0;
    return fact;
}
NodeInfo storable(NodeInfo node) {
    node.name = printable(node.name, kMaxNodeName);
    if (node.devices.size() > kMaxGpusOfNode) node.devices.resize(kMaxGpusOfNode);
    node.boot_id = printable(node.boot_id, 1000);
    node.topology = printable(node.topology, 1000);
    node.doctor = printable(node.doctor, 1000);
    for (DeviceInfo& device : node.devices) {
        device.id = printable(device.id, 1000);
        device.model = printable(device.model, 1000);
    }
    return node;
}

bool same_node(const NodeInfo& a, const NodeInfo& b) {
    return a.cpu_milli == b.cpu_milli && a.memory_bytes == b.memory_bytes && a.boot_id == b.boot_id &&
           a.topology == b.topology && a.doctor == b.doctor && a.link_bytes_per_s == b.link_bytes_per_s &&
           std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end(),
                      [](const DeviceInfo& x, const DeviceInfo& y) {
                          return x.id == y.id && x.model == y.model && x.memory_bytes == y.memory_bytes;
                      });
}

// Of each command; one that is not here does not compile.
struct Rights {
    static constexpr Right kSteer{Action::steer, Level::project};
    static constexpr Right kNodes{Action::operate, Level::provider};
    static constexpr Right kConfigure{Action::configure, Level::provider};
    static constexpr Right kReport{Action::report, Level::provider};

    Right operator()(const Submit&) { return {Action::submit, Level::project}; }
    Right operator()(const CancelRun&) { return kSteer; }
    Right operator()(const HoldRun&) { return kSteer; }
    Right operator()(const EvictRun&) { return {Action::operate, Level::project}; }
    Right operator()(const RenewLease&) { return kSteer; }
    Right operator()(const SetNode&) { return kNodes; }
    Right operator()(const CheckNode&) { return kNodes; }
    Right operator()(const SetConfig&) { return kConfigure; }
    Right operator()(const SetLimits&) { return kConfigure; }
    Right operator()(const MakeOrganisation&) { return {Action::administer, Level::provider}; }
    Right operator()(const MakeProject&) { return {Action::administer, Level::organisation}; }
    Right operator()(const MakeKey&) { return {Action::administer, Level::project}; }
    Right operator()(const RevokeKey&) { return {Action::administer, Level::project}; }
    Right operator()(const SawFact&) { return kReport; }
    Right operator()(const SawNodes&) { return kReport; }
    Right operator()(const Answered&) { return kReport; }
    Right operator()(const Listed&) { return kReport; }
    Right operator()(const SawCheckpoints&) { return kReport; }
    Right operator()(const SawImage&) { return kReport; }
    Right operator()(const BeginUpload&) { return kReport; }
    Right operator()(const EndUpload&) { return kReport; }
    Right operator()(const SawRestore&) { return kReport; }
    Right operator()(const SawHealth&) { return kReport; }
    Right operator()(const BlameNode&) { return kReport; }
};

// None: it is about no run.
RunId run_in(const Command& command) {
    return std::visit(
        [](const auto& what) {
            if constexpr (requires { what.run; })
                return what.run;
            else
                return RunId{};
        },
        command.what);
}

}  // namespace

Ack Core::ack(RunId id) const {
    const Run* run = state_.find(id);
    return {.run = id, .version = run == nullptr ? 0 : run->version};
}

Right right_for(const Command& command) {
    return std::visit(Rights{}, command.what);
}

// Whom the records name from here on.
void Core::acts(const Actor& actor, const std::string& trace) {
    if (actor_ != actor) {
        actor_ = actor;
        actor_text_ = actor.text();
    }
    trace_ = trace;
}

// Refused before anything else is looked at, so that a refusal tells nothing of what there is.
Status Core::admit(const Command& command) const {
    const Right right = right_for(command);
    if (!may(command.actor, right)) return denial(command.actor, right);
    if (!state_.tenants.has(command.actor.tenant))
        return Error(ErrorKind::denied,
                     fmt::format("{} acts in {}/{}, and there is no such project", printable(command.actor.who(), 100),
                                 command.actor.tenant.organisation.text(), command.actor.tenant.project.text()));
    const RunId id = run_in(command);
    const Run* run = state_.find(id);
    // A foreign run is as good as none.
    if (run != nullptr && !reaches(command.actor, state_.tenants.tenant_of(run->project)))
        return Error(ErrorKind::not_found, "there is no run " + id.text());
    return done();
}

Result<Ack> Core::handle(const Command& command) {
    TRY_VOID(admit(command));
    if (command.if_version) {
        const RunId id = run_in(command);
        const Run* run = state_.find(id);
        if (run != nullptr && run->version != *command.if_version)
            return Error(ErrorKind::conflict, fmt::format("{} has changed: it is at version {}, not {}", id.text(),
                                                          run->version, *command.if_version));
    }
    return std::visit([this](const auto& what) { return on(what); }, command.what);
}

RunId Core::submit_one(RunSpec spec, std::string key, RunId parent, std::string step, std::vector<RunId> needs) {
    const RunId id{state_.runs_made + 1};
    // Left out where there was no other to name before tenants.
    const ProjectId project = actor_.tenant.project == kDefaultProject ? ProjectId{} : actor_.tenant.project;
    emit(RunSubmitted{.run = id,
                      .spec = std::move(spec),
                      .key = std::move(key),
                      .parent = parent,
                      .step = std::move(step),
                      .needs = std::move(needs),
                      .project = project});
    return id;
}

Result<Ack> Core::on(const Submit& submit) {
    TRY_VOID(check_run_spec(submit.spec));
    TRY_VOID(check_engine(submit.spec, options_.engine));
    const std::string_view key = submit.key;
    if (key.size() > 255 || find_invalid_utf8(key) != std::string_view::npos)
        return Error(ErrorKind::invalid, "an idempotency key has at most 255 bytes of UTF-8");
    if (!key.empty()) {
        const auto found = state_.keys.find({actor_.tenant.project, submit.spec.user, submit.key});
        if (found != state_.keys.end()) {
            if (canonical_json(state_.find(found->second)->spec) != canonical_json(submit.spec))
                return Error(ErrorKind::conflict, fmt::format("the idempotency key {} was used for another run, {}",
                                                              printable(key), found->second.text()));
            Ack again = ack(found->second);
            again.repeated = true;
            return again;
        }
    }
    // Kept with room for the rest of the record.
    if (const std::size_t size = canonical_json(submit.spec).size(); size > kMaxBodyBytes - 2048)
        return Error(ErrorKind::unsupported,  // never later, either
                     fmt::format("the spec has {} bytes, at most {} are kept", size, kMaxBodyBytes - 2048), {},
                     "put scripts and long lists into files, or split the graph");
    const RunSpec& spec = submit.spec;
    const std::size_t more = std::max<std::size_t>(spec.steps.size(), 1);
    if (state_.queue.size() + more > options_.max_queued)
        return Error(ErrorKind::exhausted,
                     fmt::format("{} runs wait already and {} more would be, at most {} may", state_.queue.size(), more,
                                 options_.max_queued),
                     {}, "wait until some have started, or cancel what is not needed");
    TRY(const std::vector<RunId> after, runs_before(state_, spec, actor_.tenant.project));
    const RunId id = submit_one(spec, submit.key, {}, {}, spec.kind == RunKind::graph ? std::vector<RunId>{} : after);
    if (spec.kind == RunKind::graph) {
        TRY(const auto order, order_of_steps(spec));
        std::map<std::string, RunId> ids;
        for (const std::size_t at : order) {
            const GraphStep& step = spec.steps[at];
            std::vector<RunId> needs = step.depends_on.empty() ? after : std::vector<RunId>{};
            for (const std::string& need : step.depends_on) needs.push_back(ids.at(need));
            ids[step.name] = submit_one(spec_of_step(spec, step), {}, id, step.name, std::move(needs));
        }
    }
    return ack(id);
}

Result<Ack> Core::on(const CancelRun& cancel) {
    const Run* run = state_.find(cancel.run);
    if (run == nullptr) return no_such_run(state_, cancel.run);
    if (run->state == RunState::cancelling || run->state == RunState::cancelled) {
        Ack again = ack(run->id);
        again.repeated = true;
        return again;
    }
    if (!next_state(run->state, RunEvent::cancel)) return wrong_state(*run, "cancelled");
    emit(RunMoved{.run = run->id, .event = RunEvent::cancel, .cause = Cause::cancelled, .detail = ""});
    return ack(run->id);
}

Result<Ack> Core::on(const HoldRun& hold) {
    const Run* run = state_.find(hold.run);
    if (run == nullptr) return no_such_run(state_, hold.run);
    if (is_terminal(run->state)) return wrong_state(*run, hold.held ? "held" : "released");
    if (run->held != hold.held) emit(RunHeld{run->id, hold.held});
    changed_ = true;  // the steps of a graph wait for it too
    return ack(run->id);
}

Result<Ack> Core::on(const EvictRun& evict) {
    const Run* run = state_.find(evict.run);
    if (run == nullptr) return no_such_run(state_, evict.run);
    if (evict.notice_s < 0 || evict.notice_s > 86400)
        return Error(ErrorKind::invalid, fmt::format("a notice of {} s, expected 0 to 86400", evict.notice_s));
    const Attempt* attempt = run->live_attempt();
    if (attempt == nullptr || attempt->end_us != 0 || run->state == RunState::cancelling)
        return wrong_state(*run, "evicted");
    emit(NoticeGiven{{run->id, attempt->number}, now_us_ + evict.notice_s * kSecondUs, Cause::preempted});
    return ack(run->id);
}

Result<Ack> Core::on(const RenewLease& renew) {
    const Run* run = state_.find(renew.run);
    if (run == nullptr) return no_such_run(state_, renew.run);
    if (run->lease.stop_at_us == 0) return Error(ErrorKind::conflict, renew.run.text() + " has no lease to renew");
    const Attempt* attempt = run->live_attempt();
    if (is_terminal(run->state) || (attempt != nullptr && attempt->end_us != 0)) return wrong_state(*run, "renewed");
    std::int64_t stop = renew.stop_at_us;
    if (run->lease.hard_max_at_us > 0) stop = std::min(stop, run->lease.hard_max_at_us);
    if (stop <= now_us_) return Error(ErrorKind::invalid, "the new end of the lease has passed already");
    // It goes on, and is told anew before the new end.
    if (attempt != nullptr && attempt->notice == Cause::lease) emit(NoticeWithdrawn{{run->id, attempt->number}});
    emit(LeaseMoved{run->id, stop, false});
    return ack(run->id);
}

Result<Ack> Core::on(const SetNode& set) {
    const auto found = state_.nodes.find(set.node);
    if (found == state_.nodes.end()) return Error(ErrorKind::not_found, "there is no node " + printable(set.node));
    if (set.state != NodeState::ready && set.state != NodeState::draining && set.state != NodeState::checking)
        return Error(ErrorKind::invalid, fmt::format("a person drains a node or says that it was repaired; that it is "
                                                     "{} shows by itself",
                                                     to_string(set.state)));
    if (found->second.state == NodeState::lost)
        return Error(ErrorKind::conflict, printable(set.node) + " is lost; it returns when the driver sees it again");
    const NodeStatus& node = found->second;
    switch (set.state) {
        case NodeState::draining:
            if (node.state != NodeState::draining) emit(NodeMoved{set.node, NodeState::draining, Cause::held});
            break;
        case NodeState::checking:
            emit(NodeMoved{set.node, NodeState::checking, Cause::node_repaired});
            judge(set.node);
            break;
        default: {
            HealthGate gate = options_.scheduler.health;
            gate.under_check.clear();
            // Of one that was drained: back to what it was. Of one whose check or history limits it: a person vouches.
            if (node.state == NodeState::draining)
                back_to_work(set.node);
            else if (takes_of(node, gate, false, now_us_) != NodeTakes::gangs || node.state != NodeState::ready)
                emit(NodeMoved{set.node, NodeState::ready, Cause::node_override});
            withdraw_notices(set.node);
        }
    }
    changed_ = true;
    return Ack{};
}

// The machine stays after all: what has not been ended goes on.
void Core::withdraw_notices(const std::string& node) {
    std::vector<AttemptId> spared;
    for (const RunId id : state_.live) {
        const Attempt& attempt = state_.find(id)->attempts.back();
        if (attempt.notice != Cause::evicted || attempt.end_us != 0 || attempt.unheard) continue;
        const bool there = std::any_of(attempt.places.begin(), attempt.places.end(),
                                       [&](const RankPlace& place) { return place.node == node; });
        const bool others = std::any_of(attempt.places.begin(), attempt.places.end(), [&](const RankPlace& place) {
            const auto found = state_.nodes.find(place.node);
            return found != state_.nodes.end() && found->second.cause == Cause::evicted;
        });
        if (there && !others) spared.push_back({id, attempt.number});
    }
    for (const AttemptId& attempt : spared) emit(NoticeWithdrawn{attempt});
}

void Core::look_at_runs_on(const std::string& node) {
    for (const RunId id : state_.live) {
        const auto& places = state_.find(id)->attempts.back().places;
        if (std::any_of(places.begin(), places.end(), [&](const RankPlace& place) { return place.node == node; }))
            to_settle_.insert(id);
    }
}

Result<Ack> Core::on(const SawFact& saw) {
    if (saw.fact.epoch > state_.epoch)
        return Error(ErrorKind::conflict, fmt::format("a fact of epoch {}: a newer server has taken over from epoch {}",
                                                      saw.fact.epoch, state_.epoch));
    if (saw.fact.cursor != 0 && saw.fact.cursor <= state_.cursor) return Ack{.repeated = true};
    const Fact fact = storable(saw.fact);
    if (fact.kind == FactKind::node_lost || fact.kind == FactKind::notice) {
        const auto found = state_.nodes.find(fact.node);
        if (found == state_.nodes.end() || found->second.state == NodeState::lost) return Ack{.repeated = true};
        emit(FactSeen{fact});
        changed_ = true;
        if (fact.kind == FactKind::node_lost) {
            emit(NodeMoved{fact.node, NodeState::lost, Cause::node_lost});
            look_at_runs_on(fact.node);
            return Ack{};
        }
        if (fact.seconds < 0) {
            // Taken back. A node that a person drains meanwhile stays drained.
            if (found->second.state == NodeState::draining && found->second.cause == Cause::evicted)
                back_to_work(fact.node);
            withdraw_notices(fact.node);
            return Ack{};
        }
        emit(NodeMoved{fact.node, NodeState::draining, Cause::evicted});
        look_at_runs_on(fact.node);
        const auto notice = static_cast<std::int64_t>(std::clamp(fact.seconds, 0.0, 86400.0) * 1e6);
        const std::int64_t deadline = now_us_ + std::max(notice - kNoticeSafetyUs, notice / 2);
        const std::set<RunId> warned = to_settle_;
        for (const RunId id : warned) {
            const Run& run = *state_.find(id);
            const Attempt* attempt = run.live_attempt();
            if (attempt == nullptr || attempt->end_us != 0 || run.state == RunState::cancelling) continue;
            const bool there = std::any_of(attempt->places.begin(), attempt->places.end(),
                                           [&](const RankPlace& place) { return place.node == fact.node; });
            if (there) emit(NoticeGiven{{id, attempt->number}, deadline, Cause::evicted});
        }
        return Ack{};
    }
    const auto launch = state_.launches.find(fact.operation);
    if (launch == state_.launches.end()) return Ack{.repeated = true};
    const Attempt& attempt = *state_.find(launch->second);
    if (fact.epoch < attempt.epoch) return Ack{.repeated = true};
    if (fact.kind == FactKind::waits) {
        // Told again, or come after what it was about.
        const auto& known = attempt.engine_wait;
        const bool same = known && known->cause == fact.cause && known->detail == fact.detail &&
                          (fact.seconds > 0) == (known->starts_us > 0);
        const bool over = attempt.state != AttemptState::launching || (known && known->began_us > 0) ||
                          attempt.launched == Answer::confirmed;
        if (same || over) return Ack{.repeated = true};
    } else if (fact.kind != FactKind::gang_ended &&
               (fact.rank < 0 || static_cast<std::size_t>(fact.rank) >= attempt.ranks.size()))
        return Error(ErrorKind::invalid, fmt::format("a fact about rank {} of {}, which has {}", fact.rank,
                                                     launch->second.text(), attempt.ranks.size()));
    emit(FactSeen{fact});
    return ack(launch->second.run);
}

Result<Ack> Core::on(const SawNodes& saw) {
    std::set<std::string> present;
    for (const NodeInfo& raw : saw.nodes) {
        const NodeInfo node = storable(raw);
        if (node.name.empty() || !present.insert(node.name).second) continue;
        auto found = state_.nodes.find(node.name);
        if (found == state_.nodes.end()) {
            emit(NodeSeen{node});
            judge(node.name);
            changed_ = true;
            continue;
        }
        const bool rebooted = found->second.info.boot_id != node.boot_id;
        if (rebooted && found->second.state != NodeState::lost) {
            emit(NodeMoved{node.name, NodeState::lost, Cause::node_lost});
            look_at_runs_on(node.name);
            settle();
        }
        if (!same_node(found->second.info, node)) {
            emit(NodeSeen{node});
            changed_ = true;
        }
        const bool back = found->second.state == NodeState::lost ||
                          (found->second.state == NodeState::draining && found->second.cause == Cause::lost_contact);
        if (back) {
            settle();
            back_to_work(node.name);
            changed_ = true;
        }
    }
    remove_nodes(present);
    // What is not listed any more gets no new work; what runs there is ended only when the driver says it is lost.
    std::vector<std::string> absent;
    for (const auto& [name, node] : state_.nodes)
        if (node.state != NodeState::draining && node.state != NodeState::lost && !present.contains(name))
            absent.push_back(name);
    for (const std::string& name : absent) emit(NodeMoved{name, NodeState::draining, Cause::lost_contact});
    return Ack{};
}

Result<Ack> Core::on(const Answered& answered) {
    const auto found = state_.operations.find(answered.operation);
    // A listing may have told before.
    if (found == state_.operations.end() || found->second.unknown) return Ack{.repeated = true};
    const Verb verb = found->second.verb;
    Answer answer = answered.outcome.certainty == Certainty::confirmed                          ? Answer::confirmed
                    : answered.outcome.certainty == Certainty::rejected                         ? Answer::rejected
                    : answered.outcome.certainty == Certainty::accepted && verb == Verb::launch ? Answer::accepted
                                                                                                : Answer::unknown;
    // Whether something is gone cannot be refused: it is tried again until it is.
    if (answer == Answer::rejected && (verb == Verb::cancel || verb == Verb::release)) answer = Answer::unknown;
    // Its image may have been removed since it was looked for.
    if (const Run* run = state_.find(found->second.attempt.run); run != nullptr && answer == Answer::rejected) {
        options_.scheduler.images.erase(run->spec.image);
        asked_images_.erase(run->spec.image);
    }
    emit(OperationAnswered{.operation = answered.operation,
                           .answer = answer,
                           .cause = answered.outcome.cause,
                           .detail = printable(answered.outcome.detail, kMaxDetailBytes)});
    return Ack{};
}

Result<Ack> Core::on(const Listed& listed) {
    listing_ = false;
    next_list_us_ = now_us_ + kSecondUs;
    for (RecordBody& record : recover(state_, listed.listing, now_us_, memory_)) emit(std::move(record));
    if (listed.listing.ours.complete && recovering_) {
        recovering_ = false;
        changed_ = true;
    }
    return Ack{};
}

}  // namespace stoker
