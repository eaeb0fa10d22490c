// The machine that Stoker runs on: what it has, what of it this process may use, and how fast it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

struct Machine {
    std::string model;         // "AMD EPYC 9V33X 96-Core Processor"; empty when the kernel does not say
    std::string architecture;  // "x86_64", "aarch64"
    int logical_cores = 1;     // what the kernel runs on
    int physical_cores = 1;
    int sockets = 1;
    double mhz = 0;  // the highest of the current clocks; 0 when unknown
    std::vector<std::string>
        extensions;  // those that matter to matrix work, in the kernel's words: avx2, fma, avx512f, amx_bf16
    Bytes memory;
    Bytes last_level_cache;             // of one socket or complex; 0 when unknown
    std::optional<double> cpu_limit;    // cores, by cgroup
    std::optional<Bytes> memory_limit;  // by cgroup
    int allowed_cores = 1;              // by affinity

    // Cores and memory that this process can really use, limits applied. At least 1 core.
    int usable_cores() const;
    Bytes usable_memory() const;
    bool has(const std::string& extension) const;
};

// Reads /proc and /sys below root; what cannot be read keeps its default.
Machine discover_machine(const std::string& root = "/");

struct Spread {
    double min = 0, median = 0, max = 0;
    int repeats = 0;
};
struct MachineSpeed {
    std::string kernel;  // "avx512f", "avx2" or "portable": the instructions used
    int threads = 1;
    Spread matmul_flops;  // FLOP/s of a square fp32 matrix product, packing included, all threads
    Spread triad_bytes;   // bytes/s of a[i] = b[i] + s * c[i] in fp64, counted as STREAM does: 24 bytes an element
};
// Runs all usable cores, for under 20 seconds, or 2 when quick. The best of the repeats is what the machine can do; the
// spread tells how busy it was.
MachineSpeed measure_machine(const Machine& machine, bool quick = false);

struct CoreSpeed {
    double matmul_flops = 0;   // FLOP/s, fp32; the best of the repeats
    double triad_bytes = 0;    // bytes/s, as in MachineSpeed
    double share_of_core = 1;  // that this thread got while it measured: less is a neighbour's
    int processor = -1;        // it was pinned to; -1: it could not be
};
// One thread on one processor, by its own processor time: what others run beside costs it no time, though it still
// shares caches and memory with them. For a busy machine, and for a fifth of a second or so.
CoreSpeed measure_core(const Machine& machine, double seconds);

namespace machine_detail {
// C (rows x columns) += A (rows x depth) times B (depth x columns), all row by row without gaps. kernel: as in
// MachineSpeed.
void multiply(const std::string& kernel, int rows, int columns, int depth, const float* a, const float* b, float* c);
std::vector<std::string> kernels_here();  // those this processor can run, best first; "portable" is always last
}  // namespace machine_detail

}  // namespace stoker
