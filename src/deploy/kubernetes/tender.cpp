#include "deploy/kubernetes/tender.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/kubernetes/reasons.h"
#include "io/process.h"

namespace stoker::kubernetes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kChoreLimit = 5, kStateLimit = 8;
constexpr auto kTurn = std::chrono::milliseconds(300);
constexpr auto kSiteLimit = std::chrono::seconds(2), kStateAge = std::chrono::seconds(4);
constexpr int kStateRest = 20;  // times as long as it took to read: of a thousand nodes it is no small question
constexpr std::size_t kSideBySide = 8;
constexpr std::size_t kMostEnd = 200'000;  // all annotations of an object together: 256 KiB

Json suspend_patch(bool suspend) {
    return Json::object().set("spec", Json::object().set("suspend", suspend));
}

}  // namespace

Json annotation_patch(const std::string& key, const std::string& value) {
    return Json::object().set("metadata", Json::object().set("annotations", Json::object().set(key, value)));
}

Tender::Tender(std::shared_ptr<ApiClient> api, Paths paths, JobWatch& gangs, LogCopies& logs)
    : api_(std::move(api)), paths_(std::move(paths)), gangs_(gangs), logs_(logs) {}

Tender::~Tender() {
    stopping_ = true;
    gangs_.wake();
    if (thread_.joinable()) thread_.join();
}

void Tender::start() {
    thread_ = masked_thread("kube-tender", [this] { work(); });
}

Status Tender::patch_job(const OperationId& operation, const Json& patch, Deadline deadline) {
    TRY(const Document answer,
        api_->ask(
            {.method = "PATCH", .target = paths_.job(operation), .body = patch.dump(0), .content_type = kMergePatch},
            deadline));
    if (const auto job = read_job(answer.root())) gangs_.see(*job);
    return done();
}

Status Tender::patch_pod(const std::string& name, const Json& patch, Deadline deadline) {
    TRY(const Document answer,
        api_->ask({.method = "PATCH", .target = paths_.pod(name), .body = patch.dump(0), .content_type = kMergePatch},
                  deadline));
    if (const auto pod = read_pod(answer.root())) gangs_.see(*pod);
    return done();
}

void Tender::work() {
    std::uint64_t seen = 0;
    // A server says right after its start which Jobs are its own.
    for (const auto until = Clock::now() + kSiteLimit; !stopping_ && !gangs_.knows_its_site() && Clock::now() < until;)
        seen = gangs_.wait_for_change(seen, Clock::now() + kTurn);
    while (!stopping_) {
        tell_room();
        carry_out(gangs_.chores());
        logs_.follow(gangs_.logs_to_copy());
        seen = gangs_.wait_for_change(seen, Clock::now() + kTurn);
    }
}

// Side by side: an API server that is busy answers each call after a second, and a gang alone takes one for each pod.
void Tender::do_all(std::vector<std::function<void(Deadline)>> calls) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t at = next++; at < calls.size(); at = next++) calls[at](after(kChoreLimit));
    };
    std::vector<std::thread> others;
    while (others.size() + 1 < std::min(calls.size(), kSideBySide))
        others.push_back(masked_thread("kube-tender", work));
    work();
    for (std::thread& each : others) each.join();
}

// Whatever fails is asked for again with the next turn.
void Tender::carry_out(const std::vector<Chore>& chores) {
    std::vector<std::function<void(Deadline)>> calls, orders;
    std::mutex mutex;  // guards orders
    const auto tell_to_go = [&](const Chore& chore) {
        const std::lock_guard guard(mutex);
        for (const PodView& pod : chore.pods)
            orders.emplace_back([this, &pod](Deadline deadline) {
                (void)patch_pod(pod.name, annotation_patch(kOrders, "go"), deadline).ok();
            });
    };
    for (const Chore& chore : chores) {
        if (chore.kind == ChoreKind::go) tell_to_go(chore);
        if (chore.kind == ChoreKind::begin) backed_out_.erase(chore.operation);
        if (chore.kind == ChoreKind::back_out) {
            backed_out_.insert(chore.operation);
            gangs_.backed_out(chore.operation);
        }
        calls.emplace_back([this, &chore, &tell_to_go](Deadline deadline) {
            if (stopping_) return;
            if (chore.kind == ChoreKind::begin && name_pods(chore, deadline)) tell_to_go(chore);
            tell_cluster(chore, deadline);
        });
    }
    do_all(std::move(calls));
    // Also while we stop: what its Job names counts as begun, and would wait for the next server.
    do_all(std::move(orders));
    for (const Chore& chore : chores) {
        if (stopping_) return;
        if (chore.kind == ChoreKind::explain) explain(chore);
        if (chore.kind == ChoreKind::finish_logs) finish_logs(chore.operation);
    }
}

void Tender::tell_cluster(const Chore& chore, Deadline deadline) {
    switch (chore.kind) {
        case ChoreKind::admit: (void)patch_job(chore.operation, suspend_patch(false), deadline).ok(); break;
        case ChoreKind::back_out: (void)patch_job(chore.operation, suspend_patch(true), deadline).ok(); break;
        case ChoreKind::look: look(chore.operation, deadline); break;
        case ChoreKind::remove_pods:
            for (const PodView& pod : chore.pods)
                (void)api_->call({.method = "DELETE", .target = paths_.pod(pod.name)}, deadline).ok();
            break;
        case ChoreKind::keep_end: {
            // Of a gang so large that it does not fit the next server reads the pods, or the Job's own words.
            const std::string& end = chore.end;
            if (end.size() > kMostEnd || patch_job(chore.operation, annotation_patch(kEnd, end), deadline))
                gangs_.end_is_kept(chore.operation, end.size() > kMostEnd ? "" : end);
            break;
        }
        case ChoreKind::begin:
        case ChoreKind::go:
        case ChoreKind::explain:
        case ChoreKind::finish_logs: break;
    }
}

void Tender::finish_logs(const OperationId& operation) {
    auto sources = gangs_.logs_to_copy();
    logs_.follow(sources);
    std::erase_if(sources, [&](const LogSource& each) { return each.operation != operation; });
    if (logs_.is_done(operation, sources)) gangs_.logs_are_done(operation);
}

// On a Job that is still as it was seen: of two pods one only is ever named.
bool Tender::name_pods(const Chore& chore, Deadline deadline) {
    std::string marks;
    for (const PodView& pod : chore.pods) marks += (marks.empty() ? "" : " ") + mark_of(pod);
    Json metadata = Json::object().set("annotations", Json::object().set(kBegun, marks));
    if (!chore.job.version.empty()) metadata.set("resourceVersion", chore.job.version);
    const Status named = patch_job(chore.operation, Json::object().set("metadata", std::move(metadata)), deadline);
    if (named) return true;
    if (named.error().kind() != ErrorKind::conflict) return false;
    if (const auto answer = api_->ask({.target = paths_.job(chore.operation)}, deadline))
        if (const auto job = read_job(answer->root())) gangs_.see(*job);
    return false;
}

void Tender::look(const OperationId& operation, Deadline deadline) {
    std::set<std::string> there;
    const auto listed =
        api_->list(paths_.pods(), "labelSelector=" + in_query(std::string(kOperation) + "=" + operation.text()),
                   deadline, [&](const Node& item) {
                       const auto pod = read_pod(item);
                       if (!pod) return;
                       there.insert(pod->uid);
                       gangs_.see(*pod);
                   });
    if (listed) gangs_.only_pods_of(operation, there);
}

// Whoever may not see the pods of others does not know what is free: then one gang is admitted after the other.
void Tender::tell_room() {
    if (!gangs_.wants_room()) return;
    const KubeState& state = state_of_cluster();
    if (std::exchange(state_is_new_, false) && sees_all_pods_) gangs_.take_room(KubeRoom(state, paths_.space));
}

const KubeState& Tender::state_of_cluster() {
    if (Clock::now() < state_until_) return state_;
    const auto asked = Clock::now();
    const Deadline deadline = after(kStateLimit);
    KubeState fresh;
    // What may not be seen is left out: the pod's own words remain.
    const auto add = [&](const std::string& target) {
        const auto answer = api_->call({.target = target}, deadline);
        if (!answer || answer->status / 100 != 2) return false;
        return read_kube_objects(answer->body, target, fresh).ok();
    };
    sees_all_pods_ = add("/api/v1/pods");
    if (!sees_all_pods_) add(paths_.pods());
    add("/api/v1/nodes");
    add(paths_.core + "/events?fieldSelector=type%3DWarning");
    add(paths_.core + "/resourcequotas");
    std::erase_if(fresh.pods, [](const KubePod& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; });
    state_ = std::move(fresh);
    state_is_new_ = true;
    state_until_ = Clock::now() + std::max<Clock::duration>(kStateAge, kStateRest * (Clock::now() - asked));
    return state_;
}

void Tender::explain(const Chore& chore) {
    const bool suspended = chore.job.suspended;
    const KubeState none;
    const int wanted = gangs_.pods_wanted(chore.operation);
    const WaitReason why =
        why_it_waits(chore.job, chore.pods, wanted, suspended ? none : state_of_cluster(),
                     gangs_.another_is_admitted(chore.operation), backed_out_.count(chore.operation) > 0);
    gangs_.tell_wait(chore.operation, why.cause, why.text());
}

}  // namespace stoker::kubernetes
