#include "plan/advice/advice.h"

#include <algorithm>

namespace stoker {

Advice as_background(Advice one) {
    one.background = true;
    return one;
}

AdviceList make_advice(const Context& context, const Plan& plan) {
    const AdviceInput input{context, plan};
    AdviceList out;
    for (auto advise : {advise_quota, advise_limits, advise_foregone, advise_retirement, advise_spot, advise_inference,
                        advise_network, advise_availability, advise_use, advise_smells, advise_platform,
                        advise_recommendations, advise_prices, advise_api_price, advise_knowledge})
        advise(input, out);
    std::stable_sort(out.begin(), out.end(), [](const Advice& a, const Advice& b) {
        return std::pair(a.severity, !a.background) > std::pair(b.severity, !b.background);
    });
    return out;
}

}  // namespace stoker
