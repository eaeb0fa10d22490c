#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp013(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const Node* power = ds.root.at({"fp16", "initial_scale_power"});
        const auto value = json_int(power);
        if (!value || *value <= 24) return;
        Finding* finding = report.add(ds.part.source(), power->whole(), ds.address + "/fp16/initial_scale_power",
                                      "the loss scale starts at 2^" + std::to_string(*value) +
                                          ": the first steps overflow and are skipped until it has come down");
        if (!finding) return;
        finding->advice = "16 is the default";
        report.fix(finding, ds.part.source(), FixClass::safe, "start at 2^16", {{power->span, "16"}});
    });
}

}  // namespace stoker::lint
