// GPUs in the health gate of stoker up: a part of each check of a node, and told at once when a board goes wrong.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "deploy/driver.h"
#include "observe/gpu/gpu_fleet.h"
#include "observe/gpu/gpu_health.h"
#include "observe/gpu/rank_gpus.h"
#include "run/engine/engine.h"

namespace stoker {

// What `check` finds, and what the node's GPUs say: those of this machine themselves, those elsewhere through their
// agent.
NodeCheckFunction with_gpus(NodeCheckFunction check, GpuHealthPolicy policy, std::shared_ptr<GpuFleet> fleet);

// From here on the engine is told at once of what begins to fail on a node, as its agent tells it.
void tell_engine_of(GpuFleet& fleet, Engine& engine);

// Looks every second; tells the engine of all nodes that are this machine when something fails that did not before,
// also while they are at work.
class GpuSentry {
public:
    // Nothing where there are no GPUs.
    static std::unique_ptr<GpuSentry> start(Engine& engine, GpuHealthPolicy policy);
    ~GpuSentry();
    GpuSentry(const GpuSentry&) = delete;
    GpuSentry& operator=(const GpuSentry&) = delete;

private:
    GpuSentry(Engine& engine, GpuHealthPolicy policy, std::shared_ptr<MachineGpus> gpus);
    void judge(const GpuView& view, FailingGpus& failing);

    Engine& engine_;
    const GpuHealthPolicy policy_;
    const std::shared_ptr<MachineGpus> gpus_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

}  // namespace stoker
