#include "io/machine/nvidia_gpus.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "io/files.h"

namespace stoker {

// A file of "Key: value" lines for each GPU. It does not say how much memory there is.
std::vector<NvidiaGpu> nvidia_gpus(const std::string& root) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    std::error_code code;
    for (fs::directory_iterator it(root + "proc/driver/nvidia/gpus", code), end; !code && it != end; it.increment(code))
        files.push_back(it->path().string() + "/information");
    std::sort(files.begin(), files.end());
    std::vector<NvidiaGpu> gpus;
    for (const std::string& file : files) {
        const auto text = read_file(file, 65536);
        if (!text) continue;
        NvidiaGpu gpu;
        for (const std::string_view line : split_lines(*text)) {
            const std::size_t colon = line.find(':');
            if (colon == std::string_view::npos) continue;
            const std::string_view key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
            if (key == "Model") gpu.model = value;
            // Until the first use it reads GPU-????????-...
            if (key == "GPU UUID" && value.find('?') == std::string_view::npos) gpu.uuid = value;
            if (key == "Device Minor") gpu.file = "/dev/nvidia" + std::string(value);
        }
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

}  // namespace stoker
