// What code bases differ in, as far as the cost model tells them apart: how much of the communication they hide, what
// their Python costs per layer, which attention they call, what they fuse. Families, told by words in the framework's
// name; the numbers are constants of the catalogue with the family's name behind (launch_factor_nemo), and what a
// family has no constant for is the default's (launch_factor_default).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace stoker {

enum class AttentionKernel : std::uint8_t { unfused, first, second, vendor };

struct FrameworkFamily {
    std::string_view word;  // in lower case, somewhere in the framework's name
    std::string_view name;  // of the family: what constants end with
    // Fused attention that the code base had in its years: none, FlashAttention 1 in Triton (2022), FlashAttention 2
    // (July 2023, arXiv 2307.08691), or the vendor's own (cuDNN through Transformer Engine).
    AttentionKernel attention;
    bool sequence_parallel;      // on wherever tensor parallelism is
    bool fp32_gradients;         // accumulated and reduced in fp32
    bool distributed_optimizer;  // ZeRO-1 unless it is switched off
    bool some_layers;            // recompute can be had for some of the layers; else for all or none
    bool divides;                // layers and matrices over ranks: tensor, pipeline, context parallelism
    bool interleaves;            // several chunks of layers on each stage of a pipeline
    // Stages of ZeRO that the code base has, and the one that it takes where nothing is said.
    std::uint8_t zero_least, zero_most, zero_usual;
    std::string_view recompute_usual = {};  // where nothing is said; empty: what is needed
};
// The first whose word the name has; the last, "default", for all others.
const FrameworkFamily& framework_family(std::string_view framework);

// The constant `what`_FAMILY, else `what`_default.
double family_constant(const Catalog& catalog, std::string_view what, const FrameworkFamily& family);

}  // namespace stoker
