#include "govern/price_book.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/digest.h"
#include "base/document.h"
#include "base/table.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr double kMostUsdPerHour = 1e6;
constexpr std::size_t kMostPrices = 10'000;

struct PriceRow {
    PricedResource resource = PricedResource::cpu;
    std::string model, node, valid_from;
    double usd_per_hour = 0;
    std::map<std::string, SourcePos> at;
};
struct MarkupRow {
    std::string organisation;
    double percent = 0;
    std::map<std::string, SourcePos> at;
};
struct BookFile {
    std::string currency = "USD", source;
    std::vector<PriceRow> prices;
    std::vector<MarkupRow> markups;
    std::map<std::string, SourcePos> at;
};

const RecordTable<PriceRow>& price_table() {
    static const auto table =
        RecordTable<PriceRow>("price", "What an hour of something costs.")
            .choice("resource", &PriceRow::resource,
                    {{"node", PricedResource::node}, {"cpu", PricedResource::cpu}, {"gpu", PricedResource::gpu}},
                    "What is priced: a whole node, a CPU, or a GPU.", "gpu")
            .required()
            .text("model", &PriceRow::model, "Of a GPU, its model; left out: any other.", "H100")
            .text("node", &PriceRow::node, "The node it holds for; left out: any other.", "big-1")
            .number("usd_per_hour", &PriceRow::usd_per_hour, "Price of one hour of one of them.", "2.40", 0,
                    kMostUsdPerHour)
            .required()
            .text("valid_from", &PriceRow::valid_from, "The day from which on it holds, UTC.", "2026-01-01")
            .required();
    return table;
}

const RecordTable<MarkupRow>& markup_table() {
    static const auto table =
        RecordTable<MarkupRow>("markup", "What an organisation pays on top of every price.")
            .text("organisation", &MarkupRow::organisation, "Its name.", "hospital")
            .required()
            .number("percent", &MarkupRow::percent, "On top of each price; less than 0: off it.", "15", -100, 1000)
            .required();
    return table;
}

const RecordTable<BookFile>& book_table() {
    static const auto table =
        RecordTable<BookFile>("price book", "What machines cost.")
            .text("currency", &BookFile::currency, "Of all prices; USD only so far.", "USD")
            .text("source", &BookFile::source, "Where the prices come from.", "our data centre, 2026")
            .required()
            .list_of("prices", &BookFile::prices, price_table(), "One row for each price and date.")
            .required()
            .list_of("markups", &BookFile::markups, markup_table(),
                     "What organisations are charged on top of the prices, or less than them; nothing when nothing is "
                     "said.");
    return table;
}

// Midnight UTC of YYYY-MM-DD.
std::optional<std::int64_t> day_us(const std::string& text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
    std::array<int, 3> part{};
    const std::array<std::pair<int, int>, 3> where = {{{0, 4}, {5, 2}, {8, 2}}};
    for (std::size_t i = 0; i < 3; ++i)
        for (int j = where[i].first; j < where[i].first + where[i].second; ++j) {
            const char c = text[static_cast<std::size_t>(j)];
            if (c < '0' || c > '9') return std::nullopt;
            part[i] = 10 * part[i] + (c - '0');
        }
    const std::chrono::year_month_day date{std::chrono::year(part[0]),
                                           std::chrono::month(static_cast<unsigned>(part[1])),
                                           std::chrono::day(static_cast<unsigned>(part[2]))};
    if (!date.ok()) return std::nullopt;
    return std::int64_t{std::chrono::sys_days(date).time_since_epoch().count()} * 86'400'000'000;
}

SourcePos place_of(const std::map<std::string, SourcePos>& at, const std::string& key) {
    const auto found = at.find(key);
    return found != at.end() ? found->second : at.contains("") ? at.at("") : SourcePos{};
}

}  // namespace

std::string_view to_string(PricedResource resource) {
    for (const auto& [value, name] : enum_names(resource))
        if (value == resource) return name;
    return "cpu";
}

Result<PriceBook> PriceBook::read(std::string_view text, const std::string& file) {
    TRY(const Document document, Document::parse(text, file));
    return read(document.root());
}

std::shared_ptr<const RecordInfo> price_book_record() {
    return book_table().shared_info();
}

Result<PriceBook> PriceBook::read(const Node& root) {
    Problems problems;
    const BookFile read = book_table().read(root, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    PriceBook book{.currency = read.currency, .source = read.source, .prices = {}};
    if (read.currency != "USD")
        problems.push_back({.message = "the currency is " + printable(read.currency, 20) + ", only USD is known",
                            .pos = place_of(read.at, "currency")});
    if (read.prices.size() > kMostPrices)
        problems.push_back({.message = fmt::format("{} prices, at most {}", read.prices.size(), kMostPrices),
                            .pos = place_of(read.at, "prices")});
    std::set<std::tuple<PricedResource, std::string, std::string, std::int64_t>> seen;
    for (const PriceRow& row : read.prices) {
        const auto from = day_us(row.valid_from);
        if (!from) {
            problems.push_back({.message = "valid_from is " + printable(row.valid_from, 40) + ", expected a day",
                                .remedy = "write YYYY-MM-DD",
                                .pos = place_of(row.at, "valid_from")});
            continue;
        }
        if (!row.model.empty() && row.resource != PricedResource::gpu)
            problems.push_back({.message = fmt::format("a {} has no model here", to_string(row.resource)),
                                .remedy = "leave model out, or price a gpu",
                                .pos = place_of(row.at, "model")});
        if (!seen.insert({row.resource, lower(row.model), row.node, *from}).second)
            problems.push_back({.message = "this price is given twice for the same day",
                                .remedy = "keep one of them",
                                .pos = place_of(row.at, "")});
        book.prices.push_back({.resource = row.resource,
                               .model = row.model,
                               .node = row.node,
                               .microusd_per_hour = std::llround(row.usd_per_hour * 1e6),
                               .valid_from_us = *from});
    }
    for (const MarkupRow& row : read.markups) {
        if (std::any_of(book.markups.begin(), book.markups.end(),
                        [&](const Markup& each) { return each.organisation == row.organisation; }))
            problems.push_back({.message = "two markups of " + printable(row.organisation, 60),
                                .remedy = "keep one of them",
                                .pos = place_of(row.at, "organisation")});
        book.markups.push_back({row.organisation, std::llround(row.percent * 100)});
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    std::stable_sort(book.prices.begin(), book.prices.end(),
                     [](const BookPrice& a, const BookPrice& b) { return a.valid_from_us < b.valid_from_us; });
    return book;
}

std::int64_t PriceBook::markup_of(std::string_view organisation) const {
    for (const Markup& each : markups)
        if (each.organisation == organisation) return each.basis_points;
    return 0;
}

std::vector<PriceBook::Rate> PriceBook::rates(PricedResource resource, std::string_view node,
                                              std::string_view model) const {
    // The four ways to name it, the most particular last.
    std::array<const BookPrice*, 4> in_force{};
    std::vector<Rate> rates;
    for (std::size_t i = 0; i < prices.size(); ++i) {
        const BookPrice& price = prices[i];
        const bool fits = price.resource == resource && (price.node.empty() || price.node == node) &&
                          (price.model.empty() || equals_ignore_case(price.model, model));
        if (fits) in_force[(price.node.empty() ? 0u : 2u) + (price.model.empty() ? 0u : 1u)] = &price;
        if (i + 1 < prices.size() && prices[i + 1].valid_from_us == price.valid_from_us) continue;
        const BookPrice* best = nullptr;
        for (const BookPrice* each : in_force)
            if (each != nullptr) best = each;
        if (best == nullptr) continue;
        if (rates.empty() || rates.back().microusd_per_hour != best->microusd_per_hour)
            rates.push_back({price.valid_from_us, best->microusd_per_hour, true});
    }
    return rates;
}

std::string digest(const PriceBook& book) {
    if (book.empty()) return {};
    std::string text = book.currency + "\n" + book.source + "\n";
    for (const BookPrice& price : book.prices)
        text += fmt::format("{}\t{}\t{}\t{}\t{}\n", to_string(price.resource), price.model, price.node,
                            price.microusd_per_hour, price.valid_from_us);
    for (const Markup& each : book.markups) text += fmt::format("{}\t{}\n", each.organisation, each.basis_points);
    return sha256_hex(text).substr(0, 16);
}

}  // namespace stoker
