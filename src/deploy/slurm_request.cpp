#include "deploy/slurm_request.h"

#include <fmt/format.h>

namespace stoker {

std::vector<std::pair<std::string, std::string>> slurm_options(const SlurmRequest& request) {
    std::vector<std::pair<std::string, std::string>> options;
    const auto option = [&](const char* name, std::string value) { options.emplace_back(name, std::move(value)); };
    const auto ceil_of = [](std::int64_t value, std::int64_t part) { return (value + part - 1) / part; };
    const std::int64_t nodes = request.ranks == 1 ? 1 : request.nodes;
    const std::int64_t on_node = nodes > 0 ? request.ranks / nodes : 0;
    if (nodes > 0) option("nodes", std::to_string(nodes));
    option("ntasks", std::to_string(request.ranks));
    if (nodes > 0) option("ntasks-per-node", std::to_string(on_node));
    option("cpus-per-task", std::to_string(request.cpus));
    if (request.memory_mib > 0) {
        if (nodes > 0)
            option("mem", fmt::format("{}M", request.memory_mib * on_node));
        else
            option("mem-per-cpu", fmt::format("{}M", ceil_of(request.memory_mib, request.cpus)));
    }
    if (request.gpus > 0) {
        const std::string type = request.gpu_type.empty() ? "" : request.gpu_type + ":";
        if (nodes > 0)
            option("gres", fmt::format("gpu:{}{}", type, request.gpus * on_node));
        else
            option("gpus-per-task", fmt::format("{}{}", type, request.gpus));
    }
    if (request.one_switch) option("switches", "1");
    if (request.longest_s > 0) option("time", std::to_string(ceil_of(request.longest_s, 60)));
    return options;
}

}  // namespace stoker
