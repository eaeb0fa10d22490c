// How names are compared: people write nd96isr-h100-v5, NVIDIA A100 80GB and East US for what the tables spell
// otherwise.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// Lower case, without '-', '_', '.', '/' and spaces: "Llama-3.1 8B" and "llama_31_8b" are one name.
std::string fold_name(std::string_view name);
// The same with the points of decimal numbers kept: opt-1.3b is not opt-13b.
std::string fold_model(std::string_view name);
// The same, also without the "Standard_" that Azure puts before most sizes.
std::string fold_vm_size(std::string_view name);
// The same, also without the vendor in front: "NVIDIA Tesla T4" is "t4".
std::string fold_accelerator(std::string_view name);

// The known name that `word` was most likely meant to be. Left-out characters count half, since people shorten names
// more than they invent letters ("ND96_H100" for Standard_ND96isr_H100_v5). Ties: the first.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& known);

// Edit distance of folded names in which a character that is missing from `word` costs 1 and any other edit 2.
int name_distance(std::string_view word, std::string_view name);

// " (did you mean X?)" or nothing: the end of a not-found message.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace stoker
