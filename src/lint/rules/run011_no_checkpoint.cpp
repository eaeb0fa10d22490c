#include <array>

#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_run011(const File& file, Report& report) {
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (!launch.trains() || launch.open || !launch.program.present()) return;
        // Of programs whose defaults we know: Megatron's pretrain_*.py write nothing without --save.
        const std::string_view program = launch.program.text.substr(launch.program.text.rfind('/') + 1);
        if (!program.starts_with("pretrain_") || !program.ends_with(".py")) return;
        if (!launch.option("num-layers") && !launch.option("tensor-model-parallel-size") &&
            !launch.option("train-iters") && !launch.option("train-samples"))
            return;
        for (const LaunchOption& option : launch.options)
            for (const std::string_view word :
                 {"save", "checkpoint", "ckpt", "mock-data", "dry-run", "skip-train", "eval-only"})
                if (option.name.find(word) != std::string_view::npos) return;
        for (const std::string_view steps : {"train-iters", "max-steps", "exit-interval", "exit-duration-in-mins"}) {
            const LaunchOption* option = launch.option(steps);
            if (!option) continue;
            if (!option->value.known() || option->value.as_int().value_or(1000000) <= 100) return;
        }
        for (const std::string_view word : {"benchmark", "profile", "test"})
            if (mentions(file, word) && file.path().find(word) != std::string::npos) return;
        Finding* finding =
            report.add(*launch.source, launch.word, address + "#checkpoint",
                       "a pretraining run without --save keeps nothing: an eviction or a fault on any node "
                       "loses all of it");
        if (finding) finding->advice = "give --save and --save-interval; every 30 to 60 minutes is usual";
    });
}

}  // namespace stoker::lint
