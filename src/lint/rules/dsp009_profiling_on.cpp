#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp009(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        if (ds.root.find("autotuning") || ds.root.find("autotuning_config")) return;
        const auto tell = [&](const Node* enabled, const Node* at, const std::string& name) {
            if (!json_true(enabled)) return;
            Finding* finding =
                report.add(ds.part.source(), at->whole(), ds.address + "/" + name,
                           name + " is on: every step is measured, and the measurement waits for the GPU");
            if (!finding) return;
            finding->advice = "switch it off once the numbers are known";
            report.fix(finding, ds.part.source(), FixClass::safe, "switch it off", {{enabled->span, "false"}});
        };
        tell(ds.root.at({"flops_profiler", "enabled"}), ds.root.at({"flops_profiler", "enabled"}), "flops_profiler");
        tell(ds.root.find("wall_clock_breakdown"), ds.root.find("wall_clock_breakdown"), "wall_clock_breakdown");
        tell(ds.root.at({"comms_logger", "enabled"}), ds.root.at({"comms_logger", "enabled"}), "comms_logger");
    });
}

}  // namespace stoker::lint
