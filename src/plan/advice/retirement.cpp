// Announced retirements of what is shown, and of the series people still ask for.
#include <algorithm>

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
        const bool chosen = &candidate == input.plan.candidates.data();
        const bool soon = chosen && (left < 400 || candidate.prediction.hours.mid > 24.0 * static_cast<double>(left));
        out.push_back({soon ? AdviceSeverity::warning : AdviceSeverity::info, "retirement-announced",
                       fmt::format("{} retires on {} ({} days from {})", node.name, date, left, context.options.today),
                       "prefer a current series for anything that outlives it", node.provenance.source});
    }
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const std::string name = short_size(input.node(*winner).name);
    if (input.node(*winner).cloud == "azure" && !name.empty() && name[0] == 'F' &&
        retirement_of(context, winner->node_type).empty()) {
        std::string date;  // of the older sizes of the series
        for (const NodeType& other : context.catalog.node_types())
            if (other.cloud == "azure" && other.purpose == "compute" && !other.retirement_date.empty())
                date = std::max(date, other.retirement_date);
        const bool past = days_between(context.options.today, date) <= 0;
        out.push_back({AdviceSeverity::warning, "f-series",
                       fmt::format("Fsv2 (and F, Fs) {} on {}, so the current {} is planned; it needs a Generation 2 "
                                   "image with NVMe",
                                   past ? "retired" : "retire", date, input.node(*winner).family),
                       "", "Azure retired sizes list"});
    }
    long retired = 0;
    for (const Rejection& rejection : input.plan.rejected) retired += rejection.reason == Reason::retired;
    if (retired > 0)
        out.push_back(
            as_background({AdviceSeverity::info, "retired-left-out",
                           fmt::format("{} retired sizes were left out; price lists still carry some of them", retired),
                           "stoker catalog retirements", "Azure retired sizes list"}));
}

}  // namespace stoker
