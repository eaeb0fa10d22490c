#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp004(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const Node* offload = ds.root.at({"zero_optimization", "offload_optimizer"});
        const auto stage = zero_stage(ds.root);
        if (offload_device(offload).empty() || !stage || *stage != 0) return;
        Finding* finding =
            report.add(ds.part.source(), offload->whole(), ds.address + "/zero_optimization/offload_optimizer",
                       "offload_optimizer without a ZeRO stage: nothing is partitioned, so nothing is moved");
        if (!finding) return;
        finding->advice = "set stage 1, 2 or 3";
        if (const Node* said = ds.root.at({"zero_optimization", "stage"}))
            report.fix(finding, ds.part.source(), FixClass::unsafe, "set stage 2", {{said->span, "2"}});
    });
}

}  // namespace stoker::lint
