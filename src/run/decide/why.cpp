#include "run/decide/why.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/units.h"
#include "run/decide/limit_text.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::size_t kMostBlockers = 10, kMostUnblock = 3, kMostNamedNodes = 3, kMostTrusted = 8, kMostLimitsTold = 8;

std::string needs_in_words(const RankNeeds& needs) {
    std::string text = fmt::format("{:g} CPU", static_cast<double>(needs.cpu_milli) / 1000);
    if (needs.memory_bytes > 0) text += ", " + format_bytes_gib(Bytes(static_cast<double>(needs.memory_bytes)));
    if (needs.gpus == 0) return text;
    const std::string model = needs.gpu_model.empty() ? "GPU" : needs.gpu_model;
    if (needs.gpu_milli < kWholeGpu) return text + fmt::format(", {:g} of a {}", needs.gpu_milli / 1000.0, model);
    return text + fmt::format(", {} {}", needs.gpus, model);
}

WhatIf as_it_is(const Run& run) {
    return {.run = run.id,
            .ranks = run.spec.ranks,
            .nodes = run.spec.nodes,
            .needs = run.spec.per_rank,
            .one_switch = run.spec.topology == TopologyWish::require};
}

// The largest smaller value that would start, by bisection over 1 .. now-1: fewer never starts less.
template <class Set>
std::int64_t largest_that_starts(std::int64_t now, const Set& starts) {
    std::int64_t low = 0, high = now - 1;
    while (low < high) {
        const std::int64_t middle = low + (high - low + 1) / 2;
        if (starts(middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

std::vector<std::string> what_would_start(const State& state, const Run& run, std::int64_t now_us,
                                          const SchedulerOptions& options) {
    std::vector<std::string> ways;
    const auto asks = start_trial(state, run.id, now_us, options);
    const WhatIf same = as_it_is(run);
    if (run.spec.ranks > 1) {
        const std::int64_t ranks = largest_that_starts(run.spec.ranks, [&](std::int64_t n) {
            WhatIf fewer = same;
            fewer.ranks = static_cast<int>(n);
            fewer.nodes = 0;
            return asks(fewer);
        });
        if (ranks > 0)
            ways.push_back(fmt::format("{} rank{} instead of {}", ranks, ranks == 1 ? "" : "s", run.spec.ranks));
    }
    if (run.spec.nodes > 0) {
        WhatIf anywhere = same;
        anywhere.nodes = 0;
        if (asks(anywhere)) ways.push_back(fmt::format("any number of nodes instead of {}", run.spec.nodes));
    }
    if (same.one_switch) {
        WhatIf spread = same;
        spread.one_switch = false;
        if (asks(spread)) ways.push_back("topology: prefer instead of require");
    }
    if (!same.needs.gpu_model.empty()) {
        WhatIf any = same;
        any.needs.gpu_model.clear();
        if (asks(any)) ways.push_back("any GPU instead of " + same.needs.gpu_model);
    }
    if (same.needs.gpus > 1) {
        const std::int64_t gpus = largest_that_starts(same.needs.gpus, [&](std::int64_t n) {
            WhatIf fewer = same;
            fewer.needs.gpus = static_cast<int>(n);
            return asks(fewer);
        });
        if (gpus > 0) ways.push_back(fmt::format("{} GPUs a rank instead of {}", gpus, same.needs.gpus));
    }
    const auto less = [&](std::int64_t RankNeeds::*member, std::int64_t unit, auto in_words) {
        const std::int64_t now = same.needs.*member / unit;
        if (now < 2) return;
        const std::int64_t enough = largest_that_starts(now, [&](std::int64_t n) {
            WhatIf smaller = same;
            smaller.needs.*member = n * unit;
            return asks(smaller);
        });
        if (enough > 0) ways.push_back(in_words(enough));
    };
    less(&RankNeeds::memory_bytes, std::int64_t{1} << 30,
         [](std::int64_t n) { return fmt::format("{} GiB of memory a rank", n); });
    less(&RankNeeds::cpu_milli, 500,
         [](std::int64_t n) { return fmt::format("{:g} CPU a rank", static_cast<double>(n) / 2); });
    if (same.needs.gpus > 0 && ways.empty()) {
        WhatIf none = same;
        none.needs.gpus = 0;
        none.needs.gpu_model.clear();
        if (asks(none)) ways.push_back("ranks without GPUs");
    }
    if (ways.size() > kMostUnblock) ways.resize(kMostUnblock);
    return ways;
}

void add_free(const FleetView& view, const State& state, Why& why) {
    std::int64_t gpu_milli = view.fleet.total_gpu_milli(), cpu = 0;
    for (const FleetNode& node : view.fleet.nodes) cpu += node.cpu_milli;
    why.numbers.emplace_back("nodes", static_cast<std::int64_t>(view.fleet.nodes.size()));
    why.numbers.emplace_back("gpu_milli_of_fleet", gpu_milli);
    for (const RunId id : state.live) {
        const Run& run = *state.find(id);
        const RankNeeds& needs = run.spec.per_rank;
        for (const RankPlace& place : run.attempts.back().places) {
            if (!place.node.empty() && !view.index.contains(place.node)) continue;
            gpu_milli -= std::int64_t{needs.gpus} * needs.gpu_milli;
            cpu -= needs.cpu_milli;
        }
    }
    why.numbers.emplace_back("gpu_milli_free", gpu_milli);
    why.numbers.emplace_back("cpu_milli_free", cpu);
}

Why why_no_capacity(const State& state, const FleetView& view, const Run& run, Why why) {
    why.text = fmt::format("{} rank{} of {} do{} not fit the machines that take work, even when nothing else runs",
                           run.spec.ranks, run.spec.ranks == 1 ? "" : "s", needs_in_words(run.spec.per_rank),
                           run.spec.ranks == 1 ? "es" : "");
    if (run.spec.nodes > 0) why.text += fmt::format(" (on {} nodes)", run.spec.nodes);
    if (run.spec.topology == TopologyWish::require) {
        const Topology& topology = view.topology;
        std::map<int, std::int64_t> nodes_of;
        if (!topology.levels.empty())
            for (const int domain : topology.levels.back()) ++nodes_of[domain];
        std::int64_t largest = 0;
        for (const auto& [domain, count] : nodes_of) largest = std::max(largest, count);
        why.numbers.emplace_back("switches", static_cast<std::int64_t>(nodes_of.size()));
        why.numbers.emplace_back("nodes_of_largest_switch", largest);
        why.text +=
            nodes_of.empty()
                ? "; it requires one switch, and no node says where it hangs (`topology` in the nodes' file)"
                : fmt::format("; it requires one switch, and the largest of {} has {} nodes", nodes_of.size(), largest);
    }
    add_free(view, state, why);
    // Not the last word: nobody has looked yet, or what is away may come back.
    if (state.nodes.empty()) why.text = "no machine is known yet: the first look at them is under way";
    if (const std::size_t away = state.nodes.size() - view.fleet.nodes.size(); away > 0)
        why.numbers.emplace_back("nodes_away", static_cast<std::int64_t>(away));
    return why;
}

// As it would be with that number raised to what the run needs.
void raise_limit(State& state, SchedulerOptions& options, const TenantBlock& block) {
    if (block.cause == Cause::budget) {
        for (BudgetGate& gate : options.budgets.gates)
            if (gate.scope == block.scope && gate.unit == block.unit) gate.limit_micro = block.used + block.asked + 1;
        return;
    }
    const auto found = state.tenants.quotas.find({block.scope, block.resource});
    if (found == state.tenants.quotas.end()) return;
    (block.cannot_give_back ? found->second.deserved_milli : found->second.limit_milli) = block.used + block.asked;
}

// Which numbers of which levels keep it back, the first with its figures, and what would let it start: behind a number
// that is raised the next may show, and only all of them together help.
Why why_limited(const State& state, const Run& run, std::int64_t now_us, const SchedulerOptions& options, Why why) {
    State raised = state;
    SchedulerOptions raised_options = options;
    std::vector<std::pair<std::string, LimitText>> limits;  // by level and resource
    for (std::size_t i = 0; i < kMostLimitsTold; ++i) {
        const TenantBlock block = block_of(raised, run.id, now_us, raised_options);
        if (!block) break;
        const std::string which = block.scope + " " + block.resource;
        LimitText text = limit_text_of(raised, block, now_us);
        const auto same =
            std::find_if(limits.begin(), limits.end(), [&](const auto& each) { return each.first == which; });
        if (same == limits.end())
            limits.emplace_back(which, std::move(text));
        else
            same->second.remedy = std::move(text.remedy);  // what goes first took of it, too
        raise_limit(raised, raised_options, block);
    }
    why.unblock = what_would_start(state, run, now_us, options);
    if (limits.empty()) return why;
    std::string remedy;
    for (std::size_t i = 0; i < limits.size(); ++i) {
        LimitText& text = limits[i].second;
        why.text += (i == 0 ? "" : "; and ") + text.text;
        if (i == 0) why.numbers.insert(why.numbers.end(), text.numbers.begin(), text.numbers.end());
        for (const RunId id : text.holders)
            if (why.blockers.size() < kMostBlockers &&
                std::find(why.blockers.begin(), why.blockers.end(), id) == why.blockers.end())
                why.blockers.push_back(id);
        remedy += (i == 0 || text.remedy.empty() ? "" : ", and ") + text.remedy;
    }
    if (!remedy.empty() && start_trial(raised, run.id, now_us, raised_options)(as_it_is(run))) {
        if (why.unblock.size() >= kMostUnblock) why.unblock.pop_back();
        why.unblock.push_back(std::move(remedy));
    }
    return why;
}

// The nodes whose health keeps them from taking everything, each with its reason.
struct LimitedNode {
    std::string name, reason;
};
std::vector<LimitedNode> limited_nodes(const State& state, const HealthGate& gate, std::int64_t now_us) {
    std::vector<LimitedNode> limited;
    const std::set<std::string> busy = busy_nodes(state);
    for (const auto& [name, node] : state.nodes) {
        if (node.state == NodeState::draining || node.state == NodeState::lost) continue;
        std::string reason = limit_text(node, gate, busy.contains(name), now_us);
        if (!reason.empty()) limited.push_back({name, std::move(reason)});
    }
    return limited;
}

std::string reasons_of(const std::vector<LimitedNode>& nodes) {
    std::string text;
    for (std::size_t i = 0; i < nodes.size() && i < kMostNamedNodes; ++i)
        text += (text.empty() ? "" : "; ") + nodes[i].reason;
    if (nodes.size() > kMostNamedNodes) text += fmt::format("; and {} more", nodes.size() - kMostNamedNodes);
    return text;
}

// Of an engine that chooses the nodes: those that it was told not to choose.
std::vector<LimitedNode> kept_off_nodes(const State& state, const Run& run, std::int64_t now_us,
                                        const SchedulerOptions& options) {
    std::vector<LimitedNode> nodes;
    if (!options.binds) return nodes;
    for (std::string& name : nodes_to_avoid(state, run.spec, options.health, now_us)) {
        std::string reason = limit_text(state.nodes.at(name), options.health, false, now_us);
        nodes.push_back({std::move(name), std::move(reason)});
    }
    return nodes;
}

Why why_unhealthy(const State& state, const Run& run, std::int64_t now_us, const SchedulerOptions& options, Why why) {
    const auto limited = limited_nodes(state, options.health, now_us);
    const FleetView view = view_of(state, options.health, now_us);
    why.text = fmt::format("{} rank{} of {} {} nodes that passed their health check: {}", run.spec.ranks,
                           run.spec.ranks == 1 ? "" : "s", needs_in_words(run.spec.per_rank),
                           run.spec.ranks == 1 ? "needs" : "need", reasons_of(limited));
    why.numbers.emplace_back("nodes_limited", static_cast<std::int64_t>(limited.size()));
    add_free(view, state, why);
    // What is being checked needs nobody's help; of the others, those which alone would do.
    std::size_t tried = 0;
    for (const LimitedNode& each : limited) {
        if (why.unblock.size() >= kMostUnblock || tried == kMostTrusted) break;
        const NodeStatus& node = state.nodes.at(each.name);
        if (options.health.under_check.contains(each.name) || node.state == NodeState::checking) continue;
        ++tried;
        SchedulerOptions trusting = options;
        trusting.health.trusted.insert(each.name);
        if (start_trial(state, run.id, now_us, trusting)(as_it_is(run)))
            why.unblock.push_back(
                fmt::format("`stoker nodes check {0}` when it is well again, or `stoker nodes ready "
                            "{0}`, which takes it as it is",
                            each.name));
    }
    for (std::string& way : what_would_start(state, run, now_us, options))
        if (why.unblock.size() < kMostUnblock) why.unblock.push_back(std::move(way));
    return why;
}

Why why_dependency(const State& state, const Run& run, Why why) {
    std::string names;
    for (const RunId id : run.needs) {
        const Run* need = state.find(id);
        if (need != nullptr && is_terminal(need->state)) continue;
        if (why.blockers.size() < kMostBlockers) why.blockers.push_back(id);
        if (need != nullptr) names += (names.empty() ? "" : ", ") + (need->step.empty() ? id.text() : need->step);
    }
    why.text = "waits for " + names + " to end";
    if (run.spec.after)
        for (const AfterRun& after : *run.spec.after)
            if (after.end != AfterEnd::any)
                why.text +=
                    fmt::format("; starts only if {} {}", after.run, after.end == AfterEnd::ok ? "succeeds" : "fails");
    return why;
}

}  // namespace

Why why(const State& state, RunId id, std::int64_t now_us, const SchedulerOptions& options) {
    const Run* found = state.find(id);
    if (found == nullptr || is_terminal(found->state)) return {};
    const Run& run = *found;
    if (run.state == RunState::requeued) {
        const double left = static_cast<double>(std::max<std::int64_t>(0, run.not_before_us - now_us)) / 1e6;
        return {.code = Cause::backing_off,
                .text = fmt::format("the last try ended by {}; the next one waits {}", to_string(run.cause),
                                    format_seconds(Seconds(left))),
                .numbers = {{"seconds", static_cast<std::int64_t>(left)},
                            {"tries", static_cast<std::int64_t>(run.attempts.size())}}};
    }
    if (waits_at_engine(run)) {
        const EngineWait& wait = *run.attempts.back().engine_wait;
        const std::string& engine = run.attempts.back().engine;
        Why why{
            .code = wait.cause,
            .text = fmt::format("it was given to {} and waits in its queue", engine.empty() ? "the engine" : engine)};
        if (const std::string fault = engine_fault(options, engine); !engine.empty() && !fault.empty())
            why.text = fmt::format("it is with {}, which does not answer now ({}); it waited there", engine, fault);
        if (!wait.detail.empty()) why.text += ": " + wait.detail;
        if (const auto kept_off = kept_off_nodes(state, run, now_us, options); !kept_off.empty()) {
            why.text += "; it may not be put on " + reasons_of(kept_off);
            why.numbers.emplace_back("nodes_avoided", static_cast<std::int64_t>(kept_off.size()));
        }
        why.numbers.emplace_back("waited_s", std::max<std::int64_t>(0, now_us - wait.since_us) / kSecondUs);
        if (wait.starts_us > 0)
            why.numbers.emplace_back("starts_in_s", std::max<std::int64_t>(0, wait.starts_us - now_us) / kSecondUs);
        return why;
    }
    if (run.state != RunState::queued) return {};
    if (run.spec.kind == RunKind::graph)
        return {.code = Cause::dependency_waiting, .text = "none of its steps has begun"};
    const Decisions decisions = schedule(state, now_us, options);
    std::size_t ahead = 0;
    Why why;
    for (const Waiting& waiting : decisions.waiting) {
        if (waiting.run == id) {
            why.code = waiting.cause;
            break;
        }
        ++ahead;
        if (why.blockers.size() < kMostBlockers) why.blockers.push_back(waiting.run);
    }
    why.numbers.emplace_back("ahead", static_cast<std::int64_t>(ahead));
    switch (why.code) {
        case Cause::none:
            return {.code = Cause::order_behind,
                    .text = run.spec.checkpoint.folder.empty()
                                ? "it is next: it starts in the coming pass"
                                : "it is next: it starts as soon as its checkpoint folder has been looked at"};
        case Cause::backing_off:
            why.blockers.clear();
            if (const auto restore = std::find_if(options.restores.begin(), options.restores.end(),
                                                  [&](const auto& each) { return each.first == id; });
                restore != options.restores.end()) {
                why.text = restore->second.text;
                if (restore->second.total > 0) {
                    why.numbers.emplace_back("bytes", restore->second.bytes);
                    why.numbers.emplace_back("bytes_of", restore->second.total);
                }
                return why;
            }
            why.text = "its checkpoint folder " + run.spec.checkpoint.folder +
                       " does not answer; it starts when that can be read, so that no work is done twice";
            return why;
        case Cause::image_pulling: {
            why.blockers.clear();
            const auto image = options.images.find(run.spec.image);
            why.text = "its image " + run.spec.image + " is being brought here";
            if (image != options.images.end()) why.text += ": " + image->second.detail;
            return why;
        }
        case Cause::held:
            why.blockers.clear();
            why.text = looks_poisonous(run)
                           ? fmt::format(
                                 "it is held because its last three attempts were each taken down within minutes, "
                                 "from the same checkpoint ({}); look at its log, then release it",
                                 to_string(run.attempts.back().cause))
                           : "it is held; release it to let it start";
            return why;
        case Cause::begin_later: {
            why.blockers.clear();
            const std::int64_t left = std::max<std::int64_t>(0, *run.spec.begin_at_us - now_us);
            why.text = fmt::format("it begins at {}, in {}", rfc3339(*run.spec.begin_at_us / kSecondUs * kSecondUs),
                                   format_seconds(Seconds(static_cast<double>(left) / 1e6)));
            why.numbers.emplace_back("begins_in_s", left / kSecondUs);
            return why;
        }
        case Cause::parallel_limit:
            why.blockers.clear();
            for (const RunId step : state.steps.at(run.parent))
                if (state.live.contains(step) && why.blockers.size() < kMostBlockers) why.blockers.push_back(step);
            why.text = fmt::format("{} of {} may run at once, and they do",
                                   state.find(run.parent)->spec.parallel.value_or(0), run.parent.text());
            return why;
        case Cause::quota:
        case Cause::budget: why.blockers.clear(); return why_limited(state, run, now_us, options, std::move(why));
        case Cause::dependency_waiting: why.blockers.clear(); return why_dependency(state, run, std::move(why));
        case Cause::engine_away:
            why.blockers.clear();
            why.text = "it goes nowhere now: " + engines_text(state, id, now_us, options);
            for (const EngineScene& engine : options.engines)
                if (may_go_to(run.spec, engine) && !engine.fault.empty())
                    why.text += fmt::format("; {}: {}", engine.name, engine.fault);
            if (run.spec.engine && *run.spec.engine != kAnyEngine)
                why.unblock.push_back("submit it again with --engine any, which lets it go elsewhere");
            return why;
        case Cause::capacity_none: {
            why.blockers.clear();
            why.unblock = what_would_start(state, run, now_us, options);
            Why none = why_no_capacity(state, view_of(state, options.health, now_us), run, std::move(why));
            if (const std::string engines = engines_text(state, id, now_us, options); !engines.empty())
                none.text += "; " + engines;
            return none;
        }
        case Cause::node_unhealthy:
            why.blockers.clear();
            return why_unhealthy(state, run, now_us, options, std::move(why));
        case Cause::order_behind:
            why.text = fmt::format("there is room, but {} goes first and would start later for it",
                                   decisions.reservation->run.text());
            why.blockers = {decisions.reservation->run};
            break;
        default:
            why.text = fmt::format("{} rank{} of {} fit{}{}, but not beside what runs now", run.spec.ranks,
                                   run.spec.ranks == 1 ? "" : "s", needs_in_words(run.spec.per_rank),
                                   run.spec.ranks == 1 ? "s" : "",
                                   run.spec.topology == TopologyWish::require ? " on one switch" : "");
            break;
    }
    const FleetView view = view_of(state, options.health, now_us);
    add_free(view, state, why);
    if (view.limited && why.code == Cause::capacity_busy)
        why.text += "; not counted: " + reasons_of(limited_nodes(state, options.health, now_us));
    if (const std::string engines = engines_text(state, id, now_us, options); !engines.empty())
        why.text += "; " + engines;
    if (const auto& reserved = decisions.reservation; reserved && reserved->run == id) {
        why.blockers.clear();
        if (reserved->at_us > 0) {
            const double in = static_cast<double>(reserved->at_us - now_us) / 1e6;
            why.numbers.emplace_back("reserved_in_s", static_cast<std::int64_t>(in));
            why.text += "; it starts in at most " + format_seconds(Seconds(in));
        } else {
            why.text += "; what runs has no timeout or lease, so no end is sure";
        }
    }
    why.unblock = what_would_start(state, run, now_us, options);
    return why;
}

}  // namespace stoker
