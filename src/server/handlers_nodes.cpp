// Nodes: what there is, and what people do about them.
#include "server/handlers.h"
#include "server/node_view.h"

namespace stoker::api {
namespace {

std::string node_in_path(const ExchangePtr& exchange) {
    return exchange->parameters.path.find("node")->second;
}

void set_node(Service& service, const ExchangePtr& exchange, NodeState state) {
    const std::string node = node_in_path(exchange);
    service.post(exchange, {.what = SetNode{node, state}}, [&service, exchange, node](const Result<Ack>& ack) {
        if (!ack) return exchange->fail(ack.error());
        // What it is now: a drained node goes back to what its check said.
        service.ask<NodeChanged>(
            exchange,
            [node](const EngineView& view) -> Result<NodeChanged> {
                const auto found = view.state.nodes.find(node);
                if (found == view.state.nodes.end()) return Error(ErrorKind::not_found, "there is no node " + node);
                return NodeChanged{node, found->second.state, found->second.cause};
            },
            [exchange](const NodeChanged& changed) { exchange->send(codec::write(changed)); });
    });
}

}  // namespace

void list_nodes(Service& service, const ExchangePtr& exchange) {
    service.ask<NodeList>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<NodeList> {
            NodeList list = view_of_nodes(view.state, view.scheduler.health, view.now_us);
            for (const EngineScene& engine : view.scheduler.engines) {
                if (!list.engines) list.engines.emplace();
                list.engines->push_back({engine.name, engine.fault});
            }
            for (NodeView& node : list.items)
                std::erase_if(node.runs, [&](RunId id) {
                    const Run* run = view.state.find(id);
                    return run != nullptr && !reaches(actor, view.state.tenants.tenant_of(run->project));
                });
            return list;
        },
        [&service, exchange](NodeList list) {
            // Of several each has its own word; of the only one it is that of the last look at what is there.
            if (!list.engines)
                if (std::string fault = service.engine().stats().driver_error; !fault.empty())
                    list.engines.emplace().push_back({.name = {}, .fault = std::move(fault)});
            if (const auto& fleet = service.options().gpus) {
                const FleetMoment now = FleetMoment::now();
                for (NodeView& node : list.items)
                    if (const auto told = fleet->find(node.name, now)) node.gpus_told = item_of(*told);
            }
            exchange->send(codec::write(list));
        });
}
void drain_node(Service& service, const ExchangePtr& exchange) {
    set_node(service, exchange, NodeState::draining);
}
void ready_node(Service& service, const ExchangePtr& exchange) {
    set_node(service, exchange, NodeState::ready);
}
void repaired_node(Service& service, const ExchangePtr& exchange) {
    set_node(service, exchange, NodeState::checking);
}

void check_node(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<NodeCheckBody>(*exchange, false);
    if (!body) return exchange->fail(body.error());
    NodeCheckAsked asked{.node = node_in_path(exchange), .level = body->level, .waits_for = {}};
    service.post(
        exchange, {.what = CheckNode{asked.node, asked.level}}, [&service, exchange, asked](const Result<Ack>& ack) {
            if (!ack) return exchange->fail(ack.error());
            service.ask<NodeCheckAsked>(
                exchange,
                [asked, repeated = ack->repeated](const EngineView& view) -> Result<NodeCheckAsked> {
                    NodeCheckAsked answer = asked;
                    answer.repeated = repeated;
                    for (const RunId id : view.state.live)
                        for (const RankPlace& place : view.state.find(id)->attempts.back().places)
                            if (place.node == asked.node && (answer.waits_for.empty() || answer.waits_for.back() != id))
                                answer.waits_for.push_back(id);
                    return answer;
                },
                [exchange](const NodeCheckAsked& answer) { exchange->send(codec::write(answer), 202); });
        });
}

}  // namespace stoker::api
