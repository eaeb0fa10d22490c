#include "lint/rules/common_cloud.h"
#include "lint/rules/common_scripts.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku011(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        if (resource.type != ResourceType::vm && resource.type != ResourceType::scale_set) return;
        const KnownSize* size = size_of(resource, report);
        if (!size || size->vendor != "NVIDIA" || !size->name.starts_with("Standard_")) return;
        const auto image = image_of(resource);
        if (!image || !is_plain_linux(*image)) return;
        const Value& data = resource.get(Attr::custom_data);
        if (data.unknown()) return;
        // Whatever in the folder may bring a driver: extensions, scripts, cloud-init, an image build, a tool that logs
        // in.
        if (beside.says(resource, {"NvidiaGpuDriver", "nvidia-driver", "cuda-driver", "cuda-toolkit", "nvidia-open",
                                   "CustomScript", "ubuntu-drivers", "nvidia-smi", "ansible", "remote-exec",
                                   "run-command", "cyclecloud", "packer", "gpu-driver", "cuda-keyring", "ssh "}))
            return;
        if (beside.any(resource, [](const Resource& each) {
                bool installs = false;
                for_each_part(each.file->outermost(), [&](const File& part) {
                    for (const Command& command : part.script.commands) installs |= driver_install(command) != nullptr;
                });
                return installs;
            }))
            return;
        if (data.known() && (contains_nocase(data.text, "nvidia") || contains_nocase(data.text, "cuda"))) return;
        if (beside.has_module_call(resource)) return;
        Finding* finding = report.add(
            image->at, resource.address,
            fmt::format("nothing brings a GPU driver to this {}: the image has none, and there is no driver extension",
                        size->name));
        if (finding)
            finding->advice =
                "add the NvidiaGpuDriverLinux extension, or take an HPC image (microsoft-dsvm:ubuntu-hpc)";
    });
}

}  // namespace stoker::lint
