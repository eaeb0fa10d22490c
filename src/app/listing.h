// Tables and cards of facts that are printed for people and as JSON from the same cells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/session.h"
#include "base/json.h"
#include "base/style.h"
#include "catalog/catalog.h"

namespace stoker {

std::string number_text(double value);         // 3.2, 989, 3,350: three digits that matter
std::string cell_text(const Json& json);       // null: "-"
std::string bare_size(std::string_view name);  // without Standard_

struct FactColumn {
    std::string key;   // in JSON; empty: for people only
    std::string head;  // above the column; empty: in JSON only
    Align align = Align::left;
};
struct FactTable {
    std::vector<FactColumn> columns;
    std::vector<std::vector<Json>> rows;
    Json json() const;  // an array of objects
    std::string text(const Style& style) const;
};

struct CardFact {
    std::string key, label;
    Json value;
    std::string text;  // empty: cell_text(value)
};
struct Card {
    std::string title;
    std::vector<CardFact> facts;
    void add(std::string key, std::string label, Json value, std::string text = {}) {
        facts.push_back({std::move(key), std::move(label), std::move(value), std::move(text)});
    }
    Json json() const;
    std::string text(const Style& style) const;
};
// Cards side by side: one row a fact, one column a card. The first card decides which facts.
std::string side_by_side(const std::vector<Card>& cards, const Style& style);

// What the catalogue derives from its rows, for lists and comparisons.
double tensor_ratio(const Accelerator& gpu);  // dense FP16 or BF16 over FP32; 0: unknown
double peak_of_node(const NodeType& node, const Catalog& catalog,
                    Precision precision);  // FLOP/s of all devices, of the CPU when there is none; 0: none
double memory_bandwidth_of_node(const NodeType& node, const Catalog& catalog);  // bytes/s
double device_memory_of_node(const NodeType& node, const Catalog& catalog);     // bytes on all devices; RAM without one
// The cheapest price of this kind, in `region` when one is named; nullptr: none. Ties: the first region.
const Price* cheapest_price(const Catalog& catalog, int node_type, std::string_view region, std::string_view os,
                            Pricing pricing);
// The one to quote when nobody names a region: East US, which most published figures use, else the cheapest.
const Price* usual_price(const Catalog& catalog, int node_type, std::string_view region, std::string_view os,
                         Pricing pricing);
std::string hourly_text(double dollars);        // 0.526, 4.352, 11.00: as price lists print them
std::string price_line(const Price& price);     // "$98.32/h, eastus, linux, on-demand, as of 2026-06-18, source"
const std::vector<std::string>& price_pages();  // where to verify
// What to say of a catalogue older than catalogue_stale_days on this day; empty: nothing.
std::string stale_warning(const Catalog& catalog, std::string_view today);
std::string retirement_text(std::string_view date,
                            std::string_view today);  // "retired since 2023-09-06", "retires on ...", ""

}  // namespace stoker
