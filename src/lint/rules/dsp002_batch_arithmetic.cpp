#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp002(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        if (json_true(ds.root.at({"elasticity", "enabled"}))) return;
        const Node* all = ds.root.find("train_batch_size");
        const Node* steps = ds.root.find("gradient_accumulation_steps");
        const auto batch = json_int(all), micro = json_int(ds.root.find("train_micro_batch_size_per_gpu"));
        const auto accumulate = json_int(steps);
        if (!batch || (!micro && !accumulate)) return;
        if ((steps && !accumulate) || *batch < 1 || micro.value_or(1) < 1 || accumulate.value_or(1) < 1) return;
        const std::int64_t rank = micro.value_or(1) * accumulate.value_or(1);
        if (*batch % rank == 0) return;
        Finding* finding =
            report.add(ds.part.source(), all->whole(), ds.address + "/train_batch_size",
                       "train_batch_size " + std::to_string(*batch) + " is not a multiple of " + std::to_string(rank) +
                           " (micro batch x accumulation steps): no number of GPUs makes it come out, and "
                           "DeepSpeed stops with an assertion");
        if (finding) finding->advice = "give two of the three and let DeepSpeed work out the third";
    });
}

}  // namespace stoker::lint
