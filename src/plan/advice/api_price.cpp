// The same tokens from somebody who sells them by the million, where the model can be had so: machines of one's own
// that mostly wait are the dearest way to a few requests.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "catalog/model_names.h"
#include "catalog/names.h"
#include "plan/advice/advice.h"

namespace stoker {
namespace {

constexpr double kSecondsOfMonth = 730 * 3600.0;

struct ApiPrice {
    std::string model, provider, cloud, as_of, source;
    double usd_in = 0, usd_out = 0;  // of a million tokens
};

const std::vector<ApiPrice>& api_prices() {
    static const auto* const all = [] {
        auto* read = new std::vector<ApiPrice>;
        const auto table = Tsv::read(embedded_bytes("catalog/api_prices.tsv"), "data/catalog/api_prices.tsv");
        if (!table) return read;
        const auto model = table->column("model"), provider = table->column("provider"), cloud = table->column("cloud"),
                   in = table->column("usd_in"), out = table->column("usd_out"), as_of = table->column("as_of"),
                   source = table->column("source");
        if (!model || !provider || !cloud || !in || !out || !as_of || !source) return read;
        for (std::size_t i = 0; i < table->rows(); ++i) {
            const auto usd_in = table->number(i, *in), usd_out = table->number(i, *out);
            if (!usd_in || !usd_out) continue;
            read->push_back({.model = fold_name(table->at(i, *model)),
                             .provider = std::string(table->at(i, *provider)),
                             .cloud = std::string(table->at(i, *cloud)),
                             .as_of = std::string(table->at(i, *as_of)),
                             .source = std::string(table->at(i, *source)),
                             .usd_in = *usd_in,
                             .usd_out = *usd_out});
        }
        return read;
    }();
    return *all;
}

// Of the cloud whose machines were chosen, where that sells it, else the cheapest. Of the model that is written, and of
// none that only has its shape.
const ApiPrice* price_for(const Workload& workload, std::string_view cloud, double in, double out) {
    const std::string name =
        fold_name(plain_model_name(workload.model_written.empty() ? workload.model.name : workload.model_written));
    const ApiPrice* best = nullptr;
    const auto rank = [&](const ApiPrice& price) {
        return std::pair(price.cloud != cloud, price.usd_in * in + price.usd_out * out);
    };
    for (const ApiPrice& one : api_prices())
        if (one.model == name && (best == nullptr || rank(one) < rank(*best))) best = &one;
    return best;
}

}  // namespace

void advise_api_price(const AdviceInput& input, AdviceList& out) {
    const Workload& workload = input.context.workload;
    const Candidate* winner = input.winner();
    // Who cannot pay for machines asks what else there is.
    if (winner == nullptr && workload.objective.budget && !input.plan.nearest.empty())
        winner = input.plan.nearest.data();
    if (winner == nullptr || workload.kind != WorkloadKind::inference || workload.sensitive || !winner->priced ||
        workload.asks_for_capacity() || winner->pricing == Pricing::owned)
        return;
    const Prediction& p = winner->prediction;
    const double prompt = workload.traffic.prompt_tokens.value_or(0),
                 answer = workload.traffic.output_tokens.value_or(0);
    const double rate = p.requests_per_s, own = p.usd.mid / std::max(p.hours.mid, 1e-9) * kSecondsOfMonth / 3600;
    if (!(rate > 0) || !(prompt > 0) || !(answer > 0) || !(own > 0)) return;
    const ApiPrice* price = price_for(workload, input.node(*winner).cloud, prompt, answer);
    if (price == nullptr) return;
    const double month = rate * (prompt * price->usd_in + answer * price->usd_out) / 1e6 * kSecondsOfMonth;
    const double ratio = month / own;
    const bool cached = workload.traffic.cached_prompt_tokens.value_or(0) > 0;
    std::string text = fmt::format(
        "{} sells the same tokens for {} a month at this load (${:.2f} in, ${:.2f} out a "
        "million{})",
        price->provider, month < 100 ? format_usd(Usd::from_double(month)) : "$" + format_thousands(std::round(month)),
        price->usd_in, price->usd_out, cached ? ", before discounts for cached prompts" : "");
    if (ratio < 0.95)
        text += fmt::format(": {:.0f} % less", std::floor(100 * (1 - ratio)));
    else if (ratio > 1.05)
        text +=
            ratio < 2 ? fmt::format(": {:.0f} % more", 100 * (ratio - 1)) : fmt::format(": {:.1f} x as much", ratio);
    // From where on the same machines are the cheaper ones, as long as they hold so much.
    const double even = rate / ratio, held = p.knee_requests_per_s * winner->replicas;
    if (ratio < 0.95)
        text += even <= held ? fmt::format("; your own is cheaper from {:.2g} requests/s on", even)
                             : std::string("; these machines are dearer even when they are full");
    out.push_back({AdviceSeverity::info, "api-price", text,
                   "if the base model and its terms do; what is fine-tuned costs more there",
                   fmt::format("{}, as of {}", price->source, price->as_of)});
}

}  // namespace stoker
