#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

// Families of which the catalogue has every size; of others it has those that GPU work uses.
bool sku003_complete_family(std::string_view size) {
    for (const std::string_view family :
         {"Standard_NC", "Standard_ND", "Standard_NG", "Standard_NV", "Standard_HB", "Standard_HC", "Standard_HX"})
        if (starts_with_ignore_case(size, family)) return true;
    return false;
}

}  // namespace

void check_sku003(const File& file, Report& report) {
    each_size(file, [&](const Value& size, const std::string& address) {
        const Knowledge& facts = report.knowledge();
        if (!Knowledge::looks_like_size(size.text) || !sku003_complete_family(size.text) || facts.size(size.text) ||
            facts.retirement(size.text))
            return;
        Finding* finding = report.add(size, address, fmt::format("no size is called {}", size.text));
        if (!finding) return;
        const std::string_view near = facts.nearest_size(size.text);
        if (!near.empty()) finding->advice = fmt::format("did you mean {}?", near);
        const int age = days_between(facts.sizes_as_of(), report.options().as_of);
        if (age > report.options().catalogue_max_age_days) {
            finding->severity = Severity::warning;
            finding->message += fmt::format(" in the catalogue, which is {} days old", age);
        }
    });
}

}  // namespace stoker::lint
