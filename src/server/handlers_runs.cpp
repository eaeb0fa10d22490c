// Runs: listed, submitted, shown, and told what to do.
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "deploy/engines/engines.h"
#include "explain/run_cost.h"
#include "govern/users.h"
#include "io/log.h"
#include "run/decide/schedule.h"
#include "run/spec/secrets.h"
#include "run/state/rules.h"
#include "server/bodies.h"
#include "server/handlers.h"
#include "server/idle_guard.h"
#include "server/log_events.h"
#include "server/metrics_file.h"
#include "server/run_view.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostShownCheckpoints = 50;
constexpr auto kCheckpointsBy = std::chrono::seconds(20);

HttpResponse with_version(HttpResponse response, std::uint64_t version) {
    response.headers.add("ETag", fmt::format("\"{}\"", version));
    return response;
}

// "abc" as a structured field, or abc as most clients send it.
Result<std::string> idempotency_key(const HttpRequest& request) {
    std::size_t count = 0;
    std::string_view text;
    for (const auto& [name, value] : request.headers.items)
        if (equals_ignore_case(name, "Idempotency-Key")) {
            ++count;
            text = trim(value);
        }
    if (count == 0) return std::string();
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
    const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127 && c != '"'; });
    if (count > 1 || text.empty() || text.size() > 255 || !visible)
        return Error(ErrorKind::invalid, "Idempotency-Key is not one text of 1 to 255 visible ASCII characters",
                     {"header", 0, 0}, "a UUID does well");
    return std::string(text);
}

// What a describe needs of the state.
struct Shown {
    RunView view;
    RunFolder folder;
    std::uint64_t seq = 0;
    bool waits = false;
};

constexpr auto kPrerequisitesBy = std::chrono::seconds(25);

// Of the run, or of every step of a graph; all problems together. What the engine cannot tell, the program will.
Status prerequisites_are_met(const Questions& engine, const RunSpec& spec, const std::string& engine_folder) {
    const auto deadline = std::chrono::steady_clock::now() + kPrerequisitesBy;
    std::optional<Error> failed;
    Problems problems;
    const auto check = [&](const RunSpec& each, const RunSpec& graph, const std::string& step) {
        if (!each.prerequisites) return;
        PrerequisitesPlace place{.folder = each.folder.empty() ? graph.folder : each.folder,
                                 .disk_folder = engine_folder,
                                 .image = each.image,
                                 .environment = each.environment};
        const auto& wanted = each.engine ? each.engine : graph.engine;
        if (wanted && *wanted != kAnyEngine) place.engine = *wanted;
        for (const auto& [key, value] : graph.environment) place.environment.emplace(key, value);
        const Status met = engine.look_for(*each.prerequisites, place, deadline);
        if (met || met.error().kind() == ErrorKind::unsupported) return;
        if (!failed || met.error().kind() != ErrorKind::infeasible) failed = met.error();
        for (Problem problem : met.error().problems()) {
            if (!step.empty()) problem.message = "step " + step + ": " + problem.message;
            problems.push_back(std::move(problem));
        }
    };
    check(spec, spec, "");
    for (const GraphStep& step : spec.steps) check(step.run, spec, step.name);
    if (!failed) return done();
    return Error(failed->kind(), std::move(problems));
}

Status engines_are_known(const Engine& engine, const RunSpec& spec) {
    // Of several the core knows the names.
    const bool several = !engine.engines().empty();
    const auto check = [several](const RunSpec& each) -> Status {
        if (!each.engine || *each.engine == kAnyEngine || several) return done();
        const auto found = find_engine(*each.engine);
        if (found) return done();
        const Problem& problem = found.error().problems().front();
        return Error(ErrorKind::invalid, problem.message, {}, problem.remedy);
    };
    TRY_VOID(check(spec));
    for (const GraphStep& step : spec.steps) TRY_VOID(check(step.run));
    return done();
}

bool has_prerequisites(const RunSpec& spec) {
    const auto has = [](const RunSpec& run) { return run.prerequisites || !run.image.empty(); };
    return has(spec) ||
           std::any_of(spec.steps.begin(), spec.steps.end(), [&](const GraphStep& step) { return has(step.run); });
}

// Each image with the digest that its name has now, so that every attempt takes the same. All problems together.
Status pin_images(const Questions& engine, RunSpec& spec, const std::shared_ptr<Log>& log) {
    const auto deadline = std::chrono::steady_clock::now() + kPrerequisitesBy;
    std::map<std::pair<std::string, std::string>, Result<std::string>> known;  // of an image on an engine
    std::optional<ErrorKind> failed;
    Problems problems;
    const auto pin = [&](RunSpec& each, const std::string& step) {
        if (each.image.empty()) return;
        const auto& wanted = each.engine ? each.engine : spec.engine;
        const ImagePlace place{.folder = each.folder.empty() ? spec.folder : each.folder,
                               .engine = wanted && *wanted != kAnyEngine ? *wanted : ""};
        const auto found = known.find({each.image, place.engine});
        const auto pinned =
            found != known.end()
                ? found->second
                : known.emplace(std::pair(each.image, place.engine), engine.pin(each.image, place, deadline))
                      .first->second;
        if (pinned) {
            each.image = *pinned;
            return;
        }
        if (pinned.error().kind() == ErrorKind::unsupported) {  // the engine takes names as they are
            if (log)
                log->write(log_event("image.not_pinned"), {{"image", each.image}, {"why", pinned.error().message()}});
            return;
        }
        if (!failed) failed = pinned.error().kind();
        for (Problem problem : pinned.error().problems()) {
            if (!step.empty()) problem.message = "step " + step + ": " + problem.message;
            problems.push_back(std::move(problem));
        }
    };
    pin(spec, "");
    for (GraphStep& step : spec.steps) pin(step.run, step.name);
    return failed ? Status(Error(*failed, std::move(problems))) : done();
}

CheckpointsView checkpoints_in(const Questions& engine, const std::string& folder) {
    CheckpointsView view{.folder = folder, .newest = std::nullopt, .items = {}};
    if (folder.empty()) return view;
    const auto list = engine.list_checkpoints(folder, std::chrono::steady_clock::now() + kCheckpointsBy);
    if (!list) return view;
    for (const Checkpoint& each : list->items) {
        (each.complete ? view.complete : view.torn) += 1;
        CheckpointItem item{.folder = each.folder, .step = each.step, .complete = each.complete, .fault = each.fault};
        if (each.complete && !view.newest) view.newest = item;
        if (view.items.size() < kMostShownCheckpoints) view.items.push_back(std::move(item));
    }
    return view;
}

void finish(Service& service, const ExchangePtr& exchange, Shown& shown) {
    RunView& view = shown.view;
    const std::string folder = shown.folder.checkpoints(view.spec);
    if (!folder.empty()) view.checkpoints = checkpoints_in(*service.engine().questions(), folder);
    view.metrics = last_metrics(shown.folder.metrics());
    view.digest = digest(view.spec);
    const std::uint64_t version = view.run.version;
    exchange->send(with_version(json_response(codec::write(view)), version));
}

// Who held it is no person.
void say_if_parked(Service& service, RunView& view) {
    if (!service.options().idle || !view.why || view.why->code != Cause::held) return;
    const auto parked = service.options().idle->parked(view.run.id);
    if (!parked) return;
    view.why->text = fmt::format(
        "it was parked at {}, since nothing had moved from {} on; it keeps its newest checkpoint",
        rfc3339(parked->run.parked_us / kSecondUs * kSecondUs), rfc3339(parked->run.since_us / kSecondUs * kSecondUs));
    if (parked->run.next_us != 0)
        view.why->text += fmt::format("; it is ended at {}", rfc3339(parked->run.next_us / kSecondUs * kSecondUs));
    view.why->unblock = {fmt::format("`stoker release {}`, and it goes on from there", view.run.id.text())};
}

void add_why(Service& service, const ExchangePtr& exchange, const std::shared_ptr<Shown>& shown,
             std::uint64_t at_least_seq) {
    service.with_scene(exchange, at_least_seq, [&service, exchange, shown, at_least_seq](const ScenePtr& scene) {
        const Run* run = scene->state.find(shown->view.run.id);
        if ((run == nullptr || run->version != shown->view.run.version) && at_least_seq < shown->seq)
            return add_why(service, exchange, shown, shown->seq);
        // Sixty-four futures of a long queue take a while.
        service.work_long(exchange, [&service, exchange, shown, scene] {
            const Run* found = scene->state.find(shown->view.run.id);
            if (found != nullptr && !is_terminal(found->state)) {
                shown->view.why = view_of_why(why(scene->state, found->id, scene->now_us, scene->scheduler));
                say_if_parked(service, shown->view);
                if (found->spec.kind != RunKind::graph)
                    shown->view.eta = view_of_eta(eta(scene->state, found->id, scene->now_us, scene->scheduler));
            }
            finish(service, exchange, *shown);
        });
    });
}

Result<std::shared_ptr<Shown>> show(const EngineView& view, RunId id, const PriceBook& prices) {
    const Run* run = view.state.find(id);
    if (run == nullptr) return no_such_run(view.state, id);
    auto shown = std::make_shared<Shown>();
    shown->view = view_of_run(view, *run);
    shown->folder = run_folder(view.folder, id);
    shown->seq = view.state.seq;
    shown->waits = run->state == RunState::queued || run->state == RunState::requeued || waits_at_engine(*run);
    shown->view.cost_microusd = cost_of_run(view.state, *run, prices, view.now_us);
    return shown;
}

// As whom it runs on this machine. Of several engines that is told of the first.
std::string runs_as(Service& service, const RunView& view) {
    const Capabilities& can = service.engine().capabilities();
    if (!can.ranks_here || !view.spec.image.empty() || !view.steps.empty()) return {};
    const std::vector<EngineState> all = service.engine().engines();
    if (!all.empty() && !view.run.engine.empty() && view.run.engine != all.front().name) return {};
    return can.runs_as == "project" ? "project " + view.run.project : can.runs_as;
}

void show_run(Service& service, const ExchangePtr& exchange, RunId id) {
    service.ask<std::shared_ptr<Shown>>(
        exchange, [&service, id](const EngineView& view) { return show(view, id, *service.prices()); },
        [&service, exchange](const std::shared_ptr<Shown>& shown) {
            shown->view.runs_as = runs_as(service, shown->view);
            if (shown->waits)
                add_why(service, exchange, shown, 0);
            else
                finish(service, exchange, *shown);
        });
}

}  // namespace

std::function<void(Result<Ack>)> answer_of(Service& service, const ExchangePtr& exchange, RunId run,
                                           std::optional<std::uint64_t> version) {
    return [&service, exchange, run, version](const Result<Ack>& ack) {
        if (ack)
            return exchange->send(with_version(
                json_response(codec::write(Changed{.run = run, .version = ack->version, .repeated = ack->repeated})),
                ack->version));
        const Error& error = ack.error();
        if (!version || error.kind() != ErrorKind::conflict) return exchange->fail(error);
        // The version, or the state the run is in?
        const Status asked = service.engine().read([exchange, run, version, error](const EngineView& view) {
            const Run* found = view.state.find(run);
            exchange->fail(error, found != nullptr && found->version != *version ? 412 : 409);
        });
        if (!asked) exchange->fail(error, 412);
    };
}

namespace {

bool waits_in_queue(const RunItem& run) {
    return run.state == RunState::queued || run.state == RunState::requeued;
}

RunPage with_wait_causes(RunPage page, const Scene& scene) {
    std::map<RunId, Cause> causes;
    for (const Waiting& each : schedule(scene.state, scene.now_us, scene.scheduler).waiting)
        causes[each.run] = each.cause;
    for (RunItem& run : page.items)
        if (const auto found = causes.find(run.id); waits_in_queue(run) && found != causes.end())
            run.wait_cause = found->second;
    return page;
}

}  // namespace

void list_runs(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    ListQuery query;
    const std::string states = p.text("state");
    for (const std::string_view word : split(states, ','))
        if (!word.empty()) query.states.push_back(enum_named<RunState>(word).value_or(RunState{}));
    query.name = p.text("name");
    query.user = p.text("user");
    query.actor = exchange->actor;
    if (p.has("parent")) query.parent = *RunId::parse(p.text("parent"));
    query.limit = static_cast<std::size_t>(p.integer("limit", 50));
    query.newest_first = p.text("order", "newest") == "newest";
    if (p.has("cursor") && !read_cursor(p.text("cursor"), query))
        return exchange->fail(Error(ErrorKind::invalid, "the cursor is none of this list", {"query", 0, 0},
                                    "take next_cursor of the page before, with the same order"));
    service.ask<RunPage>(
        exchange,
        [query](const EngineView& view) -> Result<RunPage> { return list_runs(view.state, query, view.now_us); },
        [&service, exchange](const RunPage& page) {
            const bool wanted = exchange->parameters.flag("wait_causes") &&
                                std::any_of(page.items.begin(), page.items.end(), waits_in_queue);
            if (!wanted) return exchange->send(codec::write(page));
            service.with_scene(exchange, 0, [&service, exchange, page](const ScenePtr& scene) {
                service.work_long(exchange, [exchange, page, scene] {
                    exchange->send(codec::write(with_wait_causes(page, *scene)));
                });
            });
        });
}

void submit_spec(Service& service, const ExchangePtr& exchange, RunSpec spec, std::string key, bool held) {
    const std::string sum = digest(spec);
    const bool keyed = !key.empty();
    service.post(
        exchange, {.what = Submit{.spec = std::move(spec), .key = std::move(key), .held = held}},
        [exchange, sum, keyed](const Result<Ack>& ack) {
            if (!ack)  // a key that was used for something else: 422, as the draft has it
                return exchange->fail(ack.error(), keyed && ack.error().kind() == ErrorKind::conflict ? 422 : 0);
            HttpResponse response =
                json_response(codec::write(Submitted{
                                  .run = ack->run, .version = ack->version, .digest = sum, .repeated = ack->repeated}),
                              201);
            response.headers.add("Location", "/api/v1/runs/" + ack->run.text());
            if (ack->repeated) response.headers.add("Idempotent-Replayed", "true");
            exchange->send(with_version(std::move(response), ack->version));
        });
}

void get_run(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const Parameters& p = exchange->parameters;
    const double wait_s = p.number("wait_s", 0);
    if (!p.has("version") || wait_s <= 0) return show_run(service, exchange, *id);
    const auto version = static_cast<std::uint64_t>(p.integer("version", 0));
    service.wait(exchange, *id, wait_s, 1,
                 [&service, exchange, run = *id, version](bool last, const std::function<void(bool)>& tell) {
                     const Status asked = service.engine().read([self = service.shared_from_this(), exchange, run,
                                                                 version, last, tell](const EngineView& view) {
                         const Run* found = view.state.find(run);
                         if (found != nullptr && found->version == version && !last) return tell(false);
                         tell(true);
                         self->work(exchange, [&service = *self, exchange, run] { show_run(service, exchange, run); });
                     });
                     if (asked) return;
                     exchange->fail(asked.error());
                     tell(true);
                 });
}

namespace {

template <class What>
void tell_run(Service& service, const ExchangePtr& exchange, const std::function<Result<What>(RunId)>& make) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const auto version = if_match(exchange->request);
    if (!version) return exchange->fail(version.error());
    auto what = make(*id);
    if (!what) return exchange->fail(what.error());
    service.post(exchange, {.what = std::move(*what), .if_version = *version},
                 answer_of(service, exchange, *id, *version));
}

}  // namespace

void cancel_run(Service& service, const ExchangePtr& exchange) {
    tell_run<CancelRun>(service, exchange, [](RunId run) -> Result<CancelRun> { return CancelRun{run}; });
}
void hold_run(Service& service, const ExchangePtr& exchange) {
    tell_run<HoldRun>(service, exchange, [](RunId run) -> Result<HoldRun> { return HoldRun{run, true}; });
}
void release_run(Service& service, const ExchangePtr& exchange) {
    tell_run<HoldRun>(service, exchange, [](RunId run) -> Result<HoldRun> { return HoldRun{run, false}; });
}
void evict_run(Service& service, const ExchangePtr& exchange) {
    tell_run<EvictRun>(service, exchange, [&](RunId run) -> Result<EvictRun> {
        TRY(const EvictBody body, read_body_as<EvictBody>(*exchange, false));
        return EvictRun{run, body.notice_s};
    });
}

void renew_lease(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const auto version = if_match(exchange->request);
    if (!version) return exchange->fail(version.error());
    const auto body = read_body_as<LeaseBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    std::int64_t stop_at_us = 0;
    if (body->extend_s.has_value() == body->stop_at.has_value())
        return exchange->fail(Error(ErrorKind::invalid, "say either extend_s or stop_at"));
    if (body->stop_at) {
        const auto at = parse_rfc3339(*body->stop_at);
        if (!at)
            return exchange->fail(Error(ErrorKind::invalid, "stop_at is " + printable(*body->stop_at, 60) +
                                                                ", expected a time like 2026-11-21T08:00:00Z"));
        stop_at_us = *at;
    } else if (*body->extend_s < 1 || *body->extend_s > 31'536'000) {
        return exchange->fail(
            Error(ErrorKind::invalid, fmt::format("extend_s is {}, expected 1 to 31536000 (a year)", *body->extend_s)));
    }
    const std::int64_t extend_us = body->extend_s.value_or(0) * kSecondUs;
    service.ask<std::int64_t>(
        exchange,
        [run = *id, stop_at_us, extend_us](const EngineView& view) -> Result<std::int64_t> {
            const Run* found = view.state.find(run);
            if (found == nullptr) return no_such_run(view.state, run);
            return stop_at_us != 0 ? stop_at_us : found->lease.stop_at_us + extend_us;
        },
        [&service, exchange, run = *id, version = *version](std::int64_t stop) {
            service.post(exchange, {.what = RenewLease{run, stop}, .if_version = version},
                         answer_of(service, exchange, run, version));
        });
}

void get_checkpoints(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    service.ask<std::string>(
        exchange,
        [run = *id](const EngineView& view) -> Result<std::string> {
            const Run* found = view.state.find(run);
            if (found == nullptr) return no_such_run(view.state, run);
            return run_folder(view.folder, run).checkpoints(found->spec);
        },
        [&service, exchange](const std::string& folder) {
            exchange->send(codec::write(checkpoints_in(*service.engine().questions(), folder)));
        });
}

namespace {

// With a key, whose run it is says the key; with the installation's token, whoever submits it.
Status sign(Service& service, const Actor& actor, RunSpec& spec) {
    if (actor.kind != PrincipalKind::user && actor.kind != PrincipalKind::service) return done();
    return service.engine().read([&](const EngineView& view) {
        const Tenants& tenants = view.state.tenants;
        spec.user = actor.name;
        spec.project = tenants.projects.at(actor.tenant.project).name;
        spec.organisation = tenants.organisations.at(actor.tenant.organisation).name;
    });
}

// `project` and `as`: what a gateway keeps for somebody is theirs, and bound by their quotas.
Status stand_in(Service& service, Exchange& exchange) {
    const Parameters& p = exchange.parameters;
    if (!p.has("project") && !p.has("as")) return done();
    const Right right{Action::administer, Level::provider};
    if (exchange.actor.kind != PrincipalKind::core && !may(exchange.actor, right)) return denial(exchange.actor, right);
    const auto project = ProjectId::parse(p.text("project"));
    if (!project || !p.has("as"))
        return Error(ErrorKind::invalid, "project and as stand together", {}, "?project=p-2&as=ann");
    const std::string name = p.text("as");
    std::optional<Actor> found;
    TRY_VOID(service.engine().read([&](const EngineView& view) {
        found = actor_called(view.state.tenants, name, *project, view.now_us, "endpoint");
    }));
    if (!found || !may(*found, {Action::submit, Level::project}))
        return Error(ErrorKind::denied,
                     fmt::format("{} may not submit runs in {} (any more)", printable(name, 80), project->text()), {},
                     "an admin of the organisation gives the role back, or deploys the endpoint anew");
    exchange.actor = std::move(*found);
    return done();
}

}  // namespace

void submit_run(Service& service, const ExchangePtr& exchange) {
    if (const Status stands = stand_in(service, *exchange); !stands) return exchange->fail(stands.error());
    auto key = idempotency_key(exchange->request);
    if (!key) return exchange->fail(key.error());
    const auto document = read_body(*exchange, true);
    if (!document) return exchange->fail(document.error());
    auto spec = read_run_spec(document->root());
    if (!spec) return exchange->fail(spec.error());
    if (const Status known = engines_are_known(service.engine(), *spec); !known) return exchange->fail(known.error());
    if (const Status named = sign(service, exchange->actor, *spec); !named) return exchange->fail(named.error());
    if (const auto& may = service.options().may_notify)
        if (const Status known = may(*spec); !known) return exchange->fail(known.error());
    // Before anything keeps, shows or logs it.
    if (const Status stored = store_secrets(service.engine().folder(), *spec); !stored)
        return exchange->fail(stored.error());
    const bool held = exchange->parameters.flag("hold");
    if (exchange->parameters.flag("dry_run")) return say_what_if(service, exchange, std::move(*spec));
    if (!service.options().check_prerequisites || !has_prerequisites(*spec))
        return submit_spec(service, exchange, std::move(*spec), std::move(*key), held);
    service.work_long(exchange, [&service, exchange, held, spec = std::move(*spec), key = std::move(*key)]() mutable {
        if (const Status pinned = pin_images(*service.engine().questions(), spec, service.options().log); !pinned)
            return exchange->fail(pinned.error());
        if (const Status met = prerequisites_are_met(*service.engine().questions(), spec, service.engine().folder());
            !met)
            return exchange->fail(met.error());
        submit_spec(service, exchange, spec, key, held);
    });
}

}  // namespace stoker::api
