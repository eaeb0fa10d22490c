#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

namespace {

const Node* auto_value(const Node& node, int depth) {
    if (node.is_scalar()) return node.text == "auto" && node.key != "stages" ? &node : nullptr;
    if (depth > 6) return nullptr;
    for (const Node& child : children(&node))
        if (const Node* found = auto_value(child, depth + 1)) return found;
    return nullptr;
}

}  // namespace

void check_dsp012(const Bundle& bundle, Report& report) {
    for (const File* script : bundle.files)
        for_each_launch(*script, [&](const File&, const Launch& launch, const std::string&) {
            // The Trainer of transformers takes the file by --deepspeed; --deepspeed_config is DeepSpeed's own.
            const LaunchOption* config = launch.option("deepspeed-config");
            if (launch.launcher != Launcher::deepspeed || !config || !config->value.known()) return;
            const std::string_view name = config->value.text.substr(config->value.text.rfind('/') + 1);
            for (const File* file : bundle.files)
                for_each_deepspeed(*file, [&](const DeepSpeedFile& ds) {
                    if (file_name_of(ds.part.outermost()) != name) return;
                    const Node* at = auto_value(ds.root, 0);
                    if (!at) return;
                    Finding* finding =
                        report.add(ds.part.source(), at->whole(), ds.address + "/auto",
                                   "\"auto\" is filled in by transformers and Accelerate; DeepSpeed itself "
                                   "takes it as a text");
                    if (finding) report.relate(finding, *launch.source, config->span, "read here by DeepSpeed itself");
                });
        });
}

}  // namespace stoker::lint
