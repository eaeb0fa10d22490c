// The published table of sizes by role, how this plan relates to it, and corrections of figures that circulate for
// these sizes.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "plan/advice/advice.h"
#include "plan/roles.h"

namespace stoker {
namespace {

struct Correction {
    std::string_view size, text;
};
// Figures found in tutorials, against the price list of 2026-06-18 and the size pages.
constexpr Correction kCorrections[] = {
    {"Standard_NV36ads_A10_v5", "often quoted at $1.80; that is near NV18ads (1.60). The list price in eastus is 3.20"},
    {"Standard_NC64as_T4_v3", "often quoted at $4.25; the list price in eastus is 4.352"},
    {"Standard_D16s_v5", "has 16 vCPUs and 64 GiB, not 64 and 128 as sometimes written"},
    {"Standard_ND96asr_v4", "27.197 per hour in eastus; the price list has none for eastus2"},
    {"Standard_ND96isr_H100_v5",
     "no longer the flagship: the H200 node is cheaper with 76 % more memory, MI300X and GB200 are public"},
};

}  // namespace

void advise_recommendations(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    const Workload& workload = input.context.workload;
    if (winner == nullptr) return;
    const NodeType& node = input.node(*winner);
    const SizeRole role = role_of(workload);
    if (!role.name.empty() && node.cloud == "azure" && workload.where.sizes.empty()) {
        std::string text = fmt::format("Azure's table for {}: {}, image Data Science VM", role.name, role.sizes);
        if (role.series != 0 && !fills_role(role, node)) {
            const Candidate* named = nullptr;
            for (const auto* list : {&input.plan.candidates, &input.plan.pareto})
                for (const Candidate& candidate : *list)
                    if (named == nullptr && fills_role(role, input.node(candidate))) named = &candidate;
            if (named != nullptr)
                text += fmt::format("; here {} x {} would cost {}, so it is not first", named->nodes,
                                    input.node(*named).name, format_usd(Usd::from_double(named->prediction.usd.mid)));
            else
                text += "; no such size is possible here (--show rejected)";
        }
        if (is_training(workload.kind) && !role.small) {
            const auto& alternative = input.plan.ethernet;
            if (short_size(node.name).starts_with("NC")) {
                // the alternative itself was chosen
            } else if (!alternative.empty()) {
                const Candidate& nc = alternative.front();
                text += fmt::format("; with Ethernet: {} x {}, {}, {}{}", nc.nodes, input.node(nc).name,
                                    format_seconds(Seconds(nc.prediction.hours.mid * 3600)),
                                    format_usd(Usd::from_double(nc.prediction.usd.mid)),
                                    nc.why_not_first.empty() ? "" : ", " + nc.why_not_first);
            } else {
                text += "; no NC with Ethernet came near (--show rejected)";
            }
        }
        out.push_back({AdviceSeverity::info, "azure-table", text, "", "Azure IaaS compute recommendations for AI"});
    }
    std::set<std::string_view> corrected;
    for (const Candidate& candidate : input.plan.candidates)
        for (const Correction& correction : kCorrections)
            if (input.node(candidate).name == correction.size && corrected.insert(correction.size).second)
                out.push_back(as_background({AdviceSeverity::info, "correction",
                                             fmt::format("{}: {}", correction.size, correction.text), "",
                                             "Retail price list 2026-06-18; size pages"}));
}

}  // namespace stoker
