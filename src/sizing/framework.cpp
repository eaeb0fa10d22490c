#include "sizing/framework.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace stoker {
namespace {

using enum AttentionKernel;
constexpr std::array<FrameworkFamily, 14> kFamilies{{
    {"megatron-deepspeed", "megatron_deepspeed", unfused, false, true, false, true},
    {"megatron-bridge", "nemo", vendor, true, true, true, true},
    {"nemo", "nemo", vendor, true, true, true, true},
    {"megatron-core", "megatron", vendor, false, true, false, true},
    {"megatron", "megatron", unfused, false, true, false, true},
    {"nanotron", "nanotron", second, true, true, false, false},
    {"composer", "composer", first, false, false, false, false},
    {"llm-foundry", "composer", first, false, false, false, false},
    {"deepspeed", "zero3", second, false, false, false, false},
    {"fsdp", "fsdp", second, false, false, false, false},
    {"tensorflow", "tensorflow", unfused, false, true, false, false},
    {"mxnet", "tensorflow", unfused, false, true, false, false},
    {"paddle", "tensorflow", unfused, false, true, false, false},
    {"", "default", second, false, true, false, false},
}};

}  // namespace

const FrameworkFamily& framework_family(std::string_view framework) {
    const std::string name = lower(framework);
    for (const FrameworkFamily& family : kFamilies)
        if (name.find(family.word) != std::string::npos) return family;
    return kFamilies.back();
}

double family_constant(const Catalog& catalog, std::string_view what, const FrameworkFamily& family) {
    if (const Constant* own = catalog.constant(fmt::format("{}_{}", what, family.name))) return own->value;
    return catalog.constant_or_die(fmt::format("{}_default", what));
}

}  // namespace stoker
