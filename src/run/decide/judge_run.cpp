#include "run/decide/judge_run.h"

#include <algorithm>

#include "base/enum_words.h"

namespace stoker {
namespace {

// Whatever renews the lease does not move hard_max, and the timeout is of all attempts together.
std::int64_t longest_of(const RunSpec& spec) {
    if (spec.lease.hard_max_s == 0 || spec.timeout_s == 0) return std::max(spec.lease.hard_max_s, spec.timeout_s);
    return std::min(spec.lease.hard_max_s, spec.timeout_s);
}

AdmissionSubject subject_of(const RunSpec& spec) {
    return {.organisation = {},
            .project = {},
            .user = {},
            .kind = std::string(enum_word(spec.kind)),
            .run_class = std::string(enum_word(spec.run_class)),
            .image = spec.image,
            .engine = spec.engine.value_or(""),
            .gpu_model = spec.per_rank.gpu_model,
            .machine = spec.prediction ? spec.prediction->machine : std::string(),
            .ranks = spec.ranks,
            .nodes = spec.nodes,
            .gpus = spec.ranks * spec.per_rank.gpus,
            .longest_s = longest_of(spec),
            .checkpoints = !spec.checkpoint.folder.empty(),
            .labels = &spec.labels,
            .step = {}};
}

}  // namespace

std::vector<AdmissionRefusal> judge_run(const AdmissionRules& rules, const RunSpec& spec, const Tenants& tenants,
                                        ProjectId project, const std::string& user, const std::string& engine) {
    if (rules.empty()) return {};
    const auto found = tenants.projects.find(project);
    const auto judged = [&](AdmissionSubject subject) {
        if (found != tenants.projects.end()) {
            subject.project = found->second.name;
            subject.organisation = tenants.organisations.at(found->second.organisation).name;
        }
        subject.user = user;
        if (subject.engine.empty()) subject.engine = engine;
        return judge(rules, subject);
    };
    if (spec.kind != RunKind::graph) return judged(subject_of(spec));
    std::vector<AdmissionRefusal> all;
    for (const GraphStep& step : spec.steps) {
        AdmissionSubject subject = subject_of(step.run);
        // What is said of the graph holds for its steps.
        std::map<std::string, std::string> labels = step.run.labels;
        labels.insert(spec.labels.begin(), spec.labels.end());
        subject.labels = &labels;
        subject.run_class = std::string(enum_word(spec.run_class));
        subject.step = step.name;
        if (subject.engine.empty()) subject.engine = spec.engine.value_or("");
        for (AdmissionRefusal& each : judged(std::move(subject))) all.push_back(std::move(each));
    }
    return all;
}

Status check_admission(const AdmissionRules& rules, const RunSpec& spec, const Tenants& tenants, ProjectId project,
                       const std::string& user, const std::string& engine) {
    const std::vector<AdmissionRefusal> refusals = judge_run(rules, spec, tenants, project, user, engine);
    if (refusals.empty()) return done();
    std::vector<Problem> problems;
    problems.reserve(refusals.size());
    for (const AdmissionRefusal& each : refusals) problems.push_back({each.message, each.remedy, each.pos});
    return Error(ErrorKind::denied, std::move(problems));
}

}  // namespace stoker
