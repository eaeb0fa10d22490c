// Which precision a workload takes on a device. A file that names one means it on any device; a default is the first of
// its order that the device runs, so that no machine is refused for what nobody asked for.
#pragma once

#include "sizing/device.h"
#include "workload/workload.h"

namespace stoker {

Precision precision_on(const Workload& workload, const Device& device);
Precision kv_precision_with(const Workload& workload, Precision weights);

// Why a default took this precision rather than its first: "fp16: T4 has no bf16 units". Empty where it took the first.
std::string why_precision(const Workload& workload, Precision taken, const Accelerator* accelerator);

}  // namespace stoker
