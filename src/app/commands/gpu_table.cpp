#include "app/commands/gpu_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {

namespace {

using M = GpuMetric;

std::string share(const std::optional<double>& value) {
    return value ? fmt::format("{:.0f} %", *value * 100) : "-";
}
std::string plain(const std::optional<double>& value, double scale = 1) {
    return value ? fmt::format("{:.0f}", *value * scale) : "-";
}

// What holds the clocks down and is not as it should be; a power cap alone is usual under load.
std::string held_by(const GpuDevice& device) {
    const std::pair<M, std::string_view> kReasons[] = {{M::reason_hw_thermal, "too hot (hardware)"},
                                                       {M::reason_power_brake, "power brake"},
                                                       {M::reason_sw_thermal, "too hot"},
                                                       {M::reason_hw_slowdown, "hardware slowdown"},
                                                       {M::reason_sw_power_cap, "power cap"}};
    for (const auto& reason : kReasons)
        if (device.at(reason.first).value_or(0) != 0) return std::string(reason.second);
    return "";
}

std::string owner_text(const GpuDevice& device, const GpuOwners& owners) {
    std::vector<std::string> names;
    for (const GpuProcess& process : device.processes) {
        const GpuOwner* owner = owners.find(process.pid);
        std::string name = !owner                ? "unknown"
                           : !owner->run.empty() ? owner->run + (owner->rank.empty() ? "" : " rank " + owner->rank)
                           : !owner->job.empty() ? "job " + owner->job
                           : !owner->pod.empty() ? "pod " + owner->pod.substr(0, 8)
                                                 : owner->command + " (" + owner->user + ")";
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    if (names.size() > 2) return fmt::format("{}, {} and {} more", names[0], names[1], names.size() - 2);
    return join(names, ", ");
}

}  // namespace

std::string gpu_table(const GpuView& view, const GpuOwners& owners, const Style& style) {
    std::string text;
    if (view.without_nvidia()) {
        std::set<std::string> drivers;
        for (const GpuDevice& device : view.devices) drivers.insert(device.driver);
        text += fmt::format("read from the files of {} in /sys, which was not tried on a real board yet\n",
                            fmt::join(drivers, " and "));
    } else if (!view.up())
        text += style.bad(in_words(view.down)) + (view.detail.empty() ? "" : "\n  " + view.detail) + "\n";
    else
        text += fmt::format("driver {}, NVML {}, CUDA {}.{}\n", view.driver, view.nvml, view.cuda / 1000,
                            view.cuda % 1000 / 10);
    if (view.present < view.expected)
        text += style.bad(fmt::format("{} of {} GPUs answer", view.present, view.expected)) + "\n";
    if (view.devices.empty()) return text;
    std::vector<std::vector<std::string>> rows;
    for (const GpuDevice& device : view.devices) {
        const auto used = device.at(M::memory_used), size = device.at(M::memory_size);
        const auto power = device.at(M::power_instant) ? device.at(M::power_instant) : device.at(M::power_average);
        std::string state(to_string(device.state));
        if (!device.stuck_call.empty()) state += ": " + device.stuck_call;
        const auto xids = view.xids.find(device.pci);
        if (xids != view.xids.end() && xids->second.last != 0 && device.whole())
            state += fmt::format(", Xid {}", xids->second.last);
        if (const std::string why = held_by(device); !why.empty() && device.state == GpuState::ok) state += ", " + why;
        rows.push_back(
            {device.whole() ? std::to_string(device.index) : fmt::format("{}.{}", device.index, device.gpu_instance),
             device.name.empty() ? device.pci : device.name, share(device.at(M::utilization)),
             device.at(M::tensor_active) ? share(device.at(M::tensor_active)) : "-",
             used && size ? fmt::format("{:.1f} of {:.0f}", *used / 1073741824, *size / 1073741824) : "-",
             plain(device.at(M::temperature_gpu)),
             plain(power) + (device.at(M::power_limit) ? " of " + plain(device.at(M::power_limit)) : ""),
             plain(device.at(M::clock_sm), 1e-6), state, owner_text(device, owners)});
    }
    return text + table_text(style,
                             {{"gpu"},
                              {"model"},
                              {"busy", Align::right},
                              {"tensor", Align::right},
                              {"GiB", Align::right},
                              {"°C", Align::right},
                              {"W", Align::right},
                              {"MHz", Align::right},
                              {"state"},
                              {"used by"}},
                             rows, 0);
}

std::string gpu_process_table(const GpuView& view, const GpuOwners& owners, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const GpuDevice& device : view.devices)
        for (const GpuProcess& process : device.processes) {
            const GpuOwner* owner = owners.find(process.pid);
            rows.push_back(
                {std::to_string(device.index), std::to_string(process.pid),
                 process.used_bytes < 0 ? "-"
                                        : fmt::format("{:.1f}", static_cast<double>(process.used_bytes) / 1073741824),
                 process.sm_percent < 0 ? "-" : fmt::format("{} %", process.sm_percent), owner ? owner->user : "?",
                 owner ? owner->run : "", owner ? owner->rank : "", owner ? owner->job : "",
                 owner ? owner->command : "unknown: of another PID namespace, or gone"});
        }
    if (rows.empty() && view.without_nvidia())
        return "which processes use these GPUs is not told: their drivers have no file for it\n";
    if (rows.empty()) return "no process uses a GPU\n";
    return table_text(style,
                      {{"gpu"},
                       {"pid", Align::right},
                       {"GiB", Align::right},
                       {"SM", Align::right},
                       {"user"},
                       {"run"},
                       {"rank"},
                       {"job"},
                       {"command"}},
                      rows, 0);
}

Json gpu_json(const GpuView& view, const GpuOwners& owners) {
    Json devices = Json::array();
    for (const GpuDevice& device : view.devices) {
        Json values = Json::object(), processes = Json::array();
        for (const GpuMetricRow& row : gpu_metric_rows())
            if (const auto value = device.at(row.metric)) values.set(std::string(row.key), *value);
        for (const GpuProcess& process : device.processes) {
            const GpuOwner* owner = owners.find(process.pid);
            Json item = Json::object().set("pid", static_cast<std::int64_t>(process.pid));
            item.set("used_bytes", process.used_bytes < 0 ? Json() : Json(process.used_bytes));
            item.set("sm_share", process.sm_percent < 0 ? Json() : Json(process.sm_percent / 100.0));
            item.set("known", owner != nullptr);
            if (owner)
                item.set("run", owner->run)
                    .set("rank", owner->rank)
                    .set("job", owner->job)
                    .set("pod_uid", owner->pod)
                    .set("container", owner->container)
                    .set("command", owner->command)
                    .set("user", owner->user);
            processes.push(std::move(item));
        }
        Json xids = Json::array();
        if (const auto found = view.xids.find(device.pci); found != view.xids.end() && device.whole())
            for (const auto& code : found->second.codes)
                xids.push(Json::object()
                              .set("xid", code.first)
                              .set("count", static_cast<std::int64_t>(code.second.count))
                              .set("class", std::string(to_string(xid_action(code.first).kind)))
                              .set("action", std::string(xid_action(code.first).action)));
        devices.push(Json::object()
                         .set("index", device.index)
                         .set("uuid", device.uuid)
                         .set("parent_uuid", device.whole() ? Json() : Json(device.parent_uuid))
                         .set("pci", device.pci)
                         .set("name", device.name)
                         .set("driver", device.driver.empty() ? view.driver : device.driver)
                         .set("mig_profile", device.mig_profile.empty() ? Json() : Json(device.mig_profile))
                         .set("state", std::string(to_string(device.state)))
                         .set("stuck_call", device.stuck_call.empty() ? Json() : Json(device.stuck_call))
                         .set("age_s", device.age_s ? Json(*device.age_s) : Json())
                         .set("values", std::move(values))
                         .set("processes", std::move(processes))
                         .set("xids", std::move(xids)));
    }
    return Json::object()
        .set("up", view.up())
        .set("reason", view.up() ? Json() : Json(std::string(to_string(view.down))))
        .set("detail", view.detail.empty() ? Json() : Json(view.detail))
        .set("driver", view.driver)
        .set("nvml", view.nvml)
        .set("present", view.present)
        .set("expected", view.expected)
        .set("gpus", std::move(devices));
}

std::vector<std::uint32_t> gpu_pids(const GpuView& view) {
    std::vector<std::uint32_t> pids;
    for (const GpuDevice& device : view.devices)
        for (const GpuProcess& process : device.processes) pids.push_back(process.pid);
    return pids;
}

}  // namespace stoker
