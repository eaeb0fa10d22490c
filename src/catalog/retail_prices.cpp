// Pages of the Azure Retail Prices API: list prices, spot, reservations, savings plans.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "catalog/azure_rows.h"
#include "catalog/field_reader.h"
#include "catalog/names.h"
#include "catalog/savings_plan.h"

namespace stoker {
namespace {

// One item of a price page, or nothing when it is not a price that plans are made with.
class PageReader {
public:
    PageReader(std::string_view as_of, const Catalog& catalog, Problems& problems)
        : as_of_(as_of), problems_(problems) {
        // Catalog::find_node_type looks for the nearest name when it finds none, and most rows of a page have none.
        for (std::size_t i = 0; i < catalog.node_types().size(); ++i)
            sizes_.emplace(fold_vm_size(catalog.node_types()[i].name), static_cast<int>(i));
    }

    void read(const Node& item) {
        FieldReader in(item, problems_);
        const std::string currency = in.text({"currencyCode"}).value_or("USD");
        if (currency != "USD") {
            if (!foreign_) {  // one line for the page, not one for each of its thousand rows
                in.problem(
                    fmt::format("the price is in {}, and everything here is counted in USD", printable(currency, 20)),
                    in.find({"currencyCode"}), "ask for the page without currencyCode, or with currencyCode='USD'");
            }
            foreign_ = true;
            return;
        }
        const std::optional<Pricing> pricing = pricing_of(in);
        if (!pricing) {
            ++report.skipped;
            return;
        }
        const std::string size = in.required_text({"armSkuName"});
        const std::string region = region_name(in.required_text({"armRegionName"}));
        const double dollars = in.required_number({"retailPrice", "unitPrice"}, 0, 1e9) / hours_of(in);
        const auto known = sizes_.find(fold_vm_size(size));
        if (known == sizes_.end()) {
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
        price.node_type = known->second;
        price.region = region;
        price.os = "linux";
        price.pricing = *pricing;
        price.per_hour = Usd::from_double(hourly);
        price.low = price.high = hourly;
        price.provenance = {"Azure Retail Prices API", std::string(as_of_)};
        if (*pricing == Pricing::on_demand) read_savings_plans(in, price);
        prices.push_back(std::move(price));
        ++report.taken;
    }

    // A commitment of so long is paid in the cheaper of the two ways: a reservation of the size, or a savings plan.
    void add_savings_plans() {
        for (Price& plan : savings_) {
            const auto same = [&](const Price& p) {
                return p.node_type == plan.node_type && p.region == plan.region && p.pricing == plan.pricing;
            };
            const bool beaten = std::any_of(prices.begin(), prices.end(),
                                            [&](const Price& p) { return same(p) && p.per_hour <= plan.per_hour; });
            if (beaten) continue;
            std::erase_if(prices, same);
            prices.push_back(std::move(plan));
        }
        savings_.clear();
    }

    PricePageReport report;
    std::vector<Price> prices;

private:
    // With api-version 2023-01-01-preview a price per hour carries what it is under a savings plan.
    void read_savings_plans(FieldReader& in, const Price& list) {
        const Node* plans = in.find({"savingsPlan"});
        if (plans == nullptr) return;
        if (!plans->is_sequence()) return in.problem("savingsPlan: expected a list of terms with their prices", plans);
        for (const auto& row : plans->items) {
            if (!row->is_mapping()) {
                in.problem("savingsPlan: expected a term with its price", row.get());
                continue;
            }
            FieldReader plan(*row, problems_);
            const std::string term = plan.required_text({"term"});
            const double hourly = plan.required_number({"retailPrice", "unitPrice"}, 0, 1e9) / hours_of(in);
            if (hourly <= 0 || (term != "1 Year" && term != "3 Years")) continue;
            Price price = list;
            price.pricing = term == "1 Year" ? Pricing::reserved_1y : Pricing::reserved_3y;
            price.per_hour = Usd::from_double(hourly);
            price.low = price.high = hourly;
            price.provenance.source += std::string(kSavingsPlan);
            savings_.push_back(std::move(price));
        }
    }

    // "1 Hour", "100 Hours"; 0 for what is not sold by the hour.
    static double hours_of(FieldReader& in) {
        const std::string unit = in.text({"unitOfMeasure"}).value_or("1 Hour");
        double count = 0;
        const auto [end, failure] = std::from_chars(unit.data(), unit.data() + unit.size(), count);
        const std::string_view rest =
            trim(std::string_view(end, static_cast<std::size_t>(unit.data() + unit.size() - end)));
        const bool hours = equals_ignore_case(rest, "Hour") || equals_ignore_case(rest, "Hours");
        return failure == std::errc() && hours && count >= 1 && count <= 1e6 ? count : 0;
    }

    static std::string day_of(FieldReader& in, std::string_view key) {
        const std::string text = in.text({key}).value_or("");
        return text.size() >= 10 && text[4] == '-' && text[7] == '-' ? text.substr(0, 10) : std::string();
    }

    std::optional<Pricing> pricing_of(FieldReader& in) const {
        const std::string service = in.text({"serviceName"}).value_or("Virtual Machines");
        const std::string product = in.text({"productName"}).value_or(""), meter = in.text({"meterName"}).value_or(""),
                          sku = in.text({"skuName"}).value_or("");
        const std::string type = in.text({"type", "priceType"}).value_or("Consumption");
        if (service != "Virtual Machines" || hours_of(in) <= 0) return std::nullopt;
        // Days compare as text. A price that ended, or that is announced for later, is none of today's.
        if (const std::string end = day_of(in, "effectiveEndDate"); !end.empty() && end < as_of_) return std::nullopt;
        if (const std::string start = day_of(in, "effectiveStartDate"); start > as_of_) return std::nullopt;
        if (in.number({"tierMinimumUnits"}, 0, 1e15).value_or(0) > 0) return std::nullopt;
        for (std::string_view other : {"Windows", "Dedicated", "CloudServices", "Cloud Services"}) {
            if (contains_word(product, other)) return std::nullopt;
        }
        if (contains_word(meter, "Low Priority") || contains_word(sku, "Low Priority")) return std::nullopt;
        if (contains_word(meter, "Expired")) return std::nullopt;
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
    std::map<std::string, int> sizes_;
    Problems& problems_;
    std::vector<Price> savings_;
    bool foreign_ = false;
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

Result<PricePageReport> apply_retail_prices(const Document& document, std::string_view as_of, Catalog& catalog) {
    TRY(const Node* items, rows_of(document.root(), "Items", AzureAnswer::prices));
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
    const Node* next = document.root().is_mapping() ? text_member(document.root(), "NextPageLink") : nullptr;
    page.report.more_pages = next != nullptr && !next->text.empty();
    page.add_savings_plans();
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
