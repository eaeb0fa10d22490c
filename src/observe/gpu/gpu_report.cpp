#include "observe/gpu/gpu_report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/codec.h"
#include "base/newer_keys.h"
#include "base/text.h"
#include "base/version.h"
#include "observe/xid_actions.h"

namespace stoker {

namespace {

constexpr std::size_t kMostReported = 200;  // of a text
constexpr std::size_t kMostProcessesReported = 2048, kMostPointsReported = 400;

// A value of an enum by its name; `otherwise` where this version has no such name.
template <class E>
E named(std::string_view name, E last, E otherwise) {
    for (int i = 0; i <= static_cast<int>(last); ++i)
        if (to_string(static_cast<E>(i)) == name) return static_cast<E>(i);
    return otherwise;
}

std::string shown(const std::string& text) {
    return printable(text, kMostReported);
}

ReportedBoard board_of(const GpuDevice& device, const GpuView& view, const GpuOwners& owners,
                       const GpuAllocations& allocations) {
    ReportedBoard board;
    board.state = to_string(device.state);
    board.uuid = device.uuid, board.parent_uuid = device.parent_uuid, board.pci = device.pci, board.name = device.name;
    board.driver = device.driver, board.mig_profile = device.mig_profile, board.stuck_call = device.stuck_call;
    board.index = device.index, board.gpu_instance = device.gpu_instance, board.age_s = device.age_s;
    for (const GpuMetricRow& row : gpu_metric_rows())
        if (const auto value = device.at(row.metric)) board.values.emplace(row.key, *value);
    board.processes_told = device.processes_told;
    for (const GpuProcess& process : device.processes) {
        ReportedProcess& told = board.processes.emplace_back();
        told.pid = process.pid, told.used_bytes = process.used_bytes, told.sm_percent = process.sm_percent;
        const GpuOwner* owner = owners.find(process.pid);
        if (owner == nullptr) continue;
        told.known = true;
        told.run = owner->run, told.rank = owner->rank, told.job = owner->job, told.pod = owner->pod;
        told.container = owner->container, told.command = owner->command, told.user = owner->user;
    }
    if (const auto xids = view.xids.find(device.pci); xids != view.xids.end() && device.whole())
        for (const auto& [code, count] : xids->second.codes)
            board.xids.push_back({.code = code,
                                  .count = static_cast<std::int64_t>(count.count),
                                  .ago_s = static_cast<double>(view.wall_us - count.last_wall_us) * 1e-6});
    if (const auto found = allocations.find(device.uuid); found != allocations.end()) {
        board.used_as = to_string(found->second.verdict.state);
        board.evidence = found->second.verdict.evidence;
    }
    return board;
}

GpuDevice device_of(const ReportedBoard& board, double age_s) {
    GpuDevice device;
    device.state = named(board.state, GpuState::missing, GpuState::missing);
    device.uuid = shown(board.uuid), device.parent_uuid = shown(board.parent_uuid), device.pci = shown(board.pci);
    device.name = shown(board.name), device.driver = shown(board.driver);
    device.mig_profile = shown(board.mig_profile), device.stuck_call = shown(board.stuck_call);
    device.index = static_cast<int>(board.index), device.gpu_instance = static_cast<int>(board.gpu_instance);
    if (board.age_s) device.age_s = *board.age_s + age_s;
    for (const auto& [key, value] : board.values)
        if (const auto metric = find_gpu_metric(key)) device.values[index_of(*metric)] = value;
    device.processes_told = board.processes_told;
    for (const ReportedProcess& process : board.processes)
        device.processes.push_back({.pid = static_cast<std::uint32_t>(process.pid),
                                    .sm_percent = static_cast<std::int32_t>(process.sm_percent),
                                    .used_bytes = process.used_bytes});
    return device;
}

Status refuse_report(const std::string& what) {
    return Error(ErrorKind::invalid, "the report " + what, {"body", 0, 0});
}

Status within_bounds(const GpuReport& report) {
    if (report.agent.empty() || report.agent.size() > 64) return refuse_report("does not say which agent it is of");
    if (!std::isfinite(report.every_s) || report.every_s < 0.05 || report.every_s > 3600)
        return refuse_report("is made more seldom than once an hour, or all the time");
    if (report.boards.size() > kMostGpuSlots) return refuse_report("has more than 64 boards");
    if (report.points.size() > kMostPointsReported) return refuse_report("has more than 400 points");
    std::size_t processes = 0;
    for (const ReportedBoard& board : report.boards) processes += board.processes.size();
    if (processes > kMostProcessesReported) return refuse_report("has more than 2,048 processes");
    return done();
}

}  // namespace

std::span<const std::string_view> fleet_measures() {
    static constexpr auto kMeasures = std::to_array<std::string_view>(
        {"gpu_util", "gpu_sm", "gpu_tensor", "gpu_dram", "gpu_memory", "gpu_power", "gpu_temperature", "gpu_clock",
         "gpu_pcie", "gpu_nvlink", "gpu_held_heat", "gpu_held_power", "gpu_held_brake", "gpu_lost"});
    return kMeasures;
}

GpuReport report_of(const GpuView& view, const GpuOwners& owners, const GpuAllocations& allocations) {
    GpuReport report;
    report.version = version().number;
    report.sent_us = view.wall_us;
    if (!view.up()) report.down = to_string(view.down);
    report.detail = view.detail, report.nvidia_driver = view.driver, report.nvml = view.nvml;
    report.cuda = view.cuda, report.present = view.present, report.expected = view.expected;
    for (const GpuDevice& device : view.devices) report.boards.push_back(board_of(device, view, owners, allocations));
    return report;
}

GpuView view_of_report(const GpuReport& report, double age_s) {
    GpuView view;
    view.down = report.down.empty() ? NvmlDown::none : named(report.down, NvmlDown::fork_failed, NvmlDown::init_failed);
    view.detail = printable(report.detail, 400);
    view.driver = shown(report.nvidia_driver), view.nvml = shown(report.nvml),
    view.cuda = static_cast<int>(report.cuda);
    view.present = static_cast<int>(report.present), view.expected = static_cast<int>(report.expected);
    view.wall_us = report.sent_us + static_cast<std::int64_t>(age_s * 1e6);
    for (const ReportedBoard& board : report.boards) {
        view.devices.push_back(device_of(board, age_s));
        if (board.xids.empty()) continue;
        GpuXids& xids = view.xids[view.devices.back().pci];
        double newest_s = 0;
        for (const ReportedXid& xid : board.xids) {
            const int code = static_cast<int>(xid.code);
            const std::int64_t at_us = report.sent_us - static_cast<std::int64_t>(xid.ago_s * 1e6);
            xids.codes[code] = {static_cast<std::uint64_t>(std::max<std::int64_t>(0, xid.count)), at_us};
            xids.classes[static_cast<std::size_t>(xid_action(code).kind)] += xids.codes[code].count;
            if (xids.last == 0 || xid.ago_s < newest_s) xids.last = code, newest_s = xid.ago_s;
        }
    }
    return view;
}

GpuOwners owners_of_report(const GpuReport& report) {
    GpuOwners owners;
    for (const ReportedBoard& board : report.boards)
        for (const ReportedProcess& process : board.processes)
            if (process.known)
                owners.tell(static_cast<std::uint32_t>(process.pid), {.run = shown(process.run),
                                                                      .attempt = "",
                                                                      .rank = shown(process.rank),
                                                                      .job = shown(process.job),
                                                                      .pod = shown(process.pod),
                                                                      .container = shown(process.container),
                                                                      .command = shown(process.command),
                                                                      .user = shown(process.user),
                                                                      .known = true});
    return owners;
}

Result<GpuReport> read_report(std::string_view text) {
    GpuReport report;
    if (!codec::decode_exactly(text, &report, codec::kShape<GpuReport>)) {
        report = {};
        TRY(const Document document, Document::parse_json(text, "body", {.max_bytes = 1 << 20, .max_nodes = 200'000}));
        Problems problems;
        codec::read(document.root(), "body", report, problems);
        codec::pass_over_unknown_keys(problems);
        if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    }
    TRY_VOID(within_bounds(report));
    return report;
}

}  // namespace stoker
