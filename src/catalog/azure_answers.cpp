#include "catalog/azure_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "catalog/azure_rows.h"
#include "catalog/field_reader.h"
#include "catalog/names.h"

namespace stoker {

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

double number_capability(const Node& sku, std::string_view name) {
    const std::string text = capability(sku, name);
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failure == std::errc() && end == text.data() + text.size() && value > 0 && value < 1e9 ? value : 0;
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
    const double gpus = number_capability(sku, "GPUs"), vcpus = number_capability(sku, "vCPUs"),
                 memory = number_capability(sku, "MemoryGB");
    for (const std::string& region : regions) {
        SkuOffer offer;
        offer.size = size;
        offer.region = region;
        offer.family = in.text({"family"}).value_or(std::string());
        offer.retirement_date = iso_date(capability(sku, "RetirementDateUtc"));
        offer.gpus = gpus, offer.vcpus = vcpus, offer.memory_gb = memory;
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

struct AnswerWords {
    std::string_view what, option, command;
};
AnswerWords words_of(AzureAnswer answer) {
    switch (answer) {
        case AzureAnswer::skus:
            return {"the answer of az vm list-skus", "--skus",
                    "az vm list-skus --location REGION --resource-type virtualMachines --all -o json"};
        case AzureAnswer::usage:
            return {"the answer of az vm list-usage", "--usage", "az vm list-usage --location REGION -o json"};
        case AzureAnswer::prices: break;
    }
    return {"a page of the Retail Prices API", "--prices",
            "curl \"https://prices.azure.com/api/retail/prices?$filter=serviceName eq 'Virtual Machines'\""};
}

std::optional<AzureAnswer> answer_in(const Node& row) {
    const auto has = [&](std::string_view key) { return row.find(key) != nullptr; };
    if (has("currentValue") && has("limit")) return AzureAnswer::usage;
    if (has("retailPrice") || has("meterName") || has("armSkuName")) return AzureAnswer::prices;
    if (has("resourceType") || has("locationInfo") || (has("locations") && has("name"))) return AzureAnswer::skus;
    return std::nullopt;
}

}  // namespace

// The rows of an answer, or what the file is instead: another answer, an error of Azure's, the columns that a --query
// left over.
Result<const Node*> rows_of(const Node& root, std::string_view member, AzureAnswer wanted) {
    const AnswerWords words = words_of(wanted);
    const std::string remedy = fmt::format("save it with: {}", words.command);
    if (const Node* failure = root.is_mapping() ? root.find("error") : nullptr; failure != nullptr) {
        const Node* message = failure->is_mapping() ? text_member(*failure, "message") : nullptr;
        return Error(ErrorKind::invalid,
                     fmt::format("this is not {} but an error of Azure's: {}", words.what,
                                 printable(message != nullptr ? message->text : "without a message", 200)),
                     failure->pos, remedy);
    }
    const Node* list = &root;
    if (root.is_mapping()) {
        for (std::string_view key : {member, std::string_view("value"), std::string_view("Items")}) {
            if (const Node* found = root.find(key); found != nullptr && found->is_sequence()) {
                list = found;
                break;
            }
        }
    }
    if (list->is_sequence() && !list->items.empty() && list->items.front()->is_mapping()) {
        const Node& row = *list->items.front();
        const auto found = answer_in(row);
        if (found && *found != wanted) {
            return Error(ErrorKind::invalid, fmt::format("this is {}, not {}", words_of(*found).what, words.what),
                         row.pos, fmt::format("give it with {}", words_of(*found).option));
        }
        const bool incomplete_usage = row.find("limit") != nullptr || row.find("currentValue") != nullptr;
        if (!found && wanted != AzureAnswer::prices && !(wanted == AzureAnswer::usage && incomplete_usage)) {
            std::string columns;
            for (const Member& column : row.members) {
                if (columns.size() > 120) break;
                columns += (columns.empty() ? "" : ", ") + printable(column.key, 40);
            }
            return Error(ErrorKind::invalid,
                         fmt::format("these are columns that a --query left over ({}), not {}: {}", columns, words.what,
                                     wanted == AzureAnswer::skus
                                         ? "the regions are gone, and restrictions[0] is only the first of several"
                                         : "the names of the quotas or their limits are gone"),
                         row.pos, remedy + ", without --query");
        }
    }
    auto read = list_of(root, member, words.what);
    if (!read) {
        Problems problems = read.error().problems();
        for (Problem& problem : problems) problem.remedy = remedy;
        return Error(ErrorKind::invalid, std::move(problems));
    }
    return *read;
}

namespace {

// Where the value that begins at `from` ends, by counting brackets outside of strings; npos when it does not.
std::size_t end_of_value(std::string_view text, std::size_t from) {
    std::size_t depth = 0;
    for (std::size_t i = from; i < text.size(); ++i) {
        switch (text[i]) {
            case '"':
                for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
                break;
            case '[':
            case '{': ++depth; break;
            case ']':
            case '}':
                if (depth <= 1) return i + 1;
                --depth;
                break;
            default: break;
        }
    }
    return std::string_view::npos;
}

std::string folded(std::string_view text) {
    return lower(text);
}

auto key_of(const SkuOffer& offer) {
    return std::pair(std::string_view(offer.region), folded(offer.size));
}

}  // namespace

Result<std::vector<std::string_view>> json_values(std::string_view text, AzureAnswer wanted, const std::string& file) {
    constexpr std::string_view space = " \t\r\n";
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const AnswerWords words = words_of(wanted);
    std::vector<std::string_view> values;
    std::size_t at = text.find_first_not_of(space);
    if (at == std::string_view::npos || (text[at] != '[' && text[at] != '{')) {
        const std::string_view line =
            at == std::string_view::npos
                ? ""
                : text.substr(at, std::min(text.find_first_of("\r\n", at) - at, std::size_t{60}));
        return Error(ErrorKind::invalid,
                     at == std::string_view::npos ? fmt::format("the file is empty; {} was expected", words.what)
                                                  : fmt::format("this is not JSON, as {} is: it begins with \"{}\"",
                                                                words.what, printable(line, 60)),
                     SourcePos{file, 1, 1},
                     fmt::format("save it with: {}{}", words.command,
                                 wanted == AzureAnswer::prices ? "" : " (a table leaves restrictions and names out)"));
    }
    while (at != std::string_view::npos) {
        const std::size_t end = end_of_value(text, at);
        values.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
        at = end == std::string_view::npos ? end : text.find_first_not_of(space, end);
    }
    return values;
}

void order_offers(std::vector<SkuOffer>& offers) {
    const auto before = [](const SkuOffer& a, const SkuOffer& b) { return key_of(a) < key_of(b); };
    if (!std::is_sorted(offers.begin(), offers.end(), before)) std::stable_sort(offers.begin(), offers.end(), before);
}

const SkuOffer* find_offer(const std::vector<SkuOffer>& ordered, std::string_view size, std::string_view region) {
    const std::string where = region_name(region), what = folded(size);
    const std::pair key(std::string_view(where), what);
    const auto at = std::lower_bound(ordered.begin(), ordered.end(), key,
                                     [](const SkuOffer& offer, const auto& wanted) { return key_of(offer) < wanted; });
    return at != ordered.end() && key_of(*at) == key ? &*at : nullptr;
}

bool lists_region(const std::vector<SkuOffer>& ordered, std::string_view region) {
    const std::string where = region_name(region);
    const auto at =
        std::lower_bound(ordered.begin(), ordered.end(), where,
                         [](const SkuOffer& offer, const std::string& wanted) { return offer.region < wanted; });
    return at != ordered.end() && at->region == where;
}

Result<std::vector<SkuOffer>> read_list_skus(const Document& document) {
    TRY(const Node* list, rows_of(document.root(), "value", AzureAnswer::skus));
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
    if (offers.empty()) {
        return Error(ErrorKind::invalid, "the answer of az vm list-skus lists no VM size", document.root().pos,
                     fmt::format("is the region spelled right? save it with: {}", words_of(AzureAnswer::skus).command));
    }
    order_offers(offers);
    return offers;
}

Result<std::vector<QuotaUsage>> read_list_usage(const Document& document) {
    TRY(const Node* list, rows_of(document.root(), "value", AzureAnswer::usage));
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
    if (usages.empty()) {
        return Error(
            ErrorKind::invalid, "the answer of az vm list-usage lists no quota", document.root().pos,
            fmt::format("is the region spelled right? save it with: {}", words_of(AzureAnswer::usage).command));
    }
    return usages;
}

std::string normalize_quota_family(std::string_view family) {
    std::string normal = lower(family);
    std::erase_if(normal, [](char c) { return c == ' ' || c == '\t'; });
    return normal;
}

}  // namespace stoker
