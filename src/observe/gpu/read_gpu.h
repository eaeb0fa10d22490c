// One board read through NVML, call by call, into the form that the agent reads. In the sampler's process alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "observe/gpu/nvml_library.h"
#include "observe/gpu/sample_board.h"

namespace stoker {

// What was called, for a recording.
struct NvmlCallRecord {
    const char* call = "";
    std::string arguments;
    int code = 0;
    std::int64_t ns = 0;
};
using NvmlRecorder = std::function<void(const NvmlCallRecord&)>;

class GpuReader {
public:
    GpuReader(const NvmlCalls& calls, GpuCallStamp& stamp, nvml::Device device, NvmlRecorder recorder = {});
    ~GpuReader();
    GpuReader(const GpuReader&) = delete;
    GpuReader& operator=(const GpuReader&) = delete;

    // Who it is. Returns what the first call returned: a lost board answers nothing else.
    int read_identity(int index);
    void read_start();      // what does not change while the driver is loaded
    void read_fast();       // each second
    void read_processes();  // each ten seconds
    void read_slow();       // each minute
    GpuSlotData& data() { return data_; }
    // The instances of a divided GPU (MIG), as handles.
    std::vector<nvml::Device> instances();

private:
    template <class... P, class... A>
    int call(const char* name, int (*function)(P...), A... arguments);
    void set(GpuMetric metric, int code, double value);
    void set_uint(GpuMetric metric, const char* name, int (*function)(nvml::Device, unsigned*), double scale = 1);
    void read_fields(std::vector<unsigned> fields);
    void read_profile();
    void read_memory();
    void read_links();
    void read_counted_memory_faults();

    const NvmlCalls& calls_;
    GpuCallStamp& stamp_;
    nvml::Device device_;
    NvmlRecorder recorder_;
    GpuSlotData data_;
    bool lost_ = false, profiled_ = false, old_memory_ = false;
    nvml::GpmSample samples_[2] = {nullptr, nullptr};
    std::int64_t sampled_us_ = 0;
    std::uint64_t process_seen_us_ = 0;
    std::vector<nvml::ProcessInfo> processes_ = std::vector<nvml::ProcessInfo>(64);
    // Of the last reading, for rates.
    std::int64_t linked_us_ = 0;
    double linked_bytes_ = 0;
    int links_ = -1;  // that the board has; not known yet
};

// Whether a figure that a driver gave can be true: no blank of DCGM's, no percentage over 100, no temperature of a
// star.
bool plausible_gpu_value(GpuMetric metric, double value);

}  // namespace stoker
