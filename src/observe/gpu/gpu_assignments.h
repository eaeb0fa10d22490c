// Whom a GPU was given to by whoever hands GPUs out on this machine: kubelet (its PodResources API) or Slurm (the files
// that a prolog writes for dcgm-exporter). Whether they use it is another question, answered by its processes
// (gpu_owners.h). Read beside the scrapes and kept with its age: what cannot be read any more stays, and grows old.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/gpu/gpu_view.h"

namespace stoker {

struct GpuAssignment {
    std::string device;                      // as its source names it: a UUID, "nvidia0", an index, "0.1"
    std::string name_space, pod, container;  // of kubelet
    std::string claim;                       // of dynamic resource allocation
    std::string job;                         // of Slurm
    bool shared = false;                     // one of several turns on the same device (time slicing, MPS)
    friend bool operator==(const GpuAssignment&, const GpuAssignment&) = default;
};

// v1.ListPodResourcesResponse, encoded; devices of `nvidia.com/` resources and of NVIDIA's driver for claims.
Result<std::vector<GpuAssignment>> read_pod_resources(std::string_view message);
// One file for each GPU ("0") or instance of one ("0.7"), with a job in each line.
Result<std::vector<GpuAssignment>> read_job_files(const std::string& folder);
bool is_assigned(const GpuAssignment& assignment, const GpuDevice& device);

// What one source told last.
struct AssignmentSource {
    std::string name;  // "kubelet", "slurm"
    bool up = false;
    std::optional<double> read_at_s;  // monotonic, of the last answer
    std::string problem;              // why it is not up
    std::vector<GpuAssignment> assignments;
};
struct GpuAssignments {
    std::vector<AssignmentSource> sources;
    // Of a device all that hold it, each once.
    std::vector<const GpuAssignment*> of(const GpuDevice& device) const;
};

struct AssignmentOptions {
    std::string kubelet_socket, job_folder;  // empty: that source is not asked
};
inline constexpr const char* kKubeletSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";
// May take ten seconds, where kubelet hangs. What `before` knew stays where nothing new is told.
GpuAssignments look_at_assignments(const AssignmentOptions& options, const GpuAssignments& before, double now_s);

}  // namespace stoker
