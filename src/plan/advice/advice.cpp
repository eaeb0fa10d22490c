#include "plan/advice/advice.h"

#include <algorithm>

namespace stoker {
namespace {

// Facts that hold for every plan of the kind, or that the plan's other parts say already.
constexpr std::string_view kBackground[] = {
    "retired-left-out",  "correction",      "wrong-choice",    "os-price",          "cost-per-request",
    "real-time-variant", "inference-bound", "batch-spot",      "aml-scale-to-zero", "vmss-image",
    "quota-enough",      "quota-excludes",  "cpu-not-by-rule", "fractional-gpu",    "no-accelerated-networking",
    "aks-taint",         "ib-per-gpu",      "t4-too-small"};

}  // namespace

AdviceList make_advice(const Context& context, const Plan& plan) {
    const AdviceInput input{context, plan};
    AdviceList out;
    for (auto advise :
         {advise_quota, advise_limits, advise_retirement, advise_spot, advise_inference, advise_network, advise_use,
          advise_smells, advise_platform, advise_recommendations, advise_prices, advise_knowledge})
        advise(input, out);
    for (Advice& one : out)
        one.background = one.severity == Severity::info &&
                         std::find(std::begin(kBackground), std::end(kBackground), one.id) != std::end(kBackground);
    std::stable_sort(out.begin(), out.end(), [](const Advice& a, const Advice& b) {
        return std::pair(a.severity, !a.background) > std::pair(b.severity, !b.background);
    });
    return out;
}

}  // namespace stoker
