// One board read through NVML, call by call, into the form that the agent reads. In the sampler's process alone.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/gpu/call_pace.h"
#include "observe/gpu/nvml_library.h"
#include "observe/gpu/sample_board.h"

namespace stoker {

// What was called, for a recording.
struct NvmlCallRecord {
    const char* call = "";
    std::string arguments;
    int code = 0;
    std::int64_t ns = 0, cpu_ns = 0;  // by the clock, and of the processor: what spins or computes costs both
};
using NvmlRecorder = std::function<void(const NvmlCallRecord&)>;

// Of calls for a board: microseconds in a second. Together with the agent's own work, a fifth of a percent of a core.
inline constexpr double kGpuCallsUsPerS = 2000;

class GpuReader {
public:
    // budget_us: of calls for one reading, as far as it can be kept (call_pace.h).
    GpuReader(const NvmlCalls& calls, GpuCallStamp& stamp, nvml::Device device, double budget_us = kGpuCallsUsPerS,
              NvmlRecorder recorder = {});
    ~GpuReader();
    GpuReader(const GpuReader&) = delete;
    GpuReader& operator=(const GpuReader&) = delete;

    // Who it is. Returns what the first call returned: a lost board answers nothing else.
    int read_identity(int index);
    void read_start();  // what does not change while the driver is loaded
    // What is due; `whole`: everything that is ever asked.
    void read(bool whole = false);
    // Of an instance (MIG) what belongs to the board is not asked.
    void leave_out_board() { part_ = true; }
    GpuSlotData& data() { return data_; }
    // What is asked together, how often it is asked on this board, and what it costs.
    struct Paced {
        std::string_view question;
        AskEvery wish;
        int every = 1;
        double cost_us = 0;
    };
    std::vector<Paced> paced() const;
    // Each field and each metric of GPM alone, so that a recording tells what each of them costs.
    void read_each_alone();
    // The instances of a divided GPU (MIG), as handles.
    std::vector<nvml::Device> instances();

private:
    template <class... P, class... A>
    int call(const char* name, int (*function)(P...), A... arguments);
    void set(GpuMetric metric, int code, double value);
    void set_uint(GpuMetric metric, const char* name, int (*function)(nvml::Device, unsigned*), double scale = 1);
    void read_fields(std::initializer_list<unsigned> fields);
    int get_fields(std::vector<nvml::FieldValue>& values);
    int get_profile(std::initializer_list<unsigned> metrics);
    void read_utilization();
    void read_memory();
    void read_temperature();
    void read_margin();
    void read_power();
    void read_energy();
    void read_clocks();
    void read_reasons();
    void read_performance_state();
    void read_profile();
    void read_profile_of_links();
    void read_heat_of_memory() { read_fields({82}); }
    void read_held_by_policy() { read_fields({74, 75, 76}); }
    void read_held_by_reason() { read_fields({269, 270, 271}); }
    void read_pcie_bytes() { read_fields({197, 198}); }
    void read_nvlink_bytes();
    void read_recovery() { read_fields({230}); }
    void read_pcie_link();
    void read_replays();
    void read_processes();
    void read_process_usage();
    void read_video();
    void read_slow();
    void read_links();
    void read_counted_memory_faults();

    struct Question {
        std::string_view name;
        AskEvery wish;
        void (GpuReader::*ask)();
        bool of_board = false;  // not of its instances
    };
    static std::span<const Question> questions();

    const NvmlCalls& calls_;
    GpuCallStamp& stamp_;
    nvml::Device device_;
    NvmlRecorder recorder_;
    GpuSlotData data_;
    CallPace pace_;
    std::uint64_t reading_ = 0;
    int every_ = 0;          // of what is being asked: readings until it is asked again
    bool answered_ = false;  // by what is being asked
    bool lost_ = false, part_ = false, profiled_ = false, old_memory_ = false, has_margin_ = true;
    nvml::GpmSample samples_[2] = {nullptr, nullptr};
    std::int64_t sampled_us_ = 0;
    bool pair_ = false;   // both samples are taken
    unsigned alone_ = 0;  // the field or metric that is asked for by itself, for a recording
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
