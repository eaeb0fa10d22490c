#include "readings/kube_fit.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr std::string_view kPods = "pods";

bool lies_in_space(const std::string& space, const std::string& wanted) {
    return space.empty() || wanted.empty() || space == wanted;
}

// What one pod takes of a quota: https://kubernetes.io/docs/concepts/policy/resource-quotas/
double counted_by_quota(const KubePod& pod, std::string_view name) {
    if (name == kPods || name == "count/pods") return 1;
    for (const std::string_view prefix : {"requests.", "limits."})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    const auto found = pod.requests.find(name);
    return found == pod.requests.end() ? 0 : found->second;
}

}  // namespace

bool matches_node(const KubePod& pod, const KubeNode& node) {
    for (const auto& [key, value] : pod.selector) {
        const auto found = node.labels.find(key);
        if (found == node.labels.end() || found->second != value) return false;
    }
    if (pod.affinity.empty()) return true;
    const std::map<std::string, std::string, std::less<>> fields{{std::string(kNodeNameField), node.name}};
    return std::any_of(pod.affinity.begin(), pod.affinity.end(), [&](const auto& term) {
        return std::all_of(term.begin(), term.end(), [&](const KubeExpression& each) {
            return each.holds(each.key == kNodeNameField ? fields : node.labels);
        });
    });
}

std::vector<KubeTaint> taints_against(const KubePod& pod, const KubeNode& node) {
    std::vector<KubeTaint> found;
    for (const KubeTaint& taint : node.taints) {
        if (taint.effect == "PreferNoSchedule" || taint.key == "node.kubernetes.io/unschedulable" ||
            taint.key == "node.kubernetes.io/not-ready")
            continue;
        if (std::none_of(pod.tolerations.begin(), pod.tolerations.end(),
                         [&](const KubeToleration& each) { return each.tolerates(taint); }))
            found.push_back(taint);
    }
    return found;
}

std::map<std::string, KubeAmounts, std::less<>> used_by_nodes(const KubeState& state) {
    std::map<std::string, KubeAmounts, std::less<>> used;
    for (const KubePod& other : state.pods) {
        if (other.node.empty() || other.phase == "Succeeded" || other.phase == "Failed") continue;
        KubeAmounts& of_node = used[other.node];
        for (const auto& [name, value] : other.requests) of_node[name] += value;
    }
    return used;
}

KubeRoom::KubeRoom(const KubeState& state, const std::string& space) {
    const auto used = used_by_nodes(state);
    std::map<std::string, double, std::less<>> pods_on;
    for (const KubePod& pod : state.pods) {
        if (pod.node.empty()) continue;
        if (lies_in_space(pod.space, space)) placed_.insert(pod.name);
        if (pod.phase != "Succeeded" && pod.phase != "Failed") ++pods_on[pod.node];
    }
    for (const KubeNode& node : state.nodes) {
        if (node.unschedulable || !node.ready) continue;
        Place& place = places_.emplace_back(Place{.node = node, .all = node.allocatable});
        if (const auto held = used.find(node.name); held != used.end())
            for (const auto& [name, value] : held->second)
                if (const auto free = place.node.allocatable.find(name); free != place.node.allocatable.end())
                    free->second -= value;
        if (const auto free = place.node.allocatable.find(kPods); free != place.node.allocatable.end())
            free->second -= pods_on[node.name];
    }
    for (const KubeQuota& quota : state.quotas) {
        if (!lies_in_space(quota.space, space)) continue;
        KubeQuota& left = quotas_.emplace_back(quota);
        for (auto& [name, value] : left.hard)
            if (const auto known = quota.used.find(name); known != quota.used.end()) value -= known->second;
    }
}

KubeRoom::Place* KubeRoom::best_for(const KubePod& pod, const KubeAmounts& wanted) {
    Place* best = nullptr;
    double most = -1;
    for (Place& place : places_) {
        double least = 1;  // share that the scarcest resource keeps
        const bool fits = std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
            const auto& [name, amount] = each;
            if (amount <= 0) return true;
            const auto free = place.node.allocatable.find(name);
            // What a node does not tell of itself it does not count either, but for devices.
            if (free == place.node.allocatable.end()) return name.find('/') == std::string::npos;
            if (free->second < amount) return false;
            const double all = place.all.at(name);
            if (all > 0) least = std::min(least, (free->second - amount) / all);
            return true;
        });
        if (!fits || least <= most || !matches_node(pod, place.node) || !taints_against(pod, place.node).empty())
            continue;
        best = &place;
        most = least;
    }
    return best;
}

bool KubeRoom::take(const KubePod& pod, int count) {
    for (const KubeQuota& quota : quotas_)
        for (const auto& [name, left] : quota.hard)
            if (const double each = counted_by_quota(pod, name); each > 0 && each * count > left) return false;
    KubeAmounts wanted = pod.requests;
    wanted[std::string(kPods)] = 1;
    std::vector<Place*> taken;
    const auto move = [&](Place& place, double times) {
        for (const auto& [name, amount] : wanted)
            if (const auto free = place.node.allocatable.find(name); free != place.node.allocatable.end())
                free->second += times * amount;
    };
    for (int i = 0; i < count; ++i) {
        Place* best = best_for(pod, wanted);
        if (best == nullptr) {
            for (Place* each : taken) move(*each, 1);
            return false;
        }
        move(*best, -1);
        taken.push_back(best);
    }
    for (KubeQuota& quota : quotas_)
        for (auto& [name, left] : quota.hard) left -= count * counted_by_quota(pod, name);
    return true;
}

}  // namespace stoker
