// The part of NVIDIA's libnvidia-ml.so.1 that is used, declared here: a machine without the CUDA toolkit has no nvml.h,
// and the library is opened when stoker runs. Sizes and offsets are those of the bindings that NVIDIA publishes
// (nvidia-ml-py); tests/e2e/gpu_test.py compares each with them, and calls the same double through both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::nvml {

using Device = struct DeviceHandle*;
using EventSet = struct EventSetHandle*;
using GpmSample = struct GpmSampleHandle*;

// nvmlReturn_t: those on which somebody acts differently.
enum Return : int {
    kOk = 0,
    kUninitialised = 1,
    kInvalid = 2,
    kNotSupported = 3,
    kNoPermission = 4,
    kNotFound = 6,  // also: no process used the GPU since
    kTooSmall = 7,  // ask again with the count that it gave
    kDriverNotLoaded = 9,
    kTimeout = 10,
    kLibraryNotFound = 12,
    kFunctionNotFound = 13,  // also what is said here of a symbol that the library lacks
    kGpuLost = 15,
    kResetRequired = 16,
    kVersionMismatch = 18,  // library and kernel module
    kStructVersion = 25
};

inline constexpr unsigned versioned(std::size_t size, unsigned version) {
    return static_cast<unsigned>(size) | version << 24;
}

struct PciInfo {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct Utilization {
    unsigned gpu, memory;
};
struct Memory {
    unsigned long long total, free, used;
};
struct Memory2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct Bar1 {
    unsigned long long total, free, used;
};
struct ProcessInfo1 {  // before driver 510
    unsigned pid;
    unsigned long long used_bytes;
};
struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;  // ~0: not told
    unsigned gpu_instance, compute_instance;
};
struct ProcessUsage {
    unsigned pid;
    unsigned long long at_us;
    unsigned sm, memory, encoder, decoder;  // percent
};
struct FieldValue {
    unsigned field, scope;
    long long at_us, latency_us;
    int type, result;
    union {
        double real;
        unsigned small;
        unsigned long long large;
        long long signed_large;
        int signed_small;
        unsigned short tiny;
    } value;
};
struct EventData {
    Device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
struct RowBanks {
    unsigned max, high, partial, low, none;
};
struct Margin {
    unsigned version;
    int celsius;
};
struct Fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health_mask;
    unsigned char health_summary;
};
struct GpmSupport {
    unsigned version, supported;
};
struct GpmMetric {
    unsigned id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
};
// The library of API 11 knows 98 metrics, that of 13 has 333 and the same version number: room for all, and no more
// than 98 are asked for.
struct GpmGet {
    unsigned version, count;
    GpmSample first, second;
    GpmMetric metrics[333];
};

static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(Memory) == 24 && sizeof(Memory2) == 40 && sizeof(Bar1) == 24 && sizeof(Utilization) == 8);
static_assert(sizeof(ProcessInfo1) == 16 && sizeof(ProcessInfo) == 24 && sizeof(ProcessUsage) == 32);
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, result) == 28 && offsetof(FieldValue, value) == 32);
static_assert(sizeof(EventData) == 32 && sizeof(RowBanks) == 20 && sizeof(Margin) == 8 && sizeof(Fabric) == 40);
static_assert(sizeof(GpmMetric) == 40 && sizeof(GpmSupport) == 8 && sizeof(GpmGet) == 13344);

enum FieldType : int { kDouble = 0, kUint = 1, kUlong = 2, kUlongLong = 3, kLongLong = 4, kInt = 5, kUshort = 6 };
inline constexpr unsigned long long kEventXid = 8;
inline constexpr unsigned kClockSm = 1, kClockGraphics = 0, kClockMemory = 2, kClockVideo = 3;

}  // namespace stoker::nvml
