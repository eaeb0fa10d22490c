// How old the facts are, and where to verify them.
#include <fmt/format.h>

#include "plan/advice/advice.h"

namespace stoker {

void advise_prices(const AdviceInput& input, AdviceList& out) {
    const Context& context = input.context;
    const long age = days_between(context.catalog.as_of, context.options.today);
    if (age > static_cast<long>(context.settings.catalogue_stale_days))
        out.push_back({AdviceSeverity::warning, "stale-catalogue",
                       fmt::format("the catalogue is of {}, {} days old", context.catalog.as_of, age),
                       "update stoker, or use --catalog with fresher files", ""});
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    if (winner->priced && !winner->price_provenance.as_of.empty()) {
        const long days = days_between(winner->price_provenance.as_of, context.options.today);
        if (days > static_cast<long>(context.settings.price_stale_days))
            out.push_back(
                {AdviceSeverity::warning, "stale-price",
                 fmt::format("the price of {} in {} is of {}, {} days old", input.node(*winner).name, winner->region,
                             winner->price_provenance.as_of, days),
                 input.node(*winner).cloud == "azure"
                     ? fmt::format(
                           "curl -sG https://prices.azure.com/api/retail/prices -d "
                           "api-version=2023-01-01-preview --data-urlencode \"\\$filter=armSkuName eq "
                           "'{}' and armRegionName eq '{}'\" > prices.json; stoker plan FILE --prices prices.json",
                           input.node(*winner).name, winner->region)
                     : "look at the provider's price list before you decide",
                 winner->price_provenance.source});
    }
    if (context.workload.where.os != "linux")
        out.push_back(as_background(
            {AdviceSeverity::info, "os-price",
             fmt::format("prices are for {}; Windows and Linux are priced apart", context.workload.where.os), "", ""}));
    if (!winner->priced && winner->pricing == Pricing::owned)
        out.push_back({AdviceSeverity::info, "unpriced", "your machines have no price here: this plan counts no cost",
                       "price_per_hour or capex, of each machine in the file of nodes", ""});
    else if (!winner->priced && input.node(*winner).cloud != "this-machine")
        out.push_back({AdviceSeverity::warning, "unpriced",
                       "no price is known of the first choice: its cost is not in this plan", "", ""});
}

}  // namespace stoker
