#include "run/decide/judge_run.h"

#include <algorithm>

#include "base/enum_words.h"
#include "run/decide/schedule.h"

namespace stoker {
namespace {

// Whatever renews the lease does not move hard_max, and the timeout is of all attempts together.
std::int64_t longest_of(const RunSpec& spec) {
    if (spec.lease.hard_max_s == 0 || spec.timeout_s == 0) return std::max(spec.lease.hard_max_s, spec.timeout_s);
    return std::min(spec.lease.hard_max_s, spec.timeout_s);
}

AdmissionSubject subject_of(const RunSpec& spec) {
    AdmissionSubject subject;
    subject.kind = enum_word(spec.kind);
    subject.run_class = enum_word(spec.run_class);
    subject.image = spec.image;
    subject.gpu_model = spec.per_rank.gpu_model;
    if (spec.prediction) subject.machine = spec.prediction->machine;
    subject.ranks = spec.ranks;
    subject.nodes = spec.nodes;
    subject.gpus = spec.ranks * spec.per_rank.gpus;
    subject.longest_s = longest_of(spec);
    subject.checkpoints = !spec.checkpoint.folder.empty();
    subject.labels = &spec.labels;
    return subject;
}

EnginePlace engine_place_of(const AdmissionPolicy& policy, const std::string& engine) {
    for (const EnginePlace& each : policy.engines)
        if (each.name == engine) return each;
    return {engine, ""};
}

// All that the run may go to. An engine that is named and is not there is refused elsewhere.
std::vector<EnginePlace> where_it_may_go(const AdmissionScene& scene, const std::optional<std::string>& wanted) {
    std::vector<EnginePlace> places;
    if (wanted && *wanted != kAnyEngine) return {engine_place_of(scene.policy, *wanted)};
    for (const std::string& each : scene.engines) {
        places.push_back(engine_place_of(scene.policy, each));
        if (!scene.any) break;
    }
    return places;
}

// The node with the most GPUs of all on which the run could be put.
void find_widest_node(const AdmissionScene& scene, const RunSpec& spec, AdmissionSubject& subject) {
    const bool asked = std::any_of(scene.policy.rules.begin(), scene.policy.rules.end(),
                                   [](const AdmissionRule& rule) { return rule.most_node_gpus.has_value(); });
    if (!asked || scene.nodes == nullptr) return;
    const std::string& model = spec.per_rank.gpu_model;
    for (const auto& [name, node] : *scene.nodes) {
        const NodeInfo& info = node.info;
        const bool reached =
            info.engine.empty() || std::any_of(subject.engines.begin(), subject.engines.end(),
                                               [&](const EnginePlace& each) { return each.name == info.engine; });
        const bool right = spec.per_rank.gpus == 0 || model.empty() ||
                           std::any_of(info.devices.begin(), info.devices.end(),
                                       [&](const DeviceInfo& device) { return device.model == model; });
        const int gpus = static_cast<int>(info.devices.size());
        if (!reached || !right || gpus <= subject.node_gpus) continue;
        subject.node_gpus = gpus;
        subject.widest_node = name;
    }
}

}  // namespace

std::vector<AdmissionRefusal> judge_run(const AdmissionScene& scene, const RunSpec& spec) {
    if (scene.policy.rules.empty()) return {};
    const auto found = scene.tenants.projects.find(scene.project);
    const auto judged = [&](AdmissionSubject subject, const RunSpec& one, const std::optional<std::string>& engine) {
        if (found != scene.tenants.projects.end()) {
            subject.project = found->second.name;
            subject.organisation = scene.tenants.organisations.at(found->second.organisation).name;
        }
        subject.user = scene.user;
        subject.engines = where_it_may_go(scene, engine);
        subject.lies_in = scene.policy.lies_in;
        find_widest_node(scene, one, subject);
        return judge(scene.policy.rules, subject);
    };
    if (spec.kind != RunKind::graph) return judged(subject_of(spec), spec, spec.engine);
    std::vector<AdmissionRefusal> all;
    for (const GraphStep& step : spec.steps) {
        AdmissionSubject subject = subject_of(step.run);
        // What is said of the graph holds for its steps.
        std::map<std::string, std::string> labels = step.run.labels;
        labels.insert(spec.labels.begin(), spec.labels.end());
        subject.labels = &labels;
        subject.run_class = enum_word(spec.run_class);
        subject.step = step.name;
        for (AdmissionRefusal& each :
             judged(std::move(subject), step.run, step.run.engine ? step.run.engine : spec.engine))
            all.push_back(std::move(each));
    }
    return all;
}

Status check_admission(const AdmissionScene& scene, const RunSpec& spec) {
    const std::vector<AdmissionRefusal> refusals = judge_run(scene, spec);
    if (refusals.empty()) return done();
    std::vector<Problem> problems;
    problems.reserve(refusals.size());
    for (const AdmissionRefusal& each : refusals) problems.push_back({each.message, each.remedy, each.pos});
    return Error(ErrorKind::denied, std::move(problems));
}

}  // namespace stoker
