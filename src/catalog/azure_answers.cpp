#include "catalog/azure_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "catalog/field_reader.h"
#include "catalog/names.h"

namespace stoker {
namespace {

// The strings of a list; nothing when it is absent. REST answers leave empty lists out or write null.
std::vector<std::string> strings_of(const Node* list) {
    std::vector<std::string> strings;
    if (list == nullptr || !list->is_sequence()) return strings;
    for (const auto& item : list->items) {
        if (item->is_scalar() && item->kind != NodeKind::null) strings.push_back(item->text);
    }
    return strings;
}

std::string region_name(std::string_view written) {  // "East US" and "EastUS" are eastus
    std::string name = lower(written);
    std::erase(name, ' ');
    return name;
}

void sort_unique(std::vector<std::string>& strings) {
    std::sort(strings.begin(), strings.end());
    strings.erase(std::unique(strings.begin(), strings.end()), strings.end());
}

bool contains_word(std::string_view text, std::string_view word) {
    return lower(text).find(lower(word)) != std::string::npos;
}

const Node* text_member(const Node& node, std::string_view key) {
    const Node* value = node.find(key);
    return value != nullptr && value->is_scalar() && value->kind != NodeKind::null ? value : nullptr;
}

struct Restriction {
    bool whole_location = false;
    std::vector<std::string> regions, zones;
    std::string reason;
};

// restrictionInfo names regions and zones; older answers have only `values`: the regions for Location, the zones for
// Zone.
Restriction read_restriction(const Node& node) {
    Restriction restriction;
    const Node* type = text_member(node, "type");
    restriction.whole_location = type == nullptr || !equals_ignore_case(type->text, "Zone");
    if (const Node* reason = text_member(node, "reasonCode")) restriction.reason = reason->text;
    const Node* info = node.find("restrictionInfo");
    if (info != nullptr && info->is_mapping()) {
        restriction.regions = strings_of(info->find("locations"));
        restriction.zones = strings_of(info->find("zones"));
    }
    if (restriction.whole_location && restriction.regions.empty())
        restriction.regions = strings_of(node.find("values"));
    if (!restriction.whole_location && restriction.zones.empty()) restriction.zones = strings_of(node.find("values"));
    for (std::string& region : restriction.regions) region = region_name(region);
    return restriction;
}

void apply_restriction(const Restriction& restriction, SkuOffer& offer) {
    const bool here = restriction.regions.empty() || std::find(restriction.regions.begin(), restriction.regions.end(),
                                                               offer.region) != restriction.regions.end();
    if (!here) return;
    if (restriction.whole_location) {
        offer.location_restricted = true;
    } else {
        offer.restricted_zones.insert(offer.restricted_zones.end(), restriction.zones.begin(), restriction.zones.end());
    }
    if (!restriction.reason.empty()) offer.reason_codes.push_back(restriction.reason);
}

// The zones of a region as locationInfo lists them.
std::vector<std::string> zones_in(const Node& sku, const std::string& region) {
    const Node* infos = sku.find("locationInfo");
    if (infos == nullptr || !infos->is_sequence()) return {};
    for (const auto& info : infos->items) {
        const Node* location = info->is_mapping() ? text_member(*info, "location") : nullptr;
        if (location != nullptr && region_name(location->text) == region) return strings_of(info->find("zones"));
    }
    return {};
}

std::string capability(const Node& sku, std::string_view name) {
    const Node* list = sku.find("capabilities");
    if (list == nullptr || !list->is_sequence()) return {};
    for (const auto& item : list->items) {
        const Node* key = item->is_mapping() ? text_member(*item, "name") : nullptr;
        if (key == nullptr || !equals_ignore_case(key->text, name)) continue;
        const Node* value = text_member(*item, "value");
        return value != nullptr ? value->text : std::string();
    }
    return {};
}

// The API writes 2028-11-15T00:00:00Z for some sizes and 11/15/2028 for others; here it is always 2028-11-15.
std::string iso_date(std::string_view written) {
    const std::string_view day = written.substr(0, 10);
    const bool american = day.size() == 10 && day[2] == '/' && day[5] == '/';
    return american ? fmt::format("{}-{}-{}", day.substr(6, 4), day.substr(0, 2), day.substr(3, 2)) : std::string(day);
}

void read_sku(const Node& sku, Problems& problems, std::vector<SkuOffer>& offers) {
    FieldReader in(sku, problems);
    const std::string size = in.required_text({"name"});
    std::vector<std::string> regions = strings_of(sku.find("locations"));
    if (regions.empty()) in.problem("\"locations\" is missing or empty");
    for (std::string& region : regions) region = region_name(region);
    sort_unique(regions);

    std::vector<Restriction> restrictions;
    const Node* listed = in.find({"restrictions"});
    if (listed != nullptr && !listed->is_sequence()) in.problem("\"restrictions\" is not a list", listed);
    if (listed != nullptr) {
        for (const auto& item : listed->items) {
            if (item->is_mapping()) restrictions.push_back(read_restriction(*item));
        }
    }
    for (const std::string& region : regions) {
        SkuOffer offer;
        offer.size = size;
        offer.region = region;
        offer.family = in.text({"family"}).value_or(std::string());
        offer.retirement_date = iso_date(capability(sku, "RetirementDateUtc"));
        offer.pos = sku.pos;
        for (const Restriction& restriction : restrictions) apply_restriction(restriction, offer);
        sort_unique(offer.restricted_zones);
        sort_unique(offer.reason_codes);
        for (const std::string& zone : zones_in(sku, region)) {
            if (!std::binary_search(offer.restricted_zones.begin(), offer.restricted_zones.end(), zone))
                offer.zones.push_back(zone);
        }
        sort_unique(offer.zones);
        offers.push_back(std::move(offer));
    }
}

void read_usage(const Node& row, Problems& problems, std::vector<QuotaUsage>& usages) {
    FieldReader in(row, problems);
    QuotaUsage usage;
    usage.pos = row.pos;
    const Node* name = in.find({"name"});
    if (name != nullptr && name->is_mapping()) {
        FieldReader inner(*name, problems);
        usage.family = inner.required_text({"value"});
        usage.label = inner.text({"localizedValue"}).value_or(std::string());
    } else {
        usage.family = in.required_text({"name"});
    }
    if (usage.label.empty()) usage.label = in.text({"localName"}).value_or(usage.family);
    // A limit of -1 stands for no limit.
    usage.current = in.required_number({"currentValue"}, 0, 1e15);
    usage.limit = in.required_number({"limit"}, -1, 1e15);
    usages.push_back(std::move(usage));
}

// One item of a price page, or nothing when it is not a price that plans are made with.
class PageReader {
public:
    PageReader(std::string_view as_of, const Catalog& catalog, Problems& problems)
        : as_of_(as_of), catalog_(catalog), problems_(problems) {}

    void read(const Node& item) {
        FieldReader in(item, problems_);
        const std::string currency = in.text({"currencyCode"}).value_or("USD");
        if (currency != "USD") {
            in.problem(
                fmt::format("the price is in {}, and everything here is counted in USD", printable(currency, 20)),
                in.find({"currencyCode"}), "ask for the page without currencyCode, or with currencyCode='USD'");
            return;
        }
        const std::optional<Pricing> pricing = pricing_of(in);
        if (!pricing) {
            ++report.skipped;
            return;
        }
        const std::string size = in.required_text({"armSkuName"});
        const std::string region = region_name(in.required_text({"armRegionName"}));
        const double dollars = in.required_number({"retailPrice", "unitPrice"}, 0, 1e9);
        const auto node_type = catalog_.find_node_type(size);
        if (!node_type) {
            report.unknown_sizes.push_back(size);
            return;
        }
        if (dollars <= 0 || region.empty()) {  // free of charge is how the list writes "not sold"
            ++report.skipped;
            return;
        }
        // A reservation is listed with the price of its whole term; Azure counts 8,760 hours a year.
        const double years = *pricing == Pricing::reserved_1y ? 1 : *pricing == Pricing::reserved_3y ? 3 : 0;
        const double hourly = years > 0 ? dollars / (8760 * years) : dollars;
        Price price;
        price.node_type = *node_type;
        price.region = region;
        price.os = "linux";
        price.pricing = *pricing;
        price.per_hour = Usd::from_double(hourly);
        price.low = price.high = hourly;
        price.provenance = {"Azure Retail Prices API", std::string(as_of_)};
        prices.push_back(std::move(price));
        ++report.taken;
    }

    PricePageReport report;
    std::vector<Price> prices;

private:
    static std::optional<Pricing> pricing_of(FieldReader& in) {
        const std::string service = in.text({"serviceName"}).value_or("Virtual Machines");
        const std::string product = in.text({"productName"}).value_or(""), meter = in.text({"meterName"}).value_or(""),
                          sku = in.text({"skuName"}).value_or("");
        const std::string type = in.text({"type", "priceType"}).value_or("Consumption"),
                          unit = in.text({"unitOfMeasure"}).value_or("1 Hour");
        if (service != "Virtual Machines" || unit != "1 Hour") return std::nullopt;
        if (in.number({"tierMinimumUnits"}, 0, 1e15).value_or(0) > 0) return std::nullopt;
        for (std::string_view other : {"Windows", "Dedicated", "CloudServices", "Cloud Services"}) {
            if (contains_word(product, other)) return std::nullopt;
        }
        if (contains_word(meter, "Low Priority") || contains_word(sku, "Low Priority")) return std::nullopt;
        if (type == "Reservation") {
            const std::string term = in.text({"reservationTerm"}).value_or("");
            if (term == "1 Year") return Pricing::reserved_1y;
            if (term == "3 Years") return Pricing::reserved_3y;
            return std::nullopt;
        }
        if (type != "Consumption") return std::nullopt;  // DevTestConsumption
        return contains_word(meter, "Spot") || contains_word(sku, "Spot") ? Pricing::spot : Pricing::on_demand;
    }

    std::string_view as_of_;
    const Catalog& catalog_;
    Problems& problems_;
};

// A spot price that is no lower than the list price means that no discount is listed, whichever of the two came from
// the page.
void drop_undiscounted_spot(std::vector<Price>& fresh, const Catalog& catalog) {
    std::map<std::pair<int, std::string>, Usd> list;
    for (const Price& p : fresh) {
        if (p.pricing == Pricing::on_demand) list[{p.node_type, p.region}] = p.per_hour;
    }
    std::erase_if(fresh, [&](const Price& p) {
        if (p.pricing != Pricing::spot) return false;
        const auto at = list.find({p.node_type, p.region});
        const Price* known = catalog.price(p.node_type, p.region, p.os, Pricing::on_demand);
        if (at != list.end()) return p.per_hour >= at->second;
        return known != nullptr && p.per_hour >= known->per_hour;
    });
}

}  // namespace

Result<std::vector<SkuOffer>> read_list_skus(const Document& document) {
    TRY(const Node* list, list_of(document.root(), "value", "the answer of az vm list-skus"));
    Problems problems;
    std::vector<SkuOffer> offers;
    for (const auto& item : list->items) {
        if (!item->is_mapping()) {
            problems.push_back(
                Problem{fmt::format("{} where a size was expected", to_string(item->kind)), {}, item->pos});
            continue;
        }
        const Node* type = text_member(*item, "resourceType");
        if (type != nullptr && !equals_ignore_case(type->text, "virtualMachines")) continue;  // disks, snapshots, hosts
        read_sku(*item, problems, offers);
    }
    if (!problems.empty()) return error_of(std::move(problems)).while_doing("reading the answer of az vm list-skus");
    std::stable_sort(offers.begin(), offers.end(), [](const SkuOffer& a, const SkuOffer& b) {
        return std::tie(a.size, a.region) < std::tie(b.size, b.region);
    });
    return offers;
}

Result<std::vector<QuotaUsage>> read_list_usage(const Document& document) {
    TRY(const Node* list, list_of(document.root(), "value", "the answer of az vm list-usage"));
    Problems problems;
    std::vector<QuotaUsage> usages;
    for (const auto& item : list->items) {
        if (item->is_mapping()) {
            read_usage(*item, problems, usages);
        } else {
            problems.push_back(
                Problem{fmt::format("{} where a quota was expected", to_string(item->kind)), {}, item->pos});
        }
    }
    if (!problems.empty()) return error_of(std::move(problems)).while_doing("reading the answer of az vm list-usage");
    return usages;
}

std::string normalize_quota_family(std::string_view family) {
    std::string normal = lower(family);
    std::erase_if(normal, [](char c) { return c == ' ' || c == '\t'; });
    return normal;
}

Result<PricePageReport> apply_retail_prices(const Document& document, std::string_view as_of, Catalog& catalog) {
    TRY(const Node* items, list_of(document.root(), "Items", "a page of the Retail Prices API"));
    Problems problems;
    PageReader page(as_of, catalog, problems);
    for (const auto& item : items->items) {
        if (item->is_mapping()) {
            page.read(*item);
        } else {
            problems.push_back(
                Problem{fmt::format("{} where a price was expected", to_string(item->kind)), {}, item->pos});
        }
    }
    if (!problems.empty()) return error_of(std::move(problems)).while_doing("reading a page of the Retail Prices API");
    const std::size_t read = page.prices.size();
    drop_undiscounted_spot(page.prices, catalog);
    const int undiscounted = static_cast<int>(read - page.prices.size());
    page.report.taken -= undiscounted;
    page.report.skipped += undiscounted;
    sort_unique(page.report.unknown_sizes);
    catalog.replace_prices(std::move(page.prices));
    catalog.estimate_missing_spot_prices();
    return std::move(page.report);
}

}  // namespace stoker
