// What a node has, against what it or its size declares: GPUs, processors, memory, InfiniBand ports, NVMe disks. For
// doctor/health_check alone.
#pragma once

#include <optional>
#include <vector>

#include "doctor/health_check.h"
#include "io/machine/machine.h"
#include "observe/health_judge.h"

namespace stoker {

struct DeviceCheck {
    HealthCheck check;  // without `measured`: finished as it is
    std::optional<Expectation> expected;
};
std::vector<DeviceCheck> look_at_parts(const HealthTarget& target, const Machine& machine, HealthLevel level,
                                       Deadline deadline);

}  // namespace stoker
