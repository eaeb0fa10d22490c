#include "deploy/kubernetes/objects.h"

#include <charconv>
#include <utility>

#include "base/api_time.h"
#include "base/text.h"

namespace stoker::kubernetes {
namespace {

std::int64_t time_at(const Node& node, std::string_view key) {
    return parse_rfc3339(text_at(node, key)).value_or(0);
}

template <class Number>
Number number_of(std::string_view text) {
    Number value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

const Node* condition_of(const Node& object, std::string_view type) {
    if (const Node* status = object.find("status"))
        for (const auto& each : items_at(*status, "conditions"))
            if (text_at(*each, "type") == type) return each.get();
    return nullptr;
}

bool holds(const Node* condition) {
    return condition != nullptr && text_at(*condition, "status") == "True";
}

ContainerView read_container(const Node& status) {
    ContainerView view;
    const Node* state = status.find("state");
    if (state == nullptr) return view;
    if (const Node* waiting = state->find("waiting")) {
        view.reason = text_at(*waiting, "reason");
        view.message = text_at(*waiting, "message");
    }
    if (const Node* running = state->find("running")) {
        view.phase = ContainerPhase::running;
        view.started_us = time_at(*running, "startedAt");
    }
    if (const Node* ended = state->find("terminated")) {
        view.phase = ContainerPhase::ended;
        view.exit_code = number_of<int>(text_at(*ended, "exitCode"));
        view.reason = text_at(*ended, "reason");
        view.message = text_at(*ended, "message");
        view.started_us = time_at(*ended, "startedAt");
        view.ended_us = time_at(*ended, "finishedAt");
    }
    return view;
}

}  // namespace

std::string job_name(const OperationId& operation) {
    return "stoker-" + operation.text();
}

const Node* node_at(const Node& node, std::initializer_list<std::string_view> path) {
    const Node* at = &node;
    for (const std::string_view key : path)
        if (at == nullptr || (at = at->find(key)) == nullptr) return nullptr;
    return at;
}
std::string_view text_at(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found == nullptr ? std::string_view() : std::string_view(found->text);
}
std::string_view text_at(const Node& node, std::initializer_list<std::string_view> path) {
    const Node* found = node_at(node, path);
    return found == nullptr ? std::string_view() : std::string_view(found->text);
}
const std::vector<std::unique_ptr<Node>>& items_at(const Node& node, std::string_view key) {
    static const std::vector<std::unique_ptr<Node>> none;
    const Node* found = node.find(key);
    return found == nullptr ? none : found->items;
}
std::string label_of(const Node& object, std::string_view key) {
    return std::string(text_at(object, {"metadata", "labels", key}));
}
std::string annotation_of(const Node& object, std::string_view key) {
    return std::string(text_at(object, {"metadata", "annotations", key}));
}

std::optional<JobView> read_job(const Node& object) {
    const auto operation = OperationId::parse(label_of(object, kOperation));
    if (!operation) return std::nullopt;
    JobView job{.operation = *operation,
                .uid = std::string(text_at(object, {"metadata", "uid"})),
                .version = std::string(text_at(object, {"metadata", "resourceVersion"})),
                .gang = annotation_of(object, kGang),
                .end = annotation_of(object, kEnd),
                .epoch = number_of<std::uint64_t>(annotation_of(object, kEpoch)),
                .begun = !annotation_of(object, kBegun).empty(),
                .called_off = !annotation_of(object, kCalledOff).empty()};
    if (const std::string begun = annotation_of(object, kBegun); begun != "yes")
        for (const std::string_view mark : split_words(begun)) job.may_begin.emplace(mark);
    const Node* suspend = node_at(object, {"spec", "suspend"});
    job.suspended = suspend != nullptr && suspend->boolean;
    job.is_suspended = holds(condition_of(object, "Suspended"));
    job.deleting = !text_at(object, {"metadata", "deletionTimestamp"}).empty();
    job.queued = !label_of(object, kQueueLabel).empty();
    if (const Node* made = node_at(object, {"spec", "template"}); made != nullptr && !job.begun)
        job.pod = std::make_shared<const KubePod>(kube_pod_of(*made, ""));
    for (const auto& [type, end] : {std::pair{"Complete", JobEnd::complete}, std::pair{"Failed", JobEnd::failed}}) {
        const Node* condition = condition_of(object, type);
        if (!holds(condition)) continue;
        job.ended = end;
        job.ended_us = time_at(*condition, "lastTransitionTime");
        job.reason = text_at(*condition, "reason");
        job.message = text_at(*condition, "message");
    }
    return job;
}

std::optional<PodView> read_pod(const Node& object) {
    const auto operation = OperationId::parse(label_of(object, kOperation));
    if (!operation) return std::nullopt;
    PodView pod{.operation = *operation,
                .name = std::string(text_at(object, {"metadata", "name"})),
                .uid = std::string(text_at(object, {"metadata", "uid"})),
                .node = std::string(text_at(object, {"spec", "nodeName"})),
                .phase = std::string(text_at(object, {"status", "phase"})),
                .reason = std::string(text_at(object, {"status", "reason"})),
                .message = std::string(text_at(object, {"status", "message"})),
                .orders = annotation_of(object, kOrders)};
    pod.index = number_of<int>(annotation_of(object, "batch.kubernetes.io/job-completion-index"));
    pod.deleting = !text_at(object, {"metadata", "deletionTimestamp"}).empty();
    pod.grace_s = number_of<std::int64_t>(text_at(object, {"metadata", "deletionGracePeriodSeconds"}));
    const Node* scheduled = condition_of(object, "PodScheduled");
    pod.scheduled = !pod.node.empty();
    if (!pod.scheduled && scheduled != nullptr) pod.why_unscheduled = text_at(*scheduled, "message");
    if (const Node* disrupted = condition_of(object, "DisruptionTarget"); holds(disrupted)) {
        pod.disruption = text_at(*disrupted, "reason");
        pod.disruption_message = text_at(*disrupted, "message");
    }
    if (const Node* status = object.find("status")) {
        for (const auto& each : items_at(*status, "containerStatuses"))
            pod.containers[std::string(text_at(*each, "name"))] = read_container(*each);
        for (const auto& each : items_at(*status, "initContainerStatuses")) {
            if (text_at(*each, "name") == kCheck) pod.check = read_container(*each);
            if (text_at(*each, "name") == kMeasures) pod.measures = read_container(*each);
        }
    }
    return pod;
}

std::string mark_of(const PodView& pod) {
    return pod.uid.substr(0, 8);
}

bool has_started(const ContainerView* view) {
    return view != nullptr && view->phase != ContainerPhase::waiting && view->reason != "ContainerStatusUnknown";
}

bool no_more_pods(const JobView& job) {
    return job.ended != JobEnd::none || job.deleting || (job.called_off && job.is_suspended);
}

Cause cause_of_disruption(std::string_view reason, std::string_view pod_reason) {
    if (reason == "PreemptionByScheduler") return Cause::preempted;
    if (reason == "EvictionByEvictionAPI") return Cause::evicted;
    if (reason == "DeletionByTaintManager" || reason == "DeletionByPodGC") return Cause::node_lost;
    if (pod_reason == "NodeLost" || pod_reason == "Shutdown" || pod_reason == "NodeShutdown" ||
        pod_reason == "Terminated")
        return Cause::node_lost;
    if (pod_reason == "Preempting") return Cause::preempted;
    if (reason == "TerminationByKubelet" || pod_reason == "Evicted") return Cause::evicted;
    return reason.empty() ? Cause::none : Cause::evicted;
}

}  // namespace stoker::kubernetes
