#include "app/render/plan_json.h"

#include "app/render/short_answer.h"
#include "base/version.h"
#include "sizing/layout_json.h"

namespace stoker {

namespace {

Json range_json(const Range& r) {
    return Json::object().set("low", r.low).set("mid", r.mid).set("high", r.high);
}

Json notes_json(const std::vector<PlanNote>& notes) {
    Json out = Json::array();
    for (const PlanNote& note : notes) out.push(note.text);
    return out;
}

Json strings(const std::vector<std::string>& list) {
    Json array = Json::array();
    for (const std::string& item : list) array.push(item);
    return array;
}

Json provenance_json(const Provenance& p) {
    return Json::object().set("source", p.source).set("as_of", p.as_of);
}

template <typename Term, std::size_t N>
Json terms_json(const std::array<double, N>& values, const char* unit) {
    Json array = Json::array();
    for (std::size_t i = 0; i < N; ++i) {
        if (values[i] <= 0) continue;
        const TermInfo& term = info(static_cast<Term>(i));
        array.push(Json::object()
                       .set("term", term.name)
                       .set(unit, values[i])
                       .set("formula", term.formula)
                       .set("source", term.source));
    }
    return array;
}

Json prediction_json(const Prediction& p, bool service) {
    Json out = Json::object();
    out.set("hours", range_json(p.hours))
        .set("usd", range_json(p.usd))
        .set("usd_per_unit", range_json(p.usd_per_unit))
        .set("unit", p.unit_name)
        .set("usd_per_unit_of_asked_load", range_json(p.usd_per_unit_asked))
        .set("kwh", range_json(p.kwh));
    out.set("campaign", p.campaign_factor > 0 ? Json::object()
                                                    .set("factor", p.campaign_factor)
                                                    .set("hours", p.hours.mid * p.campaign_factor)
                                                    .set("usd", p.usd.mid * p.campaign_factor)
                                              : Json());
    out.set("step_seconds", range_json(p.step_s)).set("step_terms", terms_json<TimeTerm>(p.seconds, "seconds"));
    out.set("memory_bytes", range_json(p.memory_bytes))
        .set("memory_capacity_bytes", p.memory_capacity_bytes)
        .set("memory_terms", terms_json<MemoryTerm>(p.bytes, "bytes"));
    out.set("fit_probability", p.fit_probability)
        .set("mfu", p.mfu)
        .set("hfu", p.hfu)
        .set("tokens_per_second", p.tokens_per_s)
        .set("steps", p.steps);
    out.set("sent_bytes_per_gpu_and_step", Json::object()
                                               .set("gradients", p.gradient_bytes)
                                               .set("tensor", p.tensor_bytes)
                                               .set("pipeline", p.pipeline_bytes));
    out.set("bottleneck", to_string(p.bottleneck)).set("utilisation", p.utilisation);
    out.set("checkpoint", Json::object()
                              .set("interval_seconds", p.checkpoint.interval_s)
                              .set("bytes", p.checkpoint.bytes)
                              .set("stall_seconds", p.checkpoint.stall_s)
                              .set("goodput", p.checkpoint.goodput)
                              .set("expected_failures", p.checkpoint.expected_failures)
                              .set("expected_evictions", p.checkpoint.expected_evictions)
                              .set("waiting_seconds", p.checkpoint.waiting_s));
    if (service) {
        const ServingOutcome& l = p.latency;
        out.set("latency", Json::object()
                               .set("ttft_p95_seconds", range_json(p.ttft_p95_s))
                               .set("tpot_p95_seconds", range_json(p.tpot_p95_s))
                               .set("ttft_p50_seconds", l.ttft_p50)
                               .set("ttft_p99_seconds", l.ttft_p99)
                               .set("tpot_p50_seconds", l.tpot_p50)
                               .set("tpot_p99_seconds", l.tpot_p99)
                               .set("e2e_p95_seconds", l.e2e_p95)
                               .set("saturated", l.saturated)
                               .set("chance", p.latency_chance >= 0 ? Json(p.latency_chance) : Json())
                               .set("knee_requests_per_second_per_replica", p.knee_requests_per_s)
                               .set("requests_per_second", p.requests_per_s)
                               .set("clients_per_replica", p.clients_per_replica)
                               .set("throughput_unit", p.rate_unit)
                               .set("prefill_bound", to_string(p.prefill_bound)));
    }
    return out;
}

// ---- the schema: small builders, so that it reads like the data ----
Json type(const char* name) {
    return Json::object().set("type", name);
}
Json array_of(Json items) {
    return type("array").set("items", std::move(items));
}
Json ref(const char* name) {
    return Json::object().set("$ref", std::string("#/$defs/") + name);
}
Json object_of(std::initializer_list<std::pair<const char*, Json>> members) {
    Json properties = Json::object(), required = Json::array();
    for (const auto& [key, schema] : members) {
        properties.set(key, schema);
        required.push(key);
    }
    return type("object").set("properties", properties).set("required", required);
}

}  // namespace

Json candidate_json(const Candidate& c, const Workload& workload, const Catalog& catalog) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(c.node_type)];
    Json out = Json::object();
    out.set("size", node.name)
        .set("cloud", node.cloud)
        .set("region", c.region)
        .set("pricing", to_string(c.pricing))
        .set("nodes", c.nodes);
    out.set("accelerator",
            node.has_gpu() ? Json(catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name) : Json());
    out.set("devices", c.devices_used);
    Json price = Json();
    if (c.priced) {
        price = Json::object()
                    .set("usd_per_node_hour", c.node_per_hour.dollars())
                    .set("estimate", c.price_is_estimate)
                    .set("os", workload.where.os)
                    .set("provenance", provenance_json(c.price_provenance));
    }
    out.set("price", price).set("orchestrator", to_string(c.orchestrator)).set("framework", c.framework);
    if (is_training(workload.kind)) out.set("layout", to_json(c.layout));
    if (c.replicas > 0)
        out.set("replicas", c.replicas)
            .set("spare_nodes", c.spare_nodes)
            .set("replica", Json::object()
                                .set("tensor", c.replica.tensor)
                                .set("pipeline", c.replica.pipeline)
                                .set("data", c.replica.data)
                                .set("expert", c.replica.expert)
                                .set("description", c.replica.text()));
    out.set("prediction", prediction_json(c.prediction, c.replicas > 0));
    out.set("why_not_first", c.why_not_first).set("notes", notes_json(c.notes));
    out.set("precision", workload.model_known ? Json(to_string(c.precision)) : Json());
    // What speaks against it, whatever it costs: quota that is taken, a device without a measured run, and the like.
    out.set("blocked_by", c.blocked_by).set("doubt", c.doubt).set("measured", c.measured);
    if (c.spot_service)
        out.set("spot_service", Json::object()
                                    .set("on_demand_nodes", c.spot_service->on_demand_nodes)
                                    .set("evictions_per_month", c.spot_service->evictions)
                                    .set("hours_below_per_month", range_json(c.spot_service->hours_below))
                                    .set("requests_without_room_per_month", range_json(c.spot_service->requests)));
    return out;
}

Json plan_json(const Plan& plan, const Catalog& catalog, std::string_view file) {
    Json out = Json::object();
    out.set("schema", "stoker.plan/1")
        .set("stoker", version().number)
        .set("catalog", Json::object().set("version", plan.catalog_version).set("as_of", plan.catalog_as_of));
    out.set("feasible", plan.feasible())
        .set("verdict", plan.verdict)
        .set("workload", Json::object()
                             .set("name", plan.workload.name)
                             .set("kind", to_string(plan.workload.kind))
                             .set("model", plan.workload.model.name)
                             .set("precision", to_string(plan.workload.precision))
                             .set("title", plan.workload.title()));
    out.set("infeasible_because", plan.infeasible_because);
    const auto list = [&](const std::vector<Candidate>& from) {
        Json array = Json::array();
        for (const Candidate& c : from) array.push(candidate_json(c, plan.workload, catalog));
        return array;
    };
    out.set("candidates", list(plan.candidates)).set("pareto", list(plan.pareto)).set("nearest", list(plan.nearest));
    out.set("reasons", strings(plan.reasons)).set("assumptions", strings(plan.workload.assumptions));
    Json advice = Json::array();
    for (const Advice& a : plan.advice) {
        const char* severity = a.severity == AdviceSeverity::error     ? "error"
                               : a.severity == AdviceSeverity::warning ? "warning"
                                                                       : "info";
        advice.push(Json::object()
                        .set("id", a.id)
                        .set("severity", severity)
                        .set("text", a.text)
                        .set("remedy", a.remedy)
                        .set("source", a.source));
    }
    out.set("advice", advice);
    Json what_if = Json::array();
    for (const PlanWhatIf& w : plan.what_if)
        what_if.push(
            Json::object().set("change", w.change).set("outcome", w.outcome).set("changes_choice", w.changes_choice));
    out.set("what_if", what_if);
    Json foregone = Json::array();
    for (const Foregone& one : plan.foregone)
        foregone.push(Json::object()
                          .set("id", one.id)
                          .set("why", one.why)
                          .set("candidate", candidate_json(one.candidate, plan.workload, catalog)));
    out.set("foregone", foregone);
    Json fallbacks = Json::array();
    for (const Fallback& one : plan.fallbacks)
        fallbacks.push(Json::object()
                           .set("id", one.id)
                           .set("needs", one.needs)
                           .set("candidate", candidate_json(one.candidate, plan.workload, catalog)));
    out.set("fallbacks", fallbacks);
    Json rate;
    if (plan.spot_rate)
        rate = Json::object()
                   .set("evictions_per_node_hour", range_json(plan.spot_rate->per_hour))
                   .set("wait_hours", plan.spot_rate->wait_h)
                   .set("from", plan.spot_rate->from)
                   .set("given", plan.spot_rate->given)
                   .set("flips_at", plan.spot_rate->flips_at > 0 ? Json(plan.spot_rate->flips_at) : Json())
                   .set("outcome", plan.spot_rate->outcome);
    out.set("spot_rate", rate);
    const PlatformChoice& p = plan.platform;
    out.set("platform", Json::object()
                            .set("orchestrator", to_string(p.orchestrator))
                            .set("name", p.name)
                            .set("reason", p.reason)
                            .set("complexity", p.complexity)
                            .set("alternatives", strings(p.alternatives))
                            .set("paas", p.paas)
                            .set("image", p.image)
                            .set("image_reason", p.image_reason));
    const ShortAnswer answer = short_answer(plan, catalog, file);
    Json lines = Json::array();
    for (const AnswerLine& line : answer.lines)
        lines.push(Json::object().set("label", line.label).set("text", line.text).set("command", line.command));
    out.set("answer", Json::object()
                          .set("task", answer.task)
                          .set("machines", answer.machines)
                          .set("hardware", answer.hardware)
                          .set("time", answer.time)
                          .set("money", answer.money)
                          .set("chance", answer.chance)
                          .set("lines", lines));
    const PublishedEvidence& evidence = plan.evidence;
    Json closest = Json();
    if (evidence.closest) {
        const PublishedRun& run = *evidence.closest;
        Json unlike = Json::array();
        for (const std::string& what : run.unlike) unlike.push(what);
        closest =
            Json::object()
                .set("id", run.id)
                .set("title", run.title)
                .set("source", run.source)
                .set("metric", run.metric)
                .set("measured", run.measured)
                .set("predicted", Json::object().set("low", run.low).set("mid", run.predicted).set("high", run.high))
                .set("distance", run.distance)
                .set("unlike", unlike)
                .set("other_sources", run.other_sources)
                .set("together_slower", run.slower_together());
    }
    out.set("published", Json::object()
                             .set("runs", evidence.runs)
                             .set("runs_near", evidence.runs_near)
                             .set("runs_on_device", evidence.runs_on_device)
                             .set("missing", evidence.missing)
                             .set("closest", closest));
    const auto shift = [](const ConstantEffect::Change& c) {
        return Json::object()
            .set("step", c.step)
            .set("memory", c.memory)
            .set("usd", c.usd)
            .set("ttft", c.ttft)
            .set("tpot", c.tpot);
    };
    Json because = Json::array();
    for (const ConstantEffect& e : plan.because) {
        because.push(Json::object()
                         .set("name", e.name)
                         .set("unit", e.unit)
                         .set("value", e.value)
                         .set("low", e.low)
                         .set("high", e.high)
                         .set("spread", e.spread)
                         .set("when_low", shift(e.when_low))
                         .set("when_high", shift(e.when_high))
                         .set("source", e.source)
                         .set("as_of", e.as_of)
                         .set("rows", e.rows)
                         .set("groups", e.groups)
                         .set("note", e.note));
    }
    out.set("because", because);
    Json rejected = Json::array();
    for (const Rejection& r : plan.rejected) {
        rejected.push(Json::object()
                          .set("size", r.node_type < 0
                                           ? Json()
                                           : Json(catalog.node_types()[static_cast<std::size_t>(r.node_type)].name))
                          .set("region", r.region)
                          .set("nodes", r.nodes)
                          .set("reason", code(r.reason))
                          .set("have", r.have)
                          .set("need", r.need)
                          .set("text", r.text)
                          .set("candidates", r.count));
    }
    out.set("rejected", rejected).set("considered", plan.considered).set("refused", plan.refused);
    return out;
}

Json plan_schema() {
    const Json number = type("number"), text = type("string"), whole = type("integer"), flag = type("boolean");
    Json defs = Json::object();
    defs.set("range", object_of({{"low", number}, {"mid", number}, {"high", number}})
                          .set("description", "an 80 % interval and its middle"));
    defs.set("term", object_of({{"term", text}, {"formula", text}, {"source", text}}));
    Json price = object_of({{"usd_per_node_hour", number},
                            {"estimate", flag},
                            {"os", text},
                            {"provenance", object_of({{"source", text}, {"as_of", text}})}});
    price.set("type", Json::array().push("object").push("null"));
    const auto told = [](Json schema, const char* what) { return schema.set("description", what); };
    defs.set(
        "prediction",
        object_of({{"hours", ref("range")},
                   {"usd", ref("range")},
                   {"usd_per_unit", told(ref("range"), "of a service: at full load")},
                   {"usd_per_unit_of_asked_load", told(ref("range"), "services: at the load in the file; else zero")},
                   {"unit", text},
                   {"kwh", ref("range")},
                   {"step_seconds", ref("range")},
                   {"step_terms", array_of(ref("term"))},
                   {"memory_bytes", ref("range")},
                   {"memory_capacity_bytes", number},
                   {"memory_terms", array_of(ref("term"))},
                   {"fit_probability", number},
                   {"mfu", number},
                   {"hfu", number},
                   {"tokens_per_second", number},
                   {"steps", number},
                   {"bottleneck", text},
                   {"utilisation", number},
                   {"checkpoint", type("object")}}));
    defs.set("candidate", object_of({{"size", text},
                                     {"cloud", text},
                                     {"region", text},
                                     {"pricing", text},
                                     {"nodes", whole},
                                     {"devices", number},
                                     {"price", price},
                                     {"orchestrator", text},
                                     {"framework", text},
                                     {"prediction", ref("prediction")},
                                     {"why_not_first", text},
                                     {"blocked_by", text},
                                     {"doubt", text},
                                     {"measured", flag},
                                     {"notes", array_of(text)}}));
    Json closest = object_of({{"id", text},
                              {"title", text},
                              {"source", text},
                              {"metric", text},
                              {"measured", number},
                              {"predicted", ref("range")},
                              {"distance", number},
                              {"unlike", array_of(text)},
                              {"other_sources", number},
                              {"together_slower", number}});
    closest.set("type", Json::array().push("object").push("null"));
    Json rate = object_of({{"evictions_per_node_hour", ref("range")},
                           {"wait_hours", number},
                           {"from", text},
                           {"given", flag},
                           {"flips_at", Json::object().set("type", Json::array().push("number").push("null"))},
                           {"outcome", text}});
    rate.set("type", Json::array().push("object").push("null"));
    Json schema = object_of(
        {{"schema", Json::object().set("const", "stoker.plan/1")},
         {"stoker", text},
         {"catalog", object_of({{"version", text}, {"as_of", text}})},
         {"feasible", flag},
         {"verdict", text},
         {"workload", type("object")},
         {"infeasible_because", text},
         {"candidates", array_of(ref("candidate"))},
         {"pareto", array_of(ref("candidate"))},
         {"nearest", array_of(ref("candidate"))},
         {"reasons", array_of(text)},
         {"assumptions", array_of(text)},
         {"advice",
          array_of(object_of({{"id", text}, {"severity", text}, {"text", text}, {"remedy", text}, {"source", text}}))},
         {"what_if", array_of(object_of({{"change", text}, {"outcome", text}, {"changes_choice", flag}}))},
         {"foregone", array_of(object_of({{"id", text}, {"why", text}, {"candidate", ref("candidate")}}))},
         {"fallbacks", array_of(object_of({{"id", text}, {"needs", text}, {"candidate", ref("candidate")}}))},
         {"spot_rate", rate},
         {"platform", type("object")},
         {"answer", object_of({{"task", text},
                               {"machines", text},
                               {"hardware", text},
                               {"time", text},
                               {"money", text},
                               {"chance", text},
                               {"lines", array_of(object_of({{"label", text}, {"text", text}, {"command", text}}))}})},
         {"published", object_of({{"runs", whole},
                                  {"runs_near", whole},
                                  {"runs_on_device", whole},
                                  {"missing", text},
                                  {"closest", closest}})},
         {"because", array_of(object_of({{"name", text},
                                         {"unit", text},
                                         {"value", number},
                                         {"low", number},
                                         {"high", number},
                                         {"spread", text},
                                         {"when_low", type("object")},
                                         {"when_high", type("object")},
                                         {"source", text},
                                         {"as_of", text},
                                         {"rows", text},
                                         {"groups", text},
                                         {"note", text}}))},
         {"rejected", array_of(object_of({{"region", text},
                                          {"nodes", whole},
                                          {"reason", text},
                                          {"have", number},
                                          {"need", number},
                                          {"text", text},
                                          {"candidates", whole}}))},
         {"considered", whole},
         {"refused", whole}});
    Json out = Json::object()
                   .set("$schema", "https://json-schema.org/draft/2020-12/schema")
                   .set("title", "stoker plan -o json");
    for (const auto& [key, value] : std::get<Json::Object>(schema.value())) out.set(key, value);
    return out.set("$defs", defs);
}

}  // namespace stoker
