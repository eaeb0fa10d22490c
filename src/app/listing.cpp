#include "app/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "plan/context.h"

namespace stoker {

std::string number_text(double value) {
    const double size = std::fabs(value);
    if (size >= 1000) return format_thousands(value);
    return fmt::format("{:.3g}", value);
}

std::string bare_size(std::string_view name) {
    return std::string(name.starts_with("Standard_") ? name.substr(9) : name);
}

std::string cell_text(const Json& json) {
    if (const auto* text = std::get_if<std::string>(&json.value())) return text->empty() ? "-" : *text;
    if (const auto* number = std::get_if<double>(&json.value())) return number_text(*number);
    if (const auto* whole = std::get_if<std::int64_t>(&json.value()))
        return *whole >= 10000 ? format_thousands(static_cast<double>(*whole)) : std::to_string(*whole);
    if (const auto* flag = std::get_if<bool>(&json.value())) return *flag ? "yes" : "no";
    if (const auto* array = std::get_if<Json::Array>(&json.value())) {
        std::string text;
        for (const Json& item : *array) text += (text.empty() ? "" : ", ") + cell_text(item);
        return text.empty() ? "-" : text;
    }
    return "-";
}

Json FactTable::json() const {
    Json array = Json::array();
    for (const auto& row : rows) {
        Json object = Json::object();
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (!columns[c].key.empty()) object.set(columns[c].key, row[c]);
        }
        array.push(std::move(object));
    }
    return array;
}

std::string FactTable::text(const Style& style) const {
    std::vector<Column> heads;
    for (const FactColumn& column : columns) {
        if (!column.head.empty()) heads.push_back({column.head, column.align});
    }
    std::vector<std::vector<std::string>> cells;
    for (const auto& row : rows) {
        std::vector<std::string> line;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (!columns[c].head.empty()) line.push_back(cell_text(row[c]));
        }
        cells.push_back(std::move(line));
    }
    return table_text(style, heads, cells);
}

Json Card::json() const {
    Json object = Json::object();
    for (const CardFact& fact : facts)
        if (!fact.key.empty()) object.set(fact.key, fact.value);  // a line of text alone has none
    return object;
}

namespace {

std::string fact_text(const CardFact& fact) {
    return fact.text.empty() ? cell_text(fact.value) : fact.text;
}

std::string drop_first_line(const std::string& table) {
    return table.substr(std::min(table.find('\n') + 1, table.size()));
}

}  // namespace

std::string Card::text(const Style& style) const {
    std::vector<std::vector<std::string>> rows;
    for (const CardFact& fact : facts) {
        const std::string value = fact_text(fact);
        if (!fact.label.empty() && value != "-") rows.push_back({fact.label, value});
    }
    return style.bold(title) + "\n" + drop_first_line(table_text(style, {{"", Align::left}, {"", Align::left}}, rows));
}

std::string side_by_side(const std::vector<Card>& cards, const Style& style) {
    std::vector<Column> columns = {{"", Align::left}};
    for (const Card& card : cards) columns.push_back({card.title, Align::right});
    std::vector<std::vector<std::string>> rows;
    for (const CardFact& fact : cards.front().facts) {
        if (fact.label.empty()) continue;
        std::vector<std::string> row = {fact.label};
        bool known = false;
        for (const Card& card : cards) {
            const auto same = std::find_if(card.facts.begin(), card.facts.end(),
                                           [&](const CardFact& other) { return other.key == fact.key; });
            row.push_back(same == card.facts.end() ? "-" : fact_text(*same));
            known = known || row.back() != "-";
        }
        if (known) rows.push_back(std::move(row));
    }
    return table_text(style, columns, rows);
}

double tensor_ratio(const Accelerator& gpu) {
    const double fp32 = gpu.peak[static_cast<std::size_t>(Precision::fp32)].v;
    const double half = std::max(gpu.peak[static_cast<std::size_t>(Precision::fp16)].v,
                                 gpu.peak[static_cast<std::size_t>(Precision::bf16)].v);
    return fp32 > 0 ? half / fp32 : 0;
}

double peak_of_node(const NodeType& node, const Catalog& catalog, Precision precision) {
    if (node.has_gpu())
        return catalog.accelerators()[static_cast<std::size_t>(node.accelerator)]
                   .peak[static_cast<std::size_t>(precision)]
                   .v *
               node.accelerators;
    if (node.cpu < 0) return 0;
    const Cpu& cpu = catalog.cpus()[static_cast<std::size_t>(node.cpu)];
    const double per_cycle = precision == Precision::fp32   ? cpu.fp32_flop_per_cycle
                             : precision == Precision::bf16 ? cpu.bf16_flop_per_cycle
                                                            : 0;
    return node.cores * cpu.ghz * 1e9 * per_cycle;
}

double memory_bandwidth_of_node(const NodeType& node, const Catalog& catalog) {
    if (node.has_gpu())
        return catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].memory_bandwidth.v *
               node.accelerators;
    return node.cpu < 0 ? 0
                        : catalog.cpus()[static_cast<std::size_t>(node.cpu)].memory_bandwidth_per_core.v * node.cores;
}

double device_memory_of_node(const NodeType& node, const Catalog&) {
    if (!node.has_gpu()) return node.memory.v;
    return node.accelerator_memory.v * std::max(1.0, node.accelerators);  // a fraction's memory is that of the fraction
}

const Price* cheapest_price(const Catalog& catalog, int node_type, std::string_view region, std::string_view os,
                            Pricing pricing) {
    const Price* best = nullptr;
    for (const Price& price : catalog.prices_of(node_type)) {
        if (price.os != os || price.pricing != pricing || (!region.empty() && price.region != region)) continue;
        if (best == nullptr || price.per_hour < best->per_hour) best = &price;
    }
    return best;
}

const Price* usual_price(const Catalog& catalog, int node_type, std::string_view region, std::string_view os,
                         Pricing pricing) {
    if (!region.empty()) return cheapest_price(catalog, node_type, region, os, pricing);
    const Price* eastus = cheapest_price(catalog, node_type, "eastus", os, pricing);
    return eastus != nullptr ? eastus : cheapest_price(catalog, node_type, "", os, pricing);
}

std::string hourly_text(double dollars) {
    std::string text = fmt::format("{:.4f}", dollars);
    while (text.ends_with('0') && text[text.size() - 3] != '.') text.pop_back();
    return text;
}

std::string price_line(const Price& price) {
    return fmt::format("${} per hour, {}, {}, {}{}, as of {}, source {}", hourly_text(price.per_hour.dollars()),
                       price.region.empty() ? "no region" : price.region, price.os, to_string(price.pricing),
                       price.estimate ? " (estimate)" : "", price.provenance.as_of, price.provenance.source);
}

const std::vector<std::string>& price_pages() {
    static const std::vector<std::string> pages = {
        "https://azure.microsoft.com/pricing/calculator/",
        "https://azure.microsoft.com/pricing/details/virtual-machines/linux/",
        "https://azure.microsoft.com/pricing/details/virtual-machines/windows/"};
    return pages;
}

std::string stale_warning(const Catalog& catalog, std::string_view today) {
    const Constant* limit = catalog.constant("catalogue_stale_days");
    const long age = days_between(catalog.as_of, today);
    if (static_cast<double>(age) <= (limit != nullptr ? limit->value : 90)) return {};
    return fmt::format(
        "warning: the catalogue is of {}, {} days old: prices and retirements may have changed\n"
        "  update stoker, use --catalog with fresher files, or verify: {}\n",
        catalog.as_of, age, price_pages()[0]);
}

std::string retirement_text(std::string_view date, std::string_view today) {
    if (date.empty()) return {};
    return fmt::format("{} {}", date <= today ? "retired since" : "retires on", date);
}

}  // namespace stoker
