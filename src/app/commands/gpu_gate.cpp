#include "app/commands/gpu_gate.h"

#include <algorithm>
#include <chrono>
#include <optional>
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

// Every board that answers was read after `wall_us`: what a person has just mended is not judged by what was before.
bool is_read_since(const GpuView& view, std::int64_t wall_us) {
    return is_read(view) && std::all_of(view.devices.begin(), view.devices.end(), [&](const GpuDevice& board) {
               return board.state != GpuState::ok || !board.age_s ||
                      static_cast<double>(view.wall_us - wall_us) >= *board.age_s * 1e6;
           });
}

}  // namespace

NodeCheckFunction with_gpus(NodeCheckFunction check, GpuHealthPolicy policy, std::shared_ptr<GpuFleet> fleet) {
    return [check = std::move(check), policy = std::move(policy), fleet = std::move(fleet)](
               const NodeInfo& node, HealthLevel level, Deadline deadline) {
        HealthReport report = check(node, level, deadline);
        const auto gpus = node.doctor.empty() ? gpus_of_this_machine() : nullptr;
        if (!gpus) {
            for (HealthCheck& each : fleet->check(node.name, FleetMoment::now()))
                report.checks.push_back(std::move(each));
            return report;
        }
        const auto limit = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(10));
        const std::int64_t asked_us = wall_clock_us();
        GpuView view = gpus->view();
        for (; !is_read_since(view, asked_us) && std::chrono::steady_clock::now() < limit; view = gpus->view())
            std::this_thread::sleep_for(kPause);
        for (HealthCheck& each : judge_gpus(view, policy, node.name)) report.checks.push_back(std::move(each));
        return report;
    };
}

void tell_engine_of(GpuFleet& fleet, Engine& engine) {
    fleet.on_worse([&engine](const std::string& name, const HealthReport& failing) {
        std::optional<CheckWanted> node;
        (void)engine.read([&](const EngineView& looked) {
            if (const auto found = looked.state.nodes.find(name); found != looked.state.nodes.end())
                node = CheckWanted{.node = name, .boot_id = found->second.info.boot_id};
        });
        // Of a node that this server does not run work on, it is shown and nothing follows.
        if (node)
            (void)engine.post({.what = SawHealth{*node, failing}, .actor = Actor::part("gpus")}, [](const auto&) {});
    });
}

GpuSentry::GpuSentry(Engine& engine, GpuHealthPolicy policy, std::shared_ptr<MachineGpus> gpus)
    : engine_(engine), policy_(std::move(policy)), gpus_(std::move(gpus)) {
    thread_ = masked_thread("gpu-sentry", [this] {
        FailingGpus failing;
        // Each view once and none left out: an error may count for no longer than one.
        for (std::int64_t seen_us = 0; !ending_; std::this_thread::sleep_for(kPause)) {
            const GpuView view = gpus_->view();
            if (std::exchange(seen_us, view.wall_us) != view.wall_us && is_read(view)) judge(view, failing);
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

void GpuSentry::judge(const GpuView& view, FailingGpus& failing) {
    HealthReport report{.checks = failing.look(judge_gpus(view, policy_, ""))};
    if (report.checks.empty()) return;
    std::vector<CheckWanted> nodes;
    (void)engine_.read([&](const EngineView& looked) {
        for (const auto& node : looked.state.nodes)
            if (node.second.info.doctor.empty())
                nodes.push_back({.node = node.first, .boot_id = node.second.info.boot_id});
    });
    // Refused while the server stops, or where nothing can be checked: the gate's own turn comes later.
    for (const CheckWanted& node : nodes) {
        for (HealthCheck& check : report.checks) check.node = node.node;
        (void)engine_.post({.what = SawHealth{node, report}, .actor = Actor::part("gpus")}, [](const Result<Ack>&) {});
    }
}

}  // namespace stoker
