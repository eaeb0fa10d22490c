// Questions about a run that is not there: when would it start, where, and if not now, why. They are answered on a copy
// of the state by the same scheduler. And: an ended run once more.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "server/bodies.h"
#include "server/handlers.h"
#include "server/run_view.h"

namespace stoker::api {
namespace {

// What is asked: a new spec, or a run that waits, perhaps changed.
struct Question {
    std::optional<RunSpec> spec;
    RunId run;
    WhatIfChanges changes;
    Actor actor{};  // who asks
};

void apply_changes(const WhatIfChanges& changes, RunSpec& spec) {
    if (changes.ranks) spec.ranks = *changes.ranks;
    if (changes.nodes) spec.nodes = *changes.nodes;
    if (changes.priority) spec.priority = *changes.priority;
    if (changes.per_rank) spec.per_rank = *changes.per_rank;
}

// Puts a run into the copy as a submission would.
Result<RunId> add_run(State& state, RunSpec spec, std::int64_t now_us, ProjectId project) {
    const RunId id{state.runs_made + 1};
    TRY(std::vector<RunId> needs, runs_before(state, spec, project));
    TRY_VOID(state.apply(
        {.seq = state.seq + 1,
         .at_us = std::max(now_us, state.at_us),
         .epoch = state.epoch,
         .actor = Actor::part("what-if"),
         .trace = "",
         .body = RunSubmitted{
             .run = id, .spec = std::move(spec), .key = "", .parent = {}, .step = "", .needs = std::move(needs)}}));
    return id;
}

constexpr std::size_t kMostWaiting = 200;  // of an array of thousands the first say enough

WhyView at_once(std::int64_t parallel) {
    return {.code = Cause::parallel_limit,
            .text = fmt::format("at most {} of them run at once", parallel),
            .numbers = {{"parallel", parallel}},
            .blockers = {},
            .unblock = {}};
}

Result<WhatIfView> answer(const Scene& scene, const Question& question) {
    State state = scene.state;
    std::vector<RunId> runs;
    std::vector<std::string> names;  // of the steps that they are
    WhatIfView view;
    if (question.spec) {
        RunSpec spec = *question.spec;
        apply_changes(question.changes, spec);
        TRY_VOID(check_run_spec(spec));
        view.digest = digest(spec);
        if (spec.kind == RunKind::graph) {
            // The steps that wait for nothing else: these start first.
            view.steps = static_cast<std::int64_t>(spec.steps.size());
            const auto waits = [&](WaitingStep step) {
                if (view.waiting.size() < kMostWaiting) view.waiting.push_back(std::move(step));
            };
            for (const GraphStep& step : spec.steps) {
                if (!step.depends_on.empty()) {
                    waits({.step = step.name, .needs = step.depends_on, .why = {}});
                    continue;
                }
                // No more than that many of an array at once.
                if (spec.parallel && runs.size() >= static_cast<std::size_t>(*spec.parallel)) {
                    waits({.step = step.name, .needs = {}, .why = at_once(*spec.parallel)});
                    continue;
                }
                names.push_back(step.name);
                RunSpec first = step.run;
                first.name = spec.name + "/" + step.name;
                first.priority = spec.priority;
                first.run_class = spec.run_class;
                first.after = spec.after;
                first.begin_at_us = spec.begin_at_us;
                TRY(const RunId id, add_run(state, std::move(first), scene.now_us, question.actor.tenant.project));
                runs.push_back(id);
            }
        } else {
            TRY(const RunId id, add_run(state, std::move(spec), scene.now_us, question.actor.tenant.project));
            runs.push_back(id);
        }
    } else {
        Run* found = state.runs.change(question.run);
        if (found != nullptr && !reaches(question.actor, state.tenants.tenant_of(found->project)))
            return Error(ErrorKind::not_found, "there is no run " + question.run.text());
        if (found == nullptr || !state.queue.contains(queue_key(*found)))
            return Error(ErrorKind::conflict, question.run.text() + " does not wait for a place", {},
                         "ask about a queued run, or give its spec");
        Run& run = *found;
        state.queue.erase(queue_key(run));
        apply_changes(question.changes, run.spec);
        TRY_VOID(check_run_spec(run.spec));
        state.queue.insert(queue_key(run));
        view.digest = digest(run.spec);
        runs.push_back(run.id);
    }
    const Decisions decisions = schedule(state, scene.now_us, scene.scheduler);
    std::vector<bool> starts(runs.size(), false);
    for (const Admission& admission : decisions.admit) {
        const auto found = std::find(runs.begin(), runs.end(), admission.run);
        if (found == runs.end()) continue;
        const auto which = static_cast<std::size_t>(found - runs.begin());
        view.starts_now = starts[which] = true;
        view.engine = admission.engine;
        view.chosen = admission.chosen;
        for (std::size_t i = 0; i < admission.places.size(); ++i)
            view.places.push_back(
                {.rank = static_cast<int>(i),
                 .node = admission.places[i].node,
                 .devices = device_names(state, admission.places[i].node, admission.places[i].devices),
                 .step = names.empty() ? "" : names[which]});
    }
    // Told in the words of the first: they wait for the same places.
    std::optional<WhyView> reason;
    for (std::size_t i = 0; i < names.size() && view.starts_now && view.waiting.size() < kMostWaiting; ++i) {
        if (starts[i]) continue;
        if (!reason) reason = view_of_why(why(state, runs[i], scene.now_us, scene.scheduler));
        view.waiting.push_back({.step = names[i], .needs = {}, .why = reason});
    }
    if (!view.starts_now && !runs.empty()) {
        view.why = view_of_why(why(state, runs.front(), scene.now_us, scene.scheduler));
        view.eta = view_of_eta(eta(state, runs.front(), scene.now_us, scene.scheduler));
    }
    return view;
}

Result<Question> read_question(const Exchange& exchange) {
    TRY(const Document document, read_body(exchange, true));
    const Node& root = document.root();
    Problems problems;
    codec::unknown_keys(root, {"changes", "run", "spec"}, problems);
    Question question{.spec = {}, .run = {}, .changes = {}, .actor = exchange.actor};
    const Node *spec = root.find("spec"), *run = root.find("run"), *changes = root.find("changes");
    if ((spec == nullptr) == (run == nullptr))
        problems.push_back({.message = "say either spec or run", .pos = root.pos});
    if (run != nullptr) codec::read(*run, "run", question.run, problems);
    if (run != nullptr && problems.empty() && !question.run)
        problems.push_back({.message = "run is empty, expected a run like r-7", .pos = run->pos});
    if (changes != nullptr) codec::read(*changes, "changes", question.changes, problems);
    if (spec != nullptr) {
        auto read = read_run_spec(*spec);
        if (read)
            question.spec = std::move(*read);
        else
            problems.insert(problems.end(), read.error().problems().begin(), read.error().problems().end());
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return question;
}

constexpr double kReadyBy = 10;  // seconds; discovery of this machine takes milliseconds, of many nodes some seconds

// Nothing: the state says what there is. A journal that is only looked at becomes no readier.
std::optional<Error> not_ready(Service& service, const EngineView& view) {
    if (view.recovering)
        return Error(ErrorKind::unavailable, "the server has just started and lists what runs outside", {},
                     "ask again in a moment; GET /readyz tells when it is done");
    if (!view.state.nodes.empty()) return std::nullopt;
    if (view.offline)
        return Error(ErrorKind::unavailable, "no node is known here: no server has seen one yet", {},
                     "stoker up offers this machine; stoker run --dry-run asks without a server");
    const std::string fault = service.engine().stats().driver_error;
    return Error(ErrorKind::unavailable, "no node was seen yet" + (fault.empty() ? "" : ": " + printable(fault, 300)),
                 {}, "ask again in a moment");
}

void answer_on_scene(Service& service, const ExchangePtr& exchange, std::uint64_t seq, const Question& question) {
    service.with_scene(exchange, seq, [&service, exchange, question](const ScenePtr& scene) {
        service.work_long(exchange, [exchange, question, scene] {
            auto view = answer(*scene, question);
            if (!view) return exchange->fail(view.error());
            exchange->send(codec::write(*view));
        });
    });
}

// Right after its start a server knows no nodes, and "nothing fits" would be wrong: the question waits for them.
void ask(Service& service, const ExchangePtr& exchange, Question question) {
    const auto try_it = [&service, exchange, question = std::move(question)](bool last,
                                                                             const std::function<void(bool)>& tell) {
        const Status asked = service.engine().read(
            [self = service.shared_from_this(), exchange, question, last, tell](const EngineView& view) {
                const auto missing = not_ready(*self, view);
                if (missing && !last && !view.offline) return tell(false);
                if (missing)
                    exchange->fail(*missing, 503);
                else
                    self->work(exchange, [self, exchange, question, seq = view.state.seq] {
                        answer_on_scene(*self, exchange, seq, question);
                    });
                tell(true);
            });
        if (asked) return;
        exchange->fail(asked.error());
        tell(true);
    };
    try_it(false, [&service, exchange, try_it](bool done) {
        if (!done) service.wait(exchange, {}, kReadyBy, 0.05, try_it);
    });
}

}  // namespace

void ask_what_if(Service& service, const ExchangePtr& exchange) {
    auto question = read_question(*exchange);
    if (!question) return exchange->fail(question.error());
    if (question->spec)
        if (const Status taken = would_be_taken(service, exchange->actor, *question->spec); !taken)
            return exchange->fail(taken.error());
    ask(service, exchange, std::move(*question));
}

void say_what_if(Service& service, const ExchangePtr& exchange, RunSpec spec) {
    if (const Status taken = would_be_taken(service, exchange->actor, spec); !taken)
        return exchange->fail(taken.error());
    ask(service, exchange, {.spec = std::move(spec), .run = {}, .changes = {}, .actor = exchange->actor});
}

namespace {

// What is left to do of an ended run: the spec again, writing to and reading from the same checkpoints.
Result<RunSpec> spec_to_resume(const EngineView& view, RunId id) {
    const Run* run = view.state.find(id);
    if (run == nullptr) return Error(ErrorKind::not_found, "there is no run " + id.text());
    if (!is_terminal(run->state))
        return Error(ErrorKind::conflict,
                     fmt::format("{} is {}: it goes on by itself", id.text(), to_string(run->state)), {},
                     "cancel it first, or wait for its end");
    if (run->state == RunState::succeeded)
        return Error(ErrorKind::conflict, id.text() + " succeeded: nothing is left of it to do", {},
                     "submit its spec to run it again");
    if (run->parent)
        return Error(ErrorKind::conflict, fmt::format("{} is a step of {}", id.text(), run->parent.text()), {},
                     "resume " + run->parent.text());
    RunSpec spec = run->spec;
    spec.labels["stoker/resumed_from"] = id.text();
    spec.after.reset();  // it began once
    spec.begin_at_us.reset();
    spec.repeat.reset();
    const auto same_checkpoints = [&](RunSpec& each, RunId of) {
        if (each.checkpoint.folder.empty()) return;
        each.checkpoint.folder = run_folder(view.folder, of).checkpoints(each);
        // When they are gone from there, the store may have them.
        const Run* old = view.state.find(of);
        if (old != nullptr && old->stored && old->stored->step >= 0) each.checkpoint.restore_from = old->stored->url;
    };
    if (spec.kind != RunKind::graph) {
        same_checkpoints(spec, id);
        return spec;
    }
    std::map<std::string, const Run*> steps;
    if (const auto found = view.state.steps.find(id); found != view.state.steps.end())
        for (const RunId step : found->second) steps[view.state.find(step)->step] = view.state.find(step);
    const auto is_done = [&](const std::string& name) {
        const auto found = steps.find(name);
        return found != steps.end() && found->second->state == RunState::succeeded;
    };
    std::vector<GraphStep> left;
    for (GraphStep& step : spec.steps) {
        if (is_done(step.name)) continue;
        std::erase_if(step.depends_on, is_done);
        if (const auto found = steps.find(step.name); found != steps.end())
            same_checkpoints(step.run, found->second->id);
        left.push_back(std::move(step));
    }
    // What the steps that succeeded left for the others lies in the folder of the first graph.
    spec.environment.emplace("STOKER_GRAPH_DIR", run_folder(view.folder, id).path + "/shared");
    if (left.empty()) return Error(ErrorKind::conflict, "every step of " + id.text() + " succeeded");
    spec.steps = std::move(left);
    return spec;
}

}  // namespace

void resume_run(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const auto version = if_match(exchange->request);
    if (!version) return exchange->fail(version.error());
    service.ask<RunSpec>(
        exchange,
        [run = *id, version = *version, exchange](const EngineView& view) -> Result<RunSpec> {
            const Run* found = view.state.find(run);
            if (found != nullptr && version && found->version != *version) {
                const Error changed(ErrorKind::conflict, run.text() + " has changed");
                exchange->fail(changed, 412);
                return changed;
            }
            return spec_to_resume(view, run);
        },
        [&service, exchange](RunSpec spec) { submit_spec(service, exchange, std::move(spec), ""); });
}

}  // namespace stoker::api
