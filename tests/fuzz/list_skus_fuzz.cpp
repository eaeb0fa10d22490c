// Any JSON: the readers of az answers and price pages return rows or an error. One corpus serves all three.
#include <cstdint>
#include <string_view>

#include "catalog/azure_answers.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace stoker;
    static const Catalog shipped = [] {
        auto catalog = Catalog::embedded();
        REQUIRE(catalog.ok());
        return std::move(catalog).value();
    }();
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto values = json_values(text, AzureAnswer::skus, "answer.json")) {
        for (std::string_view value : *values)
            REQUIRE(!value.empty() && (value.front() == '[' || value.size() <= size));
    }
    const auto document = Document::parse_json(text, "answer.json");
    if (!document) return 0;
    if (const auto offers = read_list_skus(*document)) {
        for (const SkuOffer& offer : *offers) {
            const SkuOffer* found = find_offer(*offers, offer.size, offer.region);
            REQUIRE(found != nullptr && found->region == offer.region && lists_region(*offers, offer.region));
            for (const std::string& zone : offer.zones) {
                for (const std::string& closed : offer.restricted_zones) REQUIRE(zone != closed);
            }
        }
    }
    if (const auto usages = read_list_usage(*document)) {
        for (const QuotaUsage& usage : *usages) REQUIRE(usage.current >= 0 && usage.limit >= -1);
    }
    // A page is applied to a copy only when it has prices: copying costs more than reading.
    const Node* items = document->root().is_mapping() ? document->root().find("Items") : nullptr;
    if (items != nullptr && !items->items.empty()) {
        Catalog catalog = shipped;
        const auto report = apply_retail_prices(*document, "2026-11-21", catalog);
        REQUIRE(!report || (report->taken >= 0 && report->skipped >= 0));
    }
    return 0;
}
