// Most people fine-tune what they load from the hub with transformers and peft, operator by operator. Told as fast as
// fused kernels, their runs take a third longer than their plan says.
#include "sizing/hub_models.h"

#include <gtest/gtest.h>

#include "sizing/training_setup.h"

namespace stoker {
namespace {

TEST(ModelsOfTheHub, AreWhatLoopsOfHuggingFaceRunAndAdaptersThatNameNobody) {
    for (const char* name : {"HF Trainer FSDP; none / peft full", "Hugging Face transformers", "Accelerate FSDP"})
        EXPECT_TRUE(models_of_the_hub(name, false)) << name;
    for (const char* name : {"", "pytorch", "fsdp", "deepspeed"}) {
        EXPECT_TRUE(models_of_the_hub(name, true)) << name;
        EXPECT_FALSE(models_of_the_hub(name, false)) << name;
    }
    for (const char* name : {"torchtune LoRA", "litgpt", "megatron", "NeMo 24.07", "torchtitan", "Optimum Habana LoRA"})
        EXPECT_FALSE(models_of_the_hub(name, true)) << name;
}

TEST(ModelsOfTheHub, HaveTheirKernelsReplacedByName) {
    EXPECT_TRUE(hub_kernels_replaced("HF Trainer FSDP; foak-fast-kernels-liger / peft lora"));
    EXPECT_TRUE(hub_kernels_replaced("Unsloth"));
    EXPECT_FALSE(hub_kernels_replaced("HF Trainer FSDP; none / peft lora"));
}

double step_of(Method method, std::string framework, std::string targets = "") {
    static const Catalog catalog = *Catalog::embedded();
    Workload w;
    w.kind = WorkloadKind::fine_tuning;
    w.method = method;
    w.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model("llama-3-8b"))];
    w.framework = std::move(framework);
    w.precision = Precision::bf16;
    w.data.sequence = 4096;
    w.flash_attention = true;
    if (!targets.empty()) w.lora.targets = std::move(targets);
    Device device;
    device.gpu = device.nvidia = true;
    device.matmul_flops.fill(271e12);
    device.peak_flops.fill(312e12);
    device.supports = ~0u;
    device.sm_count = 108;
    device.memory_bytes = 85e9;
    device.memory_bytes_per_s = 2e12;
    device.launch_s = 5e-6;
    device.devices_per_node = 1;
    const TrainingSetup setup = *make_training_setup(w, catalog, device, false);
    ParallelLayout layout;
    layout.micro_batch = 4;
    layout.recompute = Recompute::full;
    TrainingEstimate out;
    evaluate(setup, layout, 1, out);
    return out.step_s;
}

TEST(ModelsOfTheHub, TakeLongerThanFusedOnes) {
    const double plain = step_of(Method::full, "transformers");
    EXPECT_GT(plain, 1.03 * step_of(Method::full, "transformers, liger"));
    EXPECT_LT(plain, 1.3 * step_of(Method::full, "transformers, liger"));
    // What nobody named is what people run.
    EXPECT_NEAR(step_of(Method::lora, "pytorch"), step_of(Method::lora, "transformers"), 1e-9);
}

TEST(ModelsOfTheHub, PayForEachMatrixThatHasAnAdapter) {
    const double all = step_of(Method::lora, "transformers");
    const double attention = step_of(Method::lora, "transformers", "attention");
    EXPECT_GT(all, 1.05 * attention);
    EXPECT_GT(attention, 0.6 * step_of(Method::full, "transformers"));
    EXPECT_LT(step_of(Method::lora, "transformers, unsloth"), all);
}

}  // namespace
}  // namespace stoker
