#include "catalog/gpu_names.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// What plans, drivers, labels of nodes and types of Slurm call one GPU is one GPU; what says less takes any that fits.
TEST(GpuNames, OneGpuHasManyNames) {
    for (const char* asked : {"A100-SXM-80GB", "A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "a100", "A100", "a100_80gb",
                              "nvidia-a100-80gb", "A100-80GB"})
        for (const char* model : {"A100-SXM-80GB", "A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"})
            EXPECT_TRUE(names_gpu(asked, model)) << asked << " of " << model;
    EXPECT_TRUE(names_gpu("H100-SXM", "NVIDIA H100 80GB HBM3")) << "the driver does not say SXM";
    EXPECT_TRUE(names_gpu("h100", "NVIDIA-H100-80GB-HBM3"));
    EXPECT_TRUE(names_gpu("H100", "NVIDIA H100 NVL"));
    EXPECT_TRUE(names_gpu("t4", "Tesla T4"));
    EXPECT_TRUE(names_gpu("rtx_a6000", "NVIDIA RTX A6000"));
    EXPECT_TRUE(names_gpu("of-the-site", "of-the-site"));
}

TEST(GpuNames, AnotherOneIsAnother) {
    EXPECT_FALSE(names_gpu("A100-SXM-80GB", "A100-SXM4-40GB"));
    EXPECT_FALSE(names_gpu("A100-SXM-80GB", "NVIDIA A100 80GB PCIe"));
    EXPECT_FALSE(names_gpu("A100-SXM-80GB", "a100")) << "how much memory it has nobody said";
    EXPECT_FALSE(names_gpu("H100-SXM", "NVIDIA H100 PCIe"));
    EXPECT_FALSE(names_gpu("L40", "L40S"));
    EXPECT_FALSE(names_gpu("v100", "v100s"));
    EXPECT_FALSE(names_gpu("T4", "T4G"));
    EXPECT_FALSE(names_gpu("a100", "a100_3g.20gb"));
    EXPECT_FALSE(names_gpu("a100_3g.20gb", "a100"));
    EXPECT_FALSE(names_gpu("", "A100"));
}

}  // namespace
}  // namespace stoker
