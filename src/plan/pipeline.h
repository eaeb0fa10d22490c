// The steps of make_plan that what-ifs and the nearest feasible plan repeat with one thing changed.
#pragma once

#include <memory>

#include "plan/option.h"
#include "plan/search_training.h"

namespace stoker {

struct SearchMode {
    bool quick = false;  // only the winner matters
    bool exhaustive = false;
    std::shared_ptr<LayoutCache> cache;
};
bool serves(const Workload& workload);  // answers requests, behind an endpoint or from a pile
Result<Search> run_search(const Context& context, const SearchMode& mode);

// Ranked groups, best first.
struct Ranking {
    Expansion expansion;
    std::vector<Option> groups;
};
Ranking rank(const Context& context, const std::vector<Point>& points);

// What scores better than the first choice and comes behind it, and what a rule of thumb would have taken.
std::vector<Foregone> foregone(const Context& context, const Search& search, const Ranking& ranking);
std::vector<PlanWhatIf> what_ifs(const Context& context, const Search& search, const Option& winner,
                                 std::shared_ptr<LayoutCache> cache);
// Where spot was allowed and has a price: the rate of evictions, and the one at which the choice would be another.
std::optional<SpotRate> spot_rate_of(const Context& context, const Search& search, const Option& winner);
std::vector<Fallback> fallbacks_of(const Context& context, const Search& search, const Ranking& ranking);
std::string outcome_text(const Context& context, const Option& option);  // "6 x Standard_ND96isr_H100_v5, spot"

// Several listings put one behind the other are in no order; offers are searched by halving.
PlanOptions with_ordered_offers(PlanOptions options);

// Of a sum that somebody wrote: cents where they have some.
std::string asked_usd(Usd usd);

// Fills infeasible_because and nearest.
void explain_infeasible(const Context& context, const Search& search, const Ranking& ranking, Plan& plan);
std::string verdict_of(const Context& context, const Plan& plan);
std::vector<std::string> reasons_of(const Context& context, const Plan& plan);

}  // namespace stoker
