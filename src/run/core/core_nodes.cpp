// Nodes: what operators say of them, and what the engine sees.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"

namespace stoker {
namespace {

NodeInfo storable(NodeInfo node) {
    node.name = printable(node.name, kMaxNodeName);
    if (node.devices.size() > kMaxGpusOfNode) node.devices.resize(kMaxGpusOfNode);
    node.boot_id = printable(node.boot_id, 1000);
    node.topology = printable(node.topology, 1000);
    node.doctor = printable(node.doctor, 1000);
    node.engine = printable(node.engine, 1000);
    for (DeviceInfo& device : node.devices) {
        device.id = printable(device.id, 1000);
        device.model = printable(device.model, 1000);
    }
    return node;
}

bool same_node(const NodeInfo& a, const NodeInfo& b) {
    return a.cpu_milli == b.cpu_milli && a.memory_bytes == b.memory_bytes && a.boot_id == b.boot_id &&
           a.topology == b.topology && a.doctor == b.doctor && a.engine == b.engine &&
           a.link_bytes_per_s == b.link_bytes_per_s &&
           std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end(),
                      [](const DeviceInfo& x, const DeviceInfo& y) {
                          return x.id == y.id && x.model == y.model && x.memory_bytes == y.memory_bytes;
                      });
}

}  // namespace

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

Result<Ack> Core::on(const SawNodes& saw) {
    use_engines(saw.engines);
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

}  // namespace stoker
