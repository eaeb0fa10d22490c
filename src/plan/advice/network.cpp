// What InfiniBand needs on Azure, and what a gang without it pays.
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
            {Severity::info, "ib-scale-set",
             "InfiniBand works inside one scale set only: Uniform, singlePlacementGroup true, overprovision false, at "
             "most 100 instances (300 by request). A proximity placement group is neither needed nor enough; "
             "the 30-50 % gain told of it has no source",
             "Flexible is the default of az vmss create and has no InfiniBand: say --orchestration-mode Uniform "
             "--single-placement-group true",
             "Azure setup-infiniband page, 2026-09-25"});
        if (winner->nodes > 100)
            out.push_back({Severity::warning, "ib-scale-set-limit",
                           fmt::format("{} nodes in one placement group need a support request (limit 100, up to 300)",
                                       winner->nodes),
                           "", "Azure setup-infiniband page"});
        out.push_back({Severity::info, "ib-per-gpu",
                       fmt::format("{:.0f} Gb/s is per GPU: {} NICs, {:.1f} Tb/s per VM", node.rdma_gbps_per_gpu,
                                   node.nics, node.rdma_gbps_per_node / 1000),
                       "", node.provenance.source});
        out.push_back({Severity::info, "one-zone",
                       "all nodes of the gang belong in one zone; spreading them over zones costs latency on every "
                       "collective (how much is not published)",
                       "", ""});
    }
    if (gang && !is_rdma(node)) {
        double waiting = 0;
        const Prediction& p = winner->prediction;
        for (TimeTerm term : {TimeTerm::tensor_comm, TimeTerm::context_comm, TimeTerm::expert_comm,
                              TimeTerm::pipeline_comm, TimeTerm::gradient_comm, TimeTerm::gather_comm})
            waiting += p.seconds[static_cast<std::size_t>(term)];
        out.push_back(
            {p.step_s.mid > 0 && waiting > 0.2 * p.step_s.mid ? Severity::warning : Severity::info, "no-infiniband",
             fmt::format(
                 "{} nodes without InfiniBand: {:.0f} % of each step waits for Ethernet at {:.0f} Gb/s per node",
                 winner->nodes, p.step_s.mid > 0 ? 100 * waiting / p.step_s.mid : 0, node.ethernet_gbps),
             "an ND size with InfiniBand if the wait matters; enable accelerated networking", ""});
    }
    if (!is_rdma(node) && node.has_gpu() && node.accelerated_networking.substr(0, 2) == "no")
        out.push_back({Severity::info, "no-accelerated-networking",
                       node.name + " does not support accelerated networking", "", node.provenance.source});
    if (training || input.context.workload.kind == WorkloadKind::batch_inference)
        out.push_back(
            {Severity::info, "storage-region",
             fmt::format("keep data and checkpoints in {}: reading across regions costs egress and stalls the input",
                         winner->region),
             "", ""});
    if (input.context.workload.sensitive)
        out.push_back({Severity::info, "isolation",
                       "sensitive data: private network without public IPs, customer-managed keys, audit on, data "
                       "stays in the named regions",
                       "", ""});
}

}  // namespace stoker
