// Names of models as hubs write them.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Without an owner in front, and without the words behind that say how it was tuned, when, and how its weights are
// packed: Llama-3.1-8B of meta-llama/Llama-3.1-8B-Instruct. What is left is the model as it was published, whatever the
// catalogue has.
std::string plain_model_name(std::string_view name);

}  // namespace stoker
