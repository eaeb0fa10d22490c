#include "observe/gpu/rank_gpus.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "io/clock.h"
#include "io/worker.h"

namespace stoker {

namespace {

using M = GpuMetric;

// What is told as it is.
constexpr std::pair<M, std::string_view> kPlain[] = {{M::utilization, "gpu_util"},
                                                     {M::sm_active, "gpu_sm"},
                                                     {M::tensor_active, "gpu_tensor"},
                                                     {M::dram_active, "gpu_dram"},
                                                     {M::fp64_active, "gpu_fp64"},
                                                     {M::fp32_active, "gpu_fp32"},
                                                     {M::memory_used, "gpu_memory"},
                                                     {M::memory_size, "gpu_memory_size"},
                                                     {M::power_limit, "gpu_power_limit"},
                                                     {M::power_limit_default, "gpu_power_default"},
                                                     {M::temperature_gpu, "gpu_temperature"},
                                                     {M::temperature_margin, "gpu_margin"},
                                                     {M::clock_sm, "gpu_clock"},
                                                     {M::clock_max_sm, "gpu_clock_max"},
                                                     {M::pcie_width, "gpu_lanes"},
                                                     {M::pcie_max_width, "gpu_lanes_max"},
                                                     {M::pcie_generation, "gpu_gen"},
                                                     {M::pcie_max_generation, "gpu_gen_max"},
                                                     {M::nvlink_expected, "gpu_links"},
                                                     {M::remap_pending, "gpu_remap_pending"}};

class Source final : public MachineGpus {
public:
    explicit Source(GpuWatchOptions options) {
        watcher_ = masked_thread("gpu-ranks", [this, options = std::move(options)] { watch(options); });
    }
    ~Source() override {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
            wake_.notify_all();
        }
        watcher_.join();
    }
    std::vector<GpuReading> read() override {
        const std::lock_guard lock(mutex_);
        return readings_;
    }
    GpuView view() override {
        const std::lock_guard lock(mutex_);
        return view_;
    }

private:
    void watch(const GpuWatchOptions& options) {
        GpuWatch watch(options);  // lives on this thread, which its samplers end with
        GpuReadings readings;
        std::unique_lock lock(mutex_);
        while (!ending_) {
            lock.unlock();
            GpuView view = watch.look();
            auto next = readings.of(view, monotonic_seconds());
            lock.lock();
            readings_ = std::move(next);
            view_ = std::move(view);
            wake_.wait_for(lock, std::chrono::duration<double>(options.period_s), [this] { return ending_; });
        }
    }
    std::mutex mutex_;  // guards what follows
    std::condition_variable wake_;
    std::vector<GpuReading> readings_;
    GpuView view_;
    bool ending_ = false;

    std::thread watcher_;
};

struct Shared {
    std::mutex mutex;  // guards what follows
    std::optional<GpuWatchOptions> allowed;
    std::weak_ptr<MachineGpus> source;
};
Shared& shared() {
    static Shared* const one = new Shared;  // outlives whoever measures at the end of the program
    return *one;
}

}  // namespace

std::vector<GpuReading> GpuReadings::of(const GpuView& view, double now_s) {
    std::vector<GpuReading> out;
    std::map<std::string, double, std::less<>> held_instances;  // by the board's UUID
    for (const GpuDevice& device : view.devices)
        if (!device.whole() && !device.processes.empty()) ++held_instances[device.parent_uuid];
    for (const GpuDevice& device : view.devices) {
        if (device.uuid.empty()) continue;
        GpuReading reading{.uuid = device.uuid, .index = device.index, .holders_told = device.processes_told};
        for (const GpuProcess& process : device.processes)
            reading.holders.push_back(
                {.pid = process.pid, .sm = process.sm_percent < 0 ? -1 : process.sm_percent / 100.0});
        const auto put = [&](std::string_view name, const std::optional<double>& value) {
            if (value) reading.values.emplace_back(name, *value);
        };
        for (const auto& [metric, name] : kPlain) put(name, device.at(metric));
        const bool answers = device.state == GpuState::ok || device.state == GpuState::slow;
        put("gpu_lost", answers ? 0 : 1);
        put("gpu_power", device.at(M::power_instant) ? device.at(M::power_instant) : device.at(M::power_average));

        Last& last = last_[device.uuid];
        // Over the time between the two answers, which may be several looks: until the next answer it stays so.
        const auto rate = [&](M metric) -> std::optional<double> {
            const auto now = device.at(metric);
            if (!now) {
                last.counters.erase(metric);
                return std::nullopt;
            }
            const double told_s = device.read_at_s[index_of(metric)], at_s = told_s > 0 ? told_s : now_s;
            const auto [found, fresh] =
                last.counters.try_emplace(metric, Counter{.value = *now, .at_s = at_s, .rate = {}});
            Counter& counter = found->second;
            if (fresh || at_s <= counter.at_s) return counter.rate;
            counter.rate = std::max(0.0, *now - counter.value) / (at_s - counter.at_s);
            counter.value = *now, counter.at_s = at_s;
            return counter.rate;
        };
        // Time that the clocks were held, as the driver counts it; of an older one what is so at this moment.
        const auto held = [&](std::initializer_list<std::pair<M, M>> reasons) -> std::optional<double> {
            std::optional<double> share;
            for (const auto& [counter, reason] : reasons) {
                auto part = rate(counter);
                if (!part) part = device.at(reason);
                if (part) share = std::min(1.0, share.value_or(0) + *part);
            }
            return share;
        };
        put("gpu_held_heat",
            held({{M::time_hw_thermal, M::reason_hw_thermal}, {M::time_sw_thermal, M::reason_sw_thermal}}));
        put("gpu_held_power", held({{M::time_sw_power_cap, M::reason_sw_power_cap}}));
        put("gpu_held_brake", held({{M::time_power_brake, M::reason_power_brake}}));
        if (const auto sent = device.at(M::pcie_sent_rate), received = device.at(M::pcie_received_rate);
            sent && received)
            put("gpu_pcie", *sent + *received);
        else if (const auto out_rate = rate(M::pcie_sent), in_rate = rate(M::pcie_received); out_rate && in_rate)
            put("gpu_pcie", *out_rate + *in_rate);
        put("gpu_nvlink", device.at(M::nvlink_rate));
        if (const auto links = device.at(M::nvlink_expected), active = device.at(M::nvlink_active); links && active)
            put("gpu_links_down", std::max(0.0, *links - *active));
        put("gpu_ecc_corrected", rate(M::ecc_corrected));
        put("gpu_replays", rate(M::pcie_replays));
        if (const auto errors = device.at(M::ecc_uncorrected)) {
            if (!std::exchange(last.uncorrected_told, true)) last.uncorrected_first = *errors;
            put("gpu_ecc_uncorrected", std::max(0.0, *errors - last.uncorrected_first));
        }
        const auto xids = view.xids.find(device.pci);
        std::uint64_t count = 0;
        if (xids != view.xids.end())
            for (const auto& code : xids->second.codes) count += code.second.count;
        const auto [before, fresh] = xids_before_.try_emplace(device.pci, count);
        if (!fresh && count > before->second)
            put("gpu_xid", xids->second.last);
        else
            put("gpu_xid", 0);
        if (!device.whole())
            put("gpu_other_instances",
                std::max(0.0, held_instances[device.parent_uuid] - (device.processes.empty() ? 0 : 1)));
        out.push_back(std::move(reading));
    }
    return out;
}

bool may_have_nvidia_gpus(const std::string& root) {
    if (std::getenv("STOKER_NVML_LIBRARY") != nullptr) return true;
    for (const char* path : {"/dev/nvidiactl", "/dev/dxg"})
        if (::access((root + path).c_str(), F_OK) == 0) return true;
    return false;
}

void allow_gpus_of_ranks(GpuWatchOptions options) {
    const std::lock_guard lock(shared().mutex);
    shared().allowed = std::move(options);
}

std::shared_ptr<MachineGpus> gpus_of_this_machine() {
    const std::lock_guard lock(shared().mutex);
    if (!shared().allowed || !may_have_nvidia_gpus(shared().allowed->root)) return nullptr;
    if (auto running = shared().source.lock()) return running;
    auto source = std::make_shared<Source>(*shared().allowed);
    shared().source = source;
    return source;
}

}  // namespace stoker
