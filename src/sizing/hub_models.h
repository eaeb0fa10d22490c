// Models of the hub as transformers writes them and peft adapts them: what most people fine-tune, operator by operator.
#pragma once

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
// What transformers and peft write out between products: norms in FP32, operator by operator, and adapters in FP32
// beside a base in 16 bits (cast, dropout, scale, sum and cast again of all that goes in and comes out).
// Called once for each setup, when the family's factors are in. Whether it is such a model: catalogues of before
// November 2026 know none.
bool set_hub_models(const Workload& workload, const Catalog& catalog, TrainingSetup& setup);

}  // namespace stoker
