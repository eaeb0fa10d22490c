// Whether a GPU that somebody asks for is the one that a machine or a cluster has: plans write the catalogue's names,
// drivers print their own, and clusters have short ones (a100, nvidia-h100-80gb).
#pragma once

#include <string_view>

namespace stoker {

// Less said is more allowed: A100 and a100_80gb are both names of an A100-SXM4-80GB, and not the other way round.
bool names_gpu(std::string_view asked, std::string_view model);

}  // namespace stoker
