#include "deploy/kubernetes/reasons.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "readings/kube_pending.h"

namespace stoker::kubernetes {
namespace {

WaitReason with(std::string_view reason, const std::string& what, const std::string& fix) {
    WaitReason found = read_reason(reason);
    if (!what.empty()) found.detail = what;
    if (found.cure.empty()) found.cure = replace_all(fix, "\n", " ");
    return found;
}

// The newest words about the Job itself: its controller could make no pods.
std::optional<WaitReason> of_the_job(const JobView& job, const KubeState& state) {
    for (auto event = state.events.rbegin(); event != state.events.rend(); ++event) {
        if (event->name != job_name(job.operation)) continue;
        if (const auto why = why_not_created(*event, state)) return with(word_of(why->cause), why->what, why->fix);
    }
    return std::nullopt;
}

}  // namespace

WaitReason read_reason(std::string_view reason) {
    static const std::string_view file = "engines/kubernetes_reasons.tsv";
    static const auto table = Tsv::read(embedded_bytes(file), file);
    for (std::size_t i = 0; table && i < table->rows(); ++i)
        if (table->at(i, 0) == reason)
            return {.cause = parse_cause(table->at(i, 1)).value_or(Cause::engine_queue),
                    .never = table->at(i, 2) == "yes",
                    .detail = std::string(table->at(i, 3)),
                    .cure = table->at(i, 4) == "-" ? "" : std::string(table->at(i, 4))};
    return {.detail = "the cluster says " + printable(reason, 100)};
}

HealthReport report_of_node(const KubeNode& node, HealthLevel level) {
    HealthReport report;
    const auto add = [&](const char* name, bool sound, std::string detail, std::string fix) -> HealthCheck& {
        HealthCheck& check = report.checks.emplace_back();
        check.name = name;
        check.node = node.name;
        check.verdict = sound ? HealthVerdict::pass : HealthVerdict::fail;
        check.detail = std::move(detail);
        if (!sound) check.fix = std::move(fix);
        return check;
    };
    add("engine-node", node.ready && !node.unschedulable,
        !node.ready          ? "its kubelet says that it is not ready"
        : node.unschedulable ? "it is cordoned"
                             : "its kubelet says that it is ready",
        !node.ready ? "kubectl describe node " + node.name : "kubectl uncordon " + node.name);
    for (const auto& [resource, there] : node.capacity) {
        if (!resource.ends_with("/gpu")) continue;
        const auto sound = node.allocatable.find(resource);
        const double count = sound == node.allocatable.end() ? 0 : sound->second;
        HealthCheck& gpus = add("gpu-count", count >= there, fmt::format("{} of its {} are given out", resource, there),
                                "look at the device plug-in's log on the node: it takes a GPU for unhealthy");
        gpus.measured = count;
        gpus.expected = there;
        gpus.unit = "count";
        gpus.source = "capacity of the node";
    }
    if (level == HealthLevel::full) {
        HealthCheck& measured = add("memory-bandwidth", true, "not measured from here: run stoker doctor in a pod", "");
        measured.verdict = HealthVerdict::skipped;
    }
    return report;
}

WaitReason why_it_waits(const JobView& job, const std::vector<PodView>& pods, int wanted, const KubeState& state,
                        bool behind, bool backed_out) {
    if (job.suspended) {
        if (job.queued) return read_reason("kueue");
        return read_reason(backed_out ? "backed-out" : behind ? "behind" : "new");
    }
    // The pod that is farthest from running decides.
    const PodView* worst = nullptr;
    int placed = 0;
    for (const PodView& pod : pods) {
        placed += pod.scheduled ? 1 : 0;
        if (worst == nullptr || (!pod.scheduled && worst->scheduled)) worst = &pod;
    }
    if (static_cast<int>(pods.size()) < wanted)
        if (auto found = of_the_job(job, state)) return *found;
    if (worst == nullptr) return read_reason("new");
    if (worst->scheduled && worst->phase == "Running") return read_reason("paired");
    const auto found =
        std::find_if(state.pods.begin(), state.pods.end(), [&](const KubePod& pod) { return pod.name == worst->name; });
    if (found == state.pods.end()) return read_reason("new");
    const PodWait why = why_pending(*found, state);
    WaitReason reason = with(word_of(why.cause), why.what, why.fix);
    if (wanted > 1) reason.detail = fmt::format("{} of {} pods have a node: {}", placed, wanted, reason.detail);
    return reason;
}

}  // namespace stoker::kubernetes
