#include "run/state/state.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/enum_words.h"
#include "base/text.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

// Longer than 500 lines because every kind of record is applied here, one function each.
// Applies one record; each member function is one kind.
class Applier {
public:
    Applier(State& state, const Record& record) : state_(state), record_(record) {}

    Status operator()(const CoreStarted& body) {
        if (body.epoch <= state_.epoch) return refuse(fmt::format("epoch {} after {}", body.epoch, state_.epoch));
        state_.epoch = body.epoch;
        state_.clock = {.boot_id = body.boot_id, .monotonic_us = body.monotonic_us.value_or(0), .at_us = record_.at_us};
        if (body.boot_id.empty() || !body.monotonic_us) state_.clock = {};
        if (state_.site != body.site) {
            if (!state_.site.empty()) state_.sites.push_back(state_.site);
            state_.site = body.site;
        }
        // What was sent before the restart may or may not have happened.
        for (auto& [id, operation] : state_.operations) {
            operation.unknown = true;
            operation.next_us = record_.at_us;
            operation.changed_seq = record_.seq;
            operation.tries = 1;  // that the server ended says nothing against the engine
        }
        ++state_.core_version;
        return done();
    }

    Status operator()(const RunSubmitted& body) {
        if (body.run.number != state_.runs_made + 1) return refuse("run out of order");
        const ProjectId project = body.project ? body.project : kDefaultProject;
        if (!state_.tenants.projects.contains(project)) return refuse("there is no project " + project.text());
        ++state_.runs_made;
        Run& run = state_.runs[body.run];
        run.id = body.run;
        run.project = project;
        run.submitted_by = record_.actor.who();
        run.spec = body.spec;
        // The next of a row is whose the one before was.
        if (body.spec.repeat && !body.parent)
            if (Run* before = find(RunId::parse(body.spec.repeat->previous).value_or(RunId{})); before != nullptr) {
                run.submitted_by = before->submitted_by;
                before->next_in_row = body.run;
            }
        run.key = body.key;
        run.parent = body.parent;
        run.step = body.step;
        run.needs = body.needs;
        run.submitted_us = record_.at_us;
        index_new(state_, run);
        return changed(run);
    }

    Status operator()(const RunMoved& body) {
        Run* run = find(body.run);
        if (run == nullptr) return refuse("no such run");
        if (follows_from_attempt(*run, body.event)) return changed(*run);
        TRY_VOID(move(*run, body.event));
        run->cause = body.cause;
        run->detail = body.detail;
        run->not_before_us = body.not_before_us;
        if (is_terminal(run->state)) run->ended_us = record_.at_us;
        if (run->spec.kind == RunKind::graph && body.event == RunEvent::all_ready) run->started_us = record_.at_us;
        if (body.event == RunEvent::retry || body.event == RunEvent::give_up) count_failure(*run);
        return changed(*run);
    }

    Status operator()(const RunHeld& body) {
        Run* run = find(body.run);
        if (run == nullptr) return refuse("no such run");
        run->held = body.held;
        return changed(*run);
    }

    Status operator()(const RunEdited& body) {
        Run* run = find(body.run);
        if (run == nullptr) return refuse("no such run");
        if (run->state != RunState::queued || !run->attempts.empty()) return refuse("it does not wait any more");
        state_.queue.erase(queue_key(*run));
        run->spec = body.spec;
        return changed(*run);
    }

    Status operator()(const AttemptCreated& body) {
        Run* run = find(body.attempt.run);
        if (run == nullptr) return refuse("no such run");
        if (body.attempt.number != run->attempts.size() + 1 || run->live_attempt() != nullptr)
            return refuse("attempt out of order");
        if (body.places.size() != static_cast<std::size_t>(run->spec.ranks)) return refuse("a part of a gang");
        TRY_VOID(move(*run, RunEvent::admit));
        Attempt& attempt = run->attempts.emplace_back();
        attempt.number = body.attempt.number;
        attempt.launch = {.site = state_.site, .seq = record_.seq};
        attempt.epoch = state_.epoch;
        attempt.places = body.places;
        attempt.engine = body.engine;
        attempt.chosen = body.chosen;
        attempt.ranks.resize(body.places.size());
        attempt.resume_from = body.resume_from;
        attempt.resume_step = body.resume_step;
        attempt.created_us = record_.at_us;
        if (run->started_us == 0) begin(*run);
        state_.operations[attempt.launch] = {
            .verb = Verb::launch, .attempt = body.attempt, .target = attempt.launch, .changed_seq = record_.seq};
        state_.launches.emplace(attempt.launch, body.attempt);
        return changed(*run);
    }

    Status operator()(const AttemptMoved& body) {
        Run* run = find(body.attempt.run);
        Attempt* attempt = find(body.attempt);
        if (attempt == nullptr) return refuse("no such attempt");
        const auto next = next_state(attempt->state, body.event);
        if (!next) return refuse(fmt::format("{} while {}", to_string(body.event), to_string(attempt->state)));
        attempt->state = *next;
        switch (body.event) {
            case AttemptEvent::all_ready:
                attempt->running_us = record_.at_us;
                if (run->state == RunState::starting) TRY_VOID(move(*run, RunEvent::all_ready));
                break;
            case AttemptEvent::refuse:
            case AttemptEvent::end: attempt->end_us = record_.at_us; [[fallthrough]];
            case AttemptEvent::gone:
                attempt->cause = body.cause;
                attempt->detail = body.detail;
                break;
            default: break;
        }
        if (attempt->state == AttemptState::ended) {
            attempt->ended_us = attempt->held_until_us(record_.at_us);
            const std::int64_t worked_us = attempt->worked_us(attempt->ended_us);
            run->used_us += worked_us;
            if (!state_.tenants.quotas.empty())
                add_use(state_.fair_use[run->project], worked_us / kSecondUs * fair_weight_milli(run->spec),
                        record_.at_us);
            if (attempt->cause == Cause::ok) remember_duration(*run, worked_us);
        }
        return changed(*run);
    }

    Status operator()(const NoticeGiven& body) {
        Run* run = find(body.attempt.run);
        Attempt* attempt = find(body.attempt);
        if (attempt == nullptr || attempt->end_us != 0) return refuse("no such attempt to warn");
        if (run->state != RunState::checkpointing) TRY_VOID(move(*run, RunEvent::notice));
        if (attempt->deadline_us == 0 || body.deadline_us < attempt->deadline_us) {
            attempt->deadline_us = body.deadline_us;
            attempt->notice = body.cause;
        }
        if (attempt->noticed_us == 0) attempt->noticed_us = record_.at_us;
        return changed(*run);
    }

    Status operator()(const NoticeWithdrawn& body) {
        Run* run = find(body.attempt.run);
        Attempt* attempt = find(body.attempt);
        if (attempt == nullptr || attempt->end_us != 0 || attempt->notice == Cause::none)
            return refuse("no notice to take back");
        if (run->state == RunState::checkpointing) TRY_VOID(move(*run, RunEvent::withdraw));
        attempt->notice = Cause::none;
        attempt->deadline_us = attempt->noticed_us = 0;
        attempt->notified = attempt->unheard = false;
        return changed(*run);
    }

    Status operator()(const CheckpointUploading& body) {
        Run* run = find(body.run);
        if (run == nullptr) return refuse("no such run");
        if (!run->stored) run->stored.emplace();
        run->stored->url = body.url;
        run->stored->uploading = body.step;
        return changed(*run);
    }

    Status operator()(const CheckpointStored& body) {
        Run* run = find(body.run);
        if (run == nullptr || !run->stored || run->stored->uploading != body.step) return refuse("no such upload");
        StoredCheckpoints& stored = *run->stored;
        stored.uploading = -1;
        stored.fault = body.fault;
        stored.faults = body.fault.empty() ? 0 : stored.faults + 1;
        if (!body.fault.empty()) return changed(*run);
        stored.step = body.step;
        stored.bytes = body.bytes;
        stored.at_us = record_.at_us;
        return changed(*run);
    }

    Status operator()(const RunForgotten& body) {
        const Run* run = find(body.run);
        if (run == nullptr) return refuse("no such run");
        if (!can_forget(state_, *run)) return refuse("it is still needed");
        std::vector<RunId> gone = {body.run};
        if (const auto steps = state_.steps.find(body.run); steps != state_.steps.end())
            gone.insert(gone.end(), steps->second.begin(), steps->second.end());
        for (const RunId id : gone) forget(*find(id));
        return done();
    }

    Status operator()(const OperationIntended& body) {
        const OperationId id{.site = state_.site, .seq = record_.seq};
        state_.operations[id] = {.verb = body.verb,
                                 .attempt = body.attempt,
                                 .target = body.target,
                                 .signal = body.signal,
                                 .grace_s = body.grace_s,
                                 .changed_seq = record_.seq};
        if (!body.attempt) return touched_core();
        Attempt* attempt = find(body.attempt);
        if (attempt == nullptr) return refuse("no such attempt");
        if (body.verb == Verb::notify) attempt->notified = true;
        if (body.verb == Verb::cancel) attempt->cancelling = true;
        if (body.verb == Verb::release) attempt->releasing = true;
        return changed(*find(body.attempt.run));
    }

    Status operator()(const OperationAnswered& body) {
        const auto found = state_.operations.find(body.operation);
        if (found == state_.operations.end()) return refuse("no such operation");
        Operation& operation = found->second;
        const AttemptId owner = operation.attempt;
        Attempt* attempt = find(owner);
        const bool closed = close(operation, body, attempt);
        if (!closed) {
            operation.unknown = true;
            operation.changed_seq = record_.seq;
            operation.detail = body.detail;
            operation.next_us = record_.at_us + operation_back_off_us(operation.tries);
        } else {
            state_.operations.erase(found);
        }
        return owner ? changed(*find(owner.run)) : touched_core();
    }

    Status operator()(const OperationResent& body) {
        const auto found = state_.operations.find(body.operation);
        if (found == state_.operations.end()) return refuse("no such operation");
        Operation& operation = found->second;
        operation.unknown = false;
        ++operation.tries;
        operation.changed_seq = record_.seq;
        Attempt* attempt = find(operation.attempt);
        if (attempt != nullptr && operation.verb == Verb::launch) attempt->epoch = state_.epoch;
        return operation.attempt ? changed(*find(operation.attempt.run)) : touched_core();
    }

    Status operator()(const FactSeen& body) {
        const Fact& fact = body.fact;
        state_.cursor = std::max(state_.cursor, fact.cursor);
        const auto launch = state_.launches.find(fact.operation);
        Attempt* attempt = launch == state_.launches.end() ? nullptr : find(launch->second);
        if (attempt == nullptr) return touched_core();
        switch (fact.kind) {
            case FactKind::gang_ended:
                attempt->gone = true;
                close_time(*find(launch->second.run), *attempt, fact);
                for (RankStatus& rank : attempt->ranks)
                    if (!rank.ended) end_rank(rank, fact, fact.cause == Cause::none ? Cause::platform : fact.cause);
                raise(*attempt, fact.cause, fact.detail);
                // Nothing of it began, so no rank says why.
                if (attempt->detail.empty() &&
                    std::none_of(attempt->ranks.begin(), attempt->ranks.end(), [](const auto& r) { return r.started; }))
                    attempt->detail = fact.detail;
                break;
            case FactKind::rank_started:
            case FactKind::rank_ended: {
                const auto at = static_cast<std::size_t>(fact.rank);
                if (fact.rank < 0 || at >= attempt->ranks.size())
                    return refuse("a fact about a rank that is not there");
                RankStatus& rank = attempt->ranks[at];
                rank.started = true;
                if (attempt->engine_wait && attempt->engine_wait->began_us == 0) {
                    attempt->engine_wait->began_us = when(*attempt, fact);
                    Run& run = *find(launch->second.run);
                    if (run.started_us == 0) begin(run);
                }
                if (RankPlace& place = attempt->places[at]; place.node.empty()) place.node = fact.node;
                if (fact.kind == FactKind::rank_started) {
                    rank.pid = fact.pid;
                } else {
                    end_rank(rank, fact, fact.cause);
                    raise(*attempt, fact.cause, fact.detail);
                    // Without an exit code or a signal the engine's words are all that there is.
                    if (!rank.exit_code && !rank.signal && attempt->detail.empty()) attempt->detail = fact.detail;
                }
                break;
            }
            case FactKind::waits:
                wait_at_engine(*find(launch->second.run), *attempt, fact.cause, fact.detail);
                if (fact.seconds > 0)
                    attempt->engine_wait->starts_us = fact.at_us + static_cast<std::int64_t>(fact.seconds * 1e6);
                break;
            default: break;
        }
        return changed(*find(launch->second.run));
    }

    Status operator()(const NodeSeen& body) {
        NodeStatus& node = state_.nodes[body.node.name];
        node.info = body.node;
        ++node.version;
        return done();
    }
    Status operator()(const NodeMoved& body) {
        const auto found = state_.nodes.find(body.node);
        if (found == state_.nodes.end()) return refuse("no such node");
        NodeStatus& node = found->second;
        node.state = body.state;
        node.cause = body.cause;
        ++node.version;
        const bool begins =
            body.state > NodeState::lost || body.cause == Cause::node_repaired || body.cause == Cause::node_override;
        if (begins && !node.health) node.health.emplace();
        if (node.health) remember_move(*node.health, body.cause, record_.at_us);
        return done();
    }
    Status operator()(const NodeChecked& body) { return on_health(body); }
    Status operator()(const NodeBlamed& body) { return on_health(body); }
    Status operator()(const NodeRemoved& body) {
        const auto found = state_.nodes.find(body.node);
        if (found == state_.nodes.end()) return refuse("no such node");
        std::vector<NodeInfo>& former = state_.former_nodes;
        std::erase_if(former, [&](const NodeInfo& each) { return each.name == body.node; });
        former.push_back(std::move(found->second.info));
        if (former.size() > kMostFormerNodes) former.erase(former.begin());
        state_.nodes.erase(found);
        return done();
    }
    Status operator()(const ConfigChanged& body) {
        return add_version(state_.config, record_, body) ? done() : Status(refuse("version out of order"));
    }
    Status operator()(const JournalLost& body) {
        state_.runs_made = std::max(state_.runs_made, body.runs_made);
        for (const std::string& site : body.sites)
            if (site != state_.site && std::find(state_.sites.begin(), state_.sites.end(), site) == state_.sites.end())
                state_.sites.push_back(site);
        return touched_core();
    }
    Status operator()(const OrganisationMade& body) {
        auto& organisations = state_.tenants.organisations;
        if (body.organisation.number != organisations.rbegin()->first.number + 1)
            return refuse("organisation out of order");
        organisations.emplace(body.organisation, OrganisationEntry{.id = body.organisation, .name = body.name});
        return done();
    }
    Status operator()(const ProjectMade& body) {
        auto& projects = state_.tenants.projects;
        if (body.project.number != projects.rbegin()->first.number + 1) return refuse("project out of order");
        if (!state_.tenants.organisations.contains(body.organisation))
            return refuse("there is no organisation " + body.organisation.text());
        projects.emplace(body.project,
                         ProjectEntry{.id = body.project, .organisation = body.organisation, .name = body.name});
        return done();
    }
    Status operator()(const KeyMade& body) {
        auto& tenants = state_.tenants;
        const std::uint64_t last = tenants.keys.empty() ? 0 : tenants.keys.rbegin()->first.number;
        if (body.key.number != last + 1) return refuse("key out of order");
        if (!tenants.projects.contains(body.project)) return refuse("there is no project " + body.project.text());
        if (tenants.key_of_sha256.contains(body.sha256)) return refuse("a key that there is already");
        tenants.add({.id = body.key,
                     .name = body.name,
                     .service = body.service,
                     .role = body.role,
                     .level = body.level,
                     .project = body.project,
                     .sha256 = body.sha256,
                     .made_us = record_.at_us,
                     .expires_us = body.expires_us,
                     .node = body.node});
        return done();
    }
    Status operator()(const KeyRevoked& body) {
        const auto found = state_.tenants.keys.find(body.key);
        if (found == state_.tenants.keys.end()) return refuse("there is no such key");
        found->second.revoked = true;
        return done();
    }
    Status operator()(const UserSet& body) {
        auto& tenants = state_.tenants;
        UserEntry user = body.user;
        const auto found = tenants.users.find(user.id);
        const std::uint64_t last = tenants.users.empty() ? 0 : tenants.users.rbegin()->first.number;
        if (found == tenants.users.end() && user.id.number != last + 1) return refuse("user out of order");
        if (found != tenants.users.end() ? found->second.name != user.name : tenants.user_of_name.contains(user.name))
            return refuse("a name that somebody else has");
        for (const RoleBinding& role : user.roles)
            if (!tenants.projects.contains(role.project)) return refuse("there is no project " + role.project.text());
        if (found == tenants.users.end())
            user.made_us = record_.at_us;
        else
            user.password = found->second.password;
        if (user.disabled) tenants.end_logins_of(user.id);
        tenants.add(std::move(user));
        return touched_core();
    }
    Status operator()(const PasswordSet& body) {
        const auto found = state_.tenants.users.find(body.user);
        if (found == state_.tenants.users.end()) return refuse("there is no such user");
        found->second.password = body.password;
        state_.tenants.end_logins_of(body.user);
        return touched_core();
    }
    Status operator()(const LoginMade& body) {
        auto& tenants = state_.tenants;
        if (body.login.id.number != tenants.logins_made + 1) return refuse("login out of order");
        if (!tenants.users.contains(body.login.user)) return refuse("there is no such user");
        if (!tenants.projects.contains(body.login.project))
            return refuse("there is no project " + body.login.project.text());
        tenants.end_logins_until(record_.at_us);
        tenants.logins_made = body.login.id.number;
        LoginEntry login = body.login;
        login.made_us = record_.at_us;
        tenants.add(std::move(login));
        return touched_core();
    }
    Status operator()(const LoginEnded& body) {
        state_.tenants.end_login(body.login);
        return touched_core();
    }
    Status operator()(const KeyEnds& body) {
        const auto found = state_.tenants.keys.find(body.key);
        if (found == state_.tenants.keys.end()) return refuse("there is no such key");
        found->second.expires_us = body.expires_us;
        return touched_core();
    }
    Status operator()(const QuotaSet& body) {
        TRY_VOID(known_scope(body.quota.scope));
        auto& quotas = state_.tenants.quotas;
        const std::pair key(body.quota.scope, body.quota.resource);
        if (body.quota.says_nothing())
            quotas.erase(key);
        else
            quotas[key] = body.quota;
        return touched_core();
    }
    Status operator()(const BudgetSet& body) {
        TRY_VOID(known_scope(body.budget.scope));
        const std::pair key(body.budget.scope, body.budget.unit);
        if (body.removed)
            state_.tenants.budgets.erase(key);
        else
            state_.tenants.budgets[key] = body.budget;
        return touched_core();
    }
    Status operator()(const BudgetReached& body) {
        const auto found = state_.tenants.budgets.find({body.scope, body.unit});
        if (found == state_.tenants.budgets.end()) return refuse("there is no such budget");
        BudgetEntry& budget = found->second;
        if (budget.month != body.month) budget.told.clear();
        budget.month = body.month;
        budget.told.push_back(body.mark);
        return touched_core();
    }
    Status operator()(const UsageCharged& body) {
        Run* run = find(body.attempt.run);
        Attempt* attempt = find(body.attempt);
        if (attempt == nullptr) return refuse("no such attempt");
        const std::int64_t was = std::max(attempt->began_us(), attempt->charged_us.value_or(0));
        if (body.to_us <= body.from_us || was != (body.credit ? body.to_us : body.from_us))
            return refuse("charged out of order");
        if (body.project != run->project) return refuse("charged to another project");
        attempt->charged_us = body.credit ? body.from_us : body.to_us;
        std::int64_t gpu_micro_hours = body.gpu_micro_hours;
        for (const UsageCharged::Line& line : body.lines)
            add_charge(state_.charges,
                       {.month = month_of(body.from_us),
                        .project = body.project,
                        .user = body.user,
                        .resource = line.resource,
                        .model = line.model},
                       {.microusd = line.microusd,
                        .micro_hours = line.micro_hours,
                        .gpu_micro_hours = std::exchange(gpu_micro_hours, 0),
                        .priced = line.priced});
        return changed(*run);
    }
    Status operator()(const TokensCharged& body) {
        const auto found = state_.token_cursors.find(body.account);
        const std::uint64_t was = found == state_.token_cursors.end() ? 0 : found->second;
        if (body.after != was || body.up_to <= body.after) return refuse("tokens charged out of order");
        for (const TokensCharged::Line& line : body.lines) {
            if (!state_.tenants.projects.contains(line.project)) return refuse("there is no such project");
            const ChargeSum sum{.microusd = line.microusd,
                                .tokens = line.tokens_in + line.tokens_out,
                                .requests = line.requests,
                                .left = line.left};
            add_charge(state_.charges,
                       {.month = month_of(line.from_us),
                        .project = line.project,
                        .user = line.user,
                        .resource = PricedResource::tokens,
                        .model = line.model},
                       sum);
            add_token_day(state_.token_days,
                          {.day_us = line.from_us / kDayUs * kDayUs,
                           .project = line.project,
                           .user = line.user,
                           .model = line.model},
                          sum);
        }
        state_.token_cursors[body.account] = body.up_to;
        return touched_core();
    }
    Status operator()(const LeaseMoved& body) {
        Run* run = find(body.run);
        if (run == nullptr) return refuse("no such run");
        run->lease.stop_at_us = body.stop_at_us;
        run->lease.warned = body.warned;
        return changed(*run);
    }

private:
    template <class Body>
    Status on_health(const Body& body) {
        const auto found = state_.nodes.find(body.node);
        if (found == state_.nodes.end()) return refuse("no such node");
        if (!found->second.health) found->second.health.emplace();
        remember(*found->second.health, body, record_.at_us);
        ++found->second.version;
        return done();
    }
    Error refuse(std::string_view what) const {
        return Error(ErrorKind::invalid, fmt::format("record {} ({}) does not fit the state before it: {}", record_.seq,
                                                     name_of_kind(kind_of(record_.body)), what));
    }
    Status known_scope(const std::string& scope) const {
        const auto known = parse_quota_scope(state_.tenants, scope);
        return known ? done() : Status(refuse(known.error().message()));
    }
    Run* find(RunId id) { return state_.runs.change(id); }
    Attempt* find(const AttemptId& id) {
        Run* run = find(id.run);
        return run == nullptr || id.number == 0 || id.number > run->attempts.size() ? nullptr
                                                                                    : &run->attempts[id.number - 1];
    }
    // The record before, of the attempt, has moved the run already; this one tells it to who follows runs.
    static bool follows_from_attempt(const Run& run, RunEvent event) {
        if (run.spec.kind == RunKind::graph) return false;
        return (event == RunEvent::admit && run.state == RunState::starting) ||
               ((event == RunEvent::all_ready || event == RunEvent::withdraw) && run.state == RunState::running) ||
               (event == RunEvent::notice && run.state == RunState::checkpointing);
    }
    Status move(Run& run, RunEvent event) {
        const auto next = next_state(run.state, event);
        if (!next) return refuse(fmt::format("{} while {}", to_string(event), to_string(run.state)));
        // Its place in the queue goes with the state in which it had one.
        if (run.state == RunState::queued) state_.queue.erase(queue_key(run));
        run.state = *next;
        return done();
    }
    Status changed(Run& run) {
        ++run.version;
        index(state_, run);
        return done();
    }
    Status touched_core() {
        ++state_.core_version;
        return done();
    }

    // On the time of records, and not outside of what is known of it.
    std::int64_t when(const Attempt& attempt, const Fact& fact) const {
        return std::clamp(fact.run_us.value_or(record_.at_us), attempt.created_us, record_.at_us);
    }
    // A server that was away, or one whose cancel was answered first, hears of an end that lies behind.
    void close_time(Run& run, Attempt& attempt, const Fact& fact) {
        if (!fact.run_us) return;
        const std::int64_t over_us = std::max(when(attempt, fact), attempt.began_us());
        if (attempt.ended_us > over_us) {
            run.used_us -= attempt.worked_us(attempt.ended_us) - attempt.worked_us(over_us);
            attempt.ended_us = over_us;
        }
        attempt.over_us = over_us;
    }

    static void end_rank(RankStatus& rank, const Fact& fact, Cause cause) {
        rank.ended = true;
        rank.ended_us = fact.run_us.value_or(fact.at_us);
        rank.exit_code = fact.exit_code;
        rank.signal = fact.signal;
        rank.cause = cause;
        rank.peak_memory_bytes = fact.peak_memory_bytes;
    }
    void forget(Attempt& attempt) {
        attempt.releasing = attempt.released = true;
        state_.launches.erase(attempt.launch);
    }

    void forget(const Run& run) {
        const RunId id = run.id;
        state_.timers.erase({state_.timer_of[id], id});
        state_.timer_of.erase(id);
        state_.dependents.erase(id);
        state_.steps.erase(id);
        state_.ended.erase({run.ended_us, id});
        if (!run.key.empty()) state_.keys.erase({run.project, run.spec.user, run.key});
        state_.runs.erase(id);
    }

    void begin(Run& run) {
        run.started_us = record_.at_us;
        const LeaseSpec& lease = run.spec.lease;
        if (lease.stop_after_s > 0) run.lease.stop_at_us = record_.at_us + lease.stop_after_s * kSecondUs;
        if (lease.hard_max_s > 0) run.lease.hard_max_at_us = record_.at_us + lease.hard_max_s * kSecondUs;
    }

    // Admitted, and begun only when the engine starts it: until then neither lease nor usage counts.
    void wait_at_engine(Run& run, Attempt& attempt, Cause cause, const std::string& detail) {
        const bool runs = std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                                      [](const RankStatus& rank) { return rank.started; });
        if (!attempt.engine_wait) {
            attempt.engine_wait = {.since_us = record_.at_us, .began_us = runs ? attempt.created_us : 0};
            if (!runs && run.started_us == attempt.created_us) {
                run.started_us = 0;
                run.lease = {};
            }
        }
        attempt.engine_wait->cause = cause == Cause::none ? Cause::engine_queue : cause;
        attempt.engine_wait->detail = detail;
        attempt.engine_wait->starts_us = 0;
    }

    // While it is ending, better evidence still changes the cause; our own decision to end it stands against exit
    // codes.
    static void raise(Attempt& attempt, Cause cause, const std::string& detail) {
        if (attempt.state != AttemptState::ending || evidence(cause) <= evidence(attempt.cause)) return;
        if (attempt.cause == Cause::ok) return;
        attempt.cause = cause;
        attempt.detail = detail;
    }

    // The answer's meaning for the attempt; true: nothing more is expected of the operation.
    bool close(const Operation& operation, const OperationAnswered& body, Attempt* attempt) {
        const bool there = body.answer == Answer::confirmed;
        switch (operation.verb) {
            case Verb::launch:
                if (body.answer == Answer::unknown) return false;
                attempt->launched = body.answer;
                if (body.answer == Answer::accepted) {
                    if (!attempt->engine_wait)
                        wait_at_engine(*find(operation.attempt.run), *attempt, body.cause, body.detail);
                } else if (!there) {
                    attempt->gone = true;
                    forget(*attempt);
                    attempt->detail = body.detail;
                    if (attempt->cause == Cause::none) attempt->cause = body.cause;
                }
                return true;
            case Verb::notify:
                if (attempt != nullptr && body.answer == Answer::rejected) attempt->unheard = true;
                return true;
            case Verb::cancel:
                if (!there && body.answer != Answer::absent) return false;
                if (attempt != nullptr) attempt->gone = true;
                return true;
            case Verb::release:
                if (!there && body.answer != Answer::absent) return false;
                if (attempt != nullptr) forget(*attempt);
                return true;
        }
        return true;
    }

    void count_failure(Run& run) {
        if (counts_as_restart(run)) ++run.counted_failures;
        run.failures_in_row = has_back_off(run.cause) ? run.failures_in_row + 1 : 0;
    }
    void remember_duration(const Run& run, std::int64_t duration_us) {
        auto& list = state_.durations_us[run.spec.name];
        list.push_back(duration_us);
        if (list.size() > kMostDurations) list.erase(list.begin());
    }

public:
    // What follows from a run, brought up to date. Every index is keyed so that doing it twice changes nothing.
    static void index(State& state, const Run& run) {
        if (run.state == RunState::queued && run.spec.kind != RunKind::graph) state.queue.insert(queue_key(run));
        if (run.live_attempt() != nullptr)
            state.live.insert(run.id);
        else
            state.live.erase(run.id);
        if (is_terminal(run.state) && !run.parent) state.ended.emplace(run.ended_us, run.id);
        const std::int64_t due = next_due(run);
        std::int64_t& known = state.timer_of[run.id];
        if (known == due) return;
        if (known != 0) state.timers.erase({known, run.id});
        if (due != 0) state.timers.emplace(due, run.id);
        known = due;
    }
    static void index_new(State& state, const Run& run) {
        for (const RunId need : run.needs) state.dependents[need].push_back(run.id);
        if (run.parent) state.steps[run.parent].push_back(run.id);
        if (!run.key.empty()) state.keys.emplace(SubmitKey{run.project, run.spec.user, run.key}, run.id);
    }

private:
    State& state_;
    const Record& record_;
};

}  // namespace

Error no_such_run(const State& state, RunId run) {
    if (!run || run.number > state.runs_made || state.runs.contains(run))
        return Error(ErrorKind::not_found, "there is no run " + run.text());
    return Error(ErrorKind::not_found, run.text() + " ended long ago and is not kept any more", {},
                 "stoker journal show lists what it did");
}

bool can_forget(const State& state, const Run& run) {
    const auto over = [](const Run& each) {
        return is_terminal(each.state) &&
               std::all_of(each.attempts.begin(), each.attempts.end(), [](const Attempt& a) { return a.released; });
    };
    // What waits for it still asks how it ended.
    const auto waited_for = [&](RunId id) {
        const auto others = state.dependents.find(id);
        return others != state.dependents.end() &&
               std::any_of(others->second.begin(), others->second.end(), [&](RunId other) {
                   const Run* waits = state.find(other);
                   return waits != nullptr && !is_terminal(waits->state);
               });
    };
    if (run.parent || !over(run) || waited_for(run.id)) return false;
    const auto steps = state.steps.find(run.id);
    return steps == state.steps.end() || std::all_of(steps->second.begin(), steps->second.end(), [&](RunId id) {
               const Run* step = state.find(id);
               return step != nullptr && over(*step) && !waited_for(id);
           });
}

QueueKey queue_key(const Run& run) {
    return {.run_class = run.spec.run_class,
            .due_us = run.submitted_us - run.spec.priority * 3600 * kSecondUs,
            .run = run.id};
}

Status State::apply(const Record& record) {
    if (record.seq != seq + 1)
        return Error(ErrorKind::invalid, fmt::format("record {} after record {}", record.seq, seq));
    if (!tenants.has(record.actor.tenant))
        return Error(
            ErrorKind::invalid,
            fmt::format("record {} ({}) does not fit the state before it: there is no project {}/{} for {}", record.seq,
                        name_of_kind(kind_of(record.body)), record.actor.tenant.organisation.text(),
                        record.actor.tenant.project.text(), printable(record.actor.who(), 100)));
    // Times first: bodies refer to the moment of their record.
    TRY_VOID(std::visit(Applier(*this, record), record.body));
    seq = record.seq;
    at_us = record.at_us;
    return done();
}

const Run* State::find(RunId run) const {
    const auto found = runs.find(run);
    return found == runs.end() ? nullptr : &found->second;
}
const NodeInfo* State::find_node(const std::string& name) const {
    if (const auto found = nodes.find(name); found != nodes.end()) return &found->second.info;
    const auto former =
        std::find_if(former_nodes.begin(), former_nodes.end(), [&](const NodeInfo& each) { return each.name == name; });
    return former == former_nodes.end() ? nullptr : &*former;
}
const Attempt* State::find(const AttemptId& attempt) const {
    const Run* run = find(attempt.run);
    return run == nullptr || attempt.number == 0 || attempt.number > run->attempts.size()
               ? nullptr
               : &run->attempts[attempt.number - 1];
}

namespace {

// What a record is about. Operations and facts belong to the run whose attempt they serve.
struct Subject {
    const State& state;
    std::string node{};
    std::uint64_t config = 0;   // its version
    std::string tenant{};       // one that is being made, or a key
    std::uint64_t version = 1;  // of that

    RunId operator()(const CoreStarted&) { return {}; }
    RunId operator()(const JournalLost&) { return {}; }
    RunId operator()(const ConfigChanged& body) {
        config = body.version;
        return {};
    }
    RunId operator()(const OrganisationMade& body) {
        tenant = "organisation/" + body.organisation.text();
        return {};
    }
    RunId operator()(const ProjectMade& body) {
        tenant = "project/" + body.project.text();
        return {};
    }
    RunId operator()(const KeyMade& body) {
        tenant = "key/" + body.key.text();
        return {};
    }
    RunId operator()(const KeyRevoked& body) {
        tenant = "key/" + body.key.text();
        version = 2;
        return {};
    }
    RunId operator()(const UserSet& body) { return of_core("user/" + body.user.id.text()); }
    RunId operator()(const PasswordSet& body) { return of_core("user/" + body.user.text()); }
    RunId operator()(const LoginMade& body) { return of_core("login/" + body.login.id.text()); }
    RunId operator()(const LoginEnded& body) { return of_core("login/" + body.login.text()); }
    RunId operator()(const KeyEnds& body) { return of_core("key/" + body.key.text()); }
    RunId operator()(const QuotaSet& body) {
        tenant = fmt::format("quota/{}/{}", body.quota.scope, body.quota.resource);
        version = state.core_version + 1;
        return {};
    }
    RunId operator()(const BudgetSet& body) { return of_budget(body.budget.scope, body.budget.unit); }
    RunId operator()(const BudgetReached& body) { return of_budget(body.scope, body.unit); }
    RunId operator()(const TokensCharged& body) { return of_core("tokens/" + body.account); }
    RunId operator()(const NodeRemoved& body) { return of_node(body.node); }
    RunId operator()(const NodeSeen& body) { return of_node(body.node.name); }
    RunId operator()(const NodeMoved& body) { return of_node(body.node); }
    RunId operator()(const NodeChecked& body) { return of_node(body.node); }
    RunId operator()(const NodeBlamed& body) { return of_node(body.node); }
    RunId operator()(const FactSeen& body) {
        const auto found = state.launches.find(body.fact.operation);
        return found == state.launches.end() ? RunId{} : found->second.run;
    }
    RunId operator()(const OperationAnswered& body) { return of(body.operation); }
    RunId operator()(const OperationResent& body) { return of(body.operation); }
    template <class Body>
    RunId operator()(const Body& body) {
        if constexpr (requires { body.run; })
            return body.run;
        else
            return body.attempt.run;
    }

private:
    RunId of_core(std::string object) {
        tenant = std::move(object);
        version = state.core_version + 1;
        return {};
    }
    RunId of_node(const std::string& name) {
        node = name;
        return {};
    }
    RunId of_budget(const std::string& scope, BudgetUnit unit) {
        tenant = fmt::format("budget/{}/{}", scope, enum_word(unit));
        version = state.core_version + 1;
        return {};
    }
    RunId of(const OperationId& id) const {
        const auto found = state.operations.find(id);
        return found == state.operations.end() ? RunId{} : found->second.attempt.run;
    }
};

}  // namespace

RunId State::run_of(const RecordBody& body) const {
    return std::visit(Subject{*this}, body);
}

std::string State::object_of(const RecordBody& body) const {
    Subject subject{*this};
    const RunId run = std::visit(subject, body);
    if (subject.config != 0) return "config";
    if (!subject.tenant.empty()) return subject.tenant;
    if (!subject.node.empty()) return "node/" + subject.node;
    return run ? "run/" + run.text() : "core";
}

std::uint64_t State::version_of(const RecordBody& body) const {
    Subject subject{*this};
    const RunId id = std::visit(subject, body);
    if (subject.config != 0) return subject.config;
    if (!subject.tenant.empty()) return subject.version;
    if (!subject.node.empty()) {
        const auto found = nodes.find(subject.node);
        return found == nodes.end() ? 1 : found->second.version + 1;
    }
    if (!id) return core_version + 1;
    const Run* run = find(id);
    return run == nullptr ? 1 : run->version + 1;
}

void index_state(State& state) {
    for (const auto& [id, run] : state.runs) {
        Applier::index_new(state, run);
        Applier::index(state, run);
        for (const Attempt& attempt : run.attempts)
            if (!attempt.released) state.launches.emplace(attempt.launch, AttemptId{id, attempt.number});
    }
}

}  // namespace stoker
