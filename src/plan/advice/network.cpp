// What InfiniBand needs on Azure, and what a gang without it pays.
#include <cmath>

#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_network(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const NodeType& node = input.node(*winner);
    const bool training = is_training(input.context.workload.kind), gang = training && winner->nodes > 1;
    if (gang && is_rdma(node) && node.cloud == "azure") {
        out.push_back(
            {AdviceSeverity::info, "ib-scale-set",
             fmt::format(
                 "InfiniBand works inside one scale set in one zone only: orchestration mode Uniform (not the "
                 "default), singlePlacementGroup true, overprovision false, at most {:.0f} instances ({:.0f} by "
                 "request). A proximity placement group is neither needed nor enough; the loss of 30-50 % "
                 "often quoted for separate zones has no source",
                 input.context.settings.placement_group, input.context.settings.placement_group_on_request),
             "", "Azure setup-infiniband page, 2026-09-25"});
        const PlanSettings& settings = input.context.settings;
        if (winner->nodes > settings.placement_group_on_request)
            out.push_back(
                {AdviceSeverity::warning, "ib-scale-set-limit",
                 fmt::format(
                     "{} nodes are more than one scale set joins ({:.0f} by request): at least {:.0f} scale sets "
                     "on one InfiniBand fabric, which Azure joins by arrangement only; the largest published "
                     "run had {:.0f} VMs",
                     winner->nodes, settings.placement_group_on_request,
                     std::ceil(winner->nodes / settings.placement_group_on_request),
                     settings.placement_group_published),
                 "ask the account team for the fabric, the zone and the date before anything else",
                 "Azure setup-infiniband page; MLPerf Training v3.1"});
        else if (winner->nodes > settings.placement_group)
            out.push_back({AdviceSeverity::warning, "ib-scale-set-limit",
                           fmt::format("{} nodes in one placement group need a support request before anything else "
                                       "(limit {:.0f}, up to {:.0f})",
                                       winner->nodes, input.context.settings.placement_group,
                                       input.context.settings.placement_group_on_request),
                           "", "Azure setup-infiniband page"});
        out.push_back(as_background({AdviceSeverity::info, "ib-per-gpu",
                                     fmt::format("{:.0f} Gb/s is per GPU: {} NICs, {:.1f} Tb/s per VM",
                                                 node.rdma_gbps_per_gpu, node.nics, node.rdma_gbps_per_node / 1000),
                                     "", node.provenance.source}));
    }
    if (gang && !is_rdma(node) && node.cloud != "on-prem") {
        double waiting = 0;
        const Prediction& p = winner->prediction;
        for (TimeTerm term : {TimeTerm::tensor_comm, TimeTerm::context_comm, TimeTerm::expert_comm,
                              TimeTerm::pipeline_comm, TimeTerm::gradient_comm, TimeTerm::gather_comm})
            waiting += p.seconds[static_cast<std::size_t>(term)];
        if (waiting > 0.05 * p.step_s.mid)
            out.push_back(
                {p.step_s.mid > 0 && waiting > 0.2 * p.step_s.mid ? AdviceSeverity::warning : AdviceSeverity::info,
                 "no-infiniband",
                 fmt::format("{} nodes without {}: {:.0f} % of each step waits for Ethernet{}", winner->nodes,
                             node.cloud == "azure" ? "InfiniBand" : "RDMA",
                             p.step_s.mid > 0 ? 100 * waiting / p.step_s.mid : 0,
                             node.ethernet_gbps > 0 ? fmt::format(" at {:.0f} Gb/s per node", node.ethernet_gbps) : ""),
                 node.cloud == "azure" ? "an ND size with InfiniBand if the wait matters; enable accelerated networking"
                                       : "a size with RDMA if the wait matters",
                 ""});
    }
    if (!is_rdma(node) && node.has_gpu() && node.accelerated_networking.substr(0, 2) == "no")
        out.push_back(
            as_background({AdviceSeverity::info, "no-accelerated-networking",
                           node.name + " does not support accelerated networking", "", node.provenance.source}));
    advise_places(input, out);
    if (input.context.workload.sensitive)
        out.push_back({AdviceSeverity::info, "isolation",
                       "sensitive data: private network without public IPs, customer-managed keys, audit on, data "
                       "stays in the named regions",
                       "", ""});
}

}  // namespace stoker
