#include "run/decide/health.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/tsv.h"
#include "base/units.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

double health_number(const Tsv& table, std::string_view name) {
    for (std::size_t row = 0; row < table.rows(); ++row)
        if (table.at(row, 0) == name) return std::strtod(std::string(table.at(row, 1)).c_str(), nullptr);
    CHECK(name.empty());
    return 0;
}

HealthPolicy read_health_policy() {
    const auto table = Tsv::read(embedded_bytes("run/health.tsv"), "run/health.tsv");
    CHECK(table.ok());  // our own data
    const auto us = [&](std::string_view name) { return std::llround(health_number(*table, name) * 1e6); };
    const auto count = [&](std::string_view name) { return static_cast<std::size_t>(health_number(*table, name)); };
    const HealthPolicy policy{.at_once = count("check.at_once"),
                              .again_us = us("check.again_s"),
                              .again_most_us = us("check.again_most_s"),
                              .old_us = us("check.old_s"),
                              .unchecked_busy_us = us("check.unchecked_busy_s"),
                              .lemon_gangs = count("lemon.gangs"),
                              .lemon_repairs = count("lemon.repairs"),
                              .lemon_window_us = us("lemon.window_s")};
    CHECK(policy.lemon_window_us > 0);
    return policy;
}

bool overridden(const NodeStatus& node) {
    return node.state == NodeState::ready && node.cause == Cause::node_override;
}

const NodeCheck* last_check(const NodeStatus& node) {
    return node.health && node.health->last && node.health->last->boot_id == node.info.boot_id ? &*node.health->last
                                                                                               : nullptr;
}

std::int64_t lemon_gangs_of(const NodeHealth& health, std::int64_t now_us) {
    std::set<std::vector<std::string>> gangs;
    for (const NodeBlame& blame : health.blames)
        if (blame.at_us > health.forgiven_us && blame.at_us + health_policy().lemon_window_us > now_us)
            gangs.insert(blame.members);
    return static_cast<std::int64_t>(gangs.size());
}

std::int64_t late_repairs_of(const NodeHealth& health, std::int64_t now_us) {
    return std::count_if(health.repairs_us.begin(), health.repairs_us.end(),
                         [&](std::int64_t at) { return at + health_policy().lemon_window_us > now_us; });
}

std::int64_t check_again_after_us(const NodeHealth& health) {
    const HealthPolicy& policy = health_policy();
    // What could not be measured, or is not quite right, is not worth more than a look a day.
    const std::int64_t most = health.last->verdict == HealthVerdict::fail ? policy.again_most_us : policy.old_us;
    std::int64_t after = policy.again_us;
    for (std::int64_t i = 1; i < health.not_passed && after < most; ++i) after *= 2;
    return std::min(after, most);
}

// When the node is to be checked by itself; nothing: only when somebody asks.
std::optional<std::int64_t> own_check_us(const NodeStatus& node, std::optional<HealthLevel> gate) {
    const bool looked_after = node.state == NodeState::ready || node.state == NodeState::checking ||
                              node.state == NodeState::suspect ||
                              (node.state == NodeState::quarantined && node.cause != Cause::node_lemon);
    if (!gate || !looked_after || overridden(node)) return std::nullopt;
    if (!is_checked(node, gate)) return 0;
    const NodeHealth& health = *node.health;
    if (health.last->verdict == HealthVerdict::pass) return health.last->at_us + health_policy().old_us;
    return health.last->at_us + check_again_after_us(health);
}

std::string measured_text(double value, std::string_view unit) {
    if (unit == "s") return format_seconds(Seconds(value));
    const bool scaled = unit == "bytes/s" || unit == "bytes" || unit == "FLOP/s";
    const std::string_view name = unit == "bytes/s" ? "B/s" : unit == "bytes" ? "B" : unit;
    if (!scaled) return fmt::format("{:.4g}{}{}", value, unit == "count" ? "" : " ", unit == "count" ? "" : name);
    constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P"};
    std::size_t at = 0;
    for (; at + 1 < kPrefixes.size() && std::abs(value) >= 1000; ++at) value /= 1000;
    return fmt::format("{:.3g} {}{}", value, kPrefixes[at], name);
}

}  // namespace

const HealthPolicy& health_policy() {
    static const HealthPolicy policy = read_health_policy();
    return policy;
}

bool is_checked(const NodeStatus& node, std::optional<HealthLevel> gate) {
    const NodeCheck* last = last_check(node);
    return last != nullptr && (!gate || last->level >= *gate);
}

NodeTakes takes_of(const NodeStatus& node, const HealthGate& gate, bool busy, std::int64_t now_us) {
    if (node.state == NodeState::draining || node.state == NodeState::lost) return NodeTakes::nothing;
    if (gate.ignored || gate.trusted.contains(node.info.name)) return NodeTakes::gangs;
    if (node.state == NodeState::quarantined || gate.under_check.contains(node.info.name)) return NodeTakes::nothing;
    const NodeTakes most = node.state == NodeState::suspect ? NodeTakes::one_node : NodeTakes::gangs;
    if (!gate.level || overridden(node)) return most;
    if (!is_checked(node, gate.level)) {
        // Small runs may go on for a while where others run, but not for ever, or it would never be checked.
        const std::int64_t since = node.health ? node.health->since_us : now_us;
        return busy && now_us < since + health_policy().unchecked_busy_us ? NodeTakes::one_rank : NodeTakes::nothing;
    }
    switch (node.health->last->verdict) {
        case HealthVerdict::pass: return most;
        case HealthVerdict::fail: return NodeTakes::nothing;
        default: return NodeTakes::one_node;
    }
}

Standing standing_of(const NodeStatus& node, std::optional<HealthLevel> gate, std::int64_t now_us) {
    const HealthPolicy& policy = health_policy();
    if (node.health && late_repairs_of(*node.health, now_us) >= static_cast<std::int64_t>(policy.lemon_repairs))
        return {NodeState::quarantined, Cause::node_lemon};
    const NodeCheck* last = last_check(node);
    if (last != nullptr && last->verdict == HealthVerdict::fail) return {NodeState::quarantined, Cause::node_unhealthy};
    if (gate && !is_checked(node, gate)) return {NodeState::checking, Cause::none};
    if (node.health && lemon_gangs_of(*node.health, now_us) >= static_cast<std::int64_t>(policy.lemon_gangs))
        return {NodeState::suspect, Cause::node_lemon};
    return {NodeState::ready, Cause::none};
}

std::set<std::string> busy_nodes(const State& state) {
    std::set<std::string> busy;
    for (const RunId id : state.live)
        for (const RankPlace& place : state.find(id)->attempts.back().places) busy.insert(place.node);
    return busy;
}

namespace {

// As it will stand when its engine lists it again.
NodeStatus as_listed(NodeStatus node, const HealthGate& gate, std::int64_t now_us) {
    const Standing standing = standing_of(node, gate.level, now_us);
    node.state = standing.state;
    node.cause = standing.cause;
    return node;
}

}  // namespace

std::vector<std::string> nodes_to_avoid(const State& state, const RunSpec& spec, const HealthGate& gate,
                                        std::int64_t now_us) {
    HealthGate lasting = gate;
    lasting.under_check.clear();
    const NodeTakes wanted = spec.ranks == 1   ? NodeTakes::one_rank
                             : spec.nodes == 1 ? NodeTakes::one_node
                                               : NodeTakes::gangs;
    const std::set<std::string> busy = busy_nodes(state);
    std::vector<std::string> names;
    for (const auto& [name, node] : state.nodes) {
        if (node.state == NodeState::lost) continue;
        const bool unlisted = node.state == NodeState::draining && node.cause == Cause::lost_contact;
        const NodeTakes takes = unlisted ? takes_of(as_listed(node, lasting, now_us), lasting, false, now_us)
                                         : takes_of(node, lasting, busy.contains(name), now_us);
        if (takes < wanted) names.push_back(name);
    }
    return names;
}

ChecksDue checks_due(const State& state, std::optional<HealthLevel> gate, const AskedChecks& asked,
                     std::int64_t now_us) {
    ChecksDue due;
    std::size_t under_way = 0;
    for (const auto& [name, check] : asked) under_way += check.under_way ? 1 : 0;
    const std::set<std::string> busy = busy_nodes(state);
    // Those that a person asked for first, then those that wait longest.
    std::vector<std::pair<std::int64_t, CheckWanted>> wanted;
    for (const auto& [name, node] : state.nodes) {
        if (node.state == NodeState::lost || busy.contains(name)) continue;
        const auto found = asked.find(name);
        if (found != asked.end() && found->second.under_way) continue;
        CheckWanted want{.node = name, .boot_id = node.info.boot_id, .level = gate.value_or(HealthLevel::quick)};
        if (found != asked.end()) {
            want.level = std::max(want.level, found->second.level);
            wanted.emplace_back(-1, std::move(want));
            continue;
        }
        const auto at = own_check_us(node, gate);
        if (!at) continue;
        // What failed the thorough check is not cleared by the quick one.
        if (const NodeCheck* last = last_check(node); last != nullptr && last->verdict != HealthVerdict::pass)
            want.level = std::max(want.level, last->level);
        if (*at <= now_us)
            wanted.emplace_back(*at, std::move(want));
        else if (due.next_us == 0 || *at < due.next_us)
            due.next_us = *at;
    }
    std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [at, want] : wanted)
        if (under_way + due.now.size() < health_policy().at_once) due.now.push_back(std::move(want));
    return due;
}

std::string check_text(const HealthCheck& check) {
    std::string text = check.name;
    if (!check.peer.empty()) text += " to " + check.peer;
    if (check.measured) text += " " + measured_text(*check.measured, check.unit);
    if (check.expected) text += ", expected " + measured_text(*check.expected, check.unit);
    if (!check.source.empty() && check.expected) text += " (" + check.source + ")";
    if (!check.measured && !check.detail.empty()) text += ": " + check.detail;
    return text;
}

std::string limit_text(const NodeStatus& node, const HealthGate& gate, bool busy, std::int64_t now_us) {
    const NodeTakes takes = takes_of(node, gate, busy, now_us);
    const std::string& name = node.info.name;
    if (takes == NodeTakes::gangs) return "";
    if (node.state == NodeState::lost || node.state == NodeState::draining)
        return fmt::format("{} is {}", name, node.state == NodeState::lost ? "lost" : "draining");
    if (gate.under_check.contains(name)) return name + " is being checked";
    if (node.cause == Cause::node_lemon && node.health) {
        if (node.state == NodeState::quarantined)
            return fmt::format("{} is quarantined: repaired {} times in 30 days", name,
                               late_repairs_of(*node.health, now_us));
        return fmt::format("{} is suspect: the slowest of {} different gangs in 30 days", name,
                           lemon_gangs_of(*node.health, now_us));
    }
    const NodeCheck* last = last_check(node);
    if (node.state != NodeState::quarantined && !is_checked(node, gate.level))
        return name + (busy ? " is busy and was not checked yet" : " waits for its check");
    if (last == nullptr) return name + " is quarantined";
    const std::string what = last->not_passed.empty() ? "nothing could be checked" : check_text(last->not_passed[0]);
    switch (last->verdict) {
        case HealthVerdict::fail: return fmt::format("{} is quarantined: {}", name, what);
        case HealthVerdict::warn: return fmt::format("{} passed with a warning: {}", name, what);
        default: return fmt::format("{} could not be checked: {}", name, what);
    }
}

}  // namespace stoker
