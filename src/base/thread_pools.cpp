#include "base/thread_pools.h"

#include <algorithm>

namespace stoker {

int planned_threads(std::int64_t cpu_milli, int gpus) {
    constexpr std::int64_t kMost = 1024;
    return gpus > 0 ? 1 : static_cast<int>(std::clamp<std::int64_t>(cpu_milli / 1000, 1, kMost));
}

std::map<std::string, std::string> thread_pool_environment(int threads, int gpus,
                                                           const std::map<std::string, std::string>& named) {
    std::map<std::string, std::string> result;
    const auto omp = named.find(std::string(kThreadPools[0].variable));
    const std::string usual = omp != named.end() ? omp->second : std::to_string(threads);
    for (const ThreadPoolName& pool : kThreadPools) {
        const std::string variable(pool.variable);
        const auto own = named.find(variable);
        result[variable] = own != named.end() ? own->second : usual;
    }
    if (const auto policy = named.find("OMP_WAIT_POLICY"); policy != named.end())
        result["OMP_WAIT_POLICY"] = policy->second;
    else if (gpus == 0 && usual != "1")
        result["OMP_WAIT_POLICY"] = "PASSIVE";
    return result;
}

}  // namespace stoker
