// Which runs are taken: the rules in force, and what other rules would have refused of the runs that were.
#include <fmt/format.h>

#include "base/api_time.h"
#include "run/decide/judge_run.h"
#include "run/state/rules.h"
#include "server/handlers.h"
#include "server/server_config.h"
#include "server/views_admission.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostShownRefusals = 200;
constexpr std::int64_t kLongestLookS = std::int64_t{10} * 366 * 86'400;

// The text of the newest configuration.
Result<std::string> newest_text(Service& service) {
    std::string text;
    TRY_VOID(service.engine().read([&](const EngineView& view) {
        if (!view.state.config.empty()) text = view.state.config.back().text;
    }));
    return text;
}

// By this configuration, with engines as they are in it: what would hold after a restart, too.
AdmissionScene scene_of(const ServerConfig& config, const AdmissionPolicy& policy, const Tenants& tenants,
                        const std::map<std::string, NodeStatus>& nodes) {
    AdmissionScene scene{.policy = policy,
                         .tenants = tenants,
                         .project = kDefaultProject,
                         .engines = {first_engine(config)},
                         .any = !config.engines.empty(),
                         .nodes = &nodes};
    for (const EngineForm& each : config.engines) scene.engines.push_back(each.name);
    return scene;
}

AdmissionRuleView view_of_rule(const AdmissionRule& rule) {
    const auto place = rule.at.find("");
    return {.name = rule.name,
            .in_words = in_words(rule),
            .remedy = rule.remedy,
            .line = place == rule.at.end() ? 0 : static_cast<std::int64_t>(place->second.line)};
}

// Rules about others would say that there are others.
AdmissionRules rules_about(const AdmissionRules& rules, const Actor& actor, const Tenants& tenants) {
    if (actor.kind == PrincipalKind::core || actor.level == Level::provider) return rules;
    const auto project = tenants.projects.find(actor.tenant.project);
    const auto organisation = tenants.organisations.find(actor.tenant.organisation);
    if (project == tenants.projects.end() || organisation == tenants.organisations.end()) return {};
    AdmissionRules own;
    for (const AdmissionRule& rule : rules)
        if (may_be_about(rule, organisation->second.name,
                         actor.level == Level::project ? project->second.name : std::string()))
            own.push_back(rule);
    return own;
}

// Runs that were submitted since, as they stand now, and what is needed to judge them: beside the engine.
struct Past {
    SharedMap<RunId, Run> runs;
    Tenants tenants;
    std::map<std::string, NodeStatus> nodes;
    std::int64_t now_us = 0, oldest_us = 0;
};

AdmissionTest judge_past(const Past& past, AdmissionScene scene, std::int64_t from_us, const Actor& actor) {
    AdmissionTest test{.from = rfc3339(from_us), .oldest = rfc3339(past.oldest_us)};
    std::map<std::string, std::int64_t> by_rule;
    for (auto at = past.runs.end(); at != past.runs.begin();) {
        --at;
        const Run& run = at->second;
        // Steps are judged with their graph.
        if (run.submitted_us < from_us || run.parent || !reaches(actor, past.tenants.tenant_of(run.project))) continue;
        ++test.judged;
        const std::string user = run.submitted_by.substr(run.submitted_by.find('/') + 1);
        scene.project = run.project;
        scene.user = user;
        const auto refusals = judge_run(scene, run.spec);
        if (refusals.empty()) continue;
        ++test.refused;
        std::set<std::string> named;
        for (const AdmissionRefusal& each : refusals)
            if (named.insert(each.rule).second) ++by_rule[each.rule];
        if (test.items.size() >= kMostShownRefusals) continue;
        const ProjectEntry& project = past.tenants.projects.at(run.project);
        RefusedRun shown{.run = run.id,
                         .name = run.spec.name,
                         .user = user,
                         .project = past.tenants.organisations.at(project.organisation).name + "/" + project.name};
        for (const AdmissionRefusal& each : refusals) shown.reasons.push_back(each.message);
        test.items.push_back(std::move(shown));
    }
    for (const AdmissionRule& rule : scene.policy.rules) {
        test.rules.push_back(view_of_rule(rule));
        test.rules.back().refuses = by_rule[rule.name];
    }
    return test;
}

}  // namespace

Status would_be_taken(Service& service, const Actor& actor, const RunSpec& spec) {
    std::string text;
    Tenants tenants;
    std::map<std::string, NodeStatus> nodes;
    TRY_VOID(service.engine().read([&](const EngineView& view) {
        if (view.state.config.empty()) return;
        text = view.state.config.back().text;
        if (text.find("most_node_gpus") != std::string::npos) nodes = view.state.nodes;
        tenants.organisations = view.state.tenants.organisations;
        tenants.projects = view.state.tenants.projects;
    }));
    if (text.find("admission") == std::string::npos) return done();
    TRY(const ServerConfig config, read_server_config(text, "config", {}));
    const auto policy = admission_policy(config);
    if (!policy) return done();
    AdmissionScene scene = scene_of(config, *policy, tenants, nodes);
    scene.project = actor.tenant.project;
    scene.user = actor.name;
    return check_admission(scene, spec);
}

void list_admission(Service& service, const ExchangePtr& exchange) {
    service.work_long(exchange, [&service, exchange] {
        const auto text = newest_text(service);
        if (!text) return exchange->fail(text.error());
        const auto config = read_server_config(*text, "config", {});
        if (!config) return exchange->fail(config.error());
        Tenants tenants;
        const Status asked = service.engine().read([&](const EngineView& view) { tenants = view.state.tenants; });
        if (!asked) return exchange->fail(asked.error());
        AdmissionList list;
        const AdmissionRules rules = rules_about(config->admission, exchange->actor, tenants);
        for (const AdmissionRule& rule : rules) list.items.push_back(view_of_rule(rule));
        list.text = rules_text(rules);
        exchange->send(codec::write(list));
    });
}

void test_admission(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<AdmissionTestBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (body->last_s < 1 || body->last_s > kLongestLookS)
        return exchange->fail(
            Error(ErrorKind::invalid, fmt::format("last_s is {}, expected 1 to {}", body->last_s, kLongestLookS)));
    service.work_long(exchange, [&service, exchange, body = std::move(*body)] {
        const auto text = body.text.empty() ? newest_text(service) : Result<std::string>(body.text);
        if (!text) return exchange->fail(text.error());
        const auto config = read_server_config(*text, "config", {});
        if (!config) return exchange->fail(config.error());
        if (config->admission.empty())
            return exchange->fail(Error(ErrorKind::invalid, "there are no rules in it", {},
                                        "rules stand under admission: in the configuration of the server"));
        Past past;
        const Status asked = service.engine().read([&](const EngineView& view) {
            past.now_us = view.now_us;
            past.runs = view.state.runs;  // a pointer each
            past.tenants = view.state.tenants;
            past.nodes = view.state.nodes;
        });
        if (!asked) return exchange->fail(asked.error());
        if (!past.runs.empty()) past.oldest_us = past.runs.begin()->second.submitted_us;
        AdmissionPolicy policy = *admission_policy(*config);
        if (body.text.empty()) policy.rules = rules_about(policy.rules, exchange->actor, past.tenants);
        exchange->send(codec::write(judge_past(past, scene_of(*config, policy, past.tenants, past.nodes),
                                               past.now_us - body.last_s * kSecondUs, exchange->actor)));
    });
}

}  // namespace stoker::api
