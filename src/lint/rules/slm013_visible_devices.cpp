#include "lint/rules/common_layout.h"

namespace stoker::lint {

void check_slm013(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    const auto devices = batch_devices(*batch);
    if (!devices || devices->count < 2) return;
    const EnvVar* visible = nullptr;
    int settings = 0;
    for_each_part(file, [&](const File& part) {
        for (const EnvVar& variable : part.environment)
            if (variable.name == "CUDA_VISIBLE_DEVICES") {
                visible = &variable;
                ++settings;
            }
    });
    if (settings != 1 || !visible->value.known() || visible->value.text.empty()) return;  // several: a split is meant
    std::int64_t count = 1;
    for (const char c : visible->value.text) {
        if (c == ',')
            ++count;
        else if (c < '0' || c > '9')
            return;
    }
    if (count >= devices->count) return;
    Finding* finding = report.add(visible->value, script_address(*batch) + "#visible",
                                  "CUDA_VISIBLE_DEVICES shows " + std::to_string(count) + " of the " +
                                      std::to_string(devices->count) + " GPUs that the job asks for: the others idle");
    if (!finding) return;
    report.relate(finding, *devices->value.source, devices->value.span, "GPUs per node");
    finding->advice = "take it out: Slurm sets it, or ask for fewer GPUs";
}

}  // namespace stoker::lint
