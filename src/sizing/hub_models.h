// Models of the hub as transformers writes them and peft adapts them: what most people fine-tune, operator by operator.
#pragma once

#include <cstdint>
#include <string_view>

#include "sizing/training.h"

namespace stoker {

// Adapters on every linear layer of a transformer block, or on the attention alone: r (d_in + d_out) each (arXiv
// 2106.09685).
double adapter_params(const Workload& workload);
// Loops of Hugging Face, and who fine-tunes what it loads
// from the hub with PyTorch, FSDP or DeepSpeed and names nothing else.
bool models_of_the_hub(std::string_view framework, bool fine_tuning);
// Kernels of their own take the place of what such models run operator by operator (Liger, Unsloth, fms-acceleration).
bool hub_kernels_replaced(std::string_view framework);
// How transformers writes the activation function of a family's feed-forward: as one kernel of PyTorch (gelu, its tanh
// approximation, silu, relu), or from separate operators (transformers 5.17, activations.py and the family's own
// model).
enum class ActivationCode : std::uint8_t {
    one_kernel,
    tanh_parts,     // NewGELUActivation: 0.5 x (1 + tanh(c (x + 0.044715 pow(x, 3))))
    tanh_own,       // BLOOM's: the same with products, and a backward pass of its own that keeps x alone
    erf_parts,      // ESM's: x 0.5 (1 + erf(x / sqrt(2)))
    sigmoid_parts,  // QuickGELUActivation, of CLIP: x sigmoid(1.702 x)
};
ActivationCode hub_activation(const ModelSpec& model);
// What that adds to a setup whose bytes are set.
void set_hub_activation(const ModelSpec& model, TrainingSetup& setup);
// Whether transformers calls a fused attention for the family (scaled_dot_product_attention, for encoders too since
// 2024) or writes scores out: biases on them, and models that nobody has moved over.
bool hub_attention_fused(const ModelSpec& model);
// Attention has one projection of queries, keys and values: under autocast its input is cast once, not three times.
bool hub_projects_together(const ModelSpec& model);
// What transformers and peft write out between products: norms in FP32, operator by operator, and adapters in FP32
// beside a base in 16 bits (cast, dropout, scale, sum and cast again of all that goes in and comes out).
// Called once for each setup, when the family's factors are in. Whether it is such a model: catalogues of before
// November 2026 know none.
bool set_hub_models(const Workload& workload, const Catalog& catalog, TrainingSetup& setup);

}  // namespace stoker
