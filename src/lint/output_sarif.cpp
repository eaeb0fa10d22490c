// SARIF 2.1.0 (OASIS). All rules are listed, also those that did not fire: a consumer can then close an alert.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/outcome.h"

namespace stoker::lint {

namespace {

std::string_view sarif_level(Severity severity) {
    return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

// A path as a relative URI reference: what is not unreserved is written %XX.
std::string uri_of(std::string_view path) {
    std::string uri;
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view("-._~/").find(c) != std::string_view::npos;
        if (plain)
            uri += c;
        else
            uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    // "a:b" would be taken for a scheme; ':' is written %3A above. "-" is standard input.
    return uri;
}

Json artifact_of(std::string_view path) {
    Json json = Json::object().set("uri", uri_of(path));
    if (!path.starts_with('/')) json.set("uriBaseId", "%SRCROOT%");
    return json;
}

Json region_of(const Source* source, Span span, Place begin, Place end) {
    if (source) {
        begin = source->place(span.begin, Columns::utf16);
        end = source->place(span.end, Columns::utf16);
    }
    return Json::object()
        .set("startLine", begin.line)
        .set("startColumn", begin.column)
        .set("endLine", end.line)
        .set("endColumn", end.column);
}

Json physical(const Outcome& outcome, const std::string& path, Span span, Place begin, Place end) {
    return Json::object()
        .set("artifactLocation", artifact_of(path))
        .set("region", region_of(outcome.source_of(path), span, begin, end));
}

Json rule_object(const RulePage& page) {
    const RulePage whole = whole_rule_page(page.id);
    Json tags = Json::array();
    tags.push("gpu").push(lower(page.id.substr(0, page.id.find_first_of("0123456789"))));
    Json rule =
        Json::object()
            .set("id", page.id)
            .set("name", page.slug)
            .set("shortDescription", Json::object().set("text", page.title))
            .set("fullDescription", Json::object().set("text", whole.text.empty() ? page.title : whole.text))
            .set("help",
                 Json::object()
                     .set("text", fmt::format("{}\n\nSource: {}, read {}.", whole.text, page.source, page.as_of))
                     .set("markdown", rule_markdown(whole)));
    if (const std::string link = rule_link(page); !link.empty()) rule.set("helpUri", link);
    return rule
        .set("defaultConfiguration", Json::object().set("enabled", page.on).set("level", sarif_level(page.severity)))
        .set("properties", Json::object().set("tags", std::move(tags)).set("precision", "high"));
}

Json fix_object(const Outcome& outcome, const Finding& finding) {
    const Source* source = outcome.source_of(finding.path);
    Json replacements = Json::array();
    for (const Edit& edit : finding.fix->edits)
        replacements.push(Json::object()
                              .set("deletedRegion", region_of(source, edit.span, {}, {}))
                              .set("insertedContent", Json::object().set("text", edit.replacement)));
    Json change =
        Json::object().set("artifactLocation", artifact_of(finding.path)).set("replacements", std::move(replacements));
    return Json::object()
        .set("description", Json::object().set("text", finding.fix->title))
        .set("artifactChanges", Json::array().push(std::move(change)));
}

struct SarifWriter {
    const Outcome& outcome;
    Json results = Json::array();

    Json result(const Finding& finding) const {
        const auto& pages = rule_pages();
        const RulePage* page = find_rule_page(finding.rule);
        Json location = Json::object().set("physicalLocation",
                                           physical(outcome, finding.path, finding.span, finding.place, finding.end));
        location.set("logicalLocations", Json::array().push(Json::object().set("fullyQualifiedName", finding.address)));
        std::string message = finding.message;
        if (!finding.advice.empty()) message += ". " + finding.advice;
        Json json = Json::object().set("ruleId", finding.rule);
        if (page) json.set("ruleIndex", static_cast<std::size_t>(page - pages.data()));
        json.set("level", sarif_level(finding.severity))
            .set("message", Json::object().set("text", message))
            .set("locations", Json::array().push(std::move(location)))
            .set("partialFingerprints", Json::object().set("stoker/v1", finding.fingerprint));
        if (!finding.related.empty()) {
            Json related = Json::array();
            for (const Related& other : finding.related)
                related.push(
                    Json::object()
                        .set("physicalLocation", physical(outcome, other.path, other.span, other.place, other.place))
                        .set("message", Json::object().set("text", other.message)));
            json.set("relatedLocations", std::move(related));
        }
        if (finding.fix) json.set("fixes", Json::array().push(fix_object(outcome, finding)));
        return json;
    }

    void add(const Finding& finding, std::string_view state, std::string_view suppressed, std::string_view reason) {
        Json json = result(finding);
        if (!suppressed.empty()) {
            Json suppression = Json::object().set("kind", suppressed).set("status", "accepted");
            if (!reason.empty()) suppression.set("justification", reason);
            json.set("suppressions", Json::array().push(std::move(suppression)));
        }
        if (!state.empty()) json.set("baselineState", state);
        results.push(std::move(json));
    }
};

}  // namespace

std::string sarif_text(const Outcome& outcome) {
    SarifWriter writer{outcome};
    const bool compared = !outcome.baseline_file.empty();
    for (const Finding& finding : outcome.findings) writer.add(finding, compared ? "new" : "", "", "");
    for (const SuppressedFinding& s : outcome.suppressed)
        writer.add(s.finding, compared ? "new" : "", s.in_source ? "inSource" : "external", s.reason);
    for (const BaselinedFinding& b : outcome.baselined) writer.add(b.finding, "unchanged", "external", b.reason);

    Json rules = Json::array(), notifications = Json::array();
    for (const RulePage& page : rule_pages()) rules.push(rule_object(page));
    for (const Finding& finding : outcome.findings) {
        if (finding.rule != "SYN005") continue;
        Json location = Json::object().set("physicalLocation",
                                           physical(outcome, finding.path, finding.span, finding.place, finding.end));
        notifications.push(Json::object()
                               .set("level", "error")
                               .set("message", Json::object().set("text", finding.message))
                               .set("locations", Json::array().push(std::move(location))));
    }
    Json driver =
        Json::object().set("name", "stoker").set("semanticVersion", outcome.tool).set("rules", std::move(rules));
    Json invocation =
        Json::object().set("executionSuccessful", true).set("toolExecutionNotifications", std::move(notifications));
    Json run =
        Json::object()
            .set("tool", Json::object().set("driver", std::move(driver)))
            .set("columnKind", "utf16CodeUnits")
            .set("originalUriBaseIds",
                 Json::object().set("%SRCROOT%",
                                    Json::object().set("description", Json::object().set("text", "where stoker ran"))))
            .set("invocations", Json::array().push(std::move(invocation)))
            .set("results", std::move(writer.results));
    return Json::object()
               .set("$schema", "https://json.schemastore.org/sarif-2.1.0.json")
               .set("version", "2.1.0")
               .set("runs", Json::array().push(std::move(run)))
               .dump() +
           "\n";
}

}  // namespace stoker::lint
