#include "server/node_view.h"

#include <map>
#include <set>

#include "base/api_time.h"

namespace stoker::api {
namespace {

void show_health(const NodeHealth& health, NodeView& view) {
    view.since = rfc3339(health.since_us);
    if (health.last)
        view.check = {.at = rfc3339(health.last->at_us),
                      .level = health.last->level,
                      .verdict = health.last->verdict,
                      .passed = health.last->passed,
                      .not_passed = health.last->not_passed};
    for (const NodeBlame& blame : health.blames)
        if (blame.at_us > health.forgiven_us)
            view.blames.push_back({.at = rfc3339(blame.at_us),
                                   .attempt = blame.attempt,
                                   .nodes = blame.members,
                                   .share = static_cast<double>(blame.share_milli) / 1000});
    for (const std::int64_t at : health.repairs_us) view.repairs.push_back(rfc3339(at));
}

}  // namespace

NodeList view_of_nodes(const State& state, const HealthGate& gate, std::int64_t now_us) {
    NodeList list;
    const std::set<std::string> busy = busy_nodes(state);
    std::map<std::string, std::size_t> at;
    for (const auto& [name, node] : state.nodes) {
        at[name] = list.items.size();
        NodeView& view = list.items.emplace_back();
        view.name = name;
        view.state = node.state;
        view.cause = node.cause;
        view.cpu_milli = view.cpu_milli_free = node.info.cpu_milli;
        view.memory_bytes = view.memory_bytes_free = node.info.memory_bytes;
        view.devices = node.info.devices;
        view.gpu_milli_free = 1000 * static_cast<std::int64_t>(node.info.devices.size());
        view.boot_id = node.info.boot_id;
        view.topology = node.info.topology;
        view.doctor = node.info.doctor;
        view.engine = node.info.engine;
        view.takes = takes_of(node, gate, busy.contains(name), now_us);
        view.reason = limit_text(node, gate, busy.contains(name), now_us);
        view.under_check = gate.under_check.contains(name);
        if (node.health) show_health(*node.health, view);
    }
    for (const RunId id : state.live) {
        const Run& run = *state.find(id);
        const RankNeeds& needs = run.spec.per_rank;
        for (const RankPlace& place : run.attempts.back().places) {
            const auto found = at.find(place.node);
            if (found == at.end()) continue;
            NodeView& view = list.items[found->second];
            view.cpu_milli_free -= needs.cpu_milli;
            view.memory_bytes_free -= needs.memory_bytes;
            view.gpu_milli_free -= std::int64_t{needs.gpus} * needs.gpu_milli;
            if (view.runs.empty() || view.runs.back() != id) view.runs.push_back(id);
        }
    }
    return list;
}

}  // namespace stoker::api
