// What the engine reads of Jobs and Pods as the API writes them, and the names by which it knows its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/cause.h"
#include "base/document.h"
#include "base/ids.h"
#include "readings/kube_objects.h"

namespace stoker::kubernetes {

inline constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by=stoker";
inline constexpr const char* kSite = "stoker/site";             // label of Jobs and pods
inline constexpr const char* kOperation = "stoker/operation";   // label of Jobs and pods
inline constexpr const char* kGang = "stoker/gang";             // of a Job: what was launched
inline constexpr const char* kEpoch = "stoker/epoch";           // of a Job: of the newest order
inline constexpr const char* kBegun = "stoker/begun";           // of a Job: which of its pods may begin
inline constexpr const char* kCalledOff = "stoker/called-off";  // of a Job: the server ended it
inline constexpr const char* kEnd = "stoker/end";               // of a Job: how it ended, once its pods may go
inline constexpr const char* kOrders = "stoker/orders";         // of a pod: what its ranks are told
inline constexpr const char* kFinalizer = "stoker/journal";     // of a Job: until its end is in the journal
inline constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kRendezvous = "stoker-ranks";  // headless Service, one for a namespace
inline constexpr const char* kCheck = "check";              // the container that looks whether the programs are there
inline constexpr const char* kMeasures = "measures";        // the container that tells what ranks use (look_script.h)

std::string job_name(const OperationId& operation);

// Members on a path; empty and null where there is none.
const Node* node_at(const Node& node, std::initializer_list<std::string_view> path);
std::string_view text_at(const Node& node, std::string_view key);
std::string_view text_at(const Node& node, std::initializer_list<std::string_view> path);
const std::vector<std::unique_ptr<Node>>& items_at(const Node& node, std::string_view key);
std::string label_of(const Node& object, std::string_view key);
std::string annotation_of(const Node& object, std::string_view key);

enum class JobEnd : std::uint8_t { none, complete, failed };
struct JobView {
    OperationId operation;
    std::string uid, version, gang, end, reason, message;
    std::uint64_t epoch = 0;
    bool begun = false, called_off = false;
    std::set<std::string>
        may_begin;  // marks of those pods; begun, and none: all of them (earlier servers said no more)
    bool suspended = false, is_suspended = false;  // wanted; and seen by the controller
    bool deleting = false, queued = false;         // queued: of Kueue
    JobEnd ended = JobEnd::none;
    std::int64_t ended_us = 0;
    std::shared_ptr<const KubePod> pod;  // as its pods are made; null where they begin no more
};
// Nothing: it carries no mark of ours.
std::optional<JobView> read_job(const Node& object);

enum class ContainerPhase : std::uint8_t { waiting, running, ended };
struct ContainerView {
    ContainerPhase phase = ContainerPhase::waiting;
    std::string reason, message;
    int exit_code = 0;
    std::int64_t started_us = 0, ended_us = 0;
};
struct PodView {
    OperationId operation;
    std::string name, uid, node, phase, reason, message, orders;
    int index = 0;
    bool deleting = false;
    std::int64_t grace_s = 0;  // of its deletion
    bool scheduled = false;
    std::string why_unscheduled;                 // the scheduler's words
    std::string disruption, disruption_message;  // reason of the condition DisruptionTarget
    std::map<std::string, ContainerView, std::less<>> containers;
    ContainerView check, measures;
    bool over() const { return phase == "Succeeded" || phase == "Failed"; }
};
std::optional<PodView> read_pod(const Node& object);

// By which a Job remembers one of its pods: of its uid what tells it from its siblings, since Jobs of thousands of pods
// keep all of them in one annotation.
std::string mark_of(const PodView& pod);

bool has_started(const ContainerView* view);  // null: no
bool no_more_pods(const JobView& job);        // its controller makes none from here on

// Why the cluster ended a pod, by the reasons of DisruptionTarget (kubernetes.io/docs, Pod disruption conditions) and
// of the kubelet; none: it did not.
Cause cause_of_disruption(std::string_view reason, std::string_view pod_reason);

}  // namespace stoker::kubernetes
