#include "app/commands/focus_csv.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace stoker {
namespace {

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

}  // namespace

std::string focus_head() {
    return "BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ChargeClass,"
           "ChargeDescription,BillingAccountId,BillingAccountName,SubAccountId,SubAccountName,BillingCurrency,"
           "BilledCost,"
           "EffectiveCost,ListCost,ContractedCost,ConsumedQuantity,ConsumedUnit,PricingQuantity,PricingUnit,"
           "ServiceCategory,"
           "ServiceName,ProviderName,PublisherName,InvoiceIssuerName,ResourceId,ResourceName,ResourceType,SkuId,Tags\n";
}

std::string focus_line(const FocusCharge& charge) {
    const int year = std::stoi(charge.month.substr(0, 4)), month = std::stoi(charge.month.substr(5, 2));
    const std::string begins = charge.month + "-01T00:00:00Z",
                      ends = fmt::format("{:04}-{:02}-01T00:00:00Z", month == 12 ? year + 1 : year,
                                         month == 12 ? 1 : month + 1);
    const std::vector<std::string> fields = {begins,
                                             ends,
                                             charge.from,
                                             charge.to,
                                             charge.credit ? "Credit" : "Usage",
                                             charge.credit ? "Correction" : "",
                                             charge.description,
                                             charge.organisation,
                                             charge.organisation,
                                             charge.project,
                                             charge.project,
                                             charge.currency,
                                             charge.cost,
                                             charge.cost,
                                             charge.cost,
                                             charge.cost,
                                             charge.quantity,
                                             charge.unit,
                                             charge.quantity,
                                             charge.unit,
                                             charge.category,
                                             charge.service,
                                             "Stoker",
                                             "Stoker",
                                             "Stoker",
                                             charge.resource,
                                             charge.resource_name,
                                             charge.resource_type,
                                             charge.sku,
                                             charge.tags};
    std::string row;
    for (const std::string& field : fields) row += (row.empty() ? "" : ",") + csv_field(field);
    return row + "\n";
}

}  // namespace stoker
