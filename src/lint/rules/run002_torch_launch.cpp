#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_run002(const File& file, Report& report) {
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (launch.launcher != Launcher::torch_launch) return;
        Finding* finding =
            report.add(*launch.source, launch.word, address,
                       "torch.distributed.launch is deprecated: PyTorch prints a FutureWarning that names "
                       "torchrun");
        if (finding) finding->advice = "start with torchrun; the program reads LOCAL_RANK from its environment";
    });
}

}  // namespace stoker::lint
