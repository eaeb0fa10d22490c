#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp006(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const Node* zero = ds.root.find("zero_optimization");
        const auto stage = zero_stage(ds.root);
        if (!zero || !zero->is_object() || !stage || *stage >= 3) return;
        for (const Node& child : children(zero)) {
            if (!child.key.starts_with("stage3_")) continue;
            Finding* finding = report.add(
                ds.part.source(), child.whole(), ds.address + "/zero_optimization/" + std::string(child.key),
                std::string(child.key) + " is read at stage 3 alone; the stage here is " + std::to_string(*stage));
            if (!finding) continue;
            finding->advice = "take it out, or set stage 3";
            report.fix(finding, ds.part.source(), FixClass::safe, "take it out", {{property_removal(child), ""}});
        }
    });
}

}  // namespace stoker::lint
