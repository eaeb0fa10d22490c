#include "deploy/render/targets.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace stoker {
namespace {

constexpr auto kTargets = std::to_array<RenderTarget>({
    {"local", "the run section as a file that stoker run takes, on this machine", local_refusal, local_files},
    {"torchrun", "a script that starts the ranks of a training on each node, with the plan's layout", torchrun_refusal,
     torchrun_files},
    {"slurm", "a batch script for sbatch: one gang, or an array of shares", slurm_refusal, slurm_files},
});

std::string names_of_targets() {
    std::string names;
    for (const RenderTarget& each : kTargets) names += (names.empty() ? "" : ", ") + std::string(each.name);
    return names;
}

}  // namespace

std::span<const RenderTarget> render_targets() {
    return kTargets;
}

Result<const RenderTarget*> find_render_target(std::string_view name) {
    const auto found =
        std::find_if(kTargets.begin(), kTargets.end(), [&](const RenderTarget& each) { return each.name == name; });
    if (found != kTargets.end()) return &*found;
    return Error(ErrorKind::invalid,
                 fmt::format("nothing is rendered for {} yet; there is {}", name, names_of_targets()), {},
                 "stoker deploy --list says what each is");
}

Result<const RenderTarget*> usual_render_target(const Deployment& deployment) {
    std::string why;
    for (const RenderTarget& each : kTargets) {
        // What runs here is not meant for another cluster.
        if (each.name == "local" && deployment.nodes.cloud != "this-machine") continue;
        const std::string refusal = each.refusal(deployment);
        if (refusal.empty()) return &each;
        if (why.empty()) why = fmt::format("{}: {}", each.name, refusal);
    }
    return Error(ErrorKind::unsupported, fmt::format("no target renders this yet; {}", why), {},
                 "stoker deploy FILE without --render shows the deployment; --list says which targets there are");
}

Result<Deployment> rendered(Deployment deployment, const RenderTarget& target) {
    if (const std::string why = target.refusal(deployment); !why.empty())
        return Error(ErrorKind::unsupported, fmt::format("{} cannot say this: {}", target.name, why));
    deployment.target = target.name;
    deployment.files = target.files(deployment);
    return deployment;
}

}  // namespace stoker
