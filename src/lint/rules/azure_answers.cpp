#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "catalog/azure_answers.h"
#include "lint/read.h"

namespace stoker::lint {

// SKU019 and SKU020: the sizes of a bundle against what az answered about quota and about sizes in a region.
namespace {

// The items of an answer; the file may have been read already or not (given with --usage, it has no kind).
struct Sku019Answer {
    std::unique_ptr<File> read;
    const Node* list = nullptr;
    const File* file = nullptr;
};
std::vector<Sku019Answer> sku019_answers(const Bundle& bundle, std::string_view word, std::string_view second) {
    std::vector<Sku019Answer> found;
    for (const File* file : bundle.files) {
        if (!file->kinds.empty() && !file->kinds.has(Kind::arm)) continue;
        const std::string_view text = file->source().text();
        const std::string_view start = text.substr(0, 64u << 10);
        if (start.find(word) == std::string_view::npos || start.find(second) == std::string_view::npos) continue;
        Sku019Answer answer;
        answer.file = file;
        const Node* root = file->tree.roots.empty() ? nullptr : file->tree.roots[0];
        if (!root && file->kinds.empty()) {
            answer.read = std::make_unique<File>(file->path(), std::string(text));
            read_json(*answer.read);
            root = answer.read->tree.roots.empty() ? nullptr : answer.read->tree.roots[0];
        }
        if (root && root->is_object()) root = root->find("value");
        if (!root || !root->is_array()) continue;
        answer.list = root;
        found.push_back(std::move(answer));
    }
    return found;
}

double sku019_number(const Node* node) {
    double value = 0;
    if (node) std::from_chars(node->text.data(), node->text.data() + node->text.size(), value);
    return value;
}

struct Sku019Need {
    std::string family;  // normalised
    std::string label;
    double vcpus = 0;
    const Resource* largest = nullptr;
    double most = 0;
};

bool sku019_counts(const Resource& resource) {
    switch (resource.type) {
        case ResourceType::vm:
        case ResourceType::scale_set:
        case ResourceType::node_pool:
        case ResourceType::batch_pool: return true;
        case ResourceType::cluster: return is_pool(resource);
        default: return false;
    }
}

// The most nodes that it may come to; 0: not known.
double sku019_nodes(const Resource& resource) {
    for (const Attr attr : {Attr::max_count, Attr::count, Attr::dedicated_nodes}) {
        const Value& value = resource.get(attr);
        if (value.unknown()) return 0;
        if (const auto number = value.as_int()) return static_cast<double>(*number);
    }
    return resource.type == ResourceType::vm ? 1 : 0;
}

}  // namespace

void check_sku019(const Bundle& bundle, Report& report) {
    const auto answers = sku019_answers(bundle, "\"currentValue\"", "\"limit\"");
    if (answers.empty()) return;
    std::vector<Sku019Need> needs;
    each_resource(bundle, [&](const Resource& resource) {
        const KnownSize* size = sku019_counts(resource) ? size_of(resource, report) : nullptr;
        if (!size || size->vcpus == 0 || !size->name.starts_with("Standard_")) return;
        const double vcpus = sku019_nodes(resource) * size->vcpus;
        if (vcpus <= 0) return;
        // Spot counts against a quota of its own; all the rest against its family and against the region.
        const bool spot = resource.get(Attr::priority).is_nocase("Spot");
        std::vector<std::pair<std::string, std::string>> rows;
        if (spot) {
            rows.emplace_back("lowprioritycores", "Spot");
        } else {
            if (!size->quota_family.empty())
                rows.emplace_back(normalize_quota_family(size->quota_family), std::string(size->quota_family));
            rows.emplace_back("cores", "the region");
        }
        for (const auto& row : rows) {
            auto it = std::find_if(needs.begin(), needs.end(),
                                   [&](const Sku019Need& need) { return need.family == row.first; });
            if (it == needs.end()) it = needs.insert(needs.end(), {row.first, row.second});
            it->vcpus += vcpus;
            if (vcpus > it->most) it->most = vcpus, it->largest = &resource;
        }
    });
    for (const Sku019Answer& answer : answers)
        for (const Node& row : children(answer.list)) {
            const Node* name = row.at({"name", "value"});
            const Node *current = row.find("currentValue"), *limit = row.find("limit");
            if (!name || !current || !limit) continue;
            const std::string family = normalize_quota_family(name->text);
            for (const Sku019Need& need : needs) {
                const bool same =
                    need.family == family || (need.family == "cores" && name->text == "cores") ||
                    (need.family == "lowprioritycores" && equals_ignore_case(name->text, "lowPriorityCores"));
                if (!same) continue;
                const double free = sku019_number(limit) - sku019_number(current);
                if (need.vcpus <= free) continue;
                Finding* finding = report.add(
                    need.largest->get(Attr::size), "quota:" + need.family,
                    fmt::format("{:g} vCPUs of {} are needed and {:g} are free ({:g} of {:g} are used)", need.vcpus,
                                need.label, free < 0 ? 0 : free, sku019_number(current), sku019_number(limit)));
                if (finding) {
                    const Node* local = row.at({"name", "localizedValue"});
                    finding->advice = fmt::format(
                        "in the portal: Quotas > Compute > {} > New quota request, for at least {:g} vCPUs",
                        local && !local->text.empty() ? local->text : name->text, need.vcpus + sku019_number(current));
                }
                if (finding && answer.file->kinds.has(Kind::arm))
                    report.relate(finding, *limit->source, limit->span, "the quota");
            }
        }
}

namespace {

// Each scope with its codes; a zone alone leaves the others, and says nothing here.
std::string sku020_restrictions(const Node& offer) {
    std::string region, zones;
    for (const Node& restriction : children(offer.find("restrictions"))) {
        const Node *type = restriction.find("type"), *reason = restriction.find("reasonCode");
        const std::string_view code = reason ? reason->text : "no reason given";
        if (type && equals_ignore_case(type->text, "Location")) {
            region += fmt::format("{}{}", region.empty() ? "" : ", ", code);
            continue;
        }
        std::string names;
        for (const Node& zone : children(restriction.at({"restrictionInfo", "zones"})))
            names += fmt::format("{}{}", names.empty() ? "" : ", ", zone.text);
        zones += fmt::format("; in zone {} also {}", names.empty() ? "?" : names, code);
    }
    return region.empty() ? "" : fmt::format("is restricted ({}{})", region, zones);
}

// Zones that are named, and in which az gives none of the size; empty where one of them is left, or not known.
std::string sku020_zones(const Node& offer, const Resource& resource, std::string_view region) {
    std::string closed;
    for (const Value* zone : resource.all(Attr::zone)) {
        if (!zone->known()) return {};
        std::string code;
        for (const Node& restriction : children(offer.find("restrictions"))) {
            const Node* reason = restriction.find("reasonCode");
            for (const Node& shut : children(restriction.at({"restrictionInfo", "zones"})))
                if (shut.text == zone->text) code = reason ? reason->text : "no reason given";
        }
        for (const Node& place : children(offer.find("locationInfo"))) {
            const Node *location = place.find("location"), *zones = place.find("zones");
            if (!code.empty() || !location || !equals_ignore_case(location->text, region) || !zones || !zones->first)
                continue;
            bool offered = false;
            for (const Node& each : children(zones)) offered |= each.text == zone->text;
            if (!offered) code = "not offered there";
        }
        if (code.empty()) return {};
        closed += fmt::format("{}{} ({})", closed.empty() ? "" : ", ", zone->text, code);
    }
    return closed.empty() ? "" : fmt::format("cannot be had in zone {}", closed);
}

}  // namespace

void check_sku020(const Bundle& bundle, Report& report) {
    const auto answers = sku019_answers(bundle, "\"virtualMachines\"", "\"restrictions\"");
    for (const Sku019Answer& answer : answers) {
        // One region only: which one a resource goes to is seldom written.
        std::string_view region;
        bool one = true, any = false;
        for (const Node& row : children(answer.list)) {
            const Node* type = row.find("resourceType");
            if (!type || type->text != "virtualMachines") continue;
            for (const Node& location : children(row.find("locations"))) {
                if (!report.options().region.empty() && !equals_ignore_case(location.text, report.options().region))
                    continue;
                any = true;
                if (!region.empty() && !equals_ignore_case(region, location.text)) one = false;
                region = location.text;
            }
        }
        if (!any || !one || region.empty()) continue;
        each_resource(bundle, [&](const Resource& resource) {
            const KnownSize* size = sku019_counts(resource) ? size_of(resource, report) : nullptr;
            if (!size || !size->gpu() || !size->name.starts_with("Standard_")) return;
            const Node* offer = nullptr;
            for (const Node& row : children(answer.list))
                if (const Node* name = row.find("name"); name && equals_ignore_case(name->text, size->name))
                    for (const Node& location : children(row.find("locations")))
                        if (equals_ignore_case(location.text, region)) offer = &row;
            std::string why;
            if (!offer) {
                why = "is not offered";
            } else {
                why = sku020_restrictions(*offer);
                if (why.empty()) why = sku020_zones(*offer, resource, region);
            }
            if (why.empty()) return;
            Finding* finding = report.add(resource.get(Attr::size), resource.address,
                                          fmt::format("{} {} in {}", size->name, why, region));
            // az itself has said that this subscription gets none.
            if (finding && offer) finding->severity = Severity::error;
            if (finding && offer)
                finding->advice = why.find("QuotaId") != std::string::npos
                                      ? "the offer of the subscription has no right to it (QuotaId): pay-as-you-go, or "
                                        "a support request; or take another size or region"
                                      : "ask for access to the size in this region (a support request, not quota), or "
                                        "take another size or region";
            if (finding && offer && answer.file->kinds.has(Kind::arm))
                report.relate(finding, *offer->source, offer->span, "what az answered");
        });
    }
}

}  // namespace stoker::lint
