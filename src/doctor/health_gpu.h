// How fast this machine's NVIDIA GPUs are, as checks: copies, products, a burn-in, the sum over all of them.
#pragma once

#include <string>
#include <vector>

#include "doctor/health_device.h"
#include "doctor/measure/gpu_speed.h"

namespace stoker {

// Measured in another process, which is ended at the deadline.
Result<GpuSpeeds> measure_gpus_apart(const GpuSpeedOptions& options, Deadline deadline);

struct GpuCheck {
    DeviceCheck part;                      // `expected` by the size
    std::optional<Expectation> by_model;   // where nothing else says: what boards of its model do
    std::optional<Expectation> by_others;  // or the other boards of this machine
};
// Which of the two a figure is held against: the other boards, which stand beside it, but where it falls short of its
// model all the same, as all of a machine do that is throttled.
std::optional<Expectation> by_model_or_others(const GpuCheck& check);
// One for each thing that is measured, of the board that is worst. Pure.
std::vector<GpuCheck> checks_of_gpus(const GpuSpeeds& speeds, const std::string& size, const std::string& node);
// It did not come back, or could not be begun.
HealthCheck gpus_not_measured(const Error& error, const std::string& node);

}  // namespace stoker
