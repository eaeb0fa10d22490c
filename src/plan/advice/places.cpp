// Data and users that are not where the plan runs: what a copy costs and takes, and how far an answer has to go.
#include <cmath>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "catalog/geography.h"
#include "plan/advice/advice.h"

namespace stoker {
namespace {

struct TransferPrice {
    double low = 0, high = 0;  // dollars per GB
    std::string source;
};

// What leaving a region of this cloud costs: to one of the same part of the world, to another, or out of the cloud.
std::optional<TransferPrice> transfer_price(std::string_view cloud, std::string_view scope) {
    const auto rows = Tsv::read(embedded_bytes("catalog/transfer_prices.tsv"), "data/catalog/transfer_prices.tsv");
    if (!rows) return std::nullopt;
    const auto of = rows->column("cloud"), where = rows->column("to"), low = rows->column("low"),
               high = rows->column("high"), source = rows->column("source"), as_of = rows->column("as_of");
    if (!of || !where || !low || !high || !source || !as_of) return std::nullopt;
    for (std::size_t i = 0; i < rows->rows(); ++i) {
        if (rows->at(i, *of) != cloud || rows->at(i, *where) != scope) continue;
        const auto from = parse_count(rows->at(i, *low)), to = parse_count(rows->at(i, *high));
        if (!from || !to) return std::nullopt;
        return TransferPrice{*from, *to, fmt::format("{}, {}", rows->at(i, *source), rows->at(i, *as_of))};
    }
    return std::nullopt;
}

// On storage, as far as the file says: absent where it says neither.
std::optional<double> data_bytes(const Workload& w) {
    constexpr double kBytesPerToken = 4;  // tokens as 32-bit numbers; text is about as long
    if (w.data.bytes) return w.data.bytes->v;
    if (w.data.examples && w.data.bytes_per_example) return *w.data.examples * w.data.bytes_per_example->v;
    if (w.data.tokens) return *w.data.tokens * kBytesPerToken;
    return std::nullopt;
}

std::string size_text(double bytes) {
    return bytes >= 1e12 ? fmt::format("{:.3g} TB", bytes / 1e12) : fmt::format("{:.3g} GB", bytes / 1e9);
}

std::string dollars(double low, double high) {
    const auto text = [](double usd) { return usd < 1 ? std::string("$1") : "$" + format_thousands(std::round(usd)); };
    return text(low) == text(high) ? text(low) : text(low) + " - " + text(high);
}

}  // namespace

void advise_places(const AdviceInput& input, AdviceList& out) {
    const Workload& w = input.context.workload;
    const Candidate* winner = input.winner();
    if (winner == nullptr) return;
    const NodeType& node = input.node(*winner);
    if (node.cloud == "on-prem" || node.cloud == "this-machine") {
        if (!w.data.region.empty())
            out.push_back({AdviceSeverity::warning, "data-elsewhere",
                           fmt::format("the data lies in {} of {}, and the work runs on machines of your own",
                                       w.data.region, w.data.cloud),
                           "copy it once, before the first step", ""});
        return;
    }
    const bool reads = is_training(w.kind) || w.kind == WorkloadKind::batch_inference;
    if (w.data.region.empty() && reads)
        out.push_back(as_background(
            {AdviceSeverity::info, "storage-region",
             fmt::format("keep the data{} in {}: reading across regions costs egress and stalls the input",
                         is_training(w.kind) ? " and checkpoints" : "", winner->region),
             "data: {region: ...} says where it lies, and the plan what that costs", ""}));
    if (!w.data.region.empty() && (w.data.region != winner->region || w.data.cloud != node.cloud)) {
        const bool out_of_cloud = w.data.cloud != node.cloud;
        const bool same_part = geography_of(w.data.region) == geography_of(winner->region);
        const auto price = transfer_price(w.data.cloud, out_of_cloud ? "internet" : same_part ? "near" : "far");
        const Constant* rate = input.context.catalog.constant("between_regions_gbps");
        const auto bytes = data_bytes(w);
        std::string text = fmt::format("the data lies in {}{}, the plan runs in {}", w.data.region,
                                       out_of_cloud ? " of " + w.data.cloud : "", winner->region);
        if (price)
            text += bytes ? fmt::format(": moving {} once costs about {}", size_text(*bytes),
                                        dollars(*bytes / 1e9 * price->low, *bytes / 1e9 * price->high))
                          : fmt::format(": every TB that is moved costs about {}",
                                        dollars(1000 * price->low, 1000 * price->high));
        if (rate != nullptr && rate->value > 0) {
            const double moved = bytes.value_or(1e12);
            text += fmt::format(" and takes {} at {:.0f} Gb/s", format_seconds(Seconds(moved * 8 / 1e9 / rate->value)),
                                rate->value);
        }
        text += "; it is not in the total";
        out.push_back({AdviceSeverity::warning, "data-elsewhere", std::move(text),
                       fmt::format("copy it before the first step, or where: {{regions: [{}]}} plans beside it",
                                   out_of_cloud ? "..." : w.data.region),
                       price ? price->source : ""});
    }
    if (w.traffic.region.empty() || (w.traffic.region == winner->region && w.traffic.cloud == node.cloud)) return;
    const bool same_part = geography_of(w.traffic.region) == geography_of(winner->region);
    const Constant* trip = input.context.catalog.constant(same_part ? "round_trip_near_ms" : "round_trip_far_ms");
    std::string text = fmt::format("requests come from {}{}, the service is in {}", w.traffic.region,
                                   w.traffic.cloud == node.cloud ? "" : " of " + w.traffic.cloud, winner->region);
    if (trip != nullptr)
        text += fmt::format(": a round trip of {:.0f} - {:.0f} ms is on top of every first token, and in no limit here",
                            trip->low, trip->high);
    out.push_back({same_part ? AdviceSeverity::info : AdviceSeverity::warning, "users-elsewhere", std::move(text),
                   fmt::format("where: {{regions: [{}]}} plans beside them", w.traffic.region), ""});
}

}  // namespace stoker
