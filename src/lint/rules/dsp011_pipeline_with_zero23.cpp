#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp011(const Bundle& bundle, Report& report) {
    for (const File* script : bundle.files)
        for_each_launch(*script, [&](const File&, const Launch& launch, const std::string&) {
            const LaunchOption* stages = launch.option("pipeline-model-parallel-size");
            if (!stages) stages = launch.option("pipe-parallel-size");
            const LaunchOption* config = launch.option("deepspeed-config");
            if (!stages || !config || literal_int(stages->value).value_or(1) < 2 || !config->value.known() ||
                launch.option("no-pipeline-parallel"))
                return;
            const std::string_view name = config->value.text.substr(config->value.text.rfind('/') + 1);
            for (const File* file : bundle.files)
                for_each_deepspeed(*file, [&](const DeepSpeedFile& ds) {
                    if (file_name_of(ds.part.outermost()) != name && !(ds.part.host && file == script)) return;
                    const auto stage = zero_stage(ds.root);
                    if (!stage || *stage < 2) return;
                    const Node* at = ds.root.at({"zero_optimization", "stage"});
                    if (!at) return;
                    Finding* finding =
                        report.add(ds.part.source(), at->whole(), ds.address + "/zero_optimization/stage",
                                   "ZeRO stage " + std::to_string(*stage) +
                                       " and pipeline stages exclude each other: DeepSpeed's pipeline "
                                       "engine stops with an assertion");
                    if (!finding) return;
                    report.relate(finding, *launch.source, stages->span, "pipeline stages");
                    finding->advice = "use stage 1 with pipeline parallelism";
                });
        });
}

}  // namespace stoker::lint
