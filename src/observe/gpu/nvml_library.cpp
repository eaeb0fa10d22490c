#include "observe/gpu/nvml_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>

namespace stoker {

namespace {

class Symbols {
public:
    Symbols(void* handle, NvmlLibrary& library) : handle_(handle), library_(library) {}

    template <class F>
    void find(F*& call, const char* name, const char* fallback = nullptr) {
        void* at = ::dlsym(handle_, name);
        if (!at && fallback) {
            at = ::dlsym(handle_, fallback);
            if (at) library_.older.emplace_back(fallback);
        }
        if (!at) library_.missing.emplace_back(name);
        call = reinterpret_cast<F*>(at);
    }

private:
    void* handle_;
    NvmlLibrary& library_;
};

void find_all(Symbols& s, NvmlCalls& c) {
    s.find(c.init, "nvmlInit_v2", "nvmlInit");
    s.find(c.shutdown, "nvmlShutdown");
    s.find(c.driver_version, "nvmlSystemGetDriverVersion");
    s.find(c.nvml_version, "nvmlSystemGetNVMLVersion");
    s.find(c.cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion");
    s.find(c.count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
    s.find(c.by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
    s.find(c.uuid, "nvmlDeviceGetUUID");
    s.find(c.name, "nvmlDeviceGetName");
    s.find(c.vbios, "nvmlDeviceGetVbiosVersion");
    s.find(c.serial, "nvmlDeviceGetSerial");
    // The form of PciInfo is that of version 3 alone; the others end before the long bus id.
    s.find(c.pci, "nvmlDeviceGetPciInfo_v3");
    s.find(c.minor, "nvmlDeviceGetMinorNumber");
    s.find(c.mig_mode, "nvmlDeviceGetMigMode");
    s.find(c.mig_most, "nvmlDeviceGetMaxMigDeviceCount");
    s.find(c.mig_device, "nvmlDeviceGetMigDeviceHandleByIndex");
    s.find(c.gpu_instance, "nvmlDeviceGetGpuInstanceId");
    s.find(c.compute_instance, "nvmlDeviceGetComputeInstanceId");
    s.find(c.utilization, "nvmlDeviceGetUtilizationRates");
    s.find(c.encoder, "nvmlDeviceGetEncoderUtilization");
    s.find(c.decoder, "nvmlDeviceGetDecoderUtilization");
    s.find(c.memory, "nvmlDeviceGetMemoryInfo");
    s.find(c.memory2, "nvmlDeviceGetMemoryInfo_v2");
    s.find(c.bar1, "nvmlDeviceGetBAR1MemoryInfo");
    s.find(c.temperature, "nvmlDeviceGetTemperature");
    s.find(c.threshold, "nvmlDeviceGetTemperatureThreshold");
    s.find(c.margin, "nvmlDeviceGetMarginTemperature");
    s.find(c.power, "nvmlDeviceGetPowerUsage");
    s.find(c.enforced_limit, "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit");
    s.find(c.default_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
    s.find(c.limit_range, "nvmlDeviceGetPowerManagementLimitConstraints");
    s.find(c.energy, "nvmlDeviceGetTotalEnergyConsumption");
    s.find(c.clock, "nvmlDeviceGetClockInfo");
    s.find(c.max_clock, "nvmlDeviceGetMaxClockInfo");
    s.find(c.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
    s.find(c.performance_state, "nvmlDeviceGetPerformanceState");
    s.find(c.persistence, "nvmlDeviceGetPersistenceMode");
    s.find(c.link_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    s.find(c.link_width, "nvmlDeviceGetCurrPcieLinkWidth");
    s.find(c.max_link_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    s.find(c.max_link_width, "nvmlDeviceGetMaxPcieLinkWidth");
    s.find(c.replays, "nvmlDeviceGetPcieReplayCounter");
    s.find(c.ecc_mode, "nvmlDeviceGetEccMode");
    s.find(c.ecc_errors, "nvmlDeviceGetTotalEccErrors");
    s.find(c.remapped_rows, "nvmlDeviceGetRemappedRows");
    s.find(c.row_banks, "nvmlDeviceGetRowRemapperHistogram");
    s.find(c.retired_pages, "nvmlDeviceGetRetiredPages");
    s.find(c.retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus");
    s.find(c.link_state, "nvmlDeviceGetNvLinkState");
    s.find(c.link_errors, "nvmlDeviceGetNvLinkErrorCounter");
    s.find(c.fabric, "nvmlDeviceGetGpuFabricInfoV");
    s.find(c.licence, "nvmlDeviceGetGridLicensableFeatures_v4");
    s.find(c.fields, "nvmlDeviceGetFieldValues");
    s.find(c.processes, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2");
    if (!c.processes) s.find(c.processes1, "nvmlDeviceGetComputeRunningProcesses");
    s.find(c.process_usage, "nvmlDeviceGetProcessUtilization");
    s.find(c.gpm_support, "nvmlGpmQueryDeviceSupport");
    s.find(c.gpm_alloc, "nvmlGpmSampleAlloc");
    s.find(c.gpm_free, "nvmlGpmSampleFree");
    s.find(c.gpm_sample, "nvmlGpmSampleGet");
    s.find(c.gpm_metrics, "nvmlGpmMetricsGet");
    s.find(c.event_set, "nvmlEventSetCreate");
    s.find(c.event_types, "nvmlDeviceGetSupportedEventTypes");
    s.find(c.register_events, "nvmlDeviceRegisterEvents");
    // The first version of the wait fills a shorter structure.
    s.find(c.wait_event, "nvmlEventSetWait_v2");
}

}  // namespace

Result<NvmlLibrary> open_nvml() {
    std::vector<std::string> places = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                                       "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                       "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                       "/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1"};
    if (const char* named = std::getenv("STOKER_NVML_LIBRARY")) places = {named};
    std::string last;
    for (const std::string& place : places) {
        void* const handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            if (last.empty()) last = ::dlerror();
            continue;
        }
        NvmlLibrary library;
        library.path = place;
        Symbols symbols(handle, library);
        find_all(symbols, library.calls);
        if (library.calls.init && library.calls.count && library.calls.by_index) return library;
        ::dlclose(handle);
        return Error(ErrorKind::unsupported, place + " is no NVML: it has no nvmlInit, count or handle");
    }
    // The linker begins with the name as well.
    if (last.starts_with(places.front() + ": ")) last.erase(0, places.front().size() + 2);
    return Error(ErrorKind::not_found, places.front() + " cannot be opened: " + last, {},
                 "install NVIDIA's driver, or give the container its libraries (--gpus all, or the runtime class "
                 "nvidia); STOKER_NVML_LIBRARY names another place");
}

std::string nvml_return_text(int code) {
    switch (code) {
        case nvml::kOk: return "ok";
        case nvml::kUninitialised: return "NVML is not initialised";
        case nvml::kInvalid: return "an invalid argument";
        case nvml::kNotSupported: return "not supported";
        case nvml::kNoPermission: return "no permission: /dev/nvidia* is not for this user or container";
        case nvml::kNotFound: return "not found";
        case nvml::kDriverNotLoaded: return "the driver is not loaded: modprobe nvidia";
        case nvml::kTimeout: return "timed out";
        case nvml::kFunctionNotFound: return "the library has no such function";
        case 14: return "the InfoROM is damaged";
        case nvml::kGpuLost: return "the GPU is lost: it fell off the bus or cannot be reached";
        case nvml::kResetRequired: return "the GPU has to be reset";
        case 17: return "blocked by the operating system";
        case nvml::kVersionMismatch:
            return "library and kernel module are of different versions: the driver was updated and not reloaded, "
                   "restart the machine";
        case nvml::kStructVersion: return "the version of the structure is not known to it";
        default: return fmt::format("NVML error {}", code);
    }
}

}  // namespace stoker
