#include "observe/gpu/recording.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "observe/gpu/read_gpu_call.h"

namespace stoker {

namespace {

using M = GpuMetric;

struct ProfileKey {
    const char* key;
    M metric;
    double scale;  // profile = figure x scale
};
// The names that tests/nvml_double reads, in the units of the driver.
constexpr ProfileKey kProfileKeys[] = {
    {"util", M::utilization, 100},
    {"mem_util", M::memory_copy_busy, 100},
    {"enc", M::encoder, 100},
    {"dec", M::decoder, 100},
    {"mem_total", M::memory_size, 1},
    {"mem_used", M::memory_used, 1},
    {"mem_reserved", M::memory_reserved, 1},
    {"bar1_total", M::bar1_size, 1},
    {"bar1_used", M::bar1_used, 1},
    {"temperature", M::temperature_gpu, 1},
    {"mem_temperature", M::temperature_memory, 1},
    {"t_slowdown", M::limit_slowdown, 1},
    {"t_shutdown", M::limit_shutdown, 1},
    {"t_mem_max", M::limit_memory, 1},
    {"t_gpu_max", M::limit_gpu, 1},
    {"margin", M::temperature_margin, 1},
    {"power_mw", M::power_instant, 1000},
    {"power_avg_mw", M::power_average, 1000},
    {"limit_mw", M::power_limit, 1000},
    {"limit_default_mw", M::power_limit_default, 1000},
    {"limit_min_mw", M::power_limit_low, 1000},
    {"limit_max_mw", M::power_limit_high, 1000},
    {"energy_mj", M::energy, 1000},
    {"clock_sm", M::clock_sm, 1e-6},
    {"clock_graphics", M::clock_graphics, 1e-6},
    {"clock_mem", M::clock_memory, 1e-6},
    {"clock_video", M::clock_video, 1e-6},
    {"max_sm", M::clock_max_sm, 1e-6},
    {"max_graphics", M::clock_max_graphics, 1e-6},
    {"max_mem", M::clock_max_memory, 1e-6},
    {"max_video", M::clock_max_video, 1e-6},
    {"reasons", M::reasons, 1},
    {"ev_power_ns", M::time_sw_power_cap, 1e9},
    {"ev_thermal_ns", M::time_thermal, 1e9},
    {"ev_sync_ns", M::time_sync_boost, 1e9},
    {"ev_sw_thermal_ns", M::time_sw_thermal, 1e9},
    {"ev_hw_thermal_ns", M::time_hw_thermal, 1e9},
    {"ev_brake_ns", M::time_power_brake, 1e9},
    {"pcie_tx_bytes", M::pcie_sent, 1},
    {"pcie_rx_bytes", M::pcie_received, 1},
    {"pcie_replay", M::pcie_replays, 1},
    {"pcie_correctable", M::pcie_correctable, 1},
    {"width", M::pcie_width, 1},
    {"gen", M::pcie_generation, 1},
    {"width_max", M::pcie_max_width, 1},
    {"gen_max", M::pcie_max_generation, 1},
    {"nvlink_tx_kib", M::nvlink_sent, 1.0 / 1024},
    {"nvlink_rx_kib", M::nvlink_received, 1.0 / 1024},
    {"pcie_tx_mib", M::pcie_sent_rate, 1.0 / 1048576},
    {"pcie_rx_mib", M::pcie_received_rate, 1.0 / 1048576},
    {"nvlink_tx_mib", M::nvlink_sent_rate, 1.0 / 1048576},
    {"nvlink_rx_mib", M::nvlink_received_rate, 1.0 / 1048576},
    {"nvlink_replay", M::nvlink_replays, 1},
    {"nvlink_recovery", M::nvlink_recoveries, 1},
    {"nvlink_crc", M::nvlink_crc, 1},
    {"nvlink_links", M::nvlink_expected, 1},
    {"ecc_mode", M::ecc_mode, 1},
    {"ecc_cv", M::ecc_corrected, 1},
    {"ecc_uv", M::ecc_uncorrected, 1},
    {"ecc_ca", M::ecc_corrected_life, 1},
    {"ecc_ua", M::ecc_uncorrected_life, 1},
    {"remap_c", M::remapped_corrected, 1},
    {"remap_u", M::remapped_uncorrected, 1},
    {"remap_pending", M::remap_pending, 1},
    {"remap_failed", M::remap_failed, 1},
    {"banks_max", M::banks_max, 1},
    {"banks_high", M::banks_high, 1},
    {"banks_partial", M::banks_partial, 1},
    {"banks_low", M::banks_low, 1},
    {"banks_none", M::banks_none, 1},
    {"retired_sbe", M::retired_corrected, 1},
    {"retired_dbe", M::retired_uncorrected, 1},
    {"retired_pending", M::retired_pending, 1},
    {"recovery", M::recovery_action, 1},
    {"pstate", M::performance_state, 1},
    {"mig", M::mig, 1},
    {"persistence", M::persistence, 1},
    {"gpm", M::graphics_active, 0},  // there: 1, by the line below
    {"graphics", M::graphics_active, 100},
    {"sm_active", M::sm_active, 100},
    {"occupancy", M::sm_occupancy, 100},
    {"tensor", M::tensor_active, 100},
    {"dram", M::dram_active, 100},
    {"fp64", M::fp64_active, 100},
    {"fp32", M::fp32_active, 100},
    {"fp16", M::fp16_active, 100},
    {"int", M::int_active, 100},
};

struct Tally {
    int count = 0;
    std::map<int, int> returns;
    std::vector<std::int64_t> ns, cpu_ns;

    void add(int code, std::int64_t its_ns, std::int64_t its_cpu_ns) {
        ++count;
        ++returns[code];
        ns.push_back(its_ns), cpu_ns.push_back(its_cpu_ns);
    }
};
using Tallies = std::map<std::string, Tally>;

template <class F>
int tallied(Tallies& tallies, const char* name, F&& function) {
    const std::int64_t cpu_began = nvml_thread_cpu_ns();
    const auto began = std::chrono::steady_clock::now();
    const int code = function();
    const auto ended = std::chrono::steady_clock::now();
    tallies[name].add(code, std::chrono::duration_cast<std::chrono::nanoseconds>(ended - began).count(),
                      nvml_thread_cpu_ns() - cpu_began);
    return code;
}

// What the sampler calls beside the readings: whether the boards are the same, and a wait for events in which none
// comes, which should cost no processor.
void record_others(const NvmlCalls& calls, int repeat, Tallies& tallies) {
    for (int k = 0; k < repeat; ++k) {
        unsigned count = 0;
        nvml::Device device = nullptr;
        if (tallied(tallies, "nvmlDeviceGetCount_v2", [&] { return calls.count(&count); }) != nvml::kOk || count == 0)
            return;
        tallied(tallies, "nvmlDeviceGetHandleByIndex_v2", [&] { return calls.by_index(0, &device); });
    }
    nvml::EventSet set = nullptr;
    nvml::Device device = nullptr;
    unsigned long long types = 0;
    if (!calls.event_set || !calls.wait_event || !calls.register_events || !calls.event_types ||
        calls.by_index(0, &device) != nvml::kOk || calls.event_set(&set) != nvml::kOk ||
        calls.event_types(device, &types) != nvml::kOk)
        return;
    calls.register_events(device, types & nvml::kEventXid, set);
    constexpr unsigned kWaitMs = 250;
    for (int k = 0; k < 2; ++k) {
        nvml::EventData event{};
        tallied(tallies, "nvmlEventSetWait_v2(250)", [&] { return calls.wait_event(set, &event, kWaitMs); });
    }
}

std::int64_t median_of(std::vector<std::int64_t> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Each question with what it costs and how often it would be asked of this board at one reading a second.
Json paced_json(const GpuReader& reader) {
    Json rows = Json::array();
    for (const GpuReader::Paced& row : reader.paced())
        rows.push(Json::object()
                      .set("question", std::string(row.question))
                      .set("us", row.cost_us)
                      .set("wanted_every", row.wish.wanted)
                      .set("most_every", row.wish.most)
                      .set("every", row.every)
                      .set("us_per_s", row.cost_us / row.every));
    return rows;
}

Json values_of(const GpuSlotData& data) {
    Json values = Json::object();
    for (const GpuMetricRow& row : gpu_metric_rows()) {
        const GpuValue& value = data.values[index_of(row.metric)];
        if (value.status == GpuValueStatus::ok) values.set(std::string(row.key), value.value);
    }
    return values;
}

std::string profile_of(const GpuSlotData& data, const std::string& driver, const std::string& nvml_version, int cuda,
                       const Tallies& tallies) {
    std::string text = "# Recorded from a board by stoker gpu record.\n";
    text += fmt::format("driver {}\nnvml {}\ncuda {}\ngpus 1\nname {}\nvbios {}\n", driver, nvml_version, cuda,
                        data.name, data.vbios);
    for (const ProfileKey& key : kProfileKeys) {
        const GpuValue& value = data.values[index_of(key.metric)];
        if (value.status != GpuValueStatus::ok) continue;
        text += fmt::format("{} {:.15g}\n", key.key, key.scale == 0 ? 1.0 : value.value * key.scale);
    }
    // Its call succeeds on a board without a fabric, too, and says state 0; 3: it is part of one.
    const GpuValue& fabric = data.values[index_of(M::fabric_healthy)];
    if (fabric.status == GpuValueStatus::ok)
        text += "fabric_state 3\n";
    else if (const auto asked = tallies.find("nvmlDeviceGetGpuFabricInfoV");
             asked != tallies.end() && asked->second.returns.contains(nvml::kOk))
        text += "fabric_state 0\n";
    return text;
}

}  // namespace

Result<Json> record_gpus(int repeat, double pause_s) {
    TRY(const NvmlLibrary library, open_nvml());
    const NvmlCalls& calls = library.calls;
    Tallies tallies;
    const auto began = std::chrono::steady_clock::now();
    const int code = calls.init();
    const auto init_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count();
    if (code != nvml::kOk) return Error(ErrorKind::unavailable, "NVML does not begin: " + nvml_return_text(code));
    char driver[96] = {}, nvml_text[96] = {};
    int cuda = 0;
    if (calls.driver_version) calls.driver_version(driver, sizeof driver);
    if (calls.nvml_version) calls.nvml_version(nvml_text, sizeof nvml_text);
    if (calls.cuda_version) calls.cuda_version(&cuda);
    unsigned count = 0;
    calls.count(&count);
    Json boards = Json::array();
    std::string profile;
    for (unsigned i = 0; i < std::min(count, 16u); ++i) {
        nvml::Device device = nullptr;
        const int got = calls.by_index(i, &device);
        if (got != nvml::kOk) {
            boards.push(Json::object().set("index", static_cast<std::int64_t>(i)).set("return", got));
            continue;
        }
        const auto stamp = std::make_unique<GpuCallStamp>();
        const auto recorder = [&](const NvmlCallRecord& record) {
            tallies[record.arguments.empty() ? record.call : fmt::format("{}({})", record.call, record.arguments)].add(
                record.code, record.ns, record.cpu_ns);
        };
        GpuReader reader(calls, *stamp, device, kGpuCallsUsPerS, recorder);
        reader.read_identity(static_cast<int>(i));
        reader.read_start();
        for (int k = 0; k < repeat; ++k) {
            reader.read(true);
            // More than twice they are not needed to tell which are dear.
            if (k == 1 || k == 2) reader.read_each_alone();
            if (k + 1 < repeat) std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
        }
        const GpuSlotData& data = reader.data();
        boards.push(Json::object()
                        .set("index", static_cast<std::int64_t>(i))
                        .set("uuid", std::string(data.uuid))
                        .set("name", std::string(data.name))
                        .set("pci", std::string(data.pci))
                        .set("vbios", std::string(data.vbios))
                        .set("processes", static_cast<std::int64_t>(data.processes))
                        .set("paced", paced_json(reader))
                        .set("values", values_of(data)));
        if (profile.empty()) profile = profile_of(data, driver, nvml_text, cuda, tallies);
    }
    record_others(calls, repeat, tallies);
    Json told = Json::array(), missing = Json::array(), older = Json::array();
    for (auto& entry : tallies) {
        std::vector<std::int64_t>& ns = entry.second.ns;
        std::sort(ns.begin(), ns.end());
        Json returns = Json::object();
        for (const auto& pair : entry.second.returns) returns.set(std::to_string(pair.first), pair.second);
        told.push(Json::object()
                      .set("call", entry.first)
                      .set("count", entry.second.count)
                      .set("returns", std::move(returns))
                      .set("ns_p50", ns[ns.size() / 2])
                      .set("ns_p99", ns[std::min(ns.size() - 1, ns.size() * 99 / 100)])
                      .set("ns_most", ns.back())
                      .set("cpu_ns_p50", median_of(entry.second.cpu_ns)));
    }
    for (const std::string& name : library.missing) missing.push(name);
    for (const std::string& name : library.older) older.push(name);
    return Json::object()
        .set("library", library.path)
        .set("driver", std::string(driver))
        .set("nvml", std::string(nvml_text))
        .set("cuda", cuda)
        .set("init_ns", static_cast<std::int64_t>(init_ns))
        .set("missing", std::move(missing))
        .set("older", std::move(older))
        .set("boards", std::move(boards))
        .set("calls", std::move(told))
        .set("profile", profile);
}

}  // namespace stoker
