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

// Megatron Core is printed in as many ways as it has releases; taken for the code of 2021 it is told twice too slow.
TEST(FrameworkFamily, MegatronCoreIsToldByItsReleasesToo) {
    for (const char* name : {"Megatron-LM (core r0.8)", "Megatron-LM (core v0.6.0)", "Megatron-LM core_r0.9.0",
                             "megatron-core v0.12", "Megatron Core", "Megatron-LM (core)", "mcore 0.7"})
        EXPECT_EQ(framework_family(name).name, "nemo") << name;
    EXPECT_EQ(framework_family("Megatron-LM 2021 (8aa4619)").name, "megatron");
}

// What wraps models of Hugging Face launches their operators one by one, whatever it is called.
TEST(FrameworkFamily, WrappersOfHuggingFaceAreHuggingFace) {
    for (const char* name : {"Hugging Face Trainer", "TRL SFTTrainer", "peft LORA", "axolotl", "LLaMA-Factory"})
        EXPECT_EQ(framework_family(name).name, "hugging_face") << name;
    EXPECT_EQ(framework_family("Accelerate FSDP").name, "fsdp");
    EXPECT_EQ(framework_family("Accelerate DeepSpeed ZeRO-3").name, "zero3");
    EXPECT_EQ(framework_family("Hugging Face Trainer (Optimum Habana)").name, "habana");
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
