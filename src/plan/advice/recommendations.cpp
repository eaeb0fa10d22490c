// The published table of sizes by role, how this plan relates to it, and corrections of figures that circulate for
// these sizes.
#include <algorithm>

#include <fmt/format.h>

#include "catalog/model_count.h"
#include "plan/advice/advice.h"

namespace stoker {
namespace {

bool is_generative(const ModelSpec& model) {
    return model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder ||
           model.kind == ModelKind::diffusion;
}

struct Correction {
    std::string_view size, text;
};
// Figures found in tutorials, against the price list of 2026-06-18 and the size pages.
constexpr Correction kCorrections[] = {
    {"Standard_NV36ads_A10_v5", "often quoted at $1.80; that is near NV18ads (1.60). The list price in eastus is 3.20"},
    {"Standard_NC64as_T4_v3", "often quoted at $4.25; the list price in eastus is 4.352"},
    {"Standard_D16s_v5", "has 16 vCPUs and 64 GiB, not 64 and 128 as sometimes written"},
    {"Standard_ND96asr_v4",
     "\"200 Gb/s\" is per GPU: 8 NICs give 1.6 Tb/s a VM; 27.197 per hour in eastus, no price in eastus2"},
    {"Standard_ND96isr_H100_v5",
     "\"400 Gb/s\" is per GPU: 3.2 Tb/s a VM; no longer the flagship: the H200 node is cheaper with 76 % more memory, "
     "MI300X and GB200 are public"},
};

}  // namespace

void advise_recommendations(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    const Workload& workload = input.context.workload;
    if (winner == nullptr) return;
    const NodeType& node = input.node(*winner);
    const bool small = !is_generative(workload.model) && (!workload.model_known || parameters_of(workload.model) < 1e8);
    std::string role, sizes;
    if (is_training(workload.kind)) {
        role = small                           ? "training a small model"
               : is_generative(workload.model) ? "training generative AI"
                                               : "training a complex model";
        sizes = small ? "M series (memory-optimised CPU)" : "ND with InfiniBand, NC with Ethernet as the alternative";
    } else if (workload.kind == WorkloadKind::inference) {
        role = small ? "inference of a small model" : "inference of a generative or complex model";
        sizes = small ? "F series (CPU; today Fasv6)" : "NC or ND";
    }
    if (!role.empty() && node.cloud == "azure") {
        std::string text =
            fmt::format("Azure's table for {}: {}, image Data Science VM. Chosen: {}", role, sizes, node.name);
        if (is_training(workload.kind) && !small) {
            const Candidate* nc = nullptr;
            for (const Candidate& candidate : input.plan.candidates)
                if (short_size(input.node(candidate).name).substr(0, 2) == "NC" && nc == nullptr) nc = &candidate;
            for (const Candidate& candidate : input.plan.pareto)
                if (short_size(input.node(candidate).name).substr(0, 2) == "NC" && nc == nullptr) nc = &candidate;
            if (nc != nullptr)
                text += fmt::format("; with Ethernet: {} x {}, {}, {}", nc->nodes, input.node(*nc).name,
                                    format_seconds(Seconds(nc->prediction.hours.mid * 3600)),
                                    format_usd(Usd::from_double(nc->prediction.usd.mid)));
            else
                text += "; NC with Ethernet was weighed and lost (--show rejected)";
        }
        out.push_back({Severity::info, "azure-table", text, "", "Azure IaaS compute recommendations for AI"});
    }
    for (const Candidate& candidate : input.plan.candidates)
        for (const Correction& correction : kCorrections)
            if (input.node(candidate).name == correction.size &&
                std::none_of(out.begin(), out.end(), [&](const Advice& a) {
                    return a.id == "correction" && a.text.find(correction.size) != std::string::npos;
                }))
                out.push_back({Severity::info, "correction", fmt::format("{}: {}", correction.size, correction.text),
                               "", "Retail price list 2026-06-18; size pages"});
}

}  // namespace stoker
