// The GPUs of this machine in the health gate of stoker up: a part of each check of a node that is this machine, and a
// check at once when a board goes wrong.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "deploy/driver.h"
#include "observe/gpu/gpu_health.h"
#include "observe/gpu/rank_gpus.h"
#include "run/engine/engine.h"

namespace stoker {

// What `check` finds, and of nodes that are this machine what its GPUs say.
NodeCheckFunction with_gpus(NodeCheckFunction check, GpuHealthPolicy policy);

// Looks every second; asks for a check of all nodes that are this machine when something fails that did not before.
class GpuSentry {
public:
    // Nothing where there are no GPUs.
    static std::unique_ptr<GpuSentry> start(Engine& engine, GpuHealthPolicy policy);
    ~GpuSentry();
    GpuSentry(const GpuSentry&) = delete;
    GpuSentry& operator=(const GpuSentry&) = delete;

private:
    GpuSentry(Engine& engine, GpuHealthPolicy policy, std::shared_ptr<MachineGpus> gpus);
    void look(std::set<std::string>& known);

    Engine& engine_;
    const GpuHealthPolicy policy_;
    const std::shared_ptr<MachineGpus> gpus_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

}  // namespace stoker
