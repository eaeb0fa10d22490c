#include <unistd.h>

#include <array>
#include <utility>

#include "deploy/local/local_driver.h"
#include "io/machine/machine.h"
#include "io/machine/nvidia_gpus.h"
#include "io/process.h"

namespace stoker {
namespace {

std::vector<DeviceInfo> devices_of(const std::string& root) {
    std::vector<DeviceInfo> devices;
    for (NvidiaGpu& gpu : nvidia_gpus(root))
        // One that has not been used yet has no UUID; its place in the list serves then.
        devices.push_back({.id = gpu.uuid.empty() ? std::to_string(devices.size()) : std::move(gpu.uuid),
                           .model = std::move(gpu.model),
                           .file = std::move(gpu.file)});
    return devices;
}

}  // namespace

std::vector<NodeInfo> complete_nodes(std::vector<NodeInfo> offered) {
    if (offered.empty()) offered.push_back(discover_local_node());
    for (NodeInfo& node : offered)
        if (node.boot_id.empty()) node.boot_id = boot_id();
    return offered;
}

NodeInfo discover_local_node(const std::string& root) {
    const Machine machine = discover_machine(root);
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') name = {"localhost"};
    return {.name = name.data(),
            .cpu_milli = std::int64_t{machine.usable_cores()} * 1000,
            .memory_bytes = static_cast<std::int64_t>(machine.usable_memory().value()),
            .devices = devices_of(root),
            .boot_id = boot_id()};
}

}  // namespace stoker
