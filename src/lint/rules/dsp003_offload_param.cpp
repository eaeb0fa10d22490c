#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp003(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const Node* offload = ds.root.at({"zero_optimization", "offload_param"});
        const auto stage = zero_stage(ds.root);
        if (offload_device(offload).empty() || !stage || *stage >= 3) return;
        Finding* finding =
            report.add(ds.part.source(), offload->whole(), ds.address + "/zero_optimization/offload_param",
                       "offload_param works with ZeRO stage 3 alone; at stage " + std::to_string(*stage) +
                           " the parameters stay on the GPU");
        if (!finding) return;
        finding->advice = "set stage 3, or take offload_param out";
        if (const Node* said = ds.root.at({"zero_optimization", "stage"}))
            report.fix(finding, ds.part.source(), FixClass::unsafe, "set stage 3", {{said->span, "3"}});
    });
}

}  // namespace stoker::lint
