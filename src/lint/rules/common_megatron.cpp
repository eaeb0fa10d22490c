#include "lint/rules/common_megatron.h"

namespace stoker::lint {

ParallelSizes parallel_sizes(const Launch& launch) {
    ParallelSizes sizes;
    bool any = false, unknown = false;
    const auto take = [&](std::string_view name, std::int64_t& into) {
        const LaunchOption* option = launch.option(name);
        if (!option) return static_cast<const LaunchOption*>(nullptr);
        any = true;
        const auto count = option->value.as_int();
        if (!count || *count < 1)
            unknown = true;
        else
            into = *count;
        return option;
    };
    sizes.tensor_option = take("tensor-model-parallel-size", sizes.tensor);
    if (!sizes.tensor_option) sizes.tensor_option = take("model-parallel-size", sizes.tensor);
    take("pipeline-model-parallel-size", sizes.pipeline);
    take("context-parallel-size", sizes.context);
    sizes.known = any && !unknown && launch.trains() && !launch.open;
    return sizes;
}

}  // namespace stoker::lint
