// Announced retirements of what is shown, and of the series people still ask for.
#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_retirement(const AdviceInput& input, AdviceList& out) {
    const Context& context = input.context;
    std::string_view last;
    for (const Candidate& candidate : input.plan.candidates) {
        const NodeType& node = input.node(candidate);
        const std::string date = retirement_of(context, candidate.node_type);
        if (date.empty() || node.name == last) continue;
        last = node.name;
        const long left = days_between(context.options.today, date);
        const bool soon = left < 400 || candidate.prediction.hours.mid > 24.0 * static_cast<double>(left);
        out.push_back({soon ? Severity::warning : Severity::info, "retirement-announced",
                       fmt::format("{} retires on {} ({} days from {})", node.name, date, left, context.options.today),
                       "prefer a current series for anything that outlives it", node.provenance.source});
    }
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const std::string name = short_size(input.node(*winner).name);
    if (!name.empty() && name[0] == 'F' && retirement_of(context, winner->node_type).empty())
        out.push_back({Severity::info, "f-series",
                       "Fsv2 (and F, Fs) retire on 2028-11-15, so the current Fasv6 is planned; it needs a Generation "
                       "2 image with NVMe",
                       "", "Azure retired sizes list"});
    long retired = 0;
    for (const Rejection& rejection : input.plan.rejected) retired += rejection.reason == Reason::retired;
    if (retired > 0)
        out.push_back({Severity::info, "retired-left-out",
                       fmt::format("{} retired sizes were left out; price lists still carry some of them", retired),
                       "stoker catalog retirements", "Azure retired sizes list"});
}

}  // namespace stoker
