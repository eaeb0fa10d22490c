// The part of an agent that tells a server what the GPUs of its node do, every few seconds, and what was not heard
// again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "app/args.h"
#include "app/client/client.h"
#include "observe/gpu/gpu_pages.h"
#include "observe/gpu/point_queue.h"
#include "observe/gpu/rank_gpus.h"
#include "server/views_gpus.h"

namespace stoker {

struct GpuTellerOptions {
    Args args;  // where the server is
    std::string node;
    double every_s = 10;
};

class GpuTeller {
public:
    // `now`: the GPUs as they were seen last. Asks and sends on a thread of its own; nobody waits for the server.
    GpuTeller(GpuTellerOptions options, std::function<GpuReport()> now);
    ~GpuTeller();
    GpuTeller(const GpuTeller&) = delete;
    GpuTeller& operator=(const GpuTeller&) = delete;
    // Once a period of the agent.
    void look(const GpuView& view, double now_s);
    AgentTelling telling() const;

private:
    void run();
    // False: it was not heard.
    bool tell();
    Result<api::GpuReportTaken> send(const GpuReport& report);
    void say(const std::string& trouble);

    const GpuTellerOptions options_;
    const std::function<GpuReport()> now_;
    const std::string agent_;
    const std::int64_t began_us_;
    GpuReadings readings_;  // of the thread that looks
    std::string trouble_;   // of the thread that tells, as what follows
    ServerAddress address_;
    std::unique_ptr<Client> client_;  // of that address; its connection is kept
    mutable std::mutex mutex_;        // guards what follows
    std::condition_variable wake_;
    bool ending_ = false, seen_ = false;  // seen: the driver has answered, or does not
    GpuPointQueue queue_;
    AgentTelling telling_;
    std::thread thread_;
};

// Of the machine, as the servers know it: NODE_NAME of a pod, Slurm's, or its own name.
std::string usual_node_name();

}  // namespace stoker
