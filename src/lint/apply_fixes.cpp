#include "lint/apply_fixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace stoker::lint {

namespace {

// Where an offset of the text before the edits stands after them.
std::uint32_t moved_offset(std::uint32_t offset, const std::vector<Edit>& edits) {
    std::int64_t shift = 0;
    for (const Edit& edit : edits) {
        if (edit.span.begin > offset) break;
        if (offset < edit.span.end) return static_cast<std::uint32_t>(edit.span.begin + shift);
        // An insertion at the very place: what stood there is behind it now.
        shift += static_cast<std::int64_t>(edit.replacement.size()) - static_cast<std::int64_t>(edit.span.size());
    }
    return static_cast<std::uint32_t>(offset + shift);
}

bool overlap(const Edit& a, const Edit& b) {
    // Two insertions at one place have no order that both would know of.
    if (a.span.empty() && b.span.empty()) return a.span.begin == b.span.begin;
    return a.span.begin < b.span.end && b.span.begin < a.span.end;
}

using FindingKey = std::tuple<std::string, std::string, std::string>;  // rule, path, address
FindingKey key_of(const Finding& finding) {
    return {finding.rule, finding.path, finding.address};
}

std::vector<Edit> edits_of(const std::vector<const Finding*>& chosen, const std::string& path) {
    std::vector<Edit> edits;
    for (const Finding* finding : chosen)
        if (finding->path == path) edits.insert(edits.end(), finding->fix->edits.begin(), finding->fix->edits.end());
    std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.span.begin < b.span.begin; });
    return edits;
}

Texts texts_with(const Texts& texts, const std::vector<const Finding*>& chosen) {
    Texts changed = texts;
    std::set<std::string> paths;
    for (const Finding* finding : chosen) paths.insert(finding->path);
    for (const std::string& path : paths) changed[path] = with_edits(texts.at(path), edits_of(chosen, path));
    return changed;
}

// Why these fixes together are not what they promise; empty: they are.
std::string broken_promise(const std::vector<Finding>& before, const std::vector<Finding>& after,
                           const std::vector<const Finding*>& chosen) {
    std::set<FindingKey> had, fixed;
    for (const Finding& finding : before) had.insert(key_of(finding));
    for (const Finding* finding : chosen) fixed.insert(key_of(*finding));
    std::map<std::string, std::size_t> unread;
    for (const Finding& finding : before)
        if (finding.rule == "SYN001") ++unread[finding.path];
    for (const Finding& finding : after) {
        if (finding.rule == "SYN001") {
            if (unread[finding.path] == 0) return "the file no longer parses: " + finding.message;
            --unread[finding.path];
            continue;
        }
        if (finding.severity == Severity::error && !had.contains(key_of(finding)))
            return fmt::format("it brings a new error, {} at line {}", finding.rule, finding.place.line);
        if (!fixed.contains(key_of(finding))) continue;
        // A second place of the same resource may be told now that the first is mended; the same place may not.
        for (const Finding* mended : chosen)
            if (key_of(*mended) == key_of(finding) &&
                moved_offset(mended->span.begin, edits_of(chosen, mended->path)) == finding.span.begin &&
                finding.value == mended->value)
                return "the finding remains";
    }
    return {};
}

// At most one fix for a place: of the lowest rule id, then the first one.
std::vector<const Finding*> choose(const std::vector<Finding>& findings, const FixPolicy& policy,
                                   const std::set<FindingKey>& dropped, const Texts& texts) {
    std::vector<const Finding*> candidates;
    for (const Finding& finding : findings)
        if (finding.fix && policy.applies(finding) && !dropped.contains(key_of(finding)) &&
            texts.contains(finding.path))
            candidates.push_back(&finding);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Finding* a, const Finding* b) { return a->rule < b->rule; });
    std::vector<const Finding*> chosen;
    std::map<std::string_view, std::vector<const Edit*>> taken;
    for (const Finding* finding : candidates) {
        std::vector<const Edit*>& here = taken[finding->path];
        const bool free = std::none_of(finding->fix->edits.begin(), finding->fix->edits.end(), [&](const Edit& edit) {
            return std::any_of(here.begin(), here.end(), [&](const Edit* other) { return overlap(edit, *other); });
        });
        if (!free) continue;
        for (const Edit& edit : finding->fix->edits) here.push_back(&edit);
        chosen.push_back(finding);
    }
    return chosen;
}

}  // namespace

bool FixPolicy::applies(const Finding& finding) const {
    if (!finding.fix) return false;
    if (unsafe) return true;
    if (promoted.contains(finding.rule)) return true;
    return finding.fix->safety == FixClass::safe && !demoted.contains(finding.rule);
}

std::string with_edits(std::string_view text, const std::vector<Edit>& edits) {
    std::string out;
    out.reserve(text.size() + 256);
    std::size_t at = 0;
    for (const Edit& edit : edits) {
        if (edit.span.begin < at || edit.span.end > text.size()) continue;
        out += text.substr(at, edit.span.begin - at);
        out += edit.replacement;
        at = edit.span.end;
    }
    out += text.substr(at);
    return out;
}

Result<FixRun> apply_fixes(Texts texts, const CheckTexts& check, const FixPolicy& policy) {
    FixRun run;
    run.texts = std::move(texts);
    run.left = check(run.texts);
    std::set<FindingKey> dropped;
    const auto drop = [&](const Finding& finding, std::string why) {
        dropped.insert(key_of(finding));
        run.dropped.push_back({finding.rule, finding.path, std::move(why), finding.place.line});
    };
    for (;;) {
        std::vector<const Finding*> chosen = choose(run.left, policy, dropped, run.texts);
        if (chosen.empty()) return run;
        if (run.rounds == kMostFixRounds) {
            std::set<std::string> rules;
            for (const Finding* finding : chosen) rules.insert(finding->rule);
            return Error(ErrorKind::internal,
                         fmt::format("the fixes of {} undo each other: they still change the text after {} rounds",
                                     fmt::join(rules, " and "), kMostFixRounds));
        }
        ++run.rounds;
        Texts changed = texts_with(run.texts, chosen);
        std::vector<Finding> after = check(changed);
        if (const std::string why = broken_promise(run.left, after, chosen); !why.empty()) {
            // One of them is to blame: each alone, and only those that keep their promise.
            std::vector<const Finding*> good;
            for (const Finding* finding : chosen) {
                std::vector<const Finding*> tried = good;
                tried.push_back(finding);
                const std::vector<Finding> result = check(texts_with(run.texts, tried));
                if (std::string fault = broken_promise(run.left, result, tried); fault.empty())
                    good = std::move(tried);
                else
                    drop(*finding, std::move(fault));
            }
            chosen = std::move(good);
            if (chosen.empty()) continue;
            changed = texts_with(run.texts, chosen);
            after = check(changed);
        }
        for (const Finding* finding : chosen)
            run.applied.push_back({finding->rule, finding->path, finding->fix->title, finding->place.line});
        run.texts = std::move(changed);
        run.left = std::move(after);
    }
}

}  // namespace stoker::lint
