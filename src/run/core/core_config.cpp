// The part of the core that follows the configuration: its versions, what they bound, and nodes that are no more.
#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"
#include "run/state/rules.h"

namespace stoker {

Result<Ack> Core::on(const SetConfig& set) {
    const std::uint64_t newest = newest_version(state_.config);
    if (set.if_version && *set.if_version != newest)
        return Error(
            ErrorKind::conflict,
            fmt::format("the configuration has changed: it is at version {}, not {}", newest, *set.if_version), {},
            "look at it with stoker config show, and send it again with --if-version " + std::to_string(newest));
    TRY(auto next, next_version(state_.config, set.text, set.note, set.overrides));
    if (!next) return Ack{.version = newest, .repeated = true};
    const std::uint64_t version = next->version;
    emit(std::move(*next));
    return Ack{.version = version};
}

Result<Ack> Core::on(const SetLimits& set) {
    set_limits(set.limits);
    return Ack{};
}

void Core::drives(std::string engine, bool binds, const std::vector<EngineState>& engines) {
    options_.engine = std::move(engine);
    options_.scheduler.binds = binds;
    use_engines(engines);
}

void Core::use_engines(const std::vector<EngineState>& engines) {
    std::vector<EngineScene> scenes;
    for (const EngineState& each : engines)
        scenes.push_back({.name = each.name,
                          .binds = each.can.binds,
                          .runs_images = each.can.runs_images,
                          .fault = printable(each.fault, 300)});
    if (scenes == options_.scheduler.engines) return;
    options_.scheduler.engines = std::move(scenes);
    changed_ = true;
}

void Core::set_limits(const CoreLimits& limits) {
    options_.max_queued = limits.max_queued;
    options_.max_ended = limits.max_ended;
    options_.keep_ended_s = limits.keep_ended_s;
    options_.scheduler.policy = limits.policy;
    options_.scheduler.health.level = limits.health;
    options_.admission = limits.admission;
    options_.own_key_longest_s = limits.own_key_longest_s;
    options_.scheduler.budgets.head_start_us = limits.lower_first_s * kSecondUs;
    if (!state_.tenants.budgets.empty()) next_budget_us_ = now_us_;
    changed_ = true;
}

// A node that was not listed the last time either, and on which nothing runs. One that is lost stays, so that it is
// seen; it was there when it was lost. So does one whose engine does not answer.
void Core::remove_nodes(const std::set<std::string>& present) {
    std::set<std::string> in_use;
    for (const RunId id : state_.live)
        for (const RankPlace& place : state_.find(id)->attempts.back().places) in_use.insert(place.node);
    std::vector<std::string> gone;
    for (const auto& [name, node] : state_.nodes)
        if (node.state == NodeState::draining && !present.contains(name) && !in_use.contains(name) &&
            engine_fault(options_.scheduler, node.info.engine).empty())
            gone.push_back(name);
    for (std::string& name : gone) emit(NodeRemoved{std::move(name)});
}

}  // namespace stoker
