// What each command does: checks first, then records; a command that is refused leaves none.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"
#include "run/decide/judge_run.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

Error wrong_state(const Run& run, std::string_view what) {
    return Error(ErrorKind::conflict,
                 fmt::format("{} is {} and cannot be {}", run.id.text(), to_string(run.state), what));
}

// What runs say of engines: one that this server has, or any. (deploy/engines refuses names that are none.)
Status check_engine(const RunSpec& spec, const std::string& own, const std::vector<EngineScene>& engines) {
    const auto check = [&](const RunSpec& each) -> Status {
        if (!each.engine || *each.engine == kAnyEngine) return done();
        if (engines.empty()) {
            if (own.empty() || *each.engine == own) return done();
            return Error(
                ErrorKind::unsupported,
                fmt::format("the run wants the engine {}, and this server drives {}", printable(*each.engine), own), {},
                "leave `engine` out, or send it to a server that drives it");
        }
        std::string names;
        for (const EngineScene& one : engines) {
            if (one.name == *each.engine) return done();
            names += (names.empty() ? "" : ", ") + one.name;
        }
        return Error(ErrorKind::unsupported,
                     fmt::format("the run wants the engine {}, and this server has {}", printable(*each.engine), names),
                     {}, "name one of these, or any");
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
// Of each command; one that is not here does not compile.
struct Rights {
    static constexpr Right kSteer{Action::steer, Level::project};
    static constexpr Right kNodes{Action::operate, Level::provider};
    static constexpr Right kConfigure{Action::configure, Level::provider};
    static constexpr Right kReport{Action::report, Level::provider};

    Right operator()(const Submit&) { return {Action::submit, Level::project}; }
    Right operator()(const CancelRun&) { return kSteer; }
    Right operator()(const HoldRun&) { return kSteer; }
    Right operator()(const EditRun&) { return kSteer; }
    Right operator()(const EvictRun&) { return {Action::operate, Level::project}; }
    Right operator()(const RenewLease&) { return kSteer; }
    Right operator()(const SetNode&) { return kNodes; }
    Right operator()(const CheckNode&) { return kNodes; }
    Right operator()(const SetConfig&) { return kConfigure; }
    Right operator()(const SetLimits&) { return kConfigure; }
    Right operator()(const MakeOrganisation&) { return {Action::administer, Level::provider}; }
    Right operator()(const MakeProject&) { return {Action::administer, Level::organisation}; }
    // Everybody their own, an admin those of others as well; see core_tenants.cpp.
    Right operator()(const MakeKey&) { return {Action::own, Level::project}; }
    Right operator()(const RevokeKey&) { return {Action::own, Level::project}; }
    Right operator()(const RotateKey&) { return {Action::own, Level::project}; }
    Right operator()(const MakeUser&) { return {Action::administer, Level::project}; }
    Right operator()(const BindRole&) { return {Action::administer, Level::project}; }
    Right operator()(const DisableUser&) { return {Action::administer, Level::organisation}; }
    // Everybody their own; see core_users.cpp.
    Right operator()(const SetPassword&) { return {Action::look, Level::project}; }
    Right operator()(const OpenLogin&) { return {Action::look, Level::project}; }
    Right operator()(const CloseLogin&) { return {Action::look, Level::project}; }
    // Of an organisation it takes a role of the provider, of a project one of the organisation: see may_limit.
    Right operator()(const SetQuota&) { return {Action::administer, Level::project}; }
    Right operator()(const SetBudget&) { return {Action::administer, Level::project}; }
    Right operator()(const SetPrices&) { return kConfigure; }
    Right operator()(const ChargeTokens&) { return kReport; }
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
    TRY_VOID(check_engine(submit.spec, options_.engine, options_.scheduler.engines));
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
    if (options_.admission) {
        AdmissionScene scene{.policy = *options_.admission,
                             .tenants = state_.tenants,
                             .project = actor_.tenant.project,
                             .user = actor_.name,
                             .any = !options_.scheduler.engines.empty(),
                             .nodes = &state_.nodes};
        for (const EngineScene& each : options_.scheduler.engines) scene.engines.push_back(each.name);
        if (scene.engines.empty()) scene.engines.push_back(options_.engine);
        TRY_VOID(check_admission(scene, submit.spec));
    }
    const RunSpec& spec = submit.spec;
    const std::size_t more = std::max<std::size_t>(spec.steps.size(), 1);
    if (state_.queue.size() + more > options_.max_queued)
        return Error(ErrorKind::exhausted,
                     fmt::format("{} runs wait already and {} more would be, at most {} may", state_.queue.size(), more,
                                 options_.max_queued),
                     {}, "wait until some have started, or cancel what is not needed");
    // What a row says of itself is ours to say.
    if (spec.repeat && (spec.repeat->number != 1 || spec.repeat->missed != 0 || !spec.repeat->previous.empty() ||
                        !spec.repeat->first.empty()))
        return Error(ErrorKind::invalid, "repeat: number, missed, previous and first are told by the server", {},
                     "say `every`, and `times` where it ends");
    TRY(const std::vector<RunId> after, runs_before(state_, spec, actor_.tenant.project));
    const RunId run = submit_all(spec, submit.key, after);
    if (submit.held) emit(RunHeld{run, true});
    return ack(run);
}

// A checked spec, with its steps where it is a graph.
RunId Core::submit_all(const RunSpec& spec, const std::string& key, const std::vector<RunId>& after) {
    const bool graph = spec.kind == RunKind::graph;
    const RunId id = submit_one(spec, key, {}, {}, graph ? std::vector<RunId>{} : after);
    if (!graph) return id;
    const auto order = order_of_steps(spec);
    CHECK(order.ok());
    std::map<std::string, RunId> ids;
    for (const std::size_t at : *order) {
        const GraphStep& step = spec.steps[at];
        std::vector<RunId> needs = step.depends_on.empty() ? after : std::vector<RunId>{};
        for (const std::string& need : step.depends_on) needs.push_back(ids.at(need));
        ids[step.name] = submit_one(spec_of_step(spec, step), {}, id, step.name, std::move(needs));
    }
    return id;
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
