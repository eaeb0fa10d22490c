#include "app/commands/plan_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/typed.h"
#include "base/document.h"
#include "base/table.h"
#include "base/text.h"
#include "base/units.h"
#include "catalog/geography.h"
#include "server/views_admission.h"
#include "server/views_tenants.h"

namespace stoker {
namespace {

// The word of a run for this kind of work; empty: it is no run (what answers requests).
std::string kind_of_run(const Workload& workload) {
    switch (workload.kind) {
        case WorkloadKind::training:
        case WorkloadKind::fine_tuning: return "train";
        case WorkloadKind::notebook: return "notebook";
        case WorkloadKind::inference:
        case WorkloadKind::embedding: return {};
        case WorkloadKind::batch_inference:
        case WorkloadKind::preprocessing:
        case WorkloadKind::simulation: return "batch";
    }
    return {};
}

bool in_list(const std::vector<std::string>& patterns, std::string_view word) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& each) { return matches_pattern(each, word); });
}

// Of a class that the plan has yet to choose: a rule about spot alone asks nothing of where it may go.
bool is_about_plan(const AdmissionRule& rule, const Workload& workload) {
    return rule.classes.empty() && (rule.kinds.empty() || in_list(rule.kinds, kind_of_run(workload)));
}

bool names_some(const AdmissionRule& rule) {
    return !rule.organisations.empty() || !rule.projects.empty() || !rule.users.empty();
}

SourcePos place_of_rule(const AdmissionRule& rule) {
    const auto found = rule.at.find("");
    return found == rule.at.end() ? SourcePos{} : found->second;
}

Error nothing_left(const AdmissionRule& rule, const std::string& what, const std::string& remedy) {
    return Error(ErrorKind::denied, fmt::format("{} (rule {})", what, rule.name), place_of_rule(rule),
                 rule.remedy.empty() ? remedy : rule.remedy);
}

bool has_region(const NodeType& type) {
    return type.cloud != "on-prem" && type.cloud != "this-machine";
}

// Why a rule does not take a size; empty: it does.
std::string size_refused(const AdmissionRule& rule, const Catalog& catalog, const NodeType& type) {
    if (!rule.machines.empty() && !in_list(rule.machines, type.name))
        return fmt::format("the machine is {}, expected {}", type.name, join_or(rule.machines));
    if (!type.has_gpu()) return {};
    const std::string& gpu = catalog.accelerators()[static_cast<std::size_t>(type.accelerator)].name;
    if (!rule.gpu_models.empty() && !in_list(rule.gpu_models, gpu))
        return fmt::format("the GPU is {}, expected {}", gpu, join_or(rule.gpu_models));
    if (rule.most_node_gpus && type.accelerators > *rule.most_node_gpus)
        return fmt::format("{} has {:g} GPUs, at most {} are allowed on a node", type.name, type.accelerators,
                           *rule.most_node_gpus);
    return {};
}

bool region_allowed(const AdmissionRule& rule, std::string_view region) {
    return (rule.regions.empty() || in_list(rule.regions, region)) &&
           (rule.residency.empty() ||
            std::any_of(rule.residency.begin(), rule.residency.end(),
                        [&](const std::string& place) { return same_geography(place, region); }));
}

std::vector<std::string> searched_clouds(const Workload& workload, const Catalog& catalog) {
    std::vector<std::string> clouds = workload.where.clouds;
    if (clouds.empty()) clouds.emplace_back("azure");
    if (std::find(clouds.begin(), clouds.end(), "any") == clouds.end()) return clouds;
    clouds.clear();
    for (const NodeType& type : catalog.node_types())
        if (std::find(clouds.begin(), clouds.end(), type.cloud) == clouds.end()) clouds.push_back(type.cloud);
    return clouds;
}

// Sizes that the work may be planned with under this rule; those that it names have to be right one by one.
Status keep_sizes(const AdmissionRule& rule, const Catalog& catalog, const std::vector<std::string>& clouds,
                  Workload& workload) {
    if (rule.machines.empty() && rule.gpu_models.empty() && !rule.most_node_gpus) return done();
    std::vector<std::string>& sizes = workload.where.sizes;
    std::vector<std::string> kept;
    std::string first_refusal;
    for (const NodeType& type : catalog.node_types()) {
        const bool asked = sizes.empty() ? std::find(clouds.begin(), clouds.end(), type.cloud) != clouds.end()
                                         : std::find(sizes.begin(), sizes.end(), type.name) != sizes.end();
        if (!asked) continue;
        std::string refused = size_refused(rule, catalog, type);
        if (refused.empty())
            kept.push_back(type.name);
        else if (first_refusal.empty())
            first_refusal = std::move(refused);
    }
    if (kept.empty())
        return nothing_left(rule, sizes.empty() ? "no size of the clouds that are searched is allowed" : first_refusal,
                            "name another under where.sizes, or ask whoever wrote the rule");
    sizes = std::move(kept);
    return done();
}

Status keep_regions(const AdmissionRule& rule, const Catalog& catalog, const std::vector<std::string>& clouds,
                    Workload& workload) {
    if (rule.regions.empty() && rule.residency.empty()) return done();
    std::vector<std::string>& regions = workload.where.regions;
    const auto wanted = rule.regions.empty() ? join_or(rule.residency) : join_or(rule.regions);
    std::vector<std::string> kept;
    bool some = false;
    for (const std::string& cloud : clouds)
        for (const std::string& region : catalog.regions_of(cloud)) {
            const bool asked = regions.empty() || std::find(regions.begin(), regions.end(), region) != regions.end();
            some = some || asked;
            if (asked && region_allowed(rule, region)) kept.push_back(region);
        }
    if (!some) return done();  // machines of one's own have no region
    if (kept.empty())
        return nothing_left(rule,
                            regions.empty() ? fmt::format("no region of the clouds that are searched is in {}", wanted)
                                            : fmt::format("the region is {}, expected {}", join_or(regions), wanted),
                            "name another under where.regions");
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    regions = std::move(kept);
    return done();
}

// What cannot be judged before there is a run.
std::string asked_at_submission(const AdmissionRule& rule) {
    std::vector<std::string> asks;
    if (!rule.images.empty()) asks.push_back("an image like " + join_or(rule.images));
    if (rule.by_digest) asks.emplace_back("the image by its digest");
    if (!rule.engines.empty()) asks.push_back("on the engine " + join_or(rule.engines));
    if (rule.longest) asks.push_back("an end within " + format_seconds(*rule.longest));
    if (!rule.labels.empty()) asks.push_back("--label " + join(rule.labels, ", --label "));
    if (rule.checkpoints)
        asks.push_back("checkpoints" + std::string(rule.classes.empty() ? "" : ", of class ") +
                       (rule.classes.empty() ? "" : join_or(rule.classes)));
    return join(asks, "; ");
}

bool narrows(const AdmissionRule& rule) {
    return !rule.machines.empty() || !rule.gpu_models.empty() || rule.most_node_gpus || !rule.regions.empty() ||
           !rule.residency.empty() || rule.most_gpus || rule.most_nodes;
}

Result<AdmissionRules> rules_in(const Document& document) {
    const Node* list = &document.root();
    if (const Node* under = list->find("admission")) list = under;
    Problems problems;
    AdmissionRules rules;
    if (!list->is_sequence())
        return Error(ErrorKind::invalid, "there are no rules in it", document.root().pos,
                     "rules stand under admission:, as in the configuration of a server; stoker policy template shows "
                     "some");
    const RecordTable<AdmissionRule> table = admission_rule_table();
    for (const auto& item : list->items) rules.push_back(table.read(*item, problems));
    check_admission_rules(rules, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return rules;
}

}  // namespace

Result<std::optional<PlanPolicy>> plan_policy(Session& session, const Args& args) {
    const auto from = args.get("policy");
    if (!from) return std::optional<PlanPolicy>();
    PlanPolicy policy{.from = *from};
    AdmissionRules rules;
    if (*from == "server") {
        TRY(const auto client, connect_to_look(args));
        TRY(const auto list, get<api::AdmissionList>(*client, "/api/v1/admission"));
        TRY(const auto caller, get<api::Caller>(*client, "/api/v1/whoami"));
        policy.from = "the server's configuration";
        policy.organisation = caller.project.organisation_name;
        policy.project = caller.project.name;
        policy.user = caller.name;
        if (!list.text.empty()) {
            TRY(const Document document, Document::parse_yaml(list.text, "config"));
            TRY(rules, rules_in(document));
        }
        // Where they stand in the configuration, and not in this answer.
        for (std::size_t i = 0; i < rules.size() && i < list.items.size(); ++i)
            rules[i].at[""] = SourcePos{"config", static_cast<std::uint32_t>(list.items[i].line), 1};
    } else {
        TRY(const Document document, session.read_document(*from));
        TRY(rules, rules_in(document));
    }
    for (AdmissionRule& rule : rules) {
        const bool about = policy.project.empty() ? !names_some(rule)
                                                  : may_be_about(rule, policy.organisation, policy.project) &&
                                                        (rule.users.empty() || in_list(rule.users, policy.user));
        if (about)
            policy.rules.push_back(std::move(rule));
        else
            ++policy.about_others;
    }
    return std::optional(std::move(policy));
}

Status keep_to(const PlanPolicy& policy, const Catalog& catalog, const PlanOptions& options, Workload& workload) {
    const std::vector<std::string> clouds = searched_clouds(workload, catalog);
    // What the user's settings say of residency holds only while nothing else does.
    if (workload.where.regions.empty() && workload.where.residency.empty())
        workload.where.residency = options.residency;
    for (const AdmissionRule& rule : policy.rules) {
        if (!is_about_plan(rule, workload)) continue;
        TRY_VOID(keep_sizes(rule, catalog, clouds, workload));
        TRY_VOID(keep_regions(rule, catalog, clouds, workload));
        if (rule.most_nodes && (!workload.where.max_nodes || *workload.where.max_nodes > *rule.most_nodes))
            workload.where.max_nodes = *rule.most_nodes;
    }
    return done();
}

std::vector<AdmissionRefusal> refusals_of(const PlanPolicy& policy, const Catalog& catalog, const Plan& plan,
                                          const Workload& workload) {
    if (plan.candidates.empty()) return {};
    const Candidate& first = plan.candidates.front();
    const NodeType& type = catalog.node_types()[static_cast<std::size_t>(first.node_type)];
    AdmissionSubject subject{.organisation = policy.organisation,
                             .project = policy.project,
                             .user = policy.user,
                             .kind = kind_of_run(workload),
                             .run_class = first.pricing == Pricing::spot ? "spot" : "guaranteed"};
    if (type.has_gpu()) subject.gpu_model = catalog.accelerators()[static_cast<std::size_t>(type.accelerator)].name;
    subject.machine = type.name;
    subject.nodes = first.nodes;
    subject.gpus = static_cast<int>(first.nodes * type.accelerators);
    subject.ranks = std::max(subject.gpus, first.nodes);
    subject.node_gpus = static_cast<int>(type.accelerators);
    subject.widest_node = type.name;
    subject.lies_in = same_geography;
    subject.planned = true;
    if (has_region(type)) subject.engines = {{"plan", first.region}};
    return judge(policy.rules, subject);
}

std::string policy_text(const PlanPolicy& policy, const std::vector<AdmissionRefusal>& refusals,
                        const Workload& workload, const Style& style) {
    std::string kept, text;
    for (const AdmissionRule& rule : policy.rules)
        if (is_about_plan(rule, workload) && narrows(rule)) kept += (kept.empty() ? "" : ", ") + rule.name;
    text += fmt::format("\npolicy   {}: {}\n", printable(policy.from, 80),
                        kept.empty() ? "no rule narrows this plan" : "planned within " + kept);
    for (const AdmissionRefusal& each : refusals)
        text += fmt::format("  refused: {}{}\n           {}\n", each.message,
                            each.pos.known() ? " at " + each.pos.text() : std::string(), each.remedy);
    for (const AdmissionRule& rule : policy.rules) {
        if (!rule.kinds.empty() && !in_list(rule.kinds, kind_of_run(workload))) continue;
        if (const std::string asks = asked_at_submission(rule); !asks.empty())
            text += fmt::format("  asked when it is submitted: {} {}\n", asks, style.dim("(rule " + rule.name + ")"));
    }
    if (policy.about_others > 0)
        text +=
            "  " +
            style.dim(fmt::format("{} about other or named teams and people {} not looked at; --policy server "
                                  "knows who you are",
                                  policy.about_others == 1 ? "1 rule" : fmt::format("{} rules", policy.about_others),
                                  policy.about_others == 1 ? "was" : "were")) +
            "\n";
    return text;
}

Json policy_json(const PlanPolicy& policy, const std::vector<AdmissionRefusal>& refusals, const Workload& workload) {
    Json rules = Json::array(), refused = Json::array();
    for (const AdmissionRule& rule : policy.rules)
        rules.push(Json::object()
                       .set("name", rule.name)
                       .set("in_words", in_words(rule))
                       .set("place", place_of_rule(rule).text())
                       .set("narrows", is_about_plan(rule, workload) && narrows(rule))
                       .set("asked_when_submitted", asked_at_submission(rule)));
    for (const AdmissionRefusal& each : refusals)
        refused.push(Json::object()
                         .set("rule", each.rule)
                         .set("message", each.message)
                         .set("remedy", each.remedy)
                         .set("place", each.pos.text()));
    return Json::object()
        .set("from", policy.from)
        .set("rules", std::move(rules))
        .set("refused", std::move(refused))
        .set("not_looked_at", policy.about_others);
}

}  // namespace stoker
