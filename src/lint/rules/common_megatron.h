// The sizes that Megatron and its kin are started with.
#pragma once

#include <optional>

#include "lint/rules/common_layout.h"

namespace stoker::lint {

struct ParallelSizes {
    std::int64_t tensor = 1, pipeline = 1, context = 1;
    const LaunchOption* tensor_option = nullptr;
    bool known = false;  // all that are given are literal, and at least one is given
};
ParallelSizes parallel_sizes(const Launch& launch);

}  // namespace stoker::lint
