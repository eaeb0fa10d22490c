// OpenAPI 3.1 and the reference page, from the table of routes and the fields of the views.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/version.h"
#include "server/bodies.h"
#include "server/desk.h"
#include "server/handlers.h"
#include "server/openapi.h"
#include "server/schema_visitor.h"
#include "server/views.h"
#include "server/views_admission.h"
#include "server/views_audit.h"
#include "server/views_config.h"
#include "server/views_edit.h"
#include "server/views_endpoints.h"
#include "server/views_gpus.h"
#include "server/views_idle.h"
#include "server/views_limits.h"
#include "server/views_nodes.h"
#include "server/views_observe.h"
#include "server/views_tenants.h"
#include "server/views_users.h"
#include "server/views_waste.h"

namespace stoker {
namespace {

using namespace stoker::api;

Json ref(std::string_view name) {
    return Json::object().set("$ref", "#/components/schemas/" + std::string(name));
}
Json text_schema() {
    return Json::object().set("type", "string");
}
Json strict(Json properties, std::vector<std::string> required) {
    Json list = Json::array();
    for (std::string& each : required) list.push(std::move(each));
    Json s = Json::object().set("type", "object").set("additionalProperties", false);
    s.set("properties", std::move(properties)).set("required", std::move(list));
    return s;
}

Json event_bodies(Schemas& schemas) {
    Json any = Json::array();
    const auto add = [&]<class... T>(const std::variant<T...>*) { (any.push(schemas.schema<T>(false)), ...); };
    add(static_cast<const RecordBody*>(nullptr));
    return Json::object()
        .set("description", "What the record holds, by its kind; see the states page.")
        .set("anyOf", std::move(any));
}

void add_components(Schemas& s) {
    s.ref<RunView>();
    s.ref<RunPage>();
    s.ref<Changed>();
    s.ref<Submitted>();
    s.ref<WhatIfView>();
    s.ref<NodeList>();
    s.ref<NodeChanged>();
    s.ref<NodeCheckAsked>();
    s.ref<NodeCheckBody>(true);
    s.ref<GpuReport>(true);
    s.ref<GpuReportTaken>();
    s.ref<FleetGpus>();
    s.ref<NodeGpusView>();
    s.ref<NodeGpuSeries>();
    s.ref<MetricsView>();
    s.ref<SeriesPage>();
    s.ref<ExplanationView>();
    s.ref<ArtifactList>();
    s.ref<CheckpointsView>();
    s.ref<UsageView>();
    s.ref<VersionView>();
    s.ref<HealthView>();
    s.ref<BackupView>();
    s.ref<ConfigView>();
    s.ref<ConfigText>();
    s.ref<ConfigVersionList>();
    s.ref<ConfigSet>();
    s.ref<ConfigBody>(true);
    s.ref<RollbackBody>(true);
    s.ref<EditBody>(true);
    s.ref<EvictBody>(true);
    s.ref<LeaseBody>(true);
    s.ref<BackupBody>(true);
    s.ref<OrganisationList>();
    s.ref<ProjectList>();
    s.ref<UserList>();
    s.ref<LoginGiven>();
    s.ref<LoginBody>(true);
    s.ref<SignOn>();
    s.ref<WasteReport>();
    s.ref<IdleList>();
    s.ref<KeepBody>(true);
    s.ref<SignOnBody>(true);
    s.ref<SetupBody>(true);
    s.ref<OwnPasswordBody>(true);
    s.ref<UserBody>(true);
    s.ref<RoleBody>(true);
    s.ref<PasswordBody>(true);
    s.ref<DisableBody>(true);
    s.ref<RotateBody>(true);
    s.ref<AuditPage>();
    s.ref<AdmissionList>();
    s.ref<AdmissionTest>();
    s.ref<AdmissionTestBody>(true);
    s.ref<KeyList>();
    s.ref<KeyGiven>();
    s.ref<Caller>();
    s.ref<OrganisationBody>(true);
    s.ref<ProjectBody>(true);
    s.ref<KeyBody>(true);
    s.ref<QuotaList>();
    s.ref<QuotaBody>(true);
    s.ref<BudgetList>();
    s.ref<BudgetBody>(true);
    s.ref<Invoice>();
    s.ref<ChargeList>();
    s.ref<RunSpec>(true);
    s.ref<TemplateList>();
    s.ref<EndpointList>();
    s.ref<EndpointView>();
    s.ref<FileBody>(true);
    s.ref<DeployBody>(true);
    s.ref<ScaleBody>(true);
    s.ref<EndpointRollbackBody>(true);
    s.put("WhatIfBody", strict(Json::object()
                                   .set("changes", s.ref<WhatIfChanges>(true))
                                   .set("run", s.schema<RunId>(true))
                                   .set("spec", s.ref<RunSpec>(true)),
                               {})
                            .set("oneOf", Json::array()
                                              .push(Json::object().set("required", Json::array().push("run")))
                                              .push(Json::object().set("required", Json::array().push("spec")))));
    s.put("LogMatches",
          strict(Json::object()
                     .set("cut", Json::object().set("type", "boolean"))
                     .set("items", Json::object()
                                       .set("type", "array")
                                       .set("items", strict(Json::object()
                                                                .set("line", Json::object().set("type", "integer"))
                                                                .set("text", text_schema()),
                                                            {"line", "text"})))
                     .set("lines", Json::object().set("type", "integer")),
                 {"cut", "items", "lines"}));
    s.put("AnyObject", Json::object().set("type", "object"));
    s.put("Event", strict(Json::object()
                              .set("seq", Json::object().set("type", "integer").set("minimum", 1))
                              .set("at", text_schema().set("format", "date-time"))
                              .set("object", text_schema())
                              .set("kind", text_schema())
                              .set("actor", text_schema())
                              .set("cause", text_schema())
                              .set("operation", text_schema())
                              .set("trace", text_schema())
                              .set("body", event_bodies(s)),
                          {"seq", "at", "object", "kind", "actor"}));
    s.put("EventPage", strict(Json::object()
                                  .set("items", Json::object().set("type", "array").set("items", ref("Event")))
                                  .set("next_after", Json::object().set("type", "integer")),
                              {"items"}));
    s.put("Problem",
          Json::object()
              .set("description", "RFC 9457")
              .set("type", "object")
              .set("properties",
                   Json::object()
                       .set("type", text_schema())
                       .set("title", text_schema())
                       .set("status", Json::object().set("type", "integer"))
                       .set("detail", text_schema())
                       .set("trace_id", text_schema())
                       .set("problems",
                            Json::object()
                                .set("type", "array")
                                .set("items",
                                     strict(Json::object()
                                                .set("message", text_schema())
                                                .set("remedy", text_schema())
                                                .set("place",
                                                     strict(Json::object()
                                                                .set("in", text_schema())
                                                                .set("line", Json::object().set("type", "integer"))
                                                                .set("column", Json::object().set("type", "integer")),
                                                            {})),
                                            {"message"}))))
              .set("required", Json::array().push("type").push("title").push("status")));
}

Json parameter_schema(const Parameter& p) {
    Json s = Json::object();
    switch (p.type) {
        case Parameter::Type::text: s.set("type", "string").set("maxLength", 1024); break;
        case Parameter::Type::integer:
        case Parameter::Type::number:
            s.set("type", p.type == Parameter::Type::integer ? "integer" : "number");
            s.set("minimum", static_cast<std::int64_t>(p.low)).set("maximum", static_cast<std::int64_t>(p.high));
            break;
        case Parameter::Type::flag: s.set("type", "boolean"); break;
        case Parameter::Type::choice: {
            Json words = Json::array();
            for (const std::string_view word : p.choices) words.push(word);
            s.set("type", "string").set("enum", std::move(words));
            break;
        }
        case Parameter::Type::run: s.set("type", "string").set("pattern", "^r-[1-9][0-9]{0,17}$"); break;
        case Parameter::Type::time:
            s.set("type", "string")
                .set("anyOf", Json::array()
                                  .push(Json::object().set("format", "date-time"))
                                  .push(Json::object().set("format", "date")));
            break;
    }
    if (!p.otherwise.empty()) {
        if (p.type == Parameter::Type::flag)
            s.set("default", p.otherwise == "true");
        else if (p.type == Parameter::Type::integer || p.type == Parameter::Type::number)
            s.set("default", static_cast<std::int64_t>(std::stoll(std::string(p.otherwise))));
        else
            s.set("default", p.otherwise);
    }
    if (!p.many) return s;
    return Json::object().set("type", "array").set("items", std::move(s)).set("minItems", 1);
}

Json header_parameter(std::string_view name, std::string_view description, std::string_view pattern) {
    return Json::object()
        .set("name", name)
        .set("in", "header")
        .set("description", description)
        .set("schema", text_schema().set("pattern", pattern));
}

Json parameters_of(const Route& route) {
    Json list = Json::array();
    std::string_view path = route.path;
    for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
        std::string name(path.substr(at + 1, path.find('}', at) - at - 1));
        if (name.ends_with("...")) name.resize(name.size() - 3);
        Json schema = text_schema();
        if (name == "run") schema.set("pattern", "^r-[1-9][0-9]{0,17}$");
        if (name == "version") schema.set("pattern", "^[1-9][0-9]{0,17}$");
        list.push(Json::object()
                      .set("name", name)
                      .set("in", "path")
                      .set("required", true)
                      .set("description", name == "run"       ? "The run, like r-7."
                                          : name == "node"    ? "The node's name."
                                          : name == "version" ? "The number of the version, from 1."
                                          : name == "key"     ? "The key, like k-3."
                                          : name == "user"    ? "The user, like u-3, or its name."
                                                              : "Below the folder; may have slashes.")
                      .set("schema", std::move(schema)));
    }
    for (const Parameter& p : route.query) {
        Json each = Json::object().set("name", p.name).set("in", "query").set("description", p.description);
        if (p.many) each.set("style", "form").set("explode", false);
        list.push(each.set("schema", parameter_schema(p)));
    }
    if (route.if_match)
        list.push(header_parameter("If-Match", "Only when it still has this version, its ETag; else 412.",
                                   "^(\\*|\"[0-9]{1,18}\")$"));
    if (route.idempotent)
        list.push(header_parameter("Idempotency-Key", "The same key and body again have the effect of once.",
                                   "^[!#-~]{1,255}$"));
    return list;
}

std::set<int> problem_statuses(const Route& route) {
    std::set<int> all(route.problems.begin(), route.problems.end());
    all.insert({400, 408, 413, 421, 429, 431, 500, 503, 504});
    if (!route.access.is_open()) all.insert({401, 403});
    if (!route.body.empty()) all.insert(415);
    return all;
}

Json responses_of(const Route& route) {
    std::map<int, Json> by_status;
    for (const Answers& answer : route.answers) {
        Json schema = answer.schema.empty() ? text_schema() : ref(answer.schema);
        if (answer.content_type == "application/octet-stream") schema = Json::object();
        if (by_status.contains(answer.status)) {
            Json& known = by_status[answer.status];
            Json content = *known.find("content");
            content.set(std::string(answer.content_type), Json::object().set("schema", std::move(schema)));
            known.set("description", std::string(std::get<std::string>(known.find("description")->value())) + " " +
                                         std::string(answer.description));
            known.set("content", std::move(content));
            continue;
        }
        Json response = Json::object().set("description", answer.description);
        if (!answer.headers.empty()) {
            Json headers = Json::object();
            for (const std::string_view header : answer.headers)
                headers.set(std::string(header), Json::object().set("schema", text_schema()));
            response.set("headers", std::move(headers));
        }
        response.set("content", Json::object().set(std::string(answer.content_type),
                                                   Json::object().set("schema", std::move(schema))));
        by_status[answer.status] = std::move(response);
    }
    for (const int status : problem_statuses(route))
        by_status[status] = Json::object().set("$ref", "#/components/responses/Problem" + std::to_string(status));
    Json all = Json::object();
    for (auto& [status, response] : by_status) all.set(std::to_string(status), std::move(response));
    return all;
}

std::string openapi_path(std::string_view path) {
    std::string text(path);
    if (const std::size_t dots = text.find("...}"); dots != std::string::npos) text.erase(dots, 3);
    return text;
}

}  // namespace

Json openapi_document() {
    Schemas schemas;
    add_components(schemas);
    Json components = Json::object();
    for (const auto& [name, schema] : schemas.all()) components.set(name, schema);
    Json paths = Json::object();
    std::set<int> statuses;
    std::vector<std::string> order;
    std::map<std::string, Json> by_path;
    for (const Route& route : routes()) {
        const std::string path = openapi_path(route.path);
        Json operation = Json::object().set("operationId", route.operation).set("summary", route.summary);
        if (!route.description.empty()) operation.set("description", route.description);
        operation.set("parameters", parameters_of(route));
        if (!route.body.empty())
            operation.set("requestBody",
                          Json::object()
                              .set("required", route.body_required)
                              .set("content", Json::object().set("application/json",
                                                                 Json::object().set("schema", ref(route.body)))));
        operation.set("responses", responses_of(route));
        if (const auto& right = route.access.right()) {
            Json roles = Json::array();
            for (const Role role : roles_that_may(right->action)) roles.push(to_string(role));
            operation.set("x-stoker-roles", std::move(roles)).set("x-stoker-level", to_string(right->level));
        } else {
            operation.set("security", Json::array());
        }
        for (const int status : problem_statuses(route)) statuses.insert(status);
        if (!by_path.contains(path)) {
            order.push_back(path);
            by_path[path] = Json::object();
        }
        std::string method(route.method);
        std::transform(method.begin(), method.end(), method.begin(),
                       [](char c) { return static_cast<char>(c | 0x20); });
        by_path[path].set(method, std::move(operation));
    }
    for (const std::string& path : order) paths.set(path, by_path[path]);
    Json responses = Json::object();
    for (const int status : statuses)
        responses.set("Problem" + std::to_string(status),
                      Json::object()
                          .set("description", title_of(status))
                          .set("content", Json::object().set("application/problem+json",
                                                             Json::object().set("schema", ref("Problem")))));
    return Json::object()
        .set("openapi", "3.1.0")
        .set("info", Json::object()
                         .set("title", "Stoker")
                         .set("version", "v1")
                         .set("summary", "Runs on GPU machines: submitted, watched, explained, paid for.")
                         .set("license", Json::object().set("name", "Apache-2.0").set("identifier", "Apache-2.0")))
        .set("security", Json::array().push(Json::object().set("token", Json::array())))
        .set("paths", std::move(paths))
        .set("components",
             Json::object()
                 .set("schemas", std::move(components))
                 .set("responses", std::move(responses))
                 .set("securitySchemes",
                      Json::object().set("token", Json::object().set("type", "http").set("scheme", "bearer"))));
}

std::string api_reference() {
    std::string out =
        "# HTTP API\n\nGenerated by `stoker schema api-reference`; the machine-readable form is "
        "[openapi.json](openapi.json).\n\n"
        "Every error is an `application/problem+json` (RFC 9457) with `title`, `status`, `detail`, the `problems` one "
        "by "
        "one\nwith what to do about each, and a `trace_id` that the journal knows too. Times are RFC 3339, UTC. "
        "Unknown\n"
        "parameters and keys are refused.\n\n| | |\n| --- | --- |\n";
    for (const Route& route : routes())
        out += fmt::format("| `{} {}` | {} |\n", route.method, route.path, route.summary);
    for (const Route& route : routes()) {
        out += fmt::format("\n## {} {}\n\n{}", route.method, route.path, route.summary);
        if (!route.description.empty()) out += fmt::format(" {}", route.description);
        out += "\n";
        if (const auto& right = route.access.right())
            out += fmt::format("\nFor {}.\n", who_may(*right));
        else
            out += "\nNeeds no token.\n";
        if (!route.query.empty()) {
            out += "\n| parameter | |\n| --- | --- |\n";
            for (const Parameter& p : route.query) {
                std::string text(p.description);
                if (!p.choices.empty()) {
                    text += " One of";
                    for (const std::string_view word : p.choices) text += fmt::format(" `{}`", word);
                    text += ".";
                }
                if (p.low != p.high) text += fmt::format(" {:g} to {:g}.", p.low, p.high);
                if (!p.otherwise.empty()) text += fmt::format(" Default `{}`.", p.otherwise);
                out += fmt::format("| `{}` | {} |\n", p.name, text);
            }
        }
        if (!route.body.empty())
            out += fmt::format("\nBody: `{}`{}.\n", route.body, route.body_required ? "" : ", may be left out");
        out += "\nAnswers:";
        for (const Answers& answer : route.answers)
            out += fmt::format(" {} `{}` ({})", answer.status,
                               answer.schema.empty() ? answer.content_type : answer.schema, answer.description);
        out += ".\n";
    }
    return out;
}

}  // namespace stoker
