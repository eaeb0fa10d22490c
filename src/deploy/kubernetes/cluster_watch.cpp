#include "deploy/kubernetes/cluster_watch.h"

#include <algorithm>

#include "io/worker.h"

namespace stoker::kubernetes {
namespace {

constexpr double kListLimit = 60, kFirstPause = 0.1, kMostPause = 5;

std::string selector() {
    return "labelSelector=" + in_query(kManagedBy);
}

}  // namespace

ClusterWatch::ClusterWatch(std::shared_ptr<ApiClient> api, const Paths& paths, JobWatch& gangs)
    : api_(std::move(api)),
      gangs_(gangs),
      jobs_{.path = paths.jobs, .version = {}, .jobs = true},
      pods_{.path = paths.pods(), .version = {}, .jobs = false} {}

ClusterWatch::~ClusterWatch() {
    stopping_ = true;
    if (job_thread_.joinable()) job_thread_.join();
    if (pod_thread_.joinable()) pod_thread_.join();
}

Status ClusterWatch::look(Deadline deadline) {
    // Jobs first: pods say nothing without them.
    TRY_VOID(list(jobs_, deadline));
    return list(pods_, deadline);
}

void ClusterWatch::start() {
    job_thread_ = masked_thread("kube-jobs", [this] { follow(jobs_); });
    pod_thread_ = masked_thread("kube-pods", [this] { follow(pods_); });
}

Status ClusterWatch::list(Stream& stream, Deadline deadline) {
    std::set<OperationId> operations;
    std::set<std::string> uids;
    TRY(std::string version, api_->list(stream.path, selector(), deadline, [&](const Node& item) {
        if (stream.jobs) {
            const auto job = read_job(item);
            if (!job) return;
            operations.insert(job->operation);
            gangs_.see(*job);
        } else if (const auto pod = read_pod(item)) {
            uids.insert(pod->uid);
            gangs_.see(*pod);
        }
    }));
    if (stream.jobs)
        gangs_.only_jobs(operations);
    else
        gangs_.only_pods(uids);
    stream.version = std::move(version);
    return done();
}

void ClusterWatch::pause(double seconds) const {
    const Deadline until = after(seconds);
    while (!stopping_ && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void ClusterWatch::follow(Stream& stream) {
    double wait = kFirstPause;
    while (!stopping_) {
        if (stream.version.empty() && !list(stream, after(kListLimit))) {
            pause(wait);
            wait = std::min(wait * 2, kMostPause);
            continue;
        }
        const std::string before = stream.version;
        const auto ended = api_->watch(
            stream.path, selector(), stream.version, [this] { return stopping_.load(); },
            [&](std::string_view type, const Node& object) {
                const bool gone = type == "DELETED";
                if (stream.jobs) {
                    const auto job = read_job(object);
                    if (job && gone) gangs_.lost_job(job->operation);
                    if (job && !gone) gangs_.see(*job);
                } else if (const auto pod = read_pod(object)) {
                    gangs_.see(*pod, gone);
                }
            });
        if (ended && *ended == WatchEnd::gone) stream.version.clear();
        if (ended || stream.version != before) {
            wait = kFirstPause;
            continue;
        }
        // What cannot be read is passed over by a listing.
        if (ended.error().kind() != ErrorKind::unavailable && ended.error().kind() != ErrorKind::timed_out)
            stream.version.clear();
        pause(wait);
        wait = std::min(wait * 2, kMostPause);
    }
}

}  // namespace stoker::kubernetes
