#include "observe/gpu/read_gpu.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

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

GpuReader::GpuReader(const NvmlCalls& calls, GpuCallStamp& stamp, nvml::Device device, NvmlRecorder recorder)
    : calls_(calls), stamp_(stamp), device_(device), recorder_(std::move(recorder)) {
    for (nvml::GpmSample& sample : samples_)
        if (calls_.gpm_alloc && calls_.gpm_metrics && calls_.gpm_sample) calls_.gpm_alloc(&sample);
}

GpuReader::~GpuReader() {
    for (nvml::GpmSample sample : samples_)
        if (sample && calls_.gpm_free) calls_.gpm_free(sample);
}

template <class... P, class... A>
int GpuReader::call(const char* name, int (*function)(P...), A... arguments) {
    if (!function) return nvml::kFunctionNotFound;
    const auto began = std::chrono::steady_clock::now();
    std::strncpy(stamp_.call, name, sizeof stamp_.call - 1);
    stamp_.started_us.store(monotonic_clock_us(), std::memory_order_release);
    const int code = function(arguments...);
    stamp_.started_us.store(0, std::memory_order_release);
    stamp_.calls.fetch_add(1, std::memory_order_relaxed);
    if (code == nvml::kGpuLost) lost_ = true;
    if (recorder_) {
        std::string words;
        // What is passed by value names the call; where it answers is of no interest.
        const auto add = [&words](auto argument) {
            if constexpr (std::is_integral_v<decltype(argument)>) words += fmt::format("{} ", argument);
        };
        (add(arguments), ...);
        if (!words.empty()) words.pop_back();
        recorder_(
            {name, words, code,
             std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count()});
    }
    return code;
}

void GpuReader::set(GpuMetric metric, int code, double value) {
    GpuValue& to = data_.values[index_of(metric)];
    to.code = code;
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
    nvml::GpmSupport support{.version = nvml::versioned(sizeof(nvml::GpmSupport), 1), .supported = 0};
    int code = call("nvmlGpmQueryDeviceSupport", calls_.gpm_support, device_, &support);
    if (code == nvml::kStructVersion) {
        support.version = 1;  // as the macro of the first headers had it
        code = call("nvmlGpmQueryDeviceSupport", calls_.gpm_support, device_, &support);
    }
    profiled_ = code == nvml::kOk && support.supported != 0 && samples_[0] && samples_[1];
}

void GpuReader::read_fields(std::vector<unsigned> fields) {
    std::vector<nvml::FieldValue> values(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
        values[i] = {};
        values[i].field = fields[i];
        // NVLink's fields take the number of a link; all bits: all of them.
        if (fields[i] == 138 || fields[i] == 139) values[i].scope = ~0u;
    }
    const int code =
        call("nvmlDeviceGetFieldValues", calls_.fields, device_, static_cast<int>(values.size()), values.data());
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

// Two samples, which have to be more than a tenth of a second apart.
void GpuReader::read_profile() {
    const std::int64_t now_us = monotonic_clock_us();
    if (!profiled_ || now_us - sampled_us_ < 150'000) return;
    const bool first = sampled_us_ == 0;
    std::swap(samples_[0], samples_[1]);
    const int taken = call("nvmlGpmSampleGet", calls_.gpm_sample, device_, samples_[1]);
    if (taken != nvml::kOk) {
        sampled_us_ = 0;  // the next pair begins anew
        return;
    }
    sampled_us_ = now_us;
    if (first) return;
    constexpr std::pair<unsigned, std::pair<M, double>> kProfile[] = {
        {1, {M::graphics_active, 0.01}},       {2, {M::sm_active, 0.01}},
        {3, {M::sm_occupancy, 0.01}},          {4, {M::int_active, 0.01}},
        {5, {M::tensor_active, 0.01}},         {10, {M::dram_active, 0.01}},
        {11, {M::fp64_active, 0.01}},          {12, {M::fp32_active, 0.01}},
        {13, {M::fp16_active, 0.01}},          {20, {M::pcie_sent_rate, kMiBps}},
        {21, {M::pcie_received_rate, kMiBps}}, {60, {M::nvlink_received_rate, kMiBps}},
        {61, {M::nvlink_sent_rate, kMiBps}},
    };
    const auto get = std::make_unique<nvml::GpmGet>();
    *get = {};
    get->version = 1;
    get->first = samples_[0], get->second = samples_[1];
    for (const auto& row : kProfile) get->metrics[get->count++].id = row.first;
    const int code = call("nvmlGpmMetricsGet", calls_.gpm_metrics, get.get());
    for (std::size_t i = 0; i < std::size(kProfile); ++i)
        set(kProfile[i].second.first, code == nvml::kOk ? get->metrics[i].result : code,
            get->metrics[i].value * kProfile[i].second.second);
}

void GpuReader::read_fast() {
    lost_ = false;
    const std::int64_t began = monotonic_clock_us();
    nvml::Utilization use{};
    const int code = call("nvmlDeviceGetUtilizationRates", calls_.utilization, device_, &use);
    set(M::utilization, code, use.gpu * 0.01);
    set(M::memory_copy_busy, code, use.memory * 0.01);
    read_memory();
    read_fields({74, 75, 76, 82, 83, 138, 139, 185, 186, 197, 198, 202, 204, 230, 269, 270, 271});
    unsigned celsius = 0;
    const int heat = call("nvmlDeviceGetTemperature", calls_.temperature, device_, 0u, &celsius);
    set(M::temperature_gpu, heat, celsius);
    nvml::Margin margin{.version = nvml::versioned(sizeof(nvml::Margin), 1), .celsius = 0};
    const int near = call("nvmlDeviceGetMarginTemperature", calls_.margin, device_, &margin);
    set(M::temperature_margin, near, margin.celsius);
    // Without it: what is left to the board's own slowdown.
    const GpuValue& slow = data_.values[index_of(M::limit_slowdown)];
    if (near != nvml::kOk && near != nvml::kGpuLost && heat == nvml::kOk && slow.status == GpuValueStatus::ok)
        set(M::temperature_margin, nvml::kOk, slow.value - celsius);
    // Boards before Ampere have neither of the two fields of power.
    for (const M power : {M::power_average, M::power_instant})
        if (data_.values[index_of(power)].status != GpuValueStatus::ok && power == M::power_average)
            set_uint(power, "nvmlDeviceGetPowerUsage", calls_.power, 1e-3);
    if (data_.values[index_of(M::energy)].status != GpuValueStatus::ok) {
        unsigned long long mj = 0;
        const int told = call("nvmlDeviceGetTotalEnergyConsumption", calls_.energy, device_, &mj);
        set(M::energy, told, is_blank(static_cast<double>(mj)) ? std::nan("") : static_cast<double>(mj) * 1e-3);
    }
    const std::pair<unsigned, M> clocks[] = {{nvml::kClockSm, M::clock_sm},
                                             {nvml::kClockGraphics, M::clock_graphics},
                                             {nvml::kClockMemory, M::clock_memory},
                                             {nvml::kClockVideo, M::clock_video}};
    for (const auto& pair : clocks) {
        unsigned mhz = 0;
        const int told = call("nvmlDeviceGetClockInfo", calls_.clock, device_, pair.first, &mhz);
        set(pair.second, told, mhz * kMHz);
    }
    unsigned long long mask = 0;
    const int held = call("nvmlDeviceGetCurrentClocksEventReasons", calls_.clock_reasons, device_, &mask);
    set(M::reasons, held, static_cast<double>(mask));
    const std::pair<unsigned long long, M> reasons[] = {
        {0x1, M::reason_idle},        {0x2, M::reason_app_clocks},   {0x4, M::reason_sw_power_cap},
        {0x8, M::reason_hw_slowdown}, {0x10, M::reason_sync_boost},  {0x20, M::reason_sw_thermal},
        {0x40, M::reason_hw_thermal}, {0x80, M::reason_power_brake}, {0x100, M::reason_display}};
    for (const auto& pair : reasons) set(pair.second, held, (mask & pair.first) != 0 ? 1 : 0);
    set_uint(M::performance_state, "nvmlDeviceGetPerformanceState", calls_.performance_state);
    set_uint(M::pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", calls_.link_width);
    set_uint(M::pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", calls_.link_generation);
    set_uint(M::pcie_replays, "nvmlDeviceGetPcieReplayCounter", calls_.replays);
    const GpuValue &sent = data_.values[index_of(M::nvlink_sent)],
                   &received = data_.values[index_of(M::nvlink_received)];
    if (sent.status == GpuValueStatus::ok && received.status == GpuValueStatus::ok) {
        const double bytes = sent.value + received.value;
        if (linked_us_ != 0 && bytes >= linked_bytes_ && sent.at_us > linked_us_)
            set(M::nvlink_rate, nvml::kOk,
                (bytes - linked_bytes_) / (static_cast<double>(sent.at_us - linked_us_) * 1e-6));
        linked_us_ = sent.at_us, linked_bytes_ = bytes;
    }
    read_profile();
    // A driver that answers 15 to this board answers it to all of its calls; one call that is not supported is none.
    data_.last_return = lost_ ? static_cast<int>(nvml::kGpuLost) : 0;
    data_.read_at_us = monotonic_clock_us();
    data_.collect_us = data_.read_at_us - began;
}

void GpuReader::read_processes() {
    unsigned us = 0, percent = 0;
    int code = call("nvmlDeviceGetEncoderUtilization", calls_.encoder, device_, &percent, &us);
    set(M::encoder, code, percent * 0.01);
    code = call("nvmlDeviceGetDecoderUtilization", calls_.decoder, device_, &percent, &us);
    set(M::decoder, code, percent * 0.01);

    constexpr std::size_t kMostAsked = 4096;
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
    data_.processes = std::min<unsigned>(count, kMostGpuProcesses);
    data_.processes_left_out = count - data_.processes;
    for (unsigned i = 0; i < data_.processes; ++i) {
        const nvml::ProcessInfo& from = processes_[i];
        data_.process[i] = {
            .pid = from.pid,
            .gpu_instance = from.gpu_instance == ~0u ? -1 : static_cast<std::int32_t>(from.gpu_instance),
            .sm_percent = -1,
            .unused = 0,
            .used_bytes = from.used_bytes >= 1ull << 62 ? -1 : static_cast<std::int64_t>(from.used_bytes)};
    }
    std::vector<nvml::ProcessUsage> usage(std::max<std::size_t>(100, count));
    unsigned told = static_cast<unsigned>(usage.size());
    if (call("nvmlDeviceGetProcessUtilization", calls_.process_usage, device_, usage.data(), &told, process_seen_us_) !=
        nvml::kOk)
        return;
    for (unsigned i = 0; i < std::min<unsigned>(told, static_cast<unsigned>(usage.size())); ++i) {
        process_seen_us_ = std::max<std::uint64_t>(process_seen_us_, usage[i].at_us);
        for (unsigned k = 0; k < data_.processes; ++k)
            if (data_.process[k].pid == usage[i].pid && usage[i].sm <= 100)
                data_.process[k].sm_percent = static_cast<std::int32_t>(usage[i].sm);
    }
}

void GpuReader::read_counted_memory_faults() {
    const M errors[2][2] = {{M::ecc_corrected, M::ecc_corrected_life}, {M::ecc_uncorrected, M::ecc_uncorrected_life}};
    for (unsigned type = 0; type < 2; ++type)
        for (unsigned life = 0; life < 2; ++life) {
            unsigned long long count = 0;
            const int code = call("nvmlDeviceGetTotalEccErrors", calls_.ecc_errors, device_, type, life, &count);
            set(errors[type][life], code, static_cast<double>(count));
        }
    nvml::RowBanks banks{};
    const int code = call("nvmlDeviceGetRowRemapperHistogram", calls_.row_banks, device_, &banks);
    set(M::banks_max, code, banks.max);
    set(M::banks_high, code, banks.high);
    set(M::banks_partial, code, banks.partial);
    set(M::banks_low, code, banks.low);
    set(M::banks_none, code, banks.none);
    if (data_.values[index_of(M::remapped_corrected)].status != GpuValueStatus::ok) {
        unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
        const int told = call("nvmlDeviceGetRemappedRows", calls_.remapped_rows, device_, &corrected, &uncorrected,
                              &pending, &failed);
        set(M::remapped_corrected, told, corrected);
        set(M::remapped_uncorrected, told, uncorrected);
        set(M::remap_pending, told, pending);
        set(M::remap_failed, told, failed);
    }
    std::vector<unsigned long long> pages(64);
    for (unsigned cause = 0; cause < 2; ++cause) {
        unsigned count = static_cast<unsigned>(pages.size());
        int told = call("nvmlDeviceGetRetiredPages", calls_.retired_pages, device_, cause, &count, pages.data());
        if (told == nvml::kTooSmall) told = nvml::kOk;  // the count is what is wanted
        set(cause == 0 ? M::retired_corrected : M::retired_uncorrected, told, count);
    }
    set_uint(M::retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus", calls_.retired_pending);
}

void GpuReader::read_links() {
    if (links_ == 0) return;
    constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS
    int there = 0, up = 0;
    for (unsigned link = 0; link < kMostLinks; ++link) {
        unsigned state = 0;
        const int code = call("nvmlDeviceGetNvLinkState", calls_.link_state, device_, link, &state);
        if (code == nvml::kGpuLost) return;
        if (code != nvml::kOk) break;
        ++there;
        up += state == 1 ? 1 : 0;
    }
    links_ = std::max(links_, there);
    if (links_ > 0) {
        set(M::nvlink_active, nvml::kOk, up);
        set(M::nvlink_expected, nvml::kOk, links_);
    }
    if (links_ <= 0 || data_.values[index_of(M::nvlink_replays)].status == GpuValueStatus::ok) return;
    const std::pair<unsigned, M> counters[] = {{0, M::nvlink_replays}, {1, M::nvlink_recoveries}, {3, M::nvlink_crc}};
    for (const auto& counter : counters) {
        double sum = 0;
        int told = nvml::kNotSupported;
        for (int link = 0; link < links_; ++link) {
            unsigned long long count = 0;
            if (call("nvmlDeviceGetNvLinkErrorCounter", calls_.link_errors, device_, static_cast<unsigned>(link),
                     counter.first, &count) != nvml::kOk)
                continue;
            told = nvml::kOk;
            sum += static_cast<double>(count);
        }
        set(counter.second, told, sum);
    }
}

void GpuReader::read_slow() {
    read_fields({142, 143, 144, 145, 161, 162, 163, 173});
    read_counted_memory_faults();
    read_links();
    unsigned now = 0, next = 0;
    int code = call("nvmlDeviceGetEccMode", calls_.ecc_mode, device_, &now, &next);
    set(M::ecc_mode, code, now);
    code = call("nvmlDeviceGetMigMode", calls_.mig_mode, device_, &now, &next);
    set(M::mig, code, now);
    set_uint(M::persistence, "nvmlDeviceGetPersistenceMode", calls_.persistence);
    set_uint(M::power_limit, "nvmlDeviceGetEnforcedPowerLimit", calls_.enforced_limit, 1e-3);
    set_uint(M::power_limit_default, "nvmlDeviceGetPowerManagementDefaultLimit", calls_.default_limit, 1e-3);
    code = call("nvmlDeviceGetPowerManagementLimitConstraints", calls_.limit_range, device_, &now, &next);
    set(M::power_limit_low, code, now * 1e-3);
    set(M::power_limit_high, code, next * 1e-3);
    nvml::Bar1 window{};
    code = call("nvmlDeviceGetBAR1MemoryInfo", calls_.bar1, device_, &window);
    set(M::bar1_size, code, static_cast<double>(window.total));
    set(M::bar1_used, code, static_cast<double>(window.used));
    nvml::Fabric fabric{};
    fabric.version = nvml::versioned(sizeof fabric, 3);
    code = call("nvmlDeviceGetGpuFabricInfoV", calls_.fabric, device_, &fabric);
    // State 0: this board has no fabric; 3: registered with it. Summary 0: not told, 1: healthy, 2: not.
    if (code == nvml::kOk && fabric.state == 0) code = nvml::kNotSupported;
    set(M::fabric_healthy, code, fabric.state == 3 && fabric.status == 0 && fabric.health_summary != 2 ? 1 : 0);
    // The first feature's state stands behind `supported`, the count and its code; the whole is some 2 KB.
    alignas(8) unsigned char licence[8192] = {};
    code = call("nvmlDeviceGetGridLicensableFeatures_v4", calls_.licence, device_, static_cast<void*>(licence));
    std::int32_t parts[4] = {};
    std::memcpy(parts, licence, sizeof parts);
    set(M::vgpu_licence, code, parts[0] != 0 && parts[1] > 0 ? parts[3] : 0);
}

std::vector<nvml::Device> GpuReader::instances() {
    std::vector<nvml::Device> found;
    unsigned on = 0, next = 0, most = 0;
    if (call("nvmlDeviceGetMigMode", calls_.mig_mode, device_, &on, &next) != nvml::kOk || on == 0) return found;
    if (call("nvmlDeviceGetMaxMigDeviceCount", calls_.mig_most, device_, &most) != nvml::kOk) return found;
    for (unsigned i = 0; i < std::min(most, 8u); ++i) {
        nvml::Device instance = nullptr;
        if (call("nvmlDeviceGetMigDeviceHandleByIndex", calls_.mig_device, device_, i, &instance) == nvml::kOk)
            found.push_back(instance);
    }
    return found;
}

}  // namespace stoker
