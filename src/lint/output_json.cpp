// The contract of `stoker check --out json`: path, rule, severity, line, column and message of each finding.
#include "lint/outcome.h"

namespace stoker::lint {

namespace {

Json place_json(const std::string& path, Place place) {
    return Json::object().set("path", path).set("line", place.line).set("column", place.column);
}

Json fix_json(const Outcome& outcome, const Finding& finding) {
    const Source* source = outcome.source_of(finding.path);
    Json edits = Json::array();
    for (const Edit& edit : finding.fix->edits) {
        Json json = Json::object();
        if (source) {
            const Place begin = source->place(edit.span.begin, Columns::code_points);
            const Place end = source->place(edit.span.end, Columns::code_points);
            json.set("line", begin.line).set("column", begin.column);
            json.set("end_line", end.line).set("end_column", end.column);
        }
        json.set("begin", edit.span.begin).set("end", edit.span.end).set("replacement", edit.replacement);
        edits.push(std::move(json));
    }
    return Json::object()
        .set("safety", to_string(finding.fix->safety))
        .set("title", finding.fix->title)
        .set("edits", std::move(edits));
}

Json not_evaluated_json(const Outcome& outcome) {
    Json list = Json::array();
    for (const OpenValue& open : outcome.open.values)
        list.push(place_json(open.path, open.place)
                      .set("address", open.address)
                      .set("attribute", open.attribute)
                      .set("written", open.written));
    return Json::object()
        .set("attributes", static_cast<std::int64_t>(outcome.open.attributes))
        .set("resources", static_cast<std::int64_t>(outcome.open.resources))
        .set("files", static_cast<std::int64_t>(outcome.open.files))
        .set("values", std::move(list));
}

Json scheduling_json(const Outcome& outcome) {
    Json list = Json::array();
    for (const SchedulingVerdict& verdict : outcome.scheduling) {
        Json json = Json::object().set("folder", verdict.folder).set("runs", to_string(verdict.runs));
        for (const SchedulingPart* part : {&verdict.taint, &verdict.plugin, &verdict.toleration}) {
            Json one = Json::object().set("there", to_string(part->there)).set("what", part->what);
            if (!part->path.empty()) one.set("path", part->path).set("line", part->place.line);
            json.set(part == &verdict.taint    ? "pool_taint"
                     : part == &verdict.plugin ? "device_plugin"
                                               : "pod_toleration",
                     std::move(one));
        }
        list.push(json.set("verdict", verdict.text));
    }
    return list;
}

}  // namespace

Json finding_json(const Outcome& outcome, const Finding& finding) {
    Json related = Json::array(), evidence = Json::array();
    for (const Related& other : finding.related)
        related.push(place_json(other.path, other.place).set("message", other.message));
    if (const auto found = outcome.evidence.find(finding.path); found != outcome.evidence.end())
        for (const EvidenceLine& line : found->second)
            evidence.push(place_json(line.path, line.place).set("what", line.what));
    Json json = Json::object()
                    .set("path", finding.path)
                    .set("line", finding.place.line)
                    .set("column", finding.place.column)
                    .set("end_line", finding.end.line)
                    .set("end_column", finding.end.column)
                    .set("rule", finding.rule)
                    .set("slug", finding.slug)
                    .set("severity", to_string(finding.severity))
                    .set("address", finding.address)
                    .set("message", finding.message)
                    .set("advice", finding.advice)
                    .set("fingerprint", finding.fingerprint)
                    .set("related", std::move(related))
                    .set("evidence", std::move(evidence))
                    .set("fix", finding.fix ? fix_json(outcome, finding) : Json());
    if (finding.cost) {
        const FindingCost& cost = *finding.cost;
        Json json_cost = Json::object()
                             .set("size", cost.size)
                             .set("nodes", cost.nodes)
                             .set("usd_per_hour", cost.usd_per_hour)
                             .set("region", cost.region)
                             .set("lowest_of_all_regions", cost.lowest);
        if (cost.instead.empty())
            json_cost.set("usd_per_weekend", cost.usd_per_weekend());
        else
            json_cost.set("instead", cost.instead).set("instead_usd_per_hour", cost.instead_usd_per_hour);
        json_cost.set("text", cost.text()).set("source", cost.source).set("as_of", cost.as_of);
        json.set("cost", std::move(json_cost));
    }
    if (!finding.call.empty()) json.set("call", finding.call);
    if (const RulePage* page = find_rule_page(finding.rule))
        json.set("source", Json::object().set("page", page->source).set("as_of", page->as_of));
    return json;
}

Json outcome_json(const Outcome& outcome) {
    Json findings = Json::array(), suppressed = Json::array(), baselined = Json::array(), stale = Json::array(),
         files = Json::array(), skipped = Json::array();
    for (const Finding& finding : outcome.findings) findings.push(finding_json(outcome, finding));
    for (const SuppressedFinding& s : outcome.suppressed)
        suppressed.push(finding_json(outcome, s.finding)
                            .set("suppressed_by", s.in_source ? "comment" : "stoker.toml")
                            .set("reason", s.reason)
                            .set("until", s.until));
    for (const BaselinedFinding& b : outcome.baselined)
        baselined.push(finding_json(outcome, b.finding).set("reason", b.reason).set("moved_from", b.moved_from));
    for (const BaselineEntry& entry : outcome.stale)
        stale.push(Json::object()
                       .set("fingerprint", entry.fingerprint)
                       .set("rule", entry.rule)
                       .set("path", entry.path)
                       .set("address", entry.address));
    for (const std::string& file : outcome.files) files.push(file);
    for (const SkippedInput& input : outcome.skipped)
        skipped.push(Json::object().set("path", input.path).set("why", input.why));
    return Json::object()
        .set("version", outcome.tool)
        .set("as_of", outcome.as_of)
        .set("catalogue", outcome.catalogue)
        .set("findings", std::move(findings))
        .set("suppressed", std::move(suppressed))
        .set("baselined", std::move(baselined))
        .set("stale", std::move(stale))
        .set("files", std::move(files))
        .set("skipped", std::move(skipped))
        .set("not_evaluated", not_evaluated_json(outcome))
        .set("scheduling", scheduling_json(outcome));
}

std::string json_text(const Outcome& outcome) {
    return outcome_json(outcome).dump() + "\n";
}

}  // namespace stoker::lint
