// An image for a CUDA that the node's driver cannot run fails after the node was started and paid.
#include "readings/cuda_driver.h"

#include "readings/tool_test_help.h"

namespace stoker {
namespace {

std::string cuda_in(std::string_view image) {
    const auto found = cuda_of_image(image);
    return found ? found->text() : "";
}

TEST(CudaDriver, ImagesSayTheirCuda) {
    EXPECT_EQ(cuda_in("nvidia/cuda:12.4.1-base-ubuntu22.04"), "12.4");
    EXPECT_EQ(cuda_in("nvcr.io/nvidia/cuda:11.8.0-devel"), "11.8");
    EXPECT_EQ(cuda_in("registry.example:5000/team/pytorch:2.4.0-cuda12.4-cudnn9-runtime"), "12.4");
    EXPECT_EQ(cuda_in("x/train:v3-cu118"), "11.8");
    EXPECT_EQ(cuda_in("x/train:torch2.9-cuda13"), "13");
    EXPECT_EQ(cuda_in("x/train:cuda-12.1@sha256:0123"), "12.1");
    for (const char* silent :
         {"nvcr.io/nvidia/pytorch:24.05-py3", "registry.example:5000/cuda124/train", "nvidia/cuda:latest",
          "x/train:focus124", "x/train", "", "x/train:cu12", "x:cuda", "x:cuda-99999999999.1"})
        EXPECT_EQ(cuda_in(silent), "") << silent;
}

TEST(CudaDriver, LeastDriversAreKnown) {
    EXPECT_EQ(least_driver({12, 4})->driver, "525");
    EXPECT_EQ(least_driver({13, -1})->driver, "580");
    EXPECT_EQ(least_driver({10, 1})->driver, "418.39");
    EXPECT_FALSE(least_driver({99, 0}).has_value());
    EXPECT_TRUE(older_driver("470.182.03", "525"));
    EXPECT_TRUE(older_driver("418.38.1", "418.39"));
    EXPECT_FALSE(older_driver("525.60.13", "525"));
    EXPECT_FALSE(older_driver("1000.1", "580"));
}

ToolReport both(std::string_view driver, std::string_view cuda, std::string_view image) {
    const std::string smi =
        samples::replaced(samples::replaced(samples::kSmiNew, "535.161.08             Driver Version: 535.161.08",
                                            fmt::format("535.161.08             Driver Version: {}", driver)),
                          "CUDA Version: 12.2", fmt::format("CUDA Version: {}", cuda));
    const std::string pods = fmt::format(
        R"({{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "a"}}, "spec": {{"nodeName": "g", "containers": [
        {{"name": "c", "image": "{}", "resources": {{"limits": {{"nvidia.com/gpu": "1"}}}}}}]}}, "status": {{"phase": "Running"}}}})",
        image);
    auto report = read_tool_files({{"smi", smi}, {"pods", pods}}, {});
    EXPECT_TRUE(report.ok());
    return std::move(*report);
}

TEST(CudaDriver, TheImageIsHeldAgainstTheDriver) {
    const ToolReport old = both("470.182.03", "11.4", "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime");
    EXPECT_EQ(samples::verdict_of(old.readings[1], "cuda-driver"), HealthVerdict::fail);
    EXPECT_NE(samples::worst(old.readings[1], "cuda-driver")->detail.find("needs driver 525"), std::string::npos);
    EXPECT_EQ(samples::verdict_of(both("470.182.03", "11.4", "nvidia/cuda:12.4.1-base-ubuntu22.04").readings[1],
                                  "cuda-driver"),
              HealthVerdict::warn);
    const ToolReport minor = both("535.161.08", "12.2", "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime");
    EXPECT_EQ(samples::verdict_of(minor.readings[1], "cuda-driver"), HealthVerdict::pass);
    EXPECT_NE(samples::worst(minor.readings[1], "cuda-driver")->detail.find("PTX"), std::string::npos);
    EXPECT_EQ(samples::worst(both("535.161.08", "12.2", "vllm/vllm-openai:v0.6.3").readings[1], "cuda-driver"),
              nullptr);
}

// NCCL says what it was built with, and what the driver that it found runs.
TEST(CudaDriver, TheLogOfNcclToo) {
    const std::string smi =
        samples::replaced(samples::kSmiNew, "Driver Version: 535.161.08", "Driver Version: 470.182.03");
    const std::string log = "a:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n";
    auto report = read_tool_files({{"smi", smi}, {"log", log}}, {});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(samples::verdict_of(report->readings[1], "cuda-driver"), HealthVerdict::fail);
    report = read_tool_files({{"smi", smi}, {"log", "a:1:1 [0] NCCL INFO cudaDriverVersion 12040\n" + log}}, {});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(samples::worst(report->readings[1], "cuda-driver"), nullptr);
}

}  // namespace
}  // namespace stoker
