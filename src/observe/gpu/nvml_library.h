// libnvidia-ml.so.1, opened when it is needed. Used in the sampler's process alone: a call may hang for ever, and no
// deadline helps against a thread that waits in the kernel.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "observe/gpu/nvml_abi.h"

namespace stoker {

// Each symbol under its newest name; where the library has only an older one of the same form, that one. null: neither.
struct NvmlCalls {
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*driver_version)(char*, unsigned) = nullptr;
    int (*nvml_version)(char*, unsigned) = nullptr;
    int (*cuda_version)(int*) = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*by_index)(unsigned, nvml::Device*) = nullptr;
    int (*uuid)(nvml::Device, char*, unsigned) = nullptr;
    int (*name)(nvml::Device, char*, unsigned) = nullptr;
    int (*vbios)(nvml::Device, char*, unsigned) = nullptr;
    int (*serial)(nvml::Device, char*, unsigned) = nullptr;
    int (*pci)(nvml::Device, nvml::PciInfo*) = nullptr;
    int (*minor)(nvml::Device, unsigned*) = nullptr;
    int (*mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
    int (*mig_most)(nvml::Device, unsigned*) = nullptr;
    int (*mig_device)(nvml::Device, unsigned, nvml::Device*) = nullptr;
    int (*gpu_instance)(nvml::Device, unsigned*) = nullptr;
    int (*compute_instance)(nvml::Device, unsigned*) = nullptr;
    int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
    int (*encoder)(nvml::Device, unsigned*, unsigned*) = nullptr;
    int (*decoder)(nvml::Device, unsigned*, unsigned*) = nullptr;
    int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
    int (*memory2)(nvml::Device, nvml::Memory2*) = nullptr;
    int (*bar1)(nvml::Device, nvml::Bar1*) = nullptr;
    int (*temperature)(nvml::Device, unsigned, unsigned*) = nullptr;
    int (*threshold)(nvml::Device, unsigned, unsigned*) = nullptr;
    int (*margin)(nvml::Device, nvml::Margin*) = nullptr;
    int (*power)(nvml::Device, unsigned*) = nullptr;
    int (*enforced_limit)(nvml::Device, unsigned*) = nullptr;
    int (*default_limit)(nvml::Device, unsigned*) = nullptr;
    int (*limit_range)(nvml::Device, unsigned*, unsigned*) = nullptr;
    int (*energy)(nvml::Device, unsigned long long*) = nullptr;
    int (*clock)(nvml::Device, unsigned, unsigned*) = nullptr;
    int (*max_clock)(nvml::Device, unsigned, unsigned*) = nullptr;
    int (*clock_reasons)(nvml::Device, unsigned long long*) = nullptr;
    int (*performance_state)(nvml::Device, unsigned*) = nullptr;
    int (*persistence)(nvml::Device, unsigned*) = nullptr;
    int (*link_generation)(nvml::Device, unsigned*) = nullptr;
    int (*link_width)(nvml::Device, unsigned*) = nullptr;
    int (*max_link_generation)(nvml::Device, unsigned*) = nullptr;
    int (*max_link_width)(nvml::Device, unsigned*) = nullptr;
    int (*replays)(nvml::Device, unsigned*) = nullptr;
    int (*ecc_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
    int (*ecc_errors)(nvml::Device, unsigned, unsigned, unsigned long long*) = nullptr;
    int (*remapped_rows)(nvml::Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
    int (*row_banks)(nvml::Device, nvml::RowBanks*) = nullptr;
    int (*retired_pages)(nvml::Device, unsigned, unsigned*, unsigned long long*) = nullptr;
    int (*retired_pending)(nvml::Device, unsigned*) = nullptr;
    int (*link_state)(nvml::Device, unsigned, unsigned*) = nullptr;
    int (*link_errors)(nvml::Device, unsigned, unsigned, unsigned long long*) = nullptr;
    int (*fabric)(nvml::Device, nvml::Fabric*) = nullptr;
    int (*licence)(nvml::Device, void*) = nullptr;
    int (*fields)(nvml::Device, int, nvml::FieldValue*) = nullptr;
    int (*processes)(nvml::Device, unsigned*, nvml::ProcessInfo*) = nullptr;
    int (*processes1)(nvml::Device, unsigned*, nvml::ProcessInfo1*) = nullptr;
    int (*process_usage)(nvml::Device, nvml::ProcessUsage*, unsigned*, unsigned long long) = nullptr;
    int (*gpm_support)(nvml::Device, nvml::GpmSupport*) = nullptr;
    int (*gpm_alloc)(nvml::GpmSample*) = nullptr;
    int (*gpm_free)(nvml::GpmSample) = nullptr;
    int (*gpm_sample)(nvml::Device, nvml::GpmSample) = nullptr;
    int (*gpm_metrics)(nvml::GpmGet*) = nullptr;
    int (*event_set)(nvml::EventSet*) = nullptr;
    int (*event_types)(nvml::Device, unsigned long long*) = nullptr;
    int (*register_events)(nvml::Device, unsigned long long, nvml::EventSet) = nullptr;
    int (*wait_event)(nvml::EventSet, nvml::EventData*, unsigned) = nullptr;
};

struct NvmlLibrary {
    NvmlCalls calls;
    std::string path;
    std::vector<std::string> missing, older;  // symbols that are absent; those whose older name was taken
};
// The path of STOKER_NVML_LIBRARY, else where drivers put it. not_found: in none of these places.
Result<NvmlLibrary> open_nvml();

// What a return code means and what to do about it, in words.
std::string nvml_return_text(int code);

}  // namespace stoker
