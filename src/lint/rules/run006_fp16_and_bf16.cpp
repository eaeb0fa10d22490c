#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_run006(const File& file, Report& report) {
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (!launch.trains()) return;
        const LaunchOption* fp16 = launch.option("fp16");
        const LaunchOption* bf16 = launch.option("bf16");
        if (!option_is_on(fp16) || !option_is_on(bf16)) return;
        if (fp16->value.unknown() || bf16->value.unknown()) return;
        Finding* finding = report.add(*launch.source, bf16->span, address + "#precision",
                                      "both fp16 and bf16 are on: the trainer refuses to start");
        if (!finding) return;
        report.relate(finding, *launch.source, fp16->span, "fp16");
        finding->advice = "keep bf16 on Ampere and newer, fp16 on older GPUs";
    });
}

}  // namespace stoker::lint
