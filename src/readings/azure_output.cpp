// az vm list-skus, list-usage and extension show, -o json. The first two are read by catalog/azure_answers; formats:
// https://learn.microsoft.com/rest/api/compute/resource-skus/list, .../usage/list, .../virtual-machine-extensions/get
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/azure_answers.h"
#include "catalog/names.h"
#include "readings/tool_reader.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

// The documents of a file, each with the text before it as blanks, so that places are those of the file.
Result<std::vector<Document>> azure_documents(std::string_view text, AzureAnswer wanted, const std::string& file) {
    TRY(const auto values, json_values(text, wanted, file));
    std::vector<Document> documents;
    for (const std::string_view value : values) {
        std::string placed(static_cast<std::size_t>(value.data() - text.data()), ' ');
        for (std::size_t i = 0; i < placed.size(); ++i)
            if (text[i] == '\n') placed[i] = '\n';
        placed += value;
        TRY(Document document, tool_json(placed, file));
        documents.push_back(std::move(document));
        if (documents.size() > 64) break;
    }
    return documents;
}

std::string reason_text(const std::vector<std::string>& codes) {
    return codes.empty() ? std::string("without a reason code") : join(codes, ", ");
}

// `place`: "region", or "zone 1".
std::string restriction_fix(const SkuOffer& offer, const std::vector<std::string>& codes, std::string_view place) {
    const auto has = [&](std::string_view code) { return std::find(codes.begin(), codes.end(), code) != codes.end(); };
    if (has("QuotaId"))
        return "QuotaId: the subscription's offer (free, student, sponsored) has no right to this size: change to "
               "pay-as-you-go, or "
               "ask at portal, Subscriptions -> Usage + quotas, family " +
               offer.family;
    if (has("NotAvailableForSubscription"))
        return fmt::format(
            "NotAvailableForSubscription is no shortage of quota: ask for access to {} in {} (portal, Subscriptions -> "
            "Usage + quotas, New support request), or take another {}; quota itself is in az vm list-usage",
            offer.size, place == "region" ? offer.region : fmt::format("{} of {}", place, offer.region),
            place == "region" ? "region" : "zone");
    return "take another region or zone: az vm list-skus --size " + offer.size + " --all -o table";
}

// The reason codes of each scope: a region that is closed and a zone that is have remedies of their own.
struct ScopeCodes {
    std::vector<std::string> region, zone;
};
ScopeCodes codes_of(const std::vector<Document>& documents, const SkuOffer& offer) {
    ScopeCodes codes;
    for (const Document& document : documents) {
        const Node* list = document.root().is_mapping() ? document.root().find("value") : &document.root();
        if (list == nullptr || !list->is_sequence()) continue;
        for (const auto& sku : list->items) {
            if (sku->pos.line != offer.pos.line || sku->pos.column != offer.pos.column || !sku->is_mapping()) continue;
            const Node* restrictions = sku->find("restrictions");
            if (restrictions == nullptr || !restrictions->is_sequence()) continue;
            for (const auto& each : restrictions->items) {
                const Node *type = each->is_mapping() ? each->find("type") : nullptr,
                           *code = each->is_mapping() ? each->find("reasonCode") : nullptr;
                if (code == nullptr || code->text.empty()) continue;
                auto& into = type != nullptr && equals_ignore_case(type->text, "Zone") ? codes.zone : codes.region;
                if (std::find(into.begin(), into.end(), code->text) == into.end()) into.push_back(code->text);
            }
        }
    }
    std::sort(codes.region.begin(), codes.region.end());
    std::sort(codes.zone.begin(), codes.zone.end());
    return codes;
}

void judge_offer(ReadingBuilder& out, const SkuOffer& offer, const ScopeCodes& codes, bool asked) {
    const std::string zones = offer.zones.empty()
                                  ? "no zone"
                                  : "zone" + std::string(offer.zones.size() > 1 ? "s " : " ") + join(offer.zones, ", ");
    const std::string zone = "zone " + join(offer.restricted_zones, ", ");
    const std::string who = offer.size + " in " + offer.region;
    ToolFinding finding{.peer = offer.size};
    if (offer.location_restricted) {
        finding.verdict = asked ? HealthVerdict::fail : HealthVerdict::warn;
        finding.message = fmt::format("{} is restricted in the whole region: {}", who, reason_text(codes.region));
        finding.fix = restriction_fix(offer, codes.region, "region");
        if (!offer.restricted_zones.empty()) {
            finding.message += fmt::format("; beside that in {}: {}", zone, reason_text(codes.zone));
            if (codes.zone != codes.region)
                finding.fix +=
                    fmt::format("; when that is given, in {}: {}", zone, restriction_fix(offer, codes.zone, zone));
        }
    } else if (!offer.restricted_zones.empty()) {
        const bool none = offer.zones.empty();
        finding.verdict = asked && none ? HealthVerdict::fail : HealthVerdict::warn;
        finding.message =
            fmt::format("{} is restricted in {}: {}; left: {}", who, zone, reason_text(codes.zone), zones);
        finding.fix = none ? restriction_fix(offer, codes.zone, zone)
                           : "name a zone that is left (--zone " + offer.zones.front() + "), or " +
                                 restriction_fix(offer, codes.zone, zone);
    } else {
        finding.verdict = HealthVerdict::pass;
        finding.message = fmt::format("{} is offered, {}", who, zones);
    }
    if (!offer.retirement_date.empty()) finding.message += "; it retires on " + offer.retirement_date;
    out.check("sku-offered", place_of(offer.pos), std::move(finding));
}

bool is_gpu_offer(const SkuOffer& offer) {
    return offer.gpus > 0 || starts_with_ignore_case(offer.size, "Standard_N");
}
bool is_gpu_family(std::string_view family) {
    const std::string folded = normalize_quota_family(family);
    return folded.starts_with("standardn") || folded.starts_with("nc") || folded.starts_with("nd") ||
           folded.starts_with("nv");
}

}  // namespace

Result<ToolReading> read_azure_skus(std::string_view text, const std::string& file, const ToolContext& context) {
    ReadingBuilder out(Tool::azure_skus, file);
    TRY(const auto documents, azure_documents(text, AzureAnswer::skus, file));
    std::vector<SkuOffer> offers;
    for (const Document& document : documents) {
        TRY(auto read, read_list_skus(document));
        offers.insert(offers.end(), read.begin(), read.end());
    }
    order_offers(offers);
    std::size_t gpu = 0, restricted = 0, found = 0;
    std::string regions, verdict_of_size;
    const std::string wanted = fold_vm_size(context.size);
    for (const SkuOffer& offer : offers) {
        if (!contains(regions, offer.region) && regions.size() < 200)
            regions += (regions.empty() ? "" : ", ") + offer.region;
        const bool asked = !wanted.empty() && fold_vm_size(offer.size) == wanted;
        if (!wanted.empty() ? !asked : !is_gpu_offer(offer)) continue;
        ++gpu;
        found += asked ? 1U : 0U;
        const bool bad = offer.location_restricted || !offer.restricted_zones.empty();
        restricted += bad ? 1U : 0U;
        // A listing of a region has a hundred sizes that are well.
        if (asked || bad) judge_offer(out, offer, codes_of(documents, offer), asked);
        if (asked)
            verdict_of_size = offer.location_restricted
                                  ? "restricted: " + reason_text(codes_of(documents, offer).region)
                              : bad ? "restricted in some zones"
                                    : "offered";
    }
    if (!wanted.empty() && found == 0)
        out.check("sku-offered", {1, 1},
                  {.verdict = HealthVerdict::fail,
                   .message = fmt::format("{} is not in this listing of {}", context.size,
                                          regions.empty() ? "no region" : regions),
                   .fix = "az hides what is restricted in a whole region: az vm list-skus --location REGION --size " +
                          context.size + " --all -o json",
                   .peer = context.size});
    else if (wanted.empty() && restricted == 0)
        out.check("sku-offered", offers.empty() ? ToolPlace{} : place_of(offers.front().pos),
                  {.verdict = gpu > 0 ? HealthVerdict::pass : HealthVerdict::skipped,
                   .message = fmt::format("{} in {}, none is restricted (if the listing was taken with --all)",
                                          counted(gpu, "GPU size"), regions)});
    out.fact("regions", regions);
    return out.finish(
        wanted.empty()
            ? fmt::format("{} of {} restricted in {}", restricted, counted(gpu, "GPU size"), regions)
            : fmt::format("{} in {}: {}", context.size, regions, found == 0 ? "not in the listing" : verdict_of_size));
}

Result<ToolReading> read_azure_usage(std::string_view text, const std::string& file, const ToolContext& context) {
    ReadingBuilder out(Tool::azure_usage, file);
    TRY(const auto documents, azure_documents(text, AzureAnswer::usage, file));
    std::vector<QuotaUsage> rows;
    for (const Document& document : documents) {
        TRY(auto read, read_list_usage(document));
        rows.insert(rows.end(), read.begin(), read.end());
    }
    const ToolSize size = tool_size(context);
    const std::string family = size.node != nullptr ? normalize_quota_family(size.node->quota_family) : std::string();
    const double needed = size.node != nullptr ? size.node->vcpus : 0;
    std::string conclusion = fmt::format("{} of quota", counted(rows.size(), "row"));
    bool family_seen = false;
    for (const QuotaUsage& row : rows) {
        const bool regional = equals_ignore_case(row.family, "cores"),
                   spot = equals_ignore_case(row.family, "lowPriorityCores");
        const bool own = !family.empty() && normalize_quota_family(row.family) == family;
        family_seen = family_seen || own;
        const double free = row.limit < 0 ? 1e15 : row.limit - row.current;
        const std::string told =
            fmt::format("{} ({}): {:g} of {:g} vCPUs are used", row.family, row.label, row.current, row.limit);
        if (needed > 0 && (own || regional)) {
            const bool enough = free >= needed;
            out.check(
                own ? "quota-family" : "quota-region", place_of(row.pos),
                {.verdict = enough ? HealthVerdict::pass : HealthVerdict::fail,
                 .message = fmt::format("{}, one {} needs {:g}", told, size.name, needed),
                 .fix = enough ? ""
                               : fmt::format("portal, Subscriptions -> Usage + quotas, \"{}\": ask for {:g} or more",
                                             row.label, row.current + needed),
                 .peer = row.family,
                 .measured = free,
                 .expected = needed,
                 .unit = "count",
                 .source = "the catalogue's row of " + size.name});
            if (own || !enough) conclusion = fmt::format("{}: {:g} free, {:g} needed", row.family, free, needed);
        } else if (spot && needed > 0) {
            out.tell(place_of(row.pos), HealthLayer::device, told + " (spot VMs count here, not in their family)");
        } else if (needed <= 0 && (is_gpu_family(row.family) || regional)) {
            if (row.limit <= 0 && row.limit > -1 && !regional)
                out.fact("no quota", row.family);
            else if (free <= 0)
                out.check("quota-family", place_of(row.pos),
                          {.verdict = HealthVerdict::warn,
                           .message = told,
                           .fix = fmt::format("portal, Subscriptions -> Usage + quotas, \"{}\"", row.label),
                           .peer = row.family,
                           .measured = free,
                           .unit = "count"});
            else
                out.check("quota-family", place_of(row.pos),
                          {.verdict = HealthVerdict::pass,
                           .message = told,
                           .peer = row.family,
                           .measured = free,
                           .unit = "count"});
        }
    }
    if (needed > 0 && !family_seen)
        out.check(
            "quota-family", {1, 1},
            {.verdict = HealthVerdict::fail,
             .message = fmt::format(
                 "no row for {}, the family of {}: the region does not have it, or the subscription has none of it",
                 size.node->quota_family, size.name),
             .fix = "az vm list-usage --location ANOTHER -o json; portal, Subscriptions -> Usage + quotas"});
    if (out.checks() == 0)
        out.check("quota-family", {1, 1},
                  {.message = "no GPU family has quota in this answer, or the region has none",
                   .fix = "portal, Subscriptions -> Usage + quotas; --size SIZE says which family counts"});
    return out.finish(std::move(conclusion));
}

// provisioningState and instanceView.statuses: {"code": "ProvisioningState/failed/1", "message": ...}. With --query the
// keys are the user's own: Status and Message.
Result<ToolReading> read_azure_extension(std::string_view text, const std::string& file, const ToolContext&) {
    ReadingBuilder out(Tool::azure_extension, file);
    TRY(const Document document, tool_json(text, file));
    const Node* root = &document.root();
    if (root->is_sequence()) {  // az vm extension list
        if (root->items.empty())
            return out.broken({1, 1}, "an empty list: the VM has no extension",
                              "az vm extension set -n NvidiaGpuDriverLinux --publisher Microsoft.HpcCompute");
    }
    std::vector<const Node*> extensions;
    if (root->is_sequence())
        for (const auto& each : root->items) extensions.push_back(each.get());
    else
        extensions.push_back(root);
    std::string conclusion;
    for (const Node* each : extensions) {
        std::string_view state = text_at(each, {"provisioningState"}), message = text_at(each, {"Message"}),
                         name = text_at(each, {"name"});
        if (state.empty()) state = text_at(each, {"Status"});
        if (state.empty())
            return out.broken(
                place_of(each->pos), "no provisioningState",
                "az vm extension show --instance-view -g GROUP --vm-name VM -n NvidiaGpuDriverLinux -o json");
        const Node* statuses = node_at(each, {"instanceView", "statuses"});
        std::string code;
        if (statuses != nullptr && statuses->is_sequence() && !statuses->items.empty()) {
            message = text_at(statuses->items.front().get(), {"message"});
            code = text_at(statuses->items.front().get(), {"code"});
        }
        const bool failed = equals_ignore_case(state, "Failed") || contains(lower(code), "/failed"),
                   good = equals_ignore_case(state, "Succeeded") && !failed;
        const bool installing = !failed && !good &&
                                (equals_ignore_case(state, "Creating") || equals_ignore_case(state, "Updating") ||
                                 equals_ignore_case(state, "Transitioning"));
        std::string said =
            fmt::format("extension {}: {}{}", name.empty() ? "of the driver" : printable(name, 60),
                        printable(state, 40), message.empty() ? "" : ": \"" + printable(message, 300) + "\"");
        ToolFinding finding{.message = said, .peer = std::string(name)};
        if (failed) {
            finding.verdict = HealthVerdict::fail;
            finding.fix =
                "on the VM: /var/log/azure/nvidia-vmext-status and /var/log/waagent.log; Secure Boot off or a signed "
                "driver; a "
                "kernel with headers; then az vm extension delete and set again";
            if (message.empty())
                finding.fix =
                    "the message is in the instance view: az vm extension show --instance-view ...; " + finding.fix;
        } else if (good) {
            finding.verdict = HealthVerdict::pass;
        } else {
            finding.verdict = HealthVerdict::skipped;
            finding.message += installing ? " (still installing: 5 to 10 minutes are usual)" : "";
            finding.fix = "look again in a minute; after 10 minutes: /var/log/azure/nvidia-vmext-status on the VM";
        }
        if (conclusion.empty() || failed) conclusion = said;
        out.check("driver-extension", place_of(each->pos), std::move(finding));
    }
    return out.finish(std::move(conclusion));
}

}  // namespace stoker
