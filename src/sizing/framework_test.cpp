#include "sizing/framework.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// A name that is printed with versions and methods still finds its family; nobody's is the default.
TEST(FrameworkFamily, IsToldByAWordOfTheName) {
    EXPECT_EQ(framework_family("NVIDIA NeMo Framework Release 24.09").name, "nemo");
    EXPECT_EQ(framework_family("Megatron-DeepSpeed").name, "megatron_deepspeed");
    EXPECT_EQ(framework_family("Megatron-LM").name, "megatron");
    EXPECT_EQ(framework_family("HF Trainer FSDP; none / peft lora").name, "fsdp");
    EXPECT_EQ(framework_family("DeepSpeed ZeRO-3").name, "zero3");
    EXPECT_EQ(framework_family("").name, "default");
    EXPECT_EQ(framework_family("something else").name, "default");
}

// What was fitted for a family is used for it, and the default's for those without one of their own.
TEST(FrameworkFamily, ConstantsFallBackToTheDefault) {
    const auto catalog = Catalog::embedded();
    ASSERT_TRUE(catalog.ok());
    const FrameworkFamily& nemo = framework_family("nemo");
    EXPECT_EQ(family_constant(*catalog, "overlap_tensor", nemo), catalog->constant_or_die("overlap_tensor_nemo"));
    const FrameworkFamily none{"", "nobody", AttentionKernel::second, false, true, false, false};
    EXPECT_EQ(family_constant(*catalog, "overlap_tensor", none), catalog->constant_or_die("overlap_tensor_default"));
}

}  // namespace
}  // namespace stoker
