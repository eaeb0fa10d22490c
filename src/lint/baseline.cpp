#include "lint/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/document.h"
#include "base/json.h"

namespace stoker::lint {

namespace {

constexpr int kBaselineVersion = 1;

Result<std::string> text_member(const stoker::Node& entry, std::string_view key, bool needed) {
    const stoker::Node* value = entry.find(key);
    if (!value && !needed) return std::string();
    if (!value) return Error(ErrorKind::invalid, fmt::format("an entry without \"{}\"", key), entry.pos);
    if (value->kind != NodeKind::string)
        return Error(ErrorKind::invalid, fmt::format("\"{}\" is {}, expected text", key, to_string(value->kind)),
                     value->pos);
    return value->text;
}

}  // namespace

Result<Baseline> parse_baseline(std::string_view text, std::string file) {
    constexpr std::string_view remedy = "stoker check --write-baseline FILE writes a new one";
    TRY(const Document document, Document::parse_json(text, std::move(file)));
    const stoker::Node& root = document.root();
    const stoker::Node* version = root.is_mapping() ? root.find("version") : nullptr;
    if (!version)
        return Error(ErrorKind::invalid, "this is no baseline: it has no \"version\"", root.pos, std::string(remedy));
    if (version->number != kBaselineVersion)
        return Error(
            ErrorKind::invalid,
            fmt::format("a baseline of version {}, this stoker reads version {}", version->text, kBaselineVersion),
            version->pos, std::string(remedy));
    const stoker::Node* entries = root.find("entries");
    if (!entries || !entries->is_sequence())
        return Error(ErrorKind::invalid, "this is no baseline: it has no list \"entries\"", root.pos,
                     std::string(remedy));
    Baseline baseline;
    if (const stoker::Node* created = root.find("created")) baseline.created = created->text;
    for (const auto& item : entries->items) {
        if (!item->is_mapping()) return Error(ErrorKind::invalid, "expected an entry", item->pos);
        BaselineEntry entry;
        TRY(entry.fingerprint, text_member(*item, "fingerprint", true));
        TRY(entry.rule, text_member(*item, "rule", true));
        TRY(entry.path, text_member(*item, "path", true));
        TRY(entry.address, text_member(*item, "address", false));
        TRY(entry.reason, text_member(*item, "reason", false));
        baseline.entries.push_back(std::move(entry));
    }
    return baseline;
}

std::string baseline_text(const Baseline& baseline, std::string_view tool) {
    std::vector<const BaselineEntry*> sorted;
    for (const BaselineEntry& entry : baseline.entries) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [](const BaselineEntry* a, const BaselineEntry* b) {
        return std::tie(a->path, a->rule, a->address, a->fingerprint) <
               std::tie(b->path, b->rule, b->address, b->fingerprint);
    });
    Json entries = Json::array();
    for (const BaselineEntry* entry : sorted) {
        Json json = Json::object()
                        .set("fingerprint", entry->fingerprint)
                        .set("rule", entry->rule)
                        .set("path", entry->path)
                        .set("address", entry->address);
        if (!entry->reason.empty()) json.set("reason", entry->reason);
        entries.push(std::move(json));
    }
    return Json::object()
               .set("version", kBaselineVersion)
               .set("created", baseline.created)
               .set("tool", tool)
               .set("entries", std::move(entries))
               .dump() +
           "\n";
}

BaselineOutcome apply_baseline(const Baseline& baseline, std::vector<Finding> findings, const StablePath& stable_path,
                               const std::function<bool(const std::string&)>& judged) {
    std::map<std::string_view, std::vector<std::size_t>> by_fingerprint;
    std::map<std::pair<std::string_view, std::string_view>, std::vector<std::size_t>> by_rule_and_address;
    for (std::size_t i = 0; i < baseline.entries.size(); ++i) {
        by_fingerprint[baseline.entries[i].fingerprint].push_back(i);
        by_rule_and_address[{baseline.entries[i].rule, baseline.entries[i].address}].push_back(i);
    }
    constexpr auto none = static_cast<std::size_t>(-1);
    std::vector<bool> used(baseline.entries.size());
    std::vector<std::size_t> entry_of(findings.size(), none);
    const auto take = [&](std::size_t finding, std::size_t entry) {
        used[entry] = true;
        entry_of[finding] = entry;
    };
    for (std::size_t i = 0; i < findings.size(); ++i) {
        const auto found = by_fingerprint.find(findings[i].fingerprint);
        if (found == by_fingerprint.end()) continue;
        const auto& list = found->second;
        const auto entry = std::find_if(list.begin(), list.end(), [&](std::size_t e) { return !used[e]; });
        if (entry != list.end()) take(i, *entry);
    }
    const std::vector<std::size_t> ordinals = ordinals_of(findings);
    for (std::size_t i = 0; i < findings.size(); ++i) {
        if (entry_of[i] != none) continue;
        const auto found = by_rule_and_address.find({findings[i].rule, findings[i].address});
        if (found == by_rule_and_address.end()) continue;
        for (const std::size_t e : found->second) {
            if (used[e]) continue;
            if (fingerprint_of(findings[i], baseline.entries[e].path, ordinals[i]) != baseline.entries[e].fingerprint)
                continue;
            take(i, e);
            break;
        }
    }
    BaselineOutcome outcome;
    for (std::size_t i = 0; i < findings.size(); ++i) {
        if (entry_of[i] == none) {
            outcome.fresh.push_back(std::move(findings[i]));
            continue;
        }
        const BaselineEntry& entry = baseline.entries[entry_of[i]];
        const bool moved = entry.path != stable_path(findings[i].path);
        outcome.known.push_back({std::move(findings[i]), entry.reason, moved ? entry.path : std::string()});
    }
    for (std::size_t e = 0; e < used.size(); ++e)
        if (!used[e] && judged(baseline.entries[e].path)) outcome.stale.push_back(baseline.entries[e]);
    return outcome;
}

Baseline baseline_of(const std::vector<Finding>& findings, const StablePath& stable_path, const Baseline& before,
                     std::string created) {
    Baseline baseline;
    baseline.created = std::move(created);
    // What was known keeps its reason, also when its file was moved.
    const BaselineOutcome matched =
        apply_baseline(before, findings, stable_path, [](const std::string&) { return false; });
    const auto add = [&](const Finding& finding, std::string reason) {
        baseline.entries.push_back(
            {finding.fingerprint, finding.rule, stable_path(finding.path), finding.address, std::move(reason)});
    };
    for (const Finding& finding : matched.fresh) add(finding, "");
    for (const BaselinedFinding& known : matched.known) add(known.finding, known.reason);
    return baseline;
}

}  // namespace stoker::lint
