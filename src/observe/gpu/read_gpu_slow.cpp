// What changes only when a board fails or somebody sets it: asked once a minute.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "observe/gpu/read_gpu_call.h"

namespace stoker {

namespace {
using M = GpuMetric;
}  // namespace

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
