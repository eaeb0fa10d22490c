// stoker explain ENDPOINT: what was promised of it, what was seen, and why it is slower.
#include <fmt/format.h>

#include "app/commands/endpoints.h"
#include "app/render/held_table.h"
#include "base/codec.h"
#include "base/style.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

std::string value_text(const std::string& unit, double value) {
    if (unit == "s") return value >= 1 ? fmt::format("{:.3g} s", value) : fmt::format("{:.3g} ms", value * 1e3);
    return fmt::format("{:.4g}{}", value, unit);
}

Json figures_json(const std::vector<HeldFigure>& figures) {
    Json out = Json::array();
    for (const HeldFigure& each : figures)
        out.push(Json::object()
                     .set("figure", each.name)
                     .set("planned", each.promised.mid)
                     .set("low", each.promised.low)
                     .set("high", each.promised.high)
                     .set("measured", each.measured)
                     .set("worse", each.worse)
                     .set("better", each.better));
    return out;
}

Json causes_json(const std::vector<ServingCause>& causes) {
    Json out = Json::array();
    for (const ServingCause& each : causes) {
        Json evidence = Json::array();
        for (const std::string& line : each.evidence) evidence.push(line);
        out.push(Json::object()
                     .set("cause", each.name)
                     .set("what", each.what)
                     .set("evidence", std::move(evidence))
                     .set("cost_s", each.cost_s)
                     .set("fix", each.fix));
    }
    return out;
}

}  // namespace

Result<CommandOutput> explain_endpoint(Session& session, const EndpointFolder& folder, const Endpoint& endpoint) {
    auto status = folder.status(endpoint.name);
    if (!status && status.error().kind() != ErrorKind::not_found) return status.error();
    if (!status)
        return Error(ErrorKind::unavailable, fmt::format("nothing was seen of {} yet", endpoint.name), {},
                     "stoker serve answers for it and says how it does");
    const ServingEvidence& seen = status->evidence;
    const std::vector<HeldFigure> figures = held_against_plan(seen);
    const std::vector<ServingCause> causes = serving_causes(seen, endpoint.name);
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("endpoint", endpoint.name)
                                               .set("revision", status->revision)
                                               .set("requests", seen.requests)
                                               .set("window_s", seen.window_s)
                                               .set("figures", figures_json(figures))
                                               .set("causes", causes_json(causes))
                                               .set("evidence", codec::write(seen)))};
    const Style& style = session.style;
    std::string text = fmt::format("{}  revision {}, {}\n", style.bold(endpoint.name), status->revision, status->state);
    if (!fresh_status(folder, endpoint.name))
        text += "  " + style.warn("as of " + status->updated_at.substr(0, 19) + "Z: no gateway keeps it now") + "\n";
    if (seen.requests == 0) return CommandOutput{text + "  no request was answered in the last ten minutes\n"};
    text +=
        fmt::format("  {} requests in {}, {} failed: {:.3g} a second, prompts of {:.0f} and answers of {:.0f} tokens\n",
                    seen.requests, format_seconds(Seconds(seen.window_s)), seen.failed, seen.requests_per_s,
                    seen.prompt_mean, seen.output_mean);
    text += fmt::format("  {:.3g} replicas ready on average, {} planned; {:.3g} requests at them at once\n",
                        seen.ready_mean, seen.promise.replicas, seen.in_flight_mean);
    if (!figures.empty()) {
        std::vector<HeldRow> rows;
        for (const HeldFigure& each : figures)
            rows.push_back({each.name, value_text(each.unit, each.promised.mid),
                            value_text(each.unit, each.promised.low), value_text(each.unit, each.promised.high),
                            value_text(each.unit, each.measured), each.measured / each.promised.mid,
                            each.worse    ? style.bad("worse")
                            : each.better ? "better"
                                          : "within"});
        text += "\n" + held_table(style, rows);
    }
    text += "\n";
    if (seen.requests < kLeastRequests)
        return CommandOutput{text + fmt::format("  {} requests say little; causes are told from {} on\n", seen.requests,
                                                kLeastRequests)};
    bool worse = false;
    for (const HeldFigure& each : figures) worse = worse || each.worse;
    if (causes.empty())
        text += figures.empty() ? "  nothing was promised that could be held against it\n"
                : worse         ? "  it is slower than planned, and nothing that was measured says why\n"
                                : "  as planned\n";
    for (const ServingCause& cause : causes) {
        text += fmt::format("  {}  {}\n", style.bold(cause.name), cause.what);
        for (const std::string& line : cause.evidence) text += fmt::format("      {}\n", line);
        text += fmt::format("      {} {}\n", style.dim("->"), cause.fix);
    }
    return CommandOutput{text};
}

}  // namespace stoker
