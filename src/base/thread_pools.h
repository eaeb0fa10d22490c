// How many threads the libraries of a rank compute with. Each library has a pool and a variable of its own, and takes
// all processors of the machine where that is not set: several ranks then make each other slower by a factor of 5 and
// more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace stoker {

// A pool as its library's variable and stoker_torch call it. PyTorch's inter-op pool has no variable.
struct ThreadPoolName {
    std::string_view variable, measure;
};
inline constexpr ThreadPoolName kThreadPools[] = {{"OMP_NUM_THREADS", "torch_threads"},
                                                  {"OPENBLAS_NUM_THREADS", "openblas_threads"},
                                                  {"MKL_NUM_THREADS", "mkl_threads"},
                                                  {"BLIS_NUM_THREADS", "blis_threads"},
                                                  {"NUMEXPR_NUM_THREADS", "numexpr_threads"}};

// Threads that a rank computes with, as the plan has it: one for each whole processor of its own, where it computes on
// processors; one beside a GPU.
int planned_threads(std::int64_t cpu_milli, int gpus);

// The variables of all pools: what the run names is as it names it; the others are as its OMP_NUM_THREADS, or as
// planned. With several threads the waiting ones sleep (OMP_WAIT_POLICY): a PyTorch with OpenMP beside a BLAS of its
// own threads took twice as long where those of the one spun while the other computed (docs/measurements/explain.md).
std::map<std::string, std::string> thread_pool_environment(int threads, int gpus,
                                                           const std::map<std::string, std::string>& named);

}  // namespace stoker
