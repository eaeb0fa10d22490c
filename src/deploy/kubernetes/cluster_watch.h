// Keeps a JobWatch up to date: lists Jobs and pods of ours, then watches them, and lists again when the server no
// longer knows the version to go on from (410).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "deploy/kubernetes/api_client.h"
#include "deploy/kubernetes/job_watch.h"

namespace stoker::kubernetes {

// Paths of what is asked for in a namespace.
struct Paths {
    explicit Paths(const std::string& name)
        : space(name), core("/api/v1/namespaces/" + name), jobs("/apis/batch/v1/namespaces/" + name + "/jobs") {}
    std::string pods() const { return core + "/pods"; }
    std::string job(const OperationId& operation) const { return jobs + "/" + job_name(operation); }
    std::string pod(const std::string& name) const { return core + "/pods/" + name; }
    const std::string space, core, jobs;
};

class ClusterWatch {
public:
    ClusterWatch(std::shared_ptr<ApiClient> api, const Paths& paths, JobWatch& gangs);
    ~ClusterWatch();

    // Everything that is there now.
    Status look(Deadline deadline);
    void start();

private:
    struct Stream {
        std::string path, version;
        bool jobs = false;
    };
    Status list(Stream& stream, Deadline deadline);
    void follow(Stream& stream);
    void pause(double seconds) const;

    const std::shared_ptr<ApiClient> api_;
    JobWatch& gangs_;
    Stream jobs_, pods_;
    std::atomic<bool> stopping_ = false;
    std::thread job_thread_, pod_thread_;
};

}  // namespace stoker::kubernetes
