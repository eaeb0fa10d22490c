#include "app/client/explanation_against.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/client/explanation_text.h"
#include "app/listing.h"
#include "base/text.h"

namespace stoker {
namespace {

struct TermPair {
    std::string term, unit;
    std::optional<double> run, other;
};

std::vector<TermPair> pairs_of(const api::ExplanationView& run, const api::ExplanationView& other) {
    std::vector<TermPair> pairs;
    for (const api::ExplainedTerm& each : run.terms)
        pairs.push_back({.term = each.term, .unit = each.unit, .run = each.measured, .other = {}});
    for (const api::ExplainedTerm& each : other.terms) {
        const auto found =
            std::find_if(pairs.begin(), pairs.end(), [&](const TermPair& pair) { return pair.term == each.term; });
        if (found != pairs.end())
            found->other = each.measured;
        else
            pairs.push_back({.term = each.term, .unit = each.unit, .run = {}, .other = each.measured});
    }
    std::erase_if(pairs, [](const TermPair& pair) { return !pair.run && !pair.other; });
    return pairs;
}

std::string difference_text(const TermPair& pair) {
    if (!pair.run || !pair.other) return "";
    if (!(*pair.other > 0)) return *pair.run > 0 ? "only here" : "alike";
    const double share = *pair.run / *pair.other - 1;
    if (std::abs(share) < 0.005) return "alike";
    if (share > 4) return fmt::format("{:.1f} times as much", share + 1);
    return fmt::format("{:.0f} % {}", 100 * std::abs(share), share > 0 ? "more" : "less");
}

bool has_cause(const api::ExplanationView& view, const std::string& name) {
    return std::any_of(view.diagnoses.begin(), view.diagnoses.end(),
                       [&](const api::DiagnosisView& each) { return each.name == name; });
}

std::vector<std::string> causes_of(const api::ExplanationView& view, const api::ExplanationView& other, bool in_other) {
    std::vector<std::string> names;
    for (const api::DiagnosisView& each : view.diagnoses)
        if (has_cause(other, each.name) == in_other) names.push_back(each.name);
    return names;
}

Json names_json(const std::vector<std::string>& names) {
    Json list = Json::array();
    for (const std::string& name : names) list.push(name);
    return list;
}

}  // namespace

std::string against_text(const api::ExplanationView& run, const api::ExplanationView& other, const Style& style) {
    const std::string mine = run.run.text(), theirs = other.run.text();
    std::vector<std::vector<std::string>> rows;
    for (const TermPair& pair : pairs_of(run, other))
        rows.push_back({pair.term, pair.run ? measured_text(*pair.run, pair.unit) : "-",
                        pair.other ? measured_text(*pair.other, pair.unit) : "-", difference_text(pair)});
    std::string text = table_text(
        style, {{""}, {mine, Align::right}, {theirs, Align::right}, {fmt::format("{} against {}", mine, theirs)}}, rows,
        0);
    if (rows.empty()) text += "Nothing was measured of either.\n";
    const auto tell = [&](const api::ExplanationView& whose, const api::ExplanationView& than) {
        for (const api::DiagnosisView& each : whose.diagnoses) {
            if (has_cause(than, each.name)) continue;
            text += fmt::format("\nonly {}: {}\n  {}\n  fix: {}\n", whose.run.text(), style.bold(each.name), each.what,
                                each.fix);
        }
    };
    tell(run, other);
    tell(other, run);
    const std::vector<std::string> both = causes_of(run, other, true);
    if (!both.empty()) text += "\nboth: " + join(both, ", ") + "\n";
    if (run.diagnoses.empty() && other.diagnoses.empty()) text += "\nNothing was found that slows either down.\n";
    return text +
           style.dim(
               fmt::format("parameters, metrics and specs beside each other: stoker compare {} {}", theirs, mine)) +
           "\n";
}

Json against_json(const api::ExplanationView& run, const api::ExplanationView& other) {
    Json terms = Json::array();
    for (const TermPair& pair : pairs_of(run, other)) {
        Json term = Json::object().set("term", pair.term).set("unit", pair.unit);
        if (pair.run) term.set("run", *pair.run);
        if (pair.other) term.set("against", *pair.other);
        if (pair.run && pair.other) term.set("difference", *pair.run - *pair.other);
        if (pair.run && pair.other && *pair.other > 0) term.set("ratio", *pair.run / *pair.other);
        terms.push(std::move(term));
    }
    return Json::object()
        .set("run", run.run.text())
        .set("against", other.run.text())
        .set("terms", std::move(terms))
        .set("causes", Json::object()
                           .set("run", names_json(causes_of(run, other, false)))
                           .set("against", names_json(causes_of(other, run, false)))
                           .set("both", names_json(causes_of(run, other, true))));
}

}  // namespace stoker
