// The image's CUDA knows no code for the GPU that the pod is sent to.
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

struct Img002Gpu {
    std::string_view word, name;
    int major, minor;
};
// First CUDA with the architecture: sm_80, sm_90 (CUDA release notes 11.0, 11.8), sm_100 (12.8).
constexpr Img002Gpu kImg002[] = {
    {"b200", "B200", 12, 8}, {"b300", "B300", 12, 8}, {"h100", "H100", 11, 8},
    {"h200", "H200", 11, 8}, {"a100", "A100", 11, 0},
};

std::optional<std::pair<int, int>> img002_version(std::string_view text) {
    int major = 0, minor = 0;
    const auto first = std::from_chars(text.data(), text.data() + text.size(), major);
    if (first.ec != std::errc{} || first.ptr == text.data() + text.size() || *first.ptr != '.') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, text.data() + text.size(), minor);
    if (second.ec != std::errc{} || major < 7 || major > 30) return std::nullopt;
    return std::pair(major, minor);
}

// nvidia/cuda:11.3.1-base, pytorch:1.9.0-cuda10.2-cudnn7.
std::optional<std::pair<int, int>> img002_cuda(std::string_view image) {
    const ImageTag parts = tag_of(image);
    if (parts.name.ends_with("nvidia/cuda") || parts.name == "cuda") return img002_version(parts.tag);
    const std::size_t at = parts.tag.find("cuda");
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view rest = parts.tag.substr(at + 4);
    if (rest.starts_with('-')) rest.remove_prefix(1);
    return img002_version(rest);
}

const Img002Gpu* img002_gpu(std::string_view text) {
    for (const Img002Gpu& each : kImg002)
        if (contains_nocase(text, each.word)) return &each;
    return nullptr;
}

}  // namespace

void check_img002(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        const Img002Gpu* gpu = nullptr;
        const Node* where = nullptr;
        each_selector(*workload.pod, [&](const Node& key, const Node& value) {
            const std::string_view label = key.key == "key" ? key.text : key.key;
            if (gpu || !value.known) return;
            std::string_view text;
            // cloud.google.com/gke-accelerator, nvidia.com/gpu.product, gpu.nvidia.com/class: each cloud has its own.
            if (contains_nocase(label, "gpu") || contains_nocase(label, "accelerator")) {
                text = value.text;
            } else if (label.ends_with("/instance-type")) {
                if (const KnownSize* size = report.knowledge().size(value.text)) text = size->accelerator;
            }
            gpu = img002_gpu(text);
            where = &value;
        });
        if (!gpu) return;
        for (const Container& container : workload.containers) {
            if (!container.image.known() || !accelerator_of(container)) continue;
            const auto cuda = img002_cuda(container.image.text);
            if (!cuda || *cuda >= std::pair(gpu->major, gpu->minor)) continue;
            Finding* finding = report.add(container.image, container.address,
                                          fmt::format("CUDA {}.{} of the image knows no code for {}: it needs {}.{} or "
                                                      "later",
                                                      cuda->first, cuda->second, gpu->name, gpu->major, gpu->minor));
            report.relate(finding, *where->source, where->span, "the GPU that the pod is sent to");
        }
    });
}

}  // namespace stoker::lint
