#include "lint/rules/common_layout.h"

namespace stoker::lint {

void check_slm014(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    const Directive* gres = batch_option(*batch, "gres");
    const Directive* per_node = batch_option(*batch, "gpus-per-node");
    if (!gres || !per_node || !gres->value.known() || !per_node->value.known()) return;
    const auto a = gpu_count(gres->value.text, true), b = gpu_count(per_node->value.text, false);
    if (!a || !b || *a == *b) return;
    Finding* finding = report.add(
        per_node->value, script_address(*batch) + "#gpus",
        "--gres asks for " + std::to_string(*a) + " GPUs per node, --gpus-per-node for " + std::to_string(*b));
    if (!finding) return;
    report.relate(finding, *gres->value.source, gres->value.span, "--gres");
    finding->advice = "keep one of the two";
}

}  // namespace stoker::lint
