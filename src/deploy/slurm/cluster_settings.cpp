#include "deploy/slurm/cluster_settings.h"

#include <cstdlib>

#include <fmt/format.h>

namespace stoker::slurm {

Capabilities capabilities_of(const std::map<std::string, std::string>& settings) {
    const auto value = [&](const char* key) {
        const auto found = settings.find(key);
        return found == settings.end() ? std::string() : found->second;
    };
    const auto named = [&](const char* key) { return !value(key).empty() && !value(key).ends_with("/none"); };
    const bool cgroups = value("TaskPlugin").find("cgroup") != std::string::npos;
    Capabilities can{.gang = true,
                     .follows_logs = true,
                     .limits_memory = cgroups && value("ConstrainRAMSpace") == "yes",
                     .isolates_devices = cgroups && value("ConstrainDevices") == "yes",
                     .kills_trees = true,
                     .signal_notice_s = 86400,
                     .queues = true,
                     .binds = true,
                     .topology = named("TopologyPlugin"),
                     .preempts = named("PreemptType")};
    can.keeps_history_s = std::strtod(value("MinJobAge").c_str(), nullptr);
    can.detail =
        fmt::format("Slurm {}, cluster {}, {}", value("SLURM_VERSION"), value("ClusterName"), value("ProctrackType"));
    return can;
}

}  // namespace stoker::slurm
