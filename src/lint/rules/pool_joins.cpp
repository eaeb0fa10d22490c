// K8S001, K8S002, K8S012, K8S013, K8S035, NPL011: pods and plugins against the node pools of their bundle.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_pools.h"

namespace stoker::lint {

namespace {

template <typename F>
void pool_joins_each_pod(const Bundle& bundle, F&& visit) {
    for (const File* file : bundle.files) each_pod(*file, visit);
}

// The pod goes to none of the pools that it may go to: the taint of the first, and the pool.
std::pair<const Value*, const Resource*> pool_joins_shut_out(const Workload& workload,
                                                             const std::vector<const Resource*>& pools) {
    const auto candidates = candidate_pools(workload, pools);
    const Value* first = nullptr;
    const Resource* of = nullptr;
    for (const Resource* pool : candidates) {
        const Value* taint = repelling_taint(workload, *pool, true);
        if (!taint) return {nullptr, nullptr};
        if (!first) first = taint, of = pool;
    }
    return {first, of};
}

void pool_joins_add_toleration(const Workload& workload, const Taint& taint, Finding* finding, Report& report) {
    const Node* containers = workload.pod->find("containers");
    const Node* tolerations = workload.pod->find("tolerations");
    if (!containers || !finding) return;
    const std::string item = taint.value.empty()
                                 ? fmt::format("{{key: {}, operator: Exists, effect: {}}}", taint.key, taint.effect)
                                 : fmt::format("{{key: {}, operator: Equal, value: \"{}\", effect: {}}}", taint.key,
                                               taint.value, taint.effect);
    const Source& source = *containers->source;
    std::optional<Edit> edit;
    if (!tolerations) {
        edit = line_before(*containers, "tolerations:\n- " + item);
    } else if (!tolerations->merged && !tolerations->span.empty() && source.text()[tolerations->span.begin] == '[' &&
               !trim(source.text()).starts_with('{')) {
        // [{key: ...}] on one line; not in JSON, where the item would want quotes.
        const std::uint32_t at = tolerations->span.begin + 1;
        edit = Edit{{at, at}, tolerations->first ? item + ", " : item};
    } else if (tolerations->first && !tolerations->merged) {
        const Span line = source.line_at(tolerations->first->span.begin);
        const std::string before(source.text({line.begin, tolerations->first->span.begin}));
        if (before.find_first_not_of(" -") == std::string::npos && before.find('-') != std::string::npos)
            edit = Edit{{line.begin, line.begin}, before + item + std::string(source.line_end())};
    }
    if (edit) report.fix(finding, source, FixClass::safe, "tolerate the taint of the pool", {std::move(*edit)});
}

bool pool_joins_names_aks_pool(const Node& pod) {
    bool names = false;
    each_selector(pod, [&](const Node& key, const Node&) {
        const std::string_view label = key.key == "key" ? key.text : key.key;
        names |= label == "agentpool" || label == "kubernetes.azure.com/agentpool";
    });
    return names;
}

void pool_joins_alone(const Workload& workload, Report& report) {
    const Node* tolerations = workload.pod->find("tolerations");
    if (!tolerations || !tolerations->first || !pool_joins_names_aks_pool(*workload.pod)) return;
    const Node* first = nullptr;
    for (const Node& each : children(tolerations)) {
        const Node* key = each.find("key");
        if (!key || key->text != "nvidia.com/gpu") return;
        if (!first) first = key;
    }
    Finding* finding =
        report.add(*first->source, first->span, workload.address,
                   "the pod tolerates only nvidia.com/gpu, which the API server tolerates anyway; AKS pools "
                   "are usually tainted with another key");
    if (!finding) return;
    if (finding->severity == Severity::error) finding->severity = Severity::warning;
    finding->advice = "compare with the taint that the pool was created with (az aks nodepool show)";
}

bool pool_joins_operator(const Bundle& bundle) {
    for (const File* file : bundle.files) {
        bool found = false;
        for_each_part(*file, [&](const File& part) {
            for (const Resource& each : part.resources)
                found |= each.type == ResourceType::chart && each.get(Attr::chart_name).known() &&
                         each.get(Attr::chart_name).text.ends_with("gpu-operator");
            for (const Workload& each : part.workloads) {
                if (each.kind == "ClusterPolicy" && each.api_version.starts_with("nvidia.com/")) {
                    const Node* enabled = each.object->at({"spec", "devicePlugin", "enabled"});
                    found |= !enabled || enabled->text != "false";
                }
                const Node* chart = each.object->at({"spec", "source", "chart"});
                if (!chart) chart = each.object->at({"spec", "chart", "spec", "chart"});
                found |= chart && chart->text == "gpu-operator";
            }
        });
        if (found) return true;
    }
    return false;
}

// NPL011 says of them what there is to say of the taint that AKS gives spot nodes.
bool pool_joins_only_spot(const Workload& workload, const std::vector<const Resource*>& pools, const Value& taint) {
    if (!taint.text.starts_with("kubernetes.azure.com/scalesetpriority")) return false;
    const auto candidates = candidate_pools(workload, pools);
    return std::all_of(candidates.begin(), candidates.end(),
                       [](const Resource* pool) { return pool->get(Attr::priority).is_nocase("spot"); });
}

}  // namespace

void check_k8s001(const Bundle& bundle, Report& report) {
    const auto pools = gpu_pools(bundle, report.knowledge());
    pool_joins_each_pod(bundle, [&](const Workload& workload) {
        if (!asks_accelerator(workload)) return;
        if (pools.empty()) return pool_joins_alone(workload, report);
        const Node* tolerations = workload.pod->find("tolerations");
        if (!tolerations || !tolerations->first) return;  // K8S002
        const auto [taint, pool] = pool_joins_shut_out(workload, pools);
        if (!taint || pool_joins_only_spot(workload, pools, *taint)) return;
        Finding* finding =
            report.add(*tolerations->source, tolerations->key_span, workload.address,
                       fmt::format("the tolerations do not cover the taint {} of the pool: the pod stays "
                                   "Pending",
                                   taint->text));
        report.relate(finding, *taint->source, taint->span, "the taint of the pool");
        if (const auto parts = taint_of(taint->text)) pool_joins_add_toleration(workload, *parts, finding, report);
    });
}

// A chart's own values name no cluster: where those of an environment bring tolerations, these are deployed.
static bool k8s002_tolerates_elsewhere(const File& chart, const Workload& workload) {
    return chart.kinds.has(Kind::helm) && std::any_of(chart.calls.begin(), chart.calls.end(), [&](const auto& made) {
               bool tolerates = false;
               each_pod(*made, [&](const Workload& other) {
                   const Node* tolerations = other.pod->find("tolerations");
                   tolerates = tolerates || (other.kind == workload.kind && tolerations && tolerations->first);
               });
               return tolerates;
           });
}

void check_k8s002(const Bundle& bundle, Report& report) {
    const auto pools = gpu_pools(bundle, report.knowledge());
    if (pools.empty()) return;
    const auto judge = [&](const Workload& workload) {
        const Node* tolerations = workload.pod->find("tolerations");
        if (!asks_accelerator(workload) || (tolerations && (tolerations->first || !tolerations->known))) return;
        const auto [taint, pool] = pool_joins_shut_out(workload, pools);
        if (!taint) return;
        const Container* container = nullptr;
        for (const Container& each : workload.containers)
            if (!container && accelerator_of(each)) container = &each;
        Finding* finding = report.add(*container->node->source, container->anchor, workload.address,
                                      fmt::format("no toleration, but the GPU pool is tainted with {}: the pod stays "
                                                  "Pending",
                                                  taint->text));
        report.relate(finding, *taint->source, taint->span, "the taint of the pool");
        if (const auto parts = taint_of(taint->text)) pool_joins_add_toleration(workload, *parts, finding, report);
    };
    for (const File* file : bundle.files)
        each_pod(*file, [&](const Workload& workload) {
            if (!k8s002_tolerates_elsewhere(*file, workload)) judge(workload);
        });
}

// Folders that an Application of Argo CD hands to a plug-in: what becomes of their manifests is not seen.
static std::vector<std::string_view> folders_of_argo_plugins(const Bundle& bundle) {
    std::vector<std::string_view> folders;
    const auto add = [&](const Node* source) {
        const Node* path = source && source->find("plugin") ? source->find("path") : nullptr;
        if (path && path->is_scalar() && path->known && path->text.size() > 1) folders.push_back(path->text);
    };
    for (const File* file : bundle.files)
        for (const Workload& each : file->workloads) {
            if (!each.api_version.starts_with("argoproj.io/")) continue;
            for (const Node* spec : {each.object->find("spec"), each.object->at({"spec", "template", "spec"})}) {
                if (!spec) continue;
                add(spec->find("source"));
                for (const Node& source : children(spec->find("sources"))) add(&source);
            }
        }
    return folders;
}

// The plugin's chart as Argo CD or Flux installs it: `use` with the object and the values that it is given.
template <typename F>
static void each_plugin_chart(const Bundle& bundle, F&& use) {
    const auto chart = [](const Node* name) {
        return name && name->is_scalar() && name->known && name->text == "nvidia-device-plugin";
    };
    for (const File* file : bundle.files)
        for (const Workload& each : file->workloads) {
            const Node* spec = each.object->find("spec");
            if (!spec) continue;
            if (each.kind == "HelmRelease" && chart(spec->at({"chart", "spec", "chart"})) && !spec->find("valuesFrom"))
                use(each, *spec->at({"chart", "spec", "chart"}), spec->find("values"));
            if (each.kind != "Application" || !each.api_version.starts_with("argoproj.io/")) continue;
            const auto source = [&](const Node& from) {
                const Node* helm = from.find("helm");
                // Values as a text, in files and as parameters are not read here.
                const bool elsewhere = helm && (helm->find("values") || helm->find("valueFiles") ||
                                                helm->find("parameters") || helm->find("fileParameters"));
                if (chart(from.find("chart")) && !elsewhere)
                    use(each, *from.find("chart"), helm ? helm->find("valuesObject") : nullptr);
            };
            if (const Node* one = spec->find("source")) source(*one);
            for (const Node& one : children(spec->find("sources"))) source(one);
        }
}

// Tolerations among the values take the place of the chart's own, which are for nvidia.com/gpu (values.yaml of the
// chart).
static void k8s012_charts(const Bundle& bundle, const std::vector<const Resource*>& pools, Report& report) {
    each_plugin_chart(bundle, [&](const Workload& object, const Node& chart, const Node* values) {
        const Node* own = values ? values->find("tolerations") : nullptr;
        if ((own && !own->known) || (values && (values->find("nodeSelector") || values->find("affinity")))) return;
        for (const Resource* pool : pools) {
            if (pool->written.find("google") != std::string_view::npos) continue;
            const Value* repelling = nullptr;
            for (const Value* each : pool->all(Attr::taint)) {
                const auto taint = each->known() ? taint_of(each->text) : std::nullopt;
                if (!each->known()) break;
                if (!taint || taint->effect == "PreferNoSchedule") continue;
                const bool borne = own ? tolerates(*values, taint->key, taint->value, taint->effect)
                                       : taint->key == "nvidia.com/gpu" && taint->effect == "NoSchedule";
                if (!borne && !repelling) repelling = each;
            }
            if (!repelling) continue;
            const Node& told = own ? *own : chart;
            Finding* finding =
                report.add(*told.source, told.whole(), object.address,
                           fmt::format("the chart's device plugin does not tolerate {}: the nodes of that "
                                       "pool offer no GPU",
                                       repelling->text));
            report.relate(finding, *repelling->source, repelling->span, "the taint of the pool");
            if (finding)
                finding->advice = "add a toleration for it to the chart's values, beside those that it has by default";
            return;
        }
    });
}

void check_k8s012(const Bundle& bundle, Report& report) {
    const auto pools = gpu_pools(bundle, report.knowledge());
    if (pools.empty()) return;
    k8s012_charts(bundle, pools, report);
    const std::vector<std::string_view> filled_in = folders_of_argo_plugins(bundle);
    pool_joins_each_pod(bundle, [&](const Workload& workload) {
        if (!is_device_plugin(workload)) return;
        const std::string& where = workload.object->source->path();
        if (std::any_of(filled_in.begin(), filled_in.end(), [&](std::string_view folder) {
                return ("/" + where).find("/" + std::string(folder) + "/") != std::string::npos;
            }))
            return;
        for (const Resource* pool : candidate_pools(workload, pools)) {
            if (pool->written.find("google") != std::string_view::npos) continue;  // GKE runs its own plugin
            const Value* taint = repelling_taint(workload, *pool, false);
            if (!taint) continue;
            const Container& container = workload.containers.front();
            Finding* finding = report.add(*container.node->source, container.anchor, workload.address,
                                          fmt::format("the device plugin does not tolerate {}: the nodes of that pool "
                                                      "offer no GPU",
                                                      taint->text));
            report.relate(finding, *taint->source, taint->span, "the taint of the pool");
            if (const auto parts = taint_of(taint->text)) pool_joins_add_toleration(workload, *parts, finding, report);
        }
    });
}

void check_k8s013(const Bundle& bundle, Report& report) {
    if (!pool_joins_operator(bundle)) return;
    pool_joins_each_pod(bundle, [&](const Workload& workload) {
        if (!is_device_plugin(workload)) return;
        const Container& container = workload.containers.front();
        Finding* finding = report.add(*container.node->source, container.anchor, workload.address,
                                      "a device plugin of its own beside the GPU Operator, which runs one too: both "
                                      "register the same resource");
        if (finding) finding->advice = "drop this DaemonSet, or set devicePlugin.enabled=false in the operator";
    });
}

void check_npl011(const Bundle& bundle, Report& report) {
    const auto pools = gpu_pools(bundle, report.knowledge());
    if (pools.empty()) return;
    constexpr Taint kSpot{"kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"};
    pool_joins_each_pod(bundle, [&](const Workload& workload) {
        if (!asks_accelerator(workload) || tolerates(*workload.pod, kSpot.key, kSpot.value, kSpot.effect)) return;
        const auto candidates = candidate_pools(workload, pools);
        if (candidates.empty()) return;
        for (const Resource* pool : candidates) {
            if (!pool->get(Attr::priority).is_nocase("spot")) return;
            for (const std::string_view other : {"google", "aws", "NodePool"})  // AKS alone taints spot nodes so
                if (pool->written.find(other) != std::string_view::npos) return;
        }
        const Container* container = nullptr;
        for (const Container& each : workload.containers)
            if (!container && accelerator_of(each)) container = &each;
        Finding* finding =
            report.add(*container->node->source, container->anchor, workload.address,
                       "AKS taints spot nodes with kubernetes.azure.com/scalesetpriority=spot:NoSchedule, "
                       "which the pod does not tolerate: it stays Pending");
        const Value& priority = candidates.front()->get(Attr::priority);
        report.relate(finding, *priority.source, priority.span, "the spot pool");
        pool_joins_add_toleration(workload, kSpot, finding, report);
    });
}

void check_k8s035(const Bundle& bundle, Report& report) {
    const auto pools = gpu_pools(bundle, report.knowledge());
    if (pools.empty() || pool_joins_operator(bundle)) return;
    for (const Resource* pool : pools) {
        if (pool->get(Attr::managed_gpu).present()) return;
        // GKE and Karpenter's clouds install one themselves.
        if (pool->written.find("google") != std::string_view::npos || pool->written == "NodePool") return;
    }
    const Workload* user = nullptr;
    bool plugin = false;
    pool_joins_each_pod(bundle, [&](const Workload& workload) {
        plugin |= is_device_plugin(workload) || is_node_agent(workload);
        if (!user && asks_accelerator(workload)) user = &workload;
    });
    for (const File* file : bundle.files)
        for_each_part(*file, [&](const File& part) {
            for (const Resource& each : part.resources)
                plugin |= each.type == ResourceType::chart &&
                          contains_nocase(each.get(Attr::chart_name).text, "device-plugin");
            for (const Command& command : part.script.commands)
                plugin |= has_word(command.words, "device-plugin") || has_word(command.words, "gpu-operator");
        });
    if (plugin || !user) return;
    const Resource& pool = *pools.front();
    Finding* finding =
        report.add(*pool.source, pool.header, pool.address,
                   "a GPU pool and pods that ask for GPUs, but nothing installs a device plugin: the nodes "
                   "offer no nvidia.com/gpu, and the pods stay Pending");
    if (finding) finding->advice = "install the NVIDIA device plugin or the GPU Operator with the bundle";
    report.relate(finding, *user->object->source, user->object->find("kind")->span, "asks for a GPU");
}

}  // namespace stoker::lint
