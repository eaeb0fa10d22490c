// What is known of the GPUs as families of metrics: under Stoker's names, or under those of dcgm-exporter.
#pragma once

#include <string>
#include <vector>

#include "observe/gpu/allocations.h"
#include "observe/gpu/exposition.h"
#include "observe/gpu/gpu_assignments.h"
#include "observe/gpu/gpu_owners.h"
#include "observe/gpu/gpu_view.h"

namespace stoker {

std::vector<ExpositionFamily> native_gpu_families(const GpuView& view, const GpuOwners& owners,
                                                  const GpuAllocations& allocations = {},
                                                  const GpuAssignments& assignments = {}, double now_s = 0);

// Of an agent that tells a server (gpu_report.h).
struct AgentTelling {
    std::int64_t last_us = 0;  // of the wall clock, when it was heard last; 0: never
    std::uint64_t failed = 0;
    std::size_t waiting = 0;  // points that were not heard yet
    std::int64_t lost = 0;    // that were too many to be kept
    double clock_ahead_s = 0;
};
std::vector<ExpositionFamily> telling_families(const AgentTelling& telling);

struct DcgmOptions {
    bool lower_hostname = false;  // hostname, as main of 2026-05 has it, in place of Hostname
    bool names_4_6 = false;       // names of DCGM 4.6
    bool fixed_types = false;     // types as the figures behave, not as that exporter declares them
    bool all = false;             // beyond its default list
    std::string hostname;
};
std::vector<ExpositionFamily> dcgm_gpu_families(const GpuView& view, const DcgmOptions& options,
                                                const GpuAssignments& assignments = {});

// All families that native_gpu_families can ever tell, for the check of alerts and dashboards.
std::vector<std::string> native_gpu_family_names();

}  // namespace stoker
