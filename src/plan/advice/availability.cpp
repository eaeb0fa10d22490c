// List prices of what can hardly be launched: where the provider gives machines out by reservation, that is the first
// thing to know.
#include <fmt/format.h>

#include "plan/advice/advice.h"
#include "plan/availability.h"

namespace stoker {

void advise_availability(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr || winner->pricing != Pricing::on_demand) return;
    const NodeType& node = input.node(*winner);
    if (!node.has_gpu()) return;
    const std::string& device = input.context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name;
    const Scarce* found = scarce(node.cloud, device);
    if (found == nullptr) return;
    std::string text = fmt::format("{} is hard to get on demand: {}", device, found->how);
    for (const Candidate& c : input.plan.candidates) {
        const NodeType& other = input.node(c);
        if (!other.has_gpu() || other.accelerator == node.accelerator || !c.doubt.empty() || !c.priced) continue;
        const std::string& name =
            input.context.catalog.accelerators()[static_cast<std::size_t>(other.accelerator)].name;
        if (scarce(other.cloud, name) != nullptr) continue;
        text += fmt::format(", or take {} x {} ({:+.0f} %)", c.nodes, other.name,
                            100 * (c.prediction.usd.mid / winner->prediction.usd.mid - 1));
        break;
    }
    out.push_back({AdviceSeverity::warning, "hard-to-get", text, found->how, found->source});
}

}  // namespace stoker
