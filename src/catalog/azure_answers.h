// What az and the Retail Prices API answer, as users save it to files. Each narrows or reprices a plan.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "catalog/catalog.h"

namespace stoker {

// One size in one region of `az vm list-skus -o json [--all]`: every restriction and every zone counts, not the first.
struct SkuOffer {
    std::string size, region, family;
    std::vector<std::string> zones;             // sorted, without the restricted ones
    std::vector<std::string> restricted_zones;  // sorted
    bool location_restricted = false;
    std::vector<std::string> reason_codes;      // NotAvailableForSubscription, QuotaId; unique, sorted
    std::string retirement_date;                // RetirementDateUtc, first ten characters
    SourcePos pos;
};
Result<std::vector<SkuOffer>> read_list_skus(const Document& document);

// One row of `az vm list-usage -o json`.
struct QuotaUsage {
    std::string family;  // name.value verbatim: standardNDSH100v5Family, cores, lowPriorityCores; spaces kept
    std::string label;   // name.localizedValue
    double current = 0, limit = 0;
    SourcePos pos;
};
Result<std::vector<QuotaUsage>> read_list_usage(const Document& document);

// Adds the VM rows of one Retail Prices API page; returns how many were taken. Skips Windows, Dedicated and Low Priority by rule,
// counts the rest it did not know in `unknown_sizes`.
struct PricePageReport {
    int taken = 0, skipped = 0;
    std::vector<std::string> unknown_sizes;
};
Result<PricePageReport> apply_retail_prices(const Document& document, std::string_view as_of, Catalog& catalog);

// An on-prem node described by the user: name, gpu, gpus, vcpus, memory, network, price per hour or capex.
Result<int> add_on_prem_node(const Node& node, Catalog& catalog);

}  // namespace stoker
