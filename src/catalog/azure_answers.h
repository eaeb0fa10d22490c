// What az and the Retail Prices API answer, as users save it to files. Each narrows or reprices a plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "catalog/catalog.h"

namespace stoker {

// Which of these answers a file holds. All three are read by keys, so a file given with the wrong option is recognised.
enum class AzureAnswer : std::uint8_t { skus, usage, prices };

// The JSON values of a saved answer, one after another, as pages appended to one file are. Refused, with the command
// that gives the right thing: `-o table` and `-o tsv` text, a page of HTML, nothing at all.
Result<std::vector<std::string_view>> json_values(std::string_view text, AzureAnswer wanted, const std::string& file);

// One size in one region of `az vm list-skus -o json [--all]`: every restriction and every zone counts, not the first.
struct SkuOffer {
    std::string size, region, family;
    double gpus = 0, vcpus = 0, memory_gb = 0;  // as the answer says; 0: it does not
    std::vector<std::string> zones;             // sorted, without the restricted ones
    std::vector<std::string> restricted_zones;  // sorted
    bool location_restricted = false;
    std::vector<std::string> reason_codes;  // NotAvailableForSubscription, QuotaId; unique, sorted
    std::string retirement_date;            // RetirementDateUtc as YYYY-MM-DD; the API also writes MM/DD/YYYY
    SourcePos pos;
};
Result<std::vector<SkuOffer>> read_list_skus(const Document& document);  // in the order of order_offers
void order_offers(std::vector<SkuOffer>& offers);                        // by region, then size; what find_offer needs
const SkuOffer* find_offer(const std::vector<SkuOffer>& ordered, std::string_view size, std::string_view region);
bool lists_region(const std::vector<SkuOffer>& ordered, std::string_view region);

// One row of `az vm list-usage -o json`.
struct QuotaUsage {
    std::string family;  // name.value verbatim: standardNDSH100v5Family, cores, lowPriorityCores; spaces kept
    std::string label;   // name.localizedValue
    double current = 0, limit = 0;
    SourcePos pos;
};
Result<std::vector<QuotaUsage>> read_list_usage(const Document& document);

// The same family is "Standard NCASv3_T4 Family" in one answer and "standardNCASv3_T4Family" in another: equal when
// these are equal.
std::string normalize_quota_family(std::string_view family);

// Adds the VM rows of one Retail Prices API page; returns how many were taken. Skips Windows, Dedicated, Low Priority,
// and what is expired or not yet in force by rule, counts the rest it did not know in `unknown_sizes`.
struct PricePageReport {
    int taken = 0, skipped = 0;
    std::vector<std::string> unknown_sizes;
    bool more_pages = false;  // it names a next page
};
Result<PricePageReport> apply_retail_prices(const Document& document, std::string_view as_of, Catalog& catalog);

// An on-prem node described by the user: name, gpu, gpus, vcpus, memory, network, price per hour or capex.
//   {name: rack-1, gpu: H100-SXM, gpus: 8, vcpus: 96, memory: 1900GiB, rdma: {gbps_per_gpu: 400, kind: infiniband},
//   nvlink: yes,
//    capex: {price: $250k, years: 4, power_watts: 10200, usd_per_kwh: 0.12}, count: 4}
// Its cloud and its region are "on-prem"; its price is Pricing::owned. Returns the index of the node type.
Result<int> add_on_prem_node(const Node& node, Catalog& catalog);
// Its description names its GPUs, and not both of processors and memory: those are assumed.
bool host_is_assumed(const NodeType& node);

}  // namespace stoker
