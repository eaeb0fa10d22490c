// What goes with the orchestrator.
#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_platform(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr || input.node(*winner).cloud != "azure") return;
    switch (input.plan.platform.orchestrator) {
        case Orchestrator::batch:
            out.push_back(
                as_background({AdviceSeverity::info, "batch-spot",
                               "Batch low-priority VMs were retired on 2025-09-30: use spot nodes; Batch itself costs "
                               "nothing beyond the VMs",
                               "", "Azure/EOL id 132"}));
            break;
        case Orchestrator::aks:
            out.push_back(as_background(
                {AdviceSeverity::info, "aks-taint",
                 "AKS does not taint GPU pools by itself (--node-taints sku=gpu:NoSchedule): pool taint and "
                 "toleration must match",
                 "", "AKS GPU page, 2026-07-02"}));
            break;
        case Orchestrator::azure_ml:
            out.push_back(
                as_background({AdviceSeverity::info, "aml-scale-to-zero",
                               "compute cluster with min_instances 0 and an idle time before scale-down; Azure ML low "
                               "priority is retired (2026-03-31), use spot",
                               "", "Azure/EOL id 258"}));
            break;
        case Orchestrator::vmss:
            out.push_back(as_background(
                {AdviceSeverity::info, "vmss-image",
                 "scale set: custom image with the driver inside, autoscale on a GPU metric and not on CPU %", "",
                 ""}));
            break;
        default: break;
    }
}

}  // namespace stoker
