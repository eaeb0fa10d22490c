// GPUs of this machine as a table, for stoker gpu and stoker top.
#pragma once

#include <string>

#include "base/json.h"
#include "base/style.h"
#include "observe/gpu/gpu_owners.h"
#include "observe/gpu/gpu_view.h"

namespace stoker {

std::string gpu_table(const GpuView& view, const GpuOwners& owners, const Style& style);
std::string gpu_process_table(const GpuView& view, const GpuOwners& owners, const Style& style);
Json gpu_json(const GpuView& view, const GpuOwners& owners);
// Processes of all GPUs, to be looked up.
std::vector<std::uint32_t> gpu_pids(const GpuView& view);

}  // namespace stoker
