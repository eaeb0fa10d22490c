#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

// Images that hold CUDA programs and nothing for AMD.
bool sku025_cuda(std::string_view image) {
    if (contains_nocase(image, "rocm")) return false;
    // Published for CUDA under these names; what they have for AMD has another name or says rocm in its tag.
    const std::string_view name = image.substr(0, image.find_first_of(":@"));
    for (const std::string_view each : {"vllm/vllm-openai", "lmsysorg/sglang", "huggingface/text-generation-inference",
                                        "huggingface/text-embeddings-inference", "openmmlab/lmdeploy"})
        if (name.ends_with(each)) return true;
    return contains_nocase(image, "nvidia/cuda") || starts_with_ignore_case(image, "nvcr.io/nvidia/") ||
           contains_nocase(image, "-cuda") || contains_nocase(image, ":cuda") || contains_nocase(image, "tensorrt");
}

// What a line of a requirements file or a Dockerfile brings for NVIDIA GPUs alone; empty: nothing.
std::string_view sku025_need(std::string_view line, bool dockerfile) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) return {};
    if (dockerfile && starts_with_ignore_case(line, "FROM ")) {
        const std::string_view image = trim(line.substr(5));
        return sku025_cuda(image) ? image : std::string_view();
    }
    for (std::size_t at = line.find("+cu1"); at != std::string_view::npos; at = line.find("+cu1", at + 1))
        if (at + 5 < line.size() && line[at + 4] >= '0' && line[at + 4] <= '9') return line;
    for (const std::string_view word : {"nvidia-cuda-", "nvidia-cublas", "nvidia-cudnn", "nvidia-nccl", "cupy-cuda",
                                        "tensorrt", "download.pytorch.org/whl/cu1"})
        if (contains_nocase(line, word)) return line;
    return {};
}

// Where the folder has AMD GPUs and no others: the value that says so.
const Value* sku025_only_amd(const Bundle& bundle, const File& beside, const Report& report) {
    const Value* amd = nullptr;
    bool others = false;
    for (const File* file : bundle.files) {
        if (!same_folder(*file, beside)) continue;
        each_resource(*file, [&](const Resource& resource) {
            const KnownSize* size = size_of(resource, report);
            if (!size || !size->gpu()) return;
            if (size->vendor == "AMD")
                amd = &resource.get(Attr::size);
            else
                others = true;
        });
    }
    return others ? nullptr : amd;
}

void sku025_file(const File& file, Report& report) {
    for (const Workload& workload : file.workloads)
        for (const Container& container : workload.containers) {
            if (!container.image.known() || !sku025_cuda(container.image.text)) continue;
            for (const Quantity& quantity : container.resources) {
                if (quantity.resource != "amd.com/gpu" || quantity.amount.as_int().value_or(0) < 1) continue;
                Finding* finding = report.add(
                    container.image, container.address,
                    fmt::format("{} holds a CUDA program, and this container asks for AMD GPUs", container.image.text));
                if (finding && container.node)
                    report.relate(finding, *container.node->source, quantity.key_span, "AMD GPUs");
                break;
            }
        }
    for (const Resource& resource : file.resources) {
        const KnownSize* size = size_of(resource, report);
        const Value& image = resource.get(Attr::environment);
        if (!size || size->vendor != "AMD" || !image.known() || !sku025_cuda(image.text)) continue;
        Finding* finding =
            report.add(image, resource.address,
                       fmt::format("{} holds a CUDA program, and {} has AMD GPUs", image.text, size->name));
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
    }
}

}  // namespace

void check_sku025(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files) {
        for_each_part(*file, [&](const File& part) { sku025_file(part, report); });
        const bool dockerfile = file->kinds.has(Kind::dockerfile);
        if (!dockerfile && !file->kinds.has(Kind::requirements)) continue;
        const Value* amd = sku025_only_amd(bundle, *file, report);
        if (!amd) continue;
        const std::string_view text = file->source().text();
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            if (const std::string_view need = sku025_need(text.substr(at, end - at), dockerfile); !need.empty()) {
                const auto from = static_cast<std::uint32_t>(need.data() - text.data());
                Finding* finding =
                    report.add(file->source(), {from, from + static_cast<std::uint32_t>(need.size())},
                               fmt::format("cuda:{}", need),
                               fmt::format("{} is for NVIDIA GPUs, and {} beside it has AMD GPUs", need, amd->text));
                if (finding) {
                    finding->advice = "take the build for ROCm, or an NVIDIA size";
                    report.relate(finding, *amd->source, amd->span, "the size");
                }
                break;  // one line says it
            }
            at = end + 1;
        }
    }
}

}  // namespace stoker::lint
