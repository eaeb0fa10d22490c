// Which driver a CUDA needs, and which CUDA an image was built for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "readings/tool_output.h"

namespace stoker {

struct CudaVersion {
    int major = 0;
    int minor = -1;  // -1: not said
    std::string text() const;
};
// "12.4", "12.4.1", "12".
std::optional<CudaVersion> cuda_version(std::string_view text);
// By its tag: nvidia/cuda:12.4.1-base, pytorch:2.4.0-cuda12.4-cudnn9, vllm:cu124. Nothing: the name does not say.
std::optional<CudaVersion> cuda_of_image(std::string_view image);
// NVIDIA's own images hold cuda-compat.
bool brings_cuda_compat(std::string_view image);

struct CudaDriver {
    std::string_view driver, source, as_of;
};
// The least driver of data/observe/cuda_drivers.tsv; nothing for a CUDA that it does not know.
std::optional<CudaDriver> least_driver(const CudaVersion& cuda);
// "470.182.03" before "525.60": numbers, part by part.
bool older_driver(std::string_view driver, std::string_view least);

// Adds a check to each reading whose needs the drivers of the readings do not meet.
void compare_drivers(std::vector<ToolReading>& readings);

}  // namespace stoker
