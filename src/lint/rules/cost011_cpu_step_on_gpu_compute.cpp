// A step that needs no GPU on the cluster whose other steps do: by the names of their environments alone.
#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

enum class Cost011Need : unsigned char { unknown, cpu, gpu };

// AzureML-sklearn-1.5-cpu, azureml://registries/azureml/environments/acft-hf-nlp-gpu/...: what the name says.
Cost011Need cost011_need(const Value& environment) {
    if (!environment.known()) return Cost011Need::unknown;
    const std::string_view name = environment.text;
    for (const std::string_view gpu : {"gpu", "cuda", "rocm"})
        if (contains_nocase(name, gpu)) return Cost011Need::gpu;
    // A word of its own: "acpu" is none.
    for (std::size_t at = 0; at + 3 <= name.size(); ++at) {
        if (!equals_ignore_case(name.substr(at, 3), "cpu")) continue;
        const auto letter = [&](std::size_t i) {
            return i < name.size() && ((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z'));
        };
        if ((at == 0 || !letter(at - 1)) && !letter(at + 3)) return Cost011Need::cpu;
    }
    return Cost011Need::unknown;
}

// "azureml:gpu-cluster" and "gpu-cluster" are one.
std::string_view cost011_compute(const Value& target) {
    std::string_view name = target.known() ? target.text : std::string_view();
    if (name.starts_with("azureml:")) name.remove_prefix(8);
    return name;
}

}  // namespace

void check_cost011(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        if (!part.kinds.has(Kind::azureml)) return;
        const Node* settings =
            part.tree.roots.empty() ? nullptr : part.tree.roots[0]->at({"settings", "default_compute"});
        const Value common = Value::of(settings);
        const auto target_of = [&](const Resource& step) {
            return cost011_compute(step.get(Attr::target).present() ? step.get(Attr::target) : common);
        };
        for (const Resource& step : part.resources) {
            const Value& environment = step.get(Attr::environment);
            if (step.written != "azureml job" || cost011_need(environment) != Cost011Need::cpu) continue;
            const std::string_view compute = target_of(step);
            if (compute.empty()) continue;
            for (const Resource& other : part.resources) {
                if (other.written != "azureml job" || target_of(other) != compute ||
                    cost011_need(other.get(Attr::environment)) != Cost011Need::gpu)
                    continue;
                Finding* finding = report.add(
                    environment, step.address,
                    fmt::format("a step with a CPU environment runs on {}, which other steps use for GPUs", compute));
                if (finding) finding->advice = "give the step a CPU cluster of its own";
                const Value& gpu = other.get(Attr::environment);
                report.relate(finding, *gpu.source, gpu.span, "a step that needs the GPU");
                break;
            }
        }
    });
}

}  // namespace stoker::lint
