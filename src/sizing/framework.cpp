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
constexpr FrameworkFamily graphs(std::string_view word) {
    return {word, "tensorflow", unfused, false, true, false, false, false, false, 0, 0, 0};
}
constexpr std::array<FrameworkFamily, 19> kFamilies{{
    // Of NeMo by name only: models of Hugging Face under FSDP2.
    {"automodel", "fsdp", second, false, false, false, false, false, false, 2, 3, 3},
    megatron_deepspeed("megatron-deepspeed"),
    megatron_deepspeed("megatron + deepspeed"),
    megatron_core("megatron-bridge"),
    megatron_core("nemo"),
    megatron_core("core r0."),
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
