// Whether the GPUs of a machine may take work, by policy: what the driver, its errors and the bus tell, held against
// data/gpu/health_policy.tsv. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/health.h"
#include "base/result.h"
#include "observe/gpu/gpu_view.h"

namespace stoker {

struct GpuHealthRule {
    std::string condition, repair, source;
    HealthVerdict verdict = HealthVerdict::fail;
    double least = 1;
    double hold_s = 0;  // below 0: for good
};
using GpuHealthPolicy = std::vector<GpuHealthRule>;

// The table that is built in; and one that somebody gives in its place, whose mistakes are told with their line.
const GpuHealthPolicy& usual_gpu_policy();
Result<GpuHealthPolicy> read_gpu_policy(std::string_view text, const std::string& name);

// One check for each thing that is wrong on a board; one that passed where nothing is. None: there is no driver, which
// is for `gpu-count` to tell.
std::vector<HealthCheck> judge_gpus(const GpuView& view, const GpuHealthPolicy& policy, const std::string& node);

// What fails, told when some of it did not at the look before: the same board with the same error is told once, until
// it was well between.
class FailingGpus {
public:
    // All that fails now; nothing where none of it is new.
    std::vector<HealthCheck> look(const std::vector<HealthCheck>& checks);

private:
    std::set<std::string> known_;
};

}  // namespace stoker
