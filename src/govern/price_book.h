// What an hour of a node, a CPU or a GPU costs, and since when. A YAML file:
//     currency: USD
//     source: "our data centre, depreciation and power, 2026"
//     prices:
//       - {resource: gpu, model: H100, usd_per_hour: 2.40, valid_from: 2026-01-01}
//       - {resource: cpu, usd_per_hour: 0.02, valid_from: 2026-01-01}
//       - {resource: node, node: big-1, usd_per_hour: 9.80, valid_from: 2026-01-01}
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/table.h"

namespace stoker {

// tokens: charged as a gateway has priced them, never by the book.
enum class PricedResource : std::uint8_t { node, cpu, gpu, tokens };
std::string_view to_string(PricedResource resource);
constexpr std::array<std::pair<PricedResource, std::string_view>, 4> enum_names(PricedResource) {
    return {{{PricedResource::node, "node"},
             {PricedResource::cpu, "cpu"},
             {PricedResource::gpu, "gpu"},
             {PricedResource::tokens, "tokens"}}};
}

struct BookPrice {
    PricedResource resource = PricedResource::cpu;
    std::string model, node;  // empty: any
    std::int64_t microusd_per_hour = 0;
    std::int64_t valid_from_us = 0;
};

// What an organisation pays on top of every price, or less than it: in hundredths of a percent.
struct Markup {
    std::string organisation;
    std::int64_t basis_points = 0;
};

struct PriceBook {
    std::string currency = "USD", source;
    std::vector<BookPrice> prices;  // by valid_from
    std::vector<Markup> markups{};  // of organisations by name

    static Result<PriceBook> read(std::string_view text, const std::string& file);
    static Result<PriceBook> read(const Node& root);
    bool empty() const { return prices.empty(); }
    std::int64_t markup_of(std::string_view organisation) const;  // 0: none

    // The rates of a resource in force from each moment on, oldest first: the one that names node and model goes before
    // one that names less, and a later valid_from before an earlier one.
    struct Rate {
        std::int64_t from_us = 0, microusd_per_hour = 0;
        bool known = false;
    };
    std::vector<Rate> rates(PricedResource resource, std::string_view node, std::string_view model) const;
};

// The same prices give the same name; empty: there are none.
std::string digest(const PriceBook& book);

std::shared_ptr<const RecordInfo> price_book_record();  // for schemas and reference pages

}  // namespace stoker
