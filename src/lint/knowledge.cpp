#include "lint/knowledge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "lint/value.h"

namespace stoker::lint {

namespace {

char knowledge_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool knowledge_less(std::string_view a, std::string_view b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](char x, char y) { return knowledge_lower(x) < knowledge_lower(y); });
}

// One pass over a table of data/: the cells of each row by the numbers of the wanted columns. The tables are checked
// by the catalogue's own tests, so a missing column is an empty cell here.
template <std::size_t N, typename F>
void each_row(std::string_view text, const std::array<std::string_view, N>& columns, F&& use) {
    std::vector<int> wanted;  // per column of the file: index into columns, -1 for what nobody asks
    bool head = true;
    std::array<std::string_view, N> cells;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        at = end + 1;
        if (line.empty() || line[0] == '#') continue;
        cells.fill({});
        std::size_t column = 0;
        for (std::size_t begin = 0; begin <= line.size(); ++column) {
            const std::size_t tab = std::min(line.find('\t', begin), line.size());
            const std::string_view cell = line.substr(begin, tab - begin);
            begin = tab + 1;
            if (head) {
                const auto it = std::find(columns.begin(), columns.end(), cell);
                wanted.push_back(it == columns.end() ? -1 : static_cast<int>(it - columns.begin()));
            } else if (column < wanted.size() && wanted[column] >= 0) {
                cells[static_cast<std::size_t>(wanted[column])] = cell;
            }
        }
        if (!head) use(cells);
        head = false;
    }
}

double number_of(std::string_view cell) {
    double value = 0;
    std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return value;
}

std::string_view bytes_of(std::string_view path) {
    const EmbeddedFile* file = find_embedded(path);
    return file ? file->bytes : std::string_view();
}

struct KnownAccelerator {
    std::string_view name, vendor;
    double tflops_16 = 0, tflops_32 = 0, memory_gb_s = 0;
};

const KnownAccelerator& accelerator_named(std::string_view name) {
    static const auto all = [] {
        std::vector<KnownAccelerator> rows;
        each_row(bytes_of("catalog/accelerators.tsv"),
                 std::array<std::string_view, 6>{"name", "vendor", "fp16_tflops", "bf16_tflops", "fp32_tflops",
                                                 "memory_bandwidth_gb_s"},
                 [&](const auto& cell) {
                     rows.push_back({cell[0], cell[1], number_of(cell[2].empty() ? cell[3] : cell[2]),
                                     number_of(cell[4]), number_of(cell[5])});
                 });
        return rows;
    }();
    static const KnownAccelerator none;
    for (const KnownAccelerator& each : all)
        if (each.name == name) return each;
    return none;
}

std::optional<bool> tri_state(std::string_view cell) {
    if (cell.empty()) return std::nullopt;
    return cell != "no";
}

// Of a row's size: "Standard_NC6_Promo" -> "NC6".
std::string_view bare_size(std::string_view name) {
    if (starts_with_ignore_case(name, "Standard_")) name.remove_prefix(9);
    if (name.size() > 6 && equals_ignore_case(name.substr(name.size() - 6), "_Promo")) name.remove_suffix(6);
    return name;
}

// The price table is sorted by size: its rows are found by bisection, since it is the largest of all tables.
std::optional<KnownPrice> price_row(std::string_view name, std::string_view region) {
    const std::string_view text = bytes_of("catalog/prices/azure.tsv");
    std::size_t low = text.find('\n') + 1, high = text.size();
    const auto cell_at = [&](std::size_t begin) { return text.substr(begin, text.find('\t', begin) - begin); };
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        const std::size_t back = text.rfind('\n', middle == low ? low : middle - 1);
        const std::size_t begin = back == std::string_view::npos || back + 1 < low ? low : back + 1;
        if (cell_at(begin) < name) {
            low = std::min(text.find('\n', begin), text.size() - 1) + 1;
        } else {
            high = begin;
        }
    }
    constexpr std::string_view kOurs = "\tlinux\ton-demand\t";
    std::optional<KnownPrice> lowest;
    for (std::size_t at = low; at < text.size() && cell_at(at) == name;) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view row = text.substr(at, end - at);
        at = end + 1;
        const std::size_t price = row.find(kOurs);
        if (price == std::string_view::npos) continue;
        KnownPrice found;
        found.usd_per_hour = number_of(row.substr(price + kOurs.size()));
        found.region = row.substr(name.size() + 1, price - name.size() - 1);
        std::string_view rest = row.substr(price + kOurs.size());
        rest.remove_prefix(std::min(rest.find('\t') + 1, rest.size()));
        found.as_of = rest.substr(0, rest.find('\t'));
        rest.remove_prefix(std::min(rest.find('\t') + 1, rest.size()));
        found.source = rest.substr(0, rest.find('\t'));
        if (found.usd_per_hour <= 0 || (!region.empty() && !equals_ignore_case(found.region, region))) continue;
        if (!lowest || found.usd_per_hour < lowest->usd_per_hour) lowest = found;
    }
    return lowest;
}

struct SizeTable {
    std::vector<KnownSize> sizes;  // sorted by name in any case
    std::string_view as_of;

    SizeTable() {
        sizes.reserve(512);
        for (const std::string_view cloud : {"azure", "aws", "gcp", "other"})
            each_row(
                bytes_of("catalog/" + std::string(cloud) + "/sizes.tsv"),
                std::array<std::string_view, 14>{"name", "family", "quota_family", "vcpus", "memory_gib", "accelerator",
                                                 "accelerators", "rdma", "rdma_gbps_per_vm", "generations",
                                                 "trusted_launch", "accelerated_networking", "source", "as_of"},
                [&](const auto& cell) { add(cell, cloud == "azure"); });
        std::sort(sizes.begin(), sizes.end(),
                  [](const KnownSize& a, const KnownSize& b) { return knowledge_less(a.name, b.name); });
    }
    template <typename Cells>
    void add(const Cells& cell, bool azure) {
        KnownSize& size = sizes.emplace_back();
        size.name = cell[0];
        size.series = cell[1];
        size.quota_family = cell[2];
        size.vcpus = static_cast<int>(number_of(cell[3]));
        size.memory_gib = number_of(cell[4]);
        size.accelerator = cell[5];
        if (!cell[5].empty()) {
            const KnownAccelerator& one = accelerator_named(cell[5]);
            size.vendor = one.vendor;
            size.tflops = one.tflops_16 > 0 ? one.tflops_16 : one.tflops_32;
            size.memory_gb_s = one.memory_gb_s;
            size.accelerators = cell[6].empty() ? 1 : number_of(cell[6]);  // no count known: there is one at least
        }
        if (cell[7] == "infiniband") size.infiniband_gbps = number_of(cell[8]);
        size.generation_1 = cell[9].find('1') != std::string_view::npos;
        size.generation_2 = cell[9].find('2') != std::string_view::npos;
        size.trusted_launch = tri_state(cell[10]);
        size.accelerated_networking = tri_state(cell[11]);
        size.source = cell[12];
        size.as_of = cell[13];
        if (azure && size.as_of.size() == 10 && size.as_of > as_of) as_of = size.as_of;
        if (size.gpu() && azure)
            if (const auto price = price_row(size.name, {})) size.usd_per_hour = price->usd_per_hour;
    }
};
const SizeTable& size_table() {
    static const SizeTable table;
    return table;
}

struct RetirementTable {
    std::vector<std::pair<std::string_view, KnownRetirement>> rows;  // sorted by bare name in any case

    RetirementTable() {
        each_row(bytes_of("catalog/azure/retirements.tsv"),
                 std::array<std::string_view, 6>{"kind", "size", "date", "status", "target", "source"},
                 [&](const auto& cell) {
                     if (cell[0] != "size" || (cell[3] != "retired" && cell[3] != "announced")) return;
                     rows.push_back({bare_size(cell[1]), {cell[2], cell[4], cell[5]}});
                 });
        // Of two dates of one size the earlier counts; one without a date before those.
        std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
            if (knowledge_less(a.first, b.first)) return true;
            if (knowledge_less(b.first, a.first)) return false;
            return a.second.date < b.second.date;
        });
    }
};
const RetirementTable& retirement_table() {
    static const RetirementTable table;
    return table;
}

int letters_apart(std::string_view a, std::string_view b, int most) {
    if (a.size() > b.size() + static_cast<std::size_t>(most) || b.size() > a.size() + static_cast<std::size_t>(most))
        return most + 1;
    std::vector<int> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int up = row[j];
            const int same = diagonal + (knowledge_lower(a[i - 1]) == knowledge_lower(b[j - 1]) ? 0 : 1);
            row[j] = std::min({same, up + 1, row[j - 1] + 1});
            diagonal = up;
        }
    }
    return row[b.size()];
}

}  // namespace

const Knowledge& Knowledge::embedded() {
    static const Knowledge knowledge;
    return knowledge;
}

const KnownSize* Knowledge::size(std::string_view name) const {
    const auto& sizes = size_table().sizes;
    const auto it = std::lower_bound(sizes.begin(), sizes.end(), name,
                                     [](const KnownSize& a, std::string_view b) { return knowledge_less(a.name, b); });
    return it != sizes.end() && equals_ignore_case(it->name, name) ? &*it : nullptr;
}

std::optional<KnownPrice> Knowledge::price(std::string_view name, std::string_view region) const {
    return price_row(name, region);
}

std::vector<std::string> Knowledge::regions() const {
    std::set<std::string_view> found;
    each_row(bytes_of("catalog/prices/azure.tsv"), std::array<std::string_view, 1>{"region"},
             [&](const auto& cell) { found.insert(cell[0]); });
    return {found.begin(), found.end()};
}

const KnownSize* Knowledge::cheapest_gpu(std::string_view region) const {
    const KnownSize* cheapest = nullptr;
    double least = 0;
    for (const KnownSize& size : size_table().sizes) {
        if (size.accelerators < 1 || size.usd_per_hour <= 0 || retirement(size.name)) continue;
        const auto price =
            region.empty() ? std::optional(KnownPrice{size.usd_per_hour, {}, {}, {}}) : price_row(size.name, region);
        if (price && (!cheapest || price->usd_per_hour < least)) cheapest = &size, least = price->usd_per_hour;
    }
    return cheapest;
}

namespace {

// NC A100 v4, NC_A100_v4 and NCA100v4 are one name.
std::string series_letters(std::string_view name) {
    std::string letters;
    for (const char c : name) {
        const char low = knowledge_lower(c);
        if ((low >= 'a' && low <= 'z') || (low >= '0' && low <= '9')) letters += low;
    }
    return letters;
}

// Series before 2020 had an accelerator for each six processors, and the number of these in their name.
double accelerators_of_retired(const Knowledge& knowledge, std::string_view size) {
    const std::string_view name = bare_size(size);
    if (const KnownSize* known = knowledge.size("Standard_" + std::string(name))) return known->accelerators;
    const std::size_t digits = name.find_first_of("0123456789");
    if (digits == std::string_view::npos) return 0;
    int processors = 0;
    std::from_chars(name.data() + digits, name.data() + name.size(), processors);
    return processors % 6 == 0 ? processors / 6.0 : 0;
}

}  // namespace

const KnownSize* Knowledge::successor(std::string_view size) const {
    const KnownRetirement* row = retirement(size);
    const double wanted = row ? accelerators_of_retired(*this, size) : 0;
    if (wanted <= 0) return nullptr;
    const std::string target = series_letters(row->target);
    const KnownSize* best = nullptr;
    std::size_t first = std::string::npos;
    for (const KnownSize& each : size_table().sizes) {
        if (each.accelerators != wanted || each.usd_per_hour <= 0 || each.series.empty() || retirement(each.name))
            continue;
        const std::size_t at = target.find(series_letters(each.series));
        if (at == std::string::npos || at > first) continue;
        if (at == first && best->usd_per_hour <= each.usd_per_hour) continue;
        best = &each, first = at;
    }
    return best;
}

std::string Knowledge::beside(const KnownSize& from, const KnownSize& to) const {
    std::vector<std::string> parts;
    const auto times = [](double ratio) { return fmt::format("{:.{}f}x", ratio, ratio < 10 ? 1 : 0); };
    const double before = from.tflops * from.accelerators, now = to.tflops * to.accelerators;
    if (before > 0 && now > 0) parts.push_back(times(now / before) + " the peak arithmetic");
    const double memory_before = from.memory_gb_s * from.accelerators, memory = to.memory_gb_s * to.accelerators;
    if (memory_before > 0 && memory > 0) parts.push_back(times(memory / memory_before) + " the memory bandwidth");
    if (parts.empty()) return {};
    std::string text = join(parts, " and ");
    if (from.usd_per_hour > 0 && to.usd_per_hour > 0)
        text += fmt::format(" at {} the price ({:.2f} for {:.2f} USD an hour, lowest list prices)",
                            times(to.usd_per_hour / from.usd_per_hour), to.usd_per_hour, from.usd_per_hour);
    else if (to.usd_per_hour > 0)
        text += fmt::format(", {:.2f} USD an hour (lowest list price)", to.usd_per_hour);
    return text;
}

const KnownRetirement* Knowledge::retirement(std::string_view size) const {
    const auto& rows = retirement_table().rows;
    const std::string_view name = bare_size(size);
    const auto it = std::lower_bound(rows.begin(), rows.end(), name,
                                     [](const auto& a, std::string_view b) { return knowledge_less(a.first, b); });
    return it != rows.end() && equals_ignore_case(it->first, name) ? &it->second : nullptr;
}

bool Knowledge::looks_like_size(std::string_view text) {
    if (text.size() > 60) return false;
    if (starts_with_ignore_case(text, "Standard_") || starts_with_ignore_case(text, "Basic_A")) {
        const std::size_t begin = text.find('_') + 1;
        // "Standard_LRS", "Standard_v2" and "Standard_GZRS" are other things: a size has a capital and a digit.
        const std::string_view rest = text.substr(begin);
        if (rest.empty() || rest[0] < 'A' || rest[0] > 'Z') return false;
        return std::all_of(rest.begin(), rest.end(),
                           [](char c) {
                               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                      c == '_' || c == '-';
                           }) &&
               std::any_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
    }
    return !text.empty() && embedded().size(text) != nullptr;
}

std::string_view Knowledge::nearest_size(std::string_view name) const {
    std::string_view best;
    int least = 5;  // more letters apart is another size, not a misspelling
    for (const KnownSize& size : size_table().sizes) {
        if (!size.name.starts_with("Standard_")) continue;
        const int apart = letters_apart(size.name, name, least);
        if (apart < least) {
            least = apart;
            best = size.name;
        }
    }
    return best;
}

std::string_view Knowledge::sizes_as_of() const {
    return size_table().as_of;
}

std::string_view Knowledge::fact(std::string_view name) const {
    static const auto facts = [] {
        std::vector<std::pair<std::string_view, std::string_view>> rows;
        each_row(bytes_of("lint/facts.tsv"), std::array<std::string_view, 2>{"name", "value"},
                 [&](const auto& cell) { rows.emplace_back(cell[0], cell[1]); });
        return rows;
    }();
    for (const auto& [key, value] : facts)
        if (key == name) return value;
    return {};
}

}  // namespace stoker::lint
