#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "deploy/local/local_driver.h"
#include "io/files.h"
#include "io/machine/machine.h"
#include "io/process.h"

namespace stoker {
namespace {

// The kernel module writes a file of "Key: value" lines for each GPU. It does not say how much memory there is.
std::vector<DeviceInfo> nvidia_devices(const std::string& root) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    std::error_code code;
    for (fs::directory_iterator it(root + "proc/driver/nvidia/gpus", code), end; !code && it != end; it.increment(code))
        files.push_back(it->path().string() + "/information");
    std::sort(files.begin(), files.end());  // by bus address, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts
    std::vector<DeviceInfo> devices;
    for (const std::string& file : files) {
        const auto text = read_file(file, 65536);
        if (!text) continue;
        DeviceInfo device;
        for (const std::string_view line : split_lines(*text)) {
            const std::size_t colon = line.find(':');
            if (colon == std::string_view::npos) continue;
            const std::string_view key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
            if (key == "Model") device.model = value;
            if (key == "GPU UUID") device.id = value;
            if (key == "Device Minor") device.file = "/dev/nvidia" + std::string(value);
        }
        // Until the first use of a GPU its UUID reads GPU-????????-...; its place in the list serves then.
        if (device.id.empty() || device.id.find('?') != std::string::npos) device.id = std::to_string(devices.size());
        devices.push_back(std::move(device));
    }
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
            .devices = nvidia_devices(root),
            .boot_id = boot_id()};
}

}  // namespace stoker
