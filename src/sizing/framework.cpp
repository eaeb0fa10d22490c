#include "sizing/framework.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace stoker {
namespace {

using enum AttentionKernel;
constexpr FrameworkFamily megatron_deepspeed(std::string_view word) {
    return {word, "megatron_deepspeed", unfused, false, true, false, true, true, false, 0, 1, 0};
}
// Megatron Core with Transformer Engine: NeMo, Megatron-Bridge, and Megatron-LM since its core has releases (2023).
constexpr FrameworkFamily megatron_core(std::string_view word) {
    return {word, "nemo", vendor, true, true, true, true, true, true, 0, 1, 1};
}
constexpr FrameworkFamily composer(std::string_view word) {
    return {word, "composer", first, false, false, false, false, false, false, 2, 3, 3};
}
// Models and loops of Hugging Face, whoever wraps them: operators launched one by one from Python, through autocast.
constexpr FrameworkFamily hugging_face(std::string_view word) {
    return {word, "hugging_face", second, false, true, false, false, false, false, 0, 3, 0};
}
constexpr FrameworkFamily graphs(std::string_view word) {
    return {word, "tensorflow", unfused, false, true, false, false, false, false, 0, 0, 0};
}
constexpr std::array<FrameworkFamily, 37> kFamilies{{
    // Of NeMo by name only: models of Hugging Face under FSDP2.
    {"automodel", "fsdp", second, false, false, false, false, false, false, 2, 3, 3},
    megatron_deepspeed("megatron-deepspeed"),
    megatron_deepspeed("megatron + deepspeed"),
    megatron_core("megatron-bridge"),
    megatron_core("nemo"),
    megatron_core("core r0."),
    megatron_core("core v0."),
    megatron_core("core_r0."),
    megatron_core("core_v0."),
    megatron_core("core 0."),
    megatron_core("(core"),
    megatron_core("mcore"),
    megatron_core("megatron core"),
    // FSDP2 with tensor and pipeline parallelism by DTensor: reductions in FP32, sequence parallel (its
    // parallelize.py).
    {"torchtitan", "torchtitan", second, true, true, false, false, true, true, 3, 3, 3, "selective"},
    megatron_core("primus"),  // AMD's: Megatron-LM on ROCm, unless it says torchtitan
    {"megatron-core", "nemo", vendor, false, true, false, true, true, false, 0, 1, 0},  // with its arguments' defaults
    {"megatron", "megatron", unfused, false, true, false, true, true, true, 0, 1, 0},
    {"nanotron", "nanotron", second, true, true, false, false, true, false, 0, 1, 0},
    composer("composer"),
    composer("llm-foundry"),
    {"deepspeed", "zero3", second, false, false, false, false, false, false, 1, 3, 3},
    {"fsdp", "fsdp", second, false, false, false, false, false, false, 2, 3, 3},
    // Graphs of Gaudi's compiler, whatever wraps the model.
    {"habana", "habana", second, false, true, false, false, false, false, 0, 3, 0},
    hugging_face("hugging"),
    hugging_face("transformers"),
    hugging_face("accelerate"),
    hugging_face("trainer"),
    hugging_face("peft"),
    hugging_face("trl"),
    hugging_face("axolotl"),
    hugging_face("factory"),
    hugging_face("unsloth"),
    hugging_face("swift"),
    graphs("tensorflow"),
    graphs("mxnet"),
    graphs("paddle"),
    {"", "default", second, false, true, false, false, false, false, 0, 3, 0},
}};

}  // namespace

const FrameworkFamily& framework_family(std::string_view framework) {
    const std::string name = lower(framework);
    if (name == "megatron") return framework_family("nemo");  // as a workload file has it: of today
    for (const FrameworkFamily& family : kFamilies)
        if (name.find(family.word) != std::string::npos) return family;
    return kFamilies.back();
}

double family_constant(const Catalog& catalog, std::string_view what, const FrameworkFamily& family) {
    if (const Constant* own = catalog.constant(fmt::format("{}_{}", what, family.name))) return own->value;
    return catalog.constant_or_die(fmt::format("{}_default", what));
}

}  // namespace stoker
