// NVIDIA's GPUs of this machine as the kernel module lists them, without its library.
#pragma once

#include <string>
#include <vector>

namespace stoker {

struct NvidiaGpu {
    std::string model;  // as the driver calls it: "NVIDIA H200"
    std::string uuid;   // empty until its first use
    std::string file;   // "/dev/nvidia0"; empty: not said
};
// Reads /proc/driver/nvidia/gpus below root: by bus address, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts. None without the
// module.
std::vector<NvidiaGpu> nvidia_gpus(const std::string& root = "/");

}  // namespace stoker
