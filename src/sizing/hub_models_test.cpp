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

TrainingSetup setup_of(const char* model, const char* framework, WorkloadKind kind, bool compiled = false,
                       Precision precision = Precision::bf16) {
    static const Catalog catalog = *Catalog::embedded();
    Workload w;
    w.kind = kind;
    w.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model(model))];
    w.framework = framework;
    w.precision = precision;
    w.compiled = compiled;
    w.data.sequence = 512;
    Device device;
    device.gpu = device.nvidia = true;
    device.matmul_flops.fill(271e12);
    device.peak_flops.fill(312e12);
    device.supports = ~0u;
    device.memory_bytes_per_s = 2e12;
    return *make_training_setup(w, catalog, device, false);
}

// GPT-2 in transformers takes twice the time and the memory of what one kernel would: its GELU is ten operators.
TEST(ModelsOfTheHub, WriteSomeActivationFunctionsFromParts) {
    constexpr auto training = WorkloadKind::training, tuning = WorkloadKind::fine_tuning;
    EXPECT_EQ(setup_of("gpt2", "transformers", training).activation_kept,
              12);                                                           // autocast: pow and what follows in FP32
    EXPECT_EQ(setup_of("gpt2", "transformers", tuning).activation_kept, 6);  // loaded in BF16: three elements
    EXPECT_EQ(setup_of("gpt2", "transformers", training, false, Precision::fp32).activation_kept, 12);
    for (const char* model : {"gpt-j-6b", "gpt-neo-1.3b", "phi-2"})
        EXPECT_GT(setup_of(model, "transformers", training).activation_backward, 0) << model;
    // One kernel: compiled, written by others, or another function.
    EXPECT_EQ(setup_of("gpt2", "transformers", training, true).activation_kept, 0);
    for (const char* framework : {"pytorch", "megatron", "nemo"})
        EXPECT_EQ(setup_of("gpt2", framework, training).activation_kept, 0) << framework;
    for (const char* model : {"llama-3-8b", "bert-base", "phi-4", "opt-1.3b", "t5-base"})
        EXPECT_EQ(setup_of(model, "transformers", training).activation_kept, 0) << model;
}

// BERT with 512 tokens was told twice the memory that it takes, and T5 half.
TEST(ModelsOfTheHub, KeepScoresOnlyWhereTheyAddToThem) {
    constexpr auto training = WorkloadKind::training;
    for (const char* model : {"bert-large", "roberta-large", "llama-3-8b", "gpt2"})
        EXPECT_TRUE(setup_of(model, "transformers", training).flash) << model;
    for (const char* model : {"t5-base", "deberta-v3-base", "bloom-7b1"})
        EXPECT_FALSE(setup_of(model, "transformers", training).flash) << model;
    EXPECT_TRUE(setup_of("bloom-7b1", "megatron", training).flash);  // its own kernels
    // In FP32 no scores are kept either, unless they are added to.
    EXPECT_EQ(setup_of("bert-large", "transformers", training, false, Precision::fp32).habits.score_bytes, 0);
    EXPECT_GT(setup_of("t5-base", "transformers", training, false, Precision::fp32).habits.score_bytes, 0);
}

// FP32 weights, a context around products: the residual stream is FP32, and each product keeps its own cast.
TEST(ModelsOfTheHub, AreTrainedFromTheStartUnderAutocast) {
    EXPECT_TRUE(setup_of("llama-3-8b", "transformers", WorkloadKind::training).autocast);
    EXPECT_FALSE(setup_of("llama-3-8b", "transformers", WorkloadKind::fine_tuning).autocast);
    EXPECT_FALSE(setup_of("llama-3-8b", "megatron", WorkloadKind::training).autocast);
    EXPECT_EQ(setup_of("llama-3-8b", "transformers", WorkloadKind::training).habits.checkpoint_elements, 2);
    // BertForMaskedLM has logits of every token, whatever is masked.
    EXPECT_EQ(setup_of("bert-base", "transformers", WorkloadKind::training).predicted_share, 1);
    EXPECT_LT(setup_of("bert-base", "megatron", WorkloadKind::training).predicted_share, 0.2);
}

}  // namespace
}  // namespace stoker
