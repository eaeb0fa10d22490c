#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s036(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        if (container.init || !container.image.known() || names_device(workload) || is_node_agent(workload)) return;
        const std::string_view image = container.image.text;
        bool only_gpu = false;
        for (const std::string_view name : {"vllm/vllm-openai", "nvcr.io/nim/", "lmsysorg/sglang"})
            only_gpu |= contains_nocase(image, name);
        if (!only_gpu || contains_nocase(image, "cpu")) return;
        for (const WordList& command : commands_of(container))
            if (option_of(*command.words, {"--device"}).is("cpu")) return;
        report.add(container.image, container.address,
                   fmt::format("{} is made for GPUs, and the container asks for none", image));
    });
}

}  // namespace stoker::lint
