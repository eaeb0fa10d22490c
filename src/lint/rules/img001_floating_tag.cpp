// A GPU image under a floating tag: the same manifest runs other software tomorrow.
#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"
#include "lint/rules/common_scripts.h"
#include "lint/shell/programs.h"

namespace stoker::lint {

namespace {

// What is wrong with the reference; empty: nothing, or it cannot be known.
std::string img001_fault(std::string_view image, bool known) {
    const ImageTag parts = tag_of(image);
    if (parts.digest || image.find_first_not_of("\"' ") == std::string_view::npos || is_upper_placeholder(image))
        return {};
    if (parts.tag.find_first_of("${<@%") != std::string_view::npos) return {};
    if (parts.tag.empty()) {
        // A name that says that something else takes its place: replaced-by-kustomize, image-placeholder.
        for (const std::string_view word : {"placeholder", "replaced", "replace-"})
            if (contains_nocase(parts.name, word)) return {};
        if (!known || image.find_first_of("${<@%") != std::string_view::npos) return {};
        return "has neither tag nor digest";
    }
    const bool floats = contains_nocase(parts.tag, "latest") || parts.tag == "main" || parts.tag == "master" ||
                        parts.tag == "nightly" || parts.tag == "dev";
    return floats ? fmt::format("has the floating tag {}", printable(parts.tag, 60)) : std::string();
}

void img001_judge(const Value& image, std::string address, Report& report, std::string_view device = "GPU") {
    const std::string fault = img001_fault(image.text, image.known());
    if (fault.empty()) return;
    Finding* finding = report.add(image, std::move(address),
                                  fmt::format("the image of a container with a {} {}: the next pull may bring another "
                                              "{}framework",
                                              device, fault, device == "GPU" ? "CUDA or " : ""));
    if (finding) finding->advice = "pin a version or a digest (name@sha256:...)";
}

// Azure ML: `image:` of an environment.
void img001_in_azureml(const File& file, Report& report) {
    for (const Node* root : file.tree.roots)
        for (const Node* holder : {root, root->find("environment")}) {
            const Node* image = holder ? holder->find("image") : nullptr;
            if (!image || !image->is_scalar() || !is_gpu_image(image->text)) continue;
            img001_judge(Value::of(image), "aml:image", report);
        }
}

// docker run --gpus all IMAGE: the first word that is no option and no option's value.
void img001_in_command(const File& part, const Command& command, Report& report) {
    const auto& words = command.words;
    std::size_t at = 0;
    while (at < words.size() && (words[at].is("sudo") || words[at].is("exec") || words[at].is("nohup"))) ++at;
    if (at + 1 >= words.size() ||
        !one_of(words[at].text.substr(words[at].text.rfind('/') + 1), {"docker", "podman", "nerdctl"}) ||
        !words[++at].is("run"))
        return;
    bool gpu = false;
    for (++at; at < words.size() && words[at].text.starts_with('-'); ++at) {
        const std::string_view option = words[at].text;
        if (!words[at].known() || option == "-") return;
        const std::string_view name = option.substr(option.find_first_not_of('-'));
        const bool value = option.find('=') == std::string_view::npos && !docker_switch(name, option.starts_with("--"));
        const std::string_view given = value && at + 1 < words.size() ? words[at + 1].text : option;
        gpu |= name.starts_with("gpus") || given.find("nvidia") != std::string_view::npos ||
               given.find("/dev/kfd") != std::string_view::npos;
        if (value) ++at;
    }
    if (gpu && at < words.size() && words[at].known())
        img001_judge(words[at], script_address(part) + "#docker", report);
}

// A template as text: only where it has one image and asks for a GPU.
void img001_in_template(const File& file, Report& report) {
    const std::string_view text = file.source().text();
    const std::size_t first = text.find("image:");
    bool asks = false;  // as a key: a dashboard in a ConfigMap only speaks of it
    for (std::size_t at = text.find("nvidia.com/gpu"); at != std::string_view::npos && !asks;
         at = text.find("nvidia.com/gpu", at + 1))
        asks = text.substr(at + 14, 3).find(':') != std::string_view::npos;
    if (first == std::string_view::npos || !asks) return;
    if (text.find("image:", first + 1) != std::string_view::npos) return;
    const Span line = file.source().line_at(static_cast<std::uint32_t>(first));
    if (text.substr(line.begin, first - line.begin).find_first_not_of(" -") != std::string_view::npos) return;
    std::string_view value = trim(text.substr(first + 6, line.end - first - 6));
    if (value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0])
        value = value.substr(1, value.size() - 2);
    if (value.empty() || value.find_first_of("{# ") != std::string_view::npos) return;
    const auto begin = static_cast<std::uint32_t>(value.data() - text.data());
    img001_judge(Value::known_text(value, {begin, begin + static_cast<std::uint32_t>(value.size())}, file.source()),
                 "helm:image", report);
}

}  // namespace

void check_img001(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        const Quantity* device = accelerator_of(container);
        if (device && container.image.present())
            img001_judge(container.image, container.address, report,
                         device->resource.find("tpu") == std::string_view::npos ? "GPU" : "TPU");
    });
    each_service(file, [&](const Container& service) {
        if (accelerator_of(service) && service.image.present() && !service.built_here)
            img001_judge(service.image, service.address, report);
    });
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) img001_in_command(part, command, report);
    });
    if (file.kinds.has(Kind::azureml)) img001_in_azureml(file, report);
    if (file.kinds.has(Kind::helm) && file.workloads.empty() && file.guests.empty()) img001_in_template(file, report);
}

}  // namespace stoker::lint
