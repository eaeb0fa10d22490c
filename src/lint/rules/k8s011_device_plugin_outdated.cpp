#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

constexpr int kK8s011Behind = 3;  // minor versions
// Where the catalogue has no row: NVIDIA/k8s-device-plugin CHANGELOG.md, read 2026-08.
constexpr std::string_view kK8s011Newest = "0.20.0";

// Minor version of 0.N.x, v0.N.x; -1 for the old scheme 1.0.0-betaN; nothing for others.
std::optional<int> k8s011_minor(std::string_view text) {
    if (text.starts_with('v')) text.remove_prefix(1);
    if (text.starts_with("1.0.0-beta")) return -1;
    if (!text.starts_with("0.")) return std::nullopt;
    int minor = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), minor);
    if (error != std::errc{} || minor > 1000) return std::nullopt;
    return minor;
}

void k8s011_judge(const Value& at, std::string_view version, std::string address, Report& report) {
    std::string_view newest = report.knowledge().fact("device-plugin-version");
    if (newest.empty()) newest = kK8s011Newest;
    const auto here = k8s011_minor(version), there = k8s011_minor(newest);
    if (!here || !there || *here + kK8s011Behind > *there) return;
    Finding* finding = report.add(at, std::move(address),
                                  fmt::format("device plugin {} is {} or more minor versions behind {}: fixes for new "
                                              "GPUs, drivers and health checks are missing",
                                              version, kK8s011Behind, newest));
    if (finding) finding->advice = fmt::format("move to v{}", newest);
}

}  // namespace

void check_k8s011(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        if (!container.image.known()) return;
        const ImageTag image = tag_of(container.image.text);
        // Those of other makers have their maker before it, and numbers of their own: aws-efa-k8s-device-plugin.
        if (program_name(image.name) != "k8s-device-plugin" || contains_nocase(image.name, "rocm") ||
            contains_nocase(image.name, "amd") || image.tag.empty())
            return;
        k8s011_judge(container.image, image.tag, container.address, report);
    });
    for_each_part(file, [&](const File& part) {
        // kubectl apply -f https://.../NVIDIA/k8s-device-plugin/v0.14.1/nvidia-device-plugin.yml
        for (const Command& command : part.script.commands) {
            if (command.name() != "kubectl") continue;
            for (const Value& word : command.words) {
                constexpr std::string_view kPath = "NVIDIA/k8s-device-plugin/";
                const std::size_t at = word.known() ? word.text.find(kPath) : std::string_view::npos;
                if (at == std::string_view::npos) continue;
                const std::string_view rest = word.text.substr(at + kPath.size());
                k8s011_judge(word, rest.substr(0, rest.find('/')), "sh:kubectl/k8s-device-plugin", report);
            }
        }
        for (const Resource& resource : part.resources) {
            if (resource.type != ResourceType::chart) continue;
            const Value &name = resource.get(Attr::chart_name), &version = resource.get(Attr::chart_version);
            if (!name.known() || !version.known() || !name.text.ends_with("nvidia-device-plugin")) continue;
            k8s011_judge(version, version.text, resource.address, report);
        }
    });
}

}  // namespace stoker::lint
