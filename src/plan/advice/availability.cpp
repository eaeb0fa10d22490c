// List prices of what can hardly be launched: where the provider gives machines out by reservation, that is the first
// thing to know.
#include <map>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/tsv.h"
#include "plan/advice/advice.h"

namespace stoker {
namespace {

struct Scarce {
    std::string how, source;
};

// By cloud and accelerator: data/catalog/availability.tsv.
const std::map<std::pair<std::string, std::string>, Scarce>& scarce() {
    static const auto* const all = [] {
        auto* read = new std::map<std::pair<std::string, std::string>, Scarce>;
        const auto table = Tsv::read(embedded_bytes("catalog/availability.tsv"), "data/catalog/availability.tsv");
        if (!table) return read;
        const auto cloud = table->column("cloud"), device = table->column("accelerator"), how = table->column("how"),
                   source = table->column("source");
        if (!cloud || !device || !how || !source) return read;
        for (std::size_t i = 0; i < table->rows(); ++i)
            (*read)[{std::string(table->at(i, *cloud)), std::string(table->at(i, *device))}] = {
                std::string(table->at(i, *how)), std::string(table->at(i, *source))};
        return read;
    }();
    return *all;
}

}  // namespace

void advise_availability(const AdviceInput& input, AdviceList& out) {
    const Candidate* winner = input.winner();
    if (winner == nullptr || winner->pricing != Pricing::on_demand) return;
    const NodeType& node = input.node(*winner);
    if (!node.has_gpu()) return;
    const std::string& device = input.context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name;
    const auto found = scarce().find({node.cloud, device});
    if (found == scarce().end()) return;
    std::string text = fmt::format("{} is rarely to be had on demand: {}", device, found->second.how);
    for (const Candidate& c : input.plan.candidates) {
        const NodeType& other = input.node(c);
        if (!other.has_gpu() || other.accelerator == node.accelerator || !c.doubt.empty() || !c.priced) continue;
        const std::string& name =
            input.context.catalog.accelerators()[static_cast<std::size_t>(other.accelerator)].name;
        if (scarce().contains({other.cloud, name})) continue;
        text += fmt::format(", or take {} x {} ({:+.0f} %)", c.nodes, other.name,
                            100 * (c.prediction.usd.mid / winner->prediction.usd.mid - 1));
        break;
    }
    out.push_back({AdviceSeverity::warning, "hard-to-get", text, found->second.how, found->second.source});
}

}  // namespace stoker
