#include "observe/gpu/read_gpu.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>

#include "observe/gpu/read_gpu_call.h"

namespace stoker {

namespace {

using M = GpuMetric;

struct FieldRow {
    unsigned field;
    M metric;
    double scale;
};
// Fields of nvmlDeviceGetFieldValues (nvidia-ml-py 13.595.45) as figures. Times are documented in nanoseconds, energy
// in millijoules, NVLink's throughput in KiB.
constexpr FieldRow kFields[] = {
    {74, M::time_sw_power_cap, 1e-9}, {75, M::time_thermal, 1e-9},     {76, M::time_sync_boost, 1e-9},
    {82, M::temperature_memory, 1},   {83, M::energy, 1e-3},           {138, M::nvlink_sent, 1024},
    {139, M::nvlink_received, 1024},  {142, M::remapped_corrected, 1}, {143, M::remapped_uncorrected, 1},
    {144, M::remap_pending, 1},       {145, M::remap_failed, 1},       {161, M::nvlink_replays, 1},
    {162, M::nvlink_recoveries, 1},   {163, M::nvlink_crc, 1},         {173, M::pcie_correctable, 1},
    {185, M::power_average, 1e-3},    {186, M::power_instant, 1e-3},   {197, M::pcie_sent, 1},
    {198, M::pcie_received, 1},       {202, M::nvlink_sent, 1},        {204, M::nvlink_received, 1},
    {230, M::recovery_action, 1},     {269, M::time_sw_thermal, 1e-9}, {270, M::time_hw_thermal, 1e-9},
    {271, M::time_power_brake, 1e-9},
};

const FieldRow* row_of(unsigned field) {
    for (const FieldRow& row : kFields)
        if (row.field == field) return &row;
    return nullptr;
}

double number_of(const nvml::FieldValue& value) {
    switch (value.type) {
        case nvml::kDouble: return value.value.real;
        case nvml::kUint: return value.value.small;
        case nvml::kUlong:
        case nvml::kUlongLong: return static_cast<double>(value.value.large);
        case nvml::kLongLong: return static_cast<double>(value.value.signed_large);
        case nvml::kInt: return value.value.signed_small;
        case nvml::kUshort: return value.value.tiny;
        default: return std::nan("");
    }
}

// Blanks are what a driver or DCGM writes in place of a figure; after scaling they would look like one.
bool is_blank(double raw) {
    return raw >= 9.0e18 || raw == 4294967295.0 || (raw >= 2147483632.0 && raw <= 2147483635.0);
}

constexpr double kMHz = 1e6, kMiBps = 1048576;

struct ProfileRow {
    unsigned id;
    M metric;
    double scale;
};
constexpr ProfileRow kProfile[] = {
    {1, M::graphics_active, 0.01},       {2, M::sm_active, 0.01},
    {3, M::sm_occupancy, 0.01},          {4, M::int_active, 0.01},
    {5, M::tensor_active, 0.01},         {10, M::dram_active, 0.01},
    {11, M::fp64_active, 0.01},          {12, M::fp32_active, 0.01},
    {13, M::fp16_active, 0.01},          {20, M::pcie_sent_rate, kMiBps},
    {21, M::pcie_received_rate, kMiBps}, {60, M::nvlink_received_rate, kMiBps},
    {61, M::nvlink_sent_rate, kMiBps},
};

}  // namespace

bool plausible_gpu_value(GpuMetric metric, double value) {
    if (!std::isfinite(value) || value >= 9.0e18) return false;
    // DCGM's blanks of doubles and of 32 and 64 bits; all bits of 32 set are "none" of NVML.
    if (value >= 140737488355328.0 && value <= 140737488355331.0) return false;
    if ((value >= 2147483632.0 && value <= 2147483635.0) || value == 4294967295.0) return false;
    const std::string_view key = gpu_metric_rows()[index_of(metric)].key;
    if (metric == M::temperature_margin) return std::abs(value) <= 250;
    if (value < 0) return false;
    if (key.starts_with("temperature") || key.starts_with("limit_")) return value <= 250;
    if (key.ends_with("_active") || metric == M::utilization || metric == M::memory_copy_busy || metric == M::encoder ||
        metric == M::decoder || metric == M::sm_occupancy)
        return metric == M::nvlink_active ? value <= 64 : value <= 1.001;
    if (key.starts_with("clock_")) return value <= 20e9;
    if (key.starts_with("power")) return value <= 20'000;  // watts: more than any board
    return true;
}

GpuReader::GpuReader(const NvmlCalls& calls, GpuCallStamp& stamp, nvml::Device device, double budget_us,
                     NvmlRecorder recorder)
    : calls_(calls), stamp_(stamp), device_(device), recorder_(std::move(recorder)), pace_(budget_us) {
    for (const Question& question : questions()) pace_.add(question.wish);
    for (nvml::GpmSample& sample : samples_)
        if (calls_.gpm_alloc && calls_.gpm_metrics && calls_.gpm_sample) calls_.gpm_alloc(&sample);
}

GpuReader::~GpuReader() {
    for (nvml::GpmSample sample : samples_)
        if (sample && calls_.gpm_free) calls_.gpm_free(sample);
}

void GpuReader::set(GpuMetric metric, int code, double value) {
    GpuValue& to = data_.values[index_of(metric)];
    to.code = static_cast<std::int16_t>(code);
    to.every = static_cast<std::uint16_t>(std::clamp(every_, 0, 65'535));
    answered_ = answered_ || (code != nvml::kNotSupported && code != nvml::kFunctionNotFound);
    to.status = code == nvml::kOk             ? GpuValueStatus::ok
                : code == nvml::kNoPermission ? GpuValueStatus::refused
                : code == nvml::kGpuLost      ? GpuValueStatus::lost
                : code == nvml::kNotSupported || code == nvml::kFunctionNotFound || code == nvml::kStructVersion
                    ? GpuValueStatus::unsupported
                    : GpuValueStatus::failed;
    if (to.status == GpuValueStatus::ok && !plausible_gpu_value(metric, value)) to.status = GpuValueStatus::nonsense;
    if (to.status != GpuValueStatus::ok) return;
    to.value = value;
    to.at_us = monotonic_clock_us();
}

void GpuReader::set_uint(GpuMetric metric, const char* name, int (*function)(nvml::Device, unsigned*), double scale) {
    unsigned value = 0;
    const int code = call(name, function, device_, &value);
    // All bits set is how NVML says that it does not know.
    set(metric, code, is_blank(value) ? std::nan("") : value * scale);
}

int GpuReader::read_identity(int index) {
    data_.index = index;
    const int code =
        call("nvmlDeviceGetUUID", calls_.uuid, device_, data_.uuid, static_cast<unsigned>(sizeof data_.uuid));
    data_.last_return = code;
    if (code == nvml::kGpuLost) return code;
    nvml::PciInfo pci{};
    if (call("nvmlDeviceGetPciInfo_v3", calls_.pci, device_, &pci) == nvml::kOk) {
        pci.bus_id[sizeof pci.bus_id - 1] = 0;
        set_text(data_.pci, plain_pci(pci.bus_id));
        set_text(stamp_.pci, data_.pci);
    }
    call("nvmlDeviceGetName", calls_.name, device_, data_.name, static_cast<unsigned>(sizeof data_.name));
    return code;
}

void GpuReader::read_start() {
    call("nvmlDeviceGetVbiosVersion", calls_.vbios, device_, data_.vbios, static_cast<unsigned>(sizeof data_.vbios));
    call("nvmlDeviceGetSerial", calls_.serial, device_, data_.serial, static_cast<unsigned>(sizeof data_.serial));
    unsigned minor = 0;
    if (call("nvmlDeviceGetMinorNumber", calls_.minor, device_, &minor) == nvml::kOk)
        data_.minor = static_cast<std::int32_t>(minor);
    const M limits[] = {M::limit_shutdown, M::limit_slowdown, M::limit_memory, M::limit_gpu};
    for (unsigned which = 0; which < 4; ++which) {
        unsigned celsius = 0;
        const int code = call("nvmlDeviceGetTemperatureThreshold", calls_.threshold, device_, which, &celsius);
        set(limits[which], code, celsius);
    }
    const std::pair<unsigned, M> clocks[] = {{nvml::kClockSm, M::clock_max_sm},
                                             {nvml::kClockGraphics, M::clock_max_graphics},
                                             {nvml::kClockMemory, M::clock_max_memory},
                                             {nvml::kClockVideo, M::clock_max_video}};
    for (const auto& pair : clocks) {
        unsigned mhz = 0;
        const int code = call("nvmlDeviceGetMaxClockInfo", calls_.max_clock, device_, pair.first, &mhz);
        set(pair.second, code, mhz * kMHz);
    }
    set_uint(M::pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth", calls_.max_link_width);
    set_uint(M::pcie_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration", calls_.max_link_generation);
    // Plain 1, as the macro of the headers has it, not with the size as in other structures: 580.159.04 refuses that.
    nvml::GpmSupport support{.version = 1, .supported = 0};
    int code = call("nvmlGpmQueryDeviceSupport", calls_.gpm_support, device_, &support);
    if (code == nvml::kStructVersion) {
        support.version = nvml::versioned(sizeof support, 1);
        code = call("nvmlGpmQueryDeviceSupport", calls_.gpm_support, device_, &support);
    }
    profiled_ = code == nvml::kOk && support.supported != 0 && samples_[0] && samples_[1];
}

int GpuReader::get_fields(std::vector<nvml::FieldValue>& values) {
    // NVLink's fields take the number of a link; all bits: all of them.
    for (nvml::FieldValue& value : values)
        if (value.field == 138 || value.field == 139) value.scope = ~0u;
    return call("nvmlDeviceGetFieldValues", calls_.fields, device_, static_cast<int>(values.size()), values.data());
}

void GpuReader::read_fields(std::initializer_list<unsigned> fields) {
    std::vector<nvml::FieldValue> values(fields.size(), nvml::FieldValue{});
    std::transform(fields.begin(), fields.end(), values.begin(), [](unsigned field) {
        nvml::FieldValue value{};
        value.field = field;
        return value;
    });
    const int code = get_fields(values);
    for (const nvml::FieldValue& value : values) {
        const FieldRow* row = row_of(value.field);
        if (!row) continue;
        const int result = code == nvml::kOk ? value.result : code;
        // Two fields tell of NVLink; the one that answers counts.
        const GpuValue& there = data_.values[index_of(row->metric)];
        if (result != nvml::kOk && (value.field == 202 || value.field == 204) && there.status == GpuValueStatus::ok)
            continue;
        const double raw = number_of(value);
        set(row->metric, result, is_blank(raw) ? std::nan("") : raw * row->scale);
    }
}

void GpuReader::read_memory() {
    nvml::Memory2 memory{};
    memory.version = nvml::versioned(sizeof memory, 2);
    int code = old_memory_ ? static_cast<int>(nvml::kFunctionNotFound)
                           : call("nvmlDeviceGetMemoryInfo_v2", calls_.memory2, device_, &memory);
    if (code == nvml::kFunctionNotFound || code == nvml::kStructVersion) {
        old_memory_ = true;
        nvml::Memory old{};
        code = call("nvmlDeviceGetMemoryInfo", calls_.memory, device_, &old);
        memory.total = old.total, memory.used = old.used, memory.free = old.free;
        set(M::memory_reserved, nvml::kNotSupported, 0);  // counted in `used` there
    } else {
        set(M::memory_reserved, code, static_cast<double>(memory.reserved));
    }
    set(M::memory_size, code, static_cast<double>(memory.total));
    set(M::memory_used, code, static_cast<double>(memory.used));
    set(M::memory_free, code, static_cast<double>(memory.free));
}

// Of the two samples that are there.
int GpuReader::get_profile(std::initializer_list<unsigned> metrics) {
    const auto get = std::make_unique<nvml::GpmGet>();
    *get = {};
    get->version = 1;
    get->first = samples_[0], get->second = samples_[1];
    for (const unsigned id : metrics) get->metrics[get->count++].id = id;
    const int code = call("nvmlGpmMetricsGet", calls_.gpm_metrics, get.get());
    for (std::size_t i = 0; i < metrics.size(); ++i)
        for (const ProfileRow& row : kProfile)
            if (row.id == get->metrics[i].id)
                set(row.metric, code == nvml::kOk ? get->metrics[i].result : code, get->metrics[i].value * row.scale);
    return code;
}

// Two samples, which have to be more than a tenth of a second apart. They are means over what is between them: asked
// half as often, nothing is missed.
void GpuReader::read_profile() {
    const std::int64_t now_us = monotonic_clock_us();
    if (!profiled_) return;
    answered_ = true;
    if (now_us - sampled_us_ < 150'000) return;
    const bool first = sampled_us_ == 0;
    std::swap(samples_[0], samples_[1]);
    const int taken = call("nvmlGpmSampleGet", calls_.gpm_sample, device_, samples_[1]);
    pair_ = taken == nvml::kOk && !first;
    sampled_us_ = taken == nvml::kOk ? now_us : 0;  // after a failure the next pair begins anew
    if (pair_) get_profile({1, 2, 3, 4, 5, 10, 11, 12, 13});
}

void GpuReader::read_profile_of_links() {
    answered_ = profiled_;
    if (pair_) get_profile({20, 21, 60, 61});
}

void GpuReader::read_each_alone() {
    std::vector<unsigned> fields;
    for (const FieldRow& row : kFields) fields.push_back(row.field);
    for (const unsigned field : fields) {
        std::vector<nvml::FieldValue> one(1, nvml::FieldValue{});
        one[0].field = field;
        alone_ = field;
        get_fields(one);
    }
    for (const ProfileRow& row : kProfile) {
        alone_ = row.id;
        if (pair_) get_profile({row.id});
    }
    alone_ = 0;
}

void GpuReader::read_utilization() {
    nvml::Utilization use{};
    const int code = call("nvmlDeviceGetUtilizationRates", calls_.utilization, device_, &use);
    set(M::utilization, code, use.gpu * 0.01);
    set(M::memory_copy_busy, code, use.memory * 0.01);
}

void GpuReader::read_temperature() {
    unsigned celsius = 0;
    const int heat = call("nvmlDeviceGetTemperature", calls_.temperature, device_, 0u, &celsius);
    set(M::temperature_gpu, heat, celsius);
    // Where no margin is told: what is left to the board's own slowdown.
    const GpuValue& slow = data_.values[index_of(M::limit_slowdown)];
    if (!has_margin_ && heat == nvml::kOk && slow.status == GpuValueStatus::ok)
        set(M::temperature_margin, nvml::kOk, slow.value - celsius);
}

void GpuReader::read_margin() {
    nvml::Margin margin{.version = nvml::versioned(sizeof(nvml::Margin), 1), .celsius = 0};
    const int near = call("nvmlDeviceGetMarginTemperature", calls_.margin, device_, &margin);
    has_margin_ = near == nvml::kOk || near == nvml::kGpuLost;
    if (has_margin_) set(M::temperature_margin, near, margin.celsius);
}

void GpuReader::read_power() {
    read_fields({185, 186});
    // Boards before Ampere have neither of the two fields.
    if (data_.values[index_of(M::power_average)].status != GpuValueStatus::ok)
        set_uint(M::power_average, "nvmlDeviceGetPowerUsage", calls_.power, 1e-3);
}

void GpuReader::read_energy() {
    read_fields({83});
    if (data_.values[index_of(M::energy)].status == GpuValueStatus::ok) return;
    unsigned long long mj = 0;
    const int told = call("nvmlDeviceGetTotalEnergyConsumption", calls_.energy, device_, &mj);
    set(M::energy, told, is_blank(static_cast<double>(mj)) ? std::nan("") : static_cast<double>(mj) * 1e-3);
}

void GpuReader::read_clocks() {
    const std::pair<unsigned, M> clocks[] = {{nvml::kClockSm, M::clock_sm},
                                             {nvml::kClockGraphics, M::clock_graphics},
                                             {nvml::kClockMemory, M::clock_memory},
                                             {nvml::kClockVideo, M::clock_video}};
    for (const auto& pair : clocks) {
        unsigned mhz = 0;
        const int told = call("nvmlDeviceGetClockInfo", calls_.clock, device_, pair.first, &mhz);
        set(pair.second, told, mhz * kMHz);
    }
}

void GpuReader::read_reasons() {
    unsigned long long mask = 0;
    const int held = call("nvmlDeviceGetCurrentClocksEventReasons", calls_.clock_reasons, device_, &mask);
    set(M::reasons, held, static_cast<double>(mask));
    const std::pair<unsigned long long, M> reasons[] = {
        {0x1, M::reason_idle},        {0x2, M::reason_app_clocks},   {0x4, M::reason_sw_power_cap},
        {0x8, M::reason_hw_slowdown}, {0x10, M::reason_sync_boost},  {0x20, M::reason_sw_thermal},
        {0x40, M::reason_hw_thermal}, {0x80, M::reason_power_brake}, {0x100, M::reason_display}};
    for (const auto& pair : reasons) set(pair.second, held, (mask & pair.first) != 0 ? 1 : 0);
}

void GpuReader::read_performance_state() {
    set_uint(M::performance_state, "nvmlDeviceGetPerformanceState", calls_.performance_state);
}

void GpuReader::read_pcie_link() {
    set_uint(M::pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", calls_.link_width);
    set_uint(M::pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", calls_.link_generation);
}

void GpuReader::read_replays() {
    set_uint(M::pcie_replays, "nvmlDeviceGetPcieReplayCounter", calls_.replays);
}

void GpuReader::read_nvlink_bytes() {
    read_fields({138, 139, 202, 204});
    const GpuValue &sent = data_.values[index_of(M::nvlink_sent)],
                   &received = data_.values[index_of(M::nvlink_received)];
    if (sent.status != GpuValueStatus::ok || received.status != GpuValueStatus::ok) return;
    const double bytes = sent.value + received.value;
    if (linked_us_ != 0 && bytes >= linked_bytes_ && sent.at_us > linked_us_)
        set(M::nvlink_rate, nvml::kOk, (bytes - linked_bytes_) / (static_cast<double>(sent.at_us - linked_us_) * 1e-6));
    linked_us_ = sent.at_us, linked_bytes_ = bytes;
}

void GpuReader::read_video() {
    unsigned us = 0, percent = 0;
    int code = call("nvmlDeviceGetEncoderUtilization", calls_.encoder, device_, &percent, &us);
    set(M::encoder, code, percent * 0.01);
    code = call("nvmlDeviceGetDecoderUtilization", calls_.decoder, device_, &percent, &us);
    set(M::decoder, code, percent * 0.01);
}

void GpuReader::read_processes() {
    answered_ = true;
    constexpr std::size_t kMostAsked = 4096;
    int code = nvml::kOk;
    unsigned count = 0;
    for (int attempt = 0; attempt < 8; ++attempt) {
        count = static_cast<unsigned>(processes_.size());
        if (calls_.processes) {
            code =
                call("nvmlDeviceGetComputeRunningProcesses_v3", calls_.processes, device_, &count, processes_.data());
        } else {
            std::vector<nvml::ProcessInfo1> old(processes_.size());
            code = call("nvmlDeviceGetComputeRunningProcesses", calls_.processes1, device_, &count, old.data());
            for (std::size_t i = 0; i < old.size(); ++i) processes_[i] = {old[i].pid, old[i].used_bytes, ~0u, ~0u};
        }
        if (code != nvml::kTooSmall || processes_.size() >= kMostAsked) break;
        processes_.resize(std::min(kMostAsked, std::max<std::size_t>(count, processes_.size() * 2)));
    }
    data_.processes_return = code;
    if (code != nvml::kOk) {
        data_.processes = 0;
        return;
    }
    count = std::min<unsigned>(count, static_cast<unsigned>(processes_.size()));
    const unsigned told_processes = std::min<unsigned>(data_.processes, kMostGpuProcesses);
    data_.processes = std::min<unsigned>(count, kMostGpuProcesses);
    data_.processes_left_out = count - data_.processes;
    // How much a process works is told elsewhere, and more seldom: it stays with its process.
    std::map<std::uint32_t, std::int32_t> before;
    for (unsigned i = 0; i < told_processes; ++i) before.emplace(data_.process[i].pid, data_.process[i].sm_percent);
    for (unsigned i = 0; i < data_.processes; ++i) {
        const nvml::ProcessInfo& from = processes_[i];
        const auto known = before.find(from.pid);
        data_.process[i] = {
            .pid = from.pid,
            .gpu_instance = from.gpu_instance == ~0u ? -1 : static_cast<std::int32_t>(from.gpu_instance),
            .sm_percent = known == before.end() ? -1 : known->second,
            .unused = 0,
            .used_bytes = from.used_bytes >= 1ull << 62 ? -1 : static_cast<std::int64_t>(from.used_bytes)};
    }
}

void GpuReader::read_process_usage() {
    std::vector<nvml::ProcessUsage> usage(std::max<std::size_t>(100, data_.processes));
    unsigned told = static_cast<unsigned>(usage.size());
    const int code =
        call("nvmlDeviceGetProcessUtilization", calls_.process_usage, device_, usage.data(), &told, process_seen_us_);
    answered_ = code != nvml::kNotSupported && code != nvml::kFunctionNotFound;
    if (code != nvml::kOk && code != nvml::kNotFound) return;
    // It tells of those that worked since it was asked last, and returns 6 when nobody did: whoever holds the board and
    // is not among them did nothing, which is something else than not known.
    for (unsigned k = 0; k < data_.processes; ++k) data_.process[k].sm_percent = 0;
    if (code == nvml::kNotFound) return;
    for (unsigned i = 0; i < std::min<unsigned>(told, static_cast<unsigned>(usage.size())); ++i) {
        process_seen_us_ = std::max<std::uint64_t>(process_seen_us_, usage[i].at_us);
        for (unsigned k = 0; k < data_.processes; ++k)
            if (data_.process[k].pid == usage[i].pid && usage[i].sm <= 100)
                data_.process[k].sm_percent = static_cast<std::int32_t>(usage[i].sm);
    }
}

}  // namespace stoker
