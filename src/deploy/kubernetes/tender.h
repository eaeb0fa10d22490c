// Does what a JobWatch says is next: admits gangs and backs them out, lets programs begin, says why something waits,
// sees to logs, and keeps ends. One thread, with a few beside it for what it tells the cluster; what fails is tried
// again, since the chore is still there then.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "deploy/kubernetes/cluster_watch.h"
#include "deploy/kubernetes/log_copy.h"
#include "readings/kube_objects.h"

namespace stoker::kubernetes {

class Tender {
public:
    Tender(std::shared_ptr<ApiClient> api, Paths paths, JobWatch& gangs, LogCopies& logs);
    ~Tender();
    void start();

    // Merge-patches, whose answers are seen at once.
    Status patch_job(const OperationId& operation, const Json& patch, Deadline deadline);
    Status patch_pod(const std::string& name, const Json& patch, Deadline deadline);

private:
    void work();
    void carry_out(const std::vector<Chore>& chores);
    static void do_all(std::vector<std::function<void(Deadline)>> calls);
    void tell_cluster(const Chore& chore, Deadline deadline);
    void finish_logs(const OperationId& operation);
    bool name_pods(const Chore& chore, Deadline deadline);
    void look(const OperationId& operation, Deadline deadline);
    void explain(const Chore& chore);
    void tell_room();
    const KubeState& state_of_cluster();

    const std::shared_ptr<ApiClient> api_;
    const Paths paths_;
    JobWatch& gangs_;
    LogCopies& logs_;
    KubeState state_;
    bool sees_all_pods_ = false, state_is_new_ = false;  // new: its room was not told yet
    std::chrono::steady_clock::time_point state_until_{};
    std::set<OperationId> backed_out_;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
};

// {"metadata": {"annotations": {key: value}}}
Json annotation_patch(const std::string& key, const std::string& value);

}  // namespace stoker::kubernetes
