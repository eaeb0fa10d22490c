#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp001(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const Node* fp16 = ds.root.at({"fp16", "enabled"});
        const Node* bf16 = ds.root.at({"bf16", "enabled"});
        if (!bf16) bf16 = ds.root.at({"bfloat16", "enabled"});
        if (!json_true(fp16) || !json_true(bf16)) return;
        Finding* finding = report.add(ds.part.source(), bf16->whole(), ds.address + "/bf16/enabled",
                                      "fp16 and bf16 are both enabled: DeepSpeed refuses the configuration");
        if (!finding) return;
        report.relate(finding, ds.part.source(), fp16->whole(), "fp16");
        finding->advice = "keep bf16 on Ampere and newer, fp16 on older GPUs";
        report.fix(finding, ds.part.source(), FixClass::unsafe, "switch fp16 off", {{fp16->span, "false"}});
    });
}

}  // namespace stoker::lint
