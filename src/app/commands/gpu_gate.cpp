#include "app/commands/gpu_gate.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "io/worker.h"

namespace stoker {

namespace {

constexpr auto kPause = std::chrono::milliseconds(200);

// Found and read, or given up: a driver takes a second or more to tell of its boards for the first time.
bool is_read(const GpuView& view) {
    return view.up() ? view.unread == 0 : view.down != NvmlDown::starting;
}

}  // namespace

NodeCheckFunction with_gpus(NodeCheckFunction check, GpuHealthPolicy policy) {
    return [check = std::move(check), policy = std::move(policy)](const NodeInfo& node, HealthLevel level,
                                                                  Deadline deadline) {
        HealthReport report = check(node, level, deadline);
        const auto gpus = node.doctor.empty() ? gpus_of_this_machine() : nullptr;
        if (!gpus) return report;
        const auto limit = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(10));
        GpuView view = gpus->view();
        for (; !is_read(view) && std::chrono::steady_clock::now() < limit; view = gpus->view())
            std::this_thread::sleep_for(kPause);
        for (HealthCheck& each : judge_gpus(view, policy, node.name)) report.checks.push_back(std::move(each));
        return report;
    };
}

GpuSentry::GpuSentry(Engine& engine, GpuHealthPolicy policy, std::shared_ptr<MachineGpus> gpus)
    : engine_(engine), policy_(std::move(policy)), gpus_(std::move(gpus)) {
    thread_ = masked_thread("gpu-sentry", [this] {
        std::set<std::string> known;
        for (int turn = 0; !ending_; ++turn) {
            if (turn % 5 == 0) look(known);
            std::this_thread::sleep_for(kPause);
        }
    });
}

std::unique_ptr<GpuSentry> GpuSentry::start(Engine& engine, GpuHealthPolicy policy) {
    auto gpus = gpus_of_this_machine();
    if (!gpus) return nullptr;
    return std::unique_ptr<GpuSentry>(new GpuSentry(engine, std::move(policy), std::move(gpus)));
}

GpuSentry::~GpuSentry() {
    ending_ = true;
    thread_.join();
}

void GpuSentry::look(std::set<std::string>& known) {
    const GpuView view = gpus_->view();
    if (!is_read(view)) return;
    std::set<std::string> failing;
    for (const HealthCheck& check : judge_gpus(view, policy_, ""))
        if (check.verdict == HealthVerdict::fail)
            failing.insert(check.name + " " + check.detail.substr(0, check.detail.find(')')));
    bool fresh = false;
    for (const std::string& each : failing) fresh = fresh || !known.contains(each);
    known = std::move(failing);
    if (!fresh) return;
    std::vector<std::string> nodes;
    (void)engine_.read([&](const EngineView& looked) {
        for (const auto& node : looked.state.nodes)
            if (node.second.info.doctor.empty()) nodes.push_back(node.first);
    });
    // Refused while the server stops, or where nothing can be checked: the gate's own turn comes later.
    for (const std::string& node : nodes)
        (void)engine_.post({.what = CheckNode{node, HealthLevel::quick}}, [](const Result<Ack>&) {});
}

}  // namespace stoker
