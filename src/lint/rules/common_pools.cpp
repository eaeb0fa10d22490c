#include "lint/rules/common_pools.h"

#include <algorithm>
#include <initializer_list>

namespace stoker::lint {

std::optional<Taint> taint_of(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    Taint taint;
    taint.effect = text.substr(colon + 1);
    // Google's and Amazon's APIs spell the effects in their own way.
    if (taint.effect == "NO_SCHEDULE") taint.effect = "NoSchedule";
    if (taint.effect == "NO_EXECUTE") taint.effect = "NoExecute";
    if (taint.effect == "PREFER_NO_SCHEDULE") taint.effect = "PreferNoSchedule";
    const std::string_view name = text.substr(0, colon);
    const std::size_t equals = name.find('=');
    taint.key = name.substr(0, equals);
    if (equals != std::string_view::npos) taint.value = name.substr(equals + 1);
    if (taint.key.empty()) return std::nullopt;
    return taint;
}

namespace {

bool all_of_them(const Node& values, std::initializer_list<std::string_view> names) {
    for (const Node& value : children(&values))
        if (std::find(names.begin(), names.end(), value.text) == names.end()) return false;
    return values.first != nullptr;
}

// A NodePool of Karpenter that names no size: its requirements may ask for GPUs, or its limits count them.
bool asks_for_gpus(const Node& pool) {
    for (const Node& limit : children(pool.at({"spec", "limits"})))
        if (is_accelerator_resource(limit.key) && limit.text != "0") return true;
    for (const Node& need : children(pool.at({"spec", "template", "spec", "requirements"}))) {
        const Node *key = need.find("key"), *operation = need.find("operator"), *values = need.find("values");
        if (!key || !operation || !values || operation->text != "In") continue;
        const std::string_view name = key->text.substr(key->text.find('/') + 1);
        if (!key->text.starts_with("karpenter.")) continue;
        if (name == "instance-gpu-name" || name == "instance-gpu-manufacturer" || name == "sku-gpu-name" ||
            name == "sku-gpu-manufacturer")
            return true;
        // The letters of Amazon and Azure for machines with GPUs.
        if (name == "instance-category" && all_of_them(*values, {"g", "p"})) return true;
        if (name == "sku-family" && all_of_them(*values, {"N"})) return true;
    }
    return false;
}

}  // namespace

bool is_gpu_pool(const Resource& pool, const Knowledge& knowledge) {
    if (pool.type != ResourceType::node_pool) return false;
    const Value& size = pool.get(Attr::size);
    if (size.known())
        if (const KnownSize* known = knowledge.size(size.text)) return known->gpu();
    if (pool.get(Attr::gpu_driver).present() || pool.get(Attr::gpu_instance).present()) return true;
    if (pool.written == "NodePool" && pool.node && asks_for_gpus(*pool.node)) return true;
    for (const Value* taint : pool.all(Attr::taint)) {
        const auto parts = taint_of(taint->text);
        if (parts && (is_accelerator_resource(parts->key) || equals_ignore_case(parts->value, "gpu"))) return true;
    }
    return size.known() && starts_with_ignore_case(size.text, "Standard_N");
}

std::vector<const Resource*> gpu_pools(const Bundle& bundle, const Knowledge& knowledge) {
    std::vector<const Resource*> pools;
    for (const File* file : bundle.files)
        for_each_part(*file, [&](const File& part) {
            for (const Resource& each : part.resources)
                if (is_gpu_pool(each, knowledge)) pools.push_back(&each);
        });
    return pools;
}

std::vector<const Resource*> candidate_pools(const Workload& workload, const std::vector<const Resource*>& pools) {
    std::vector<const Resource*> found;
    for (const Resource* pool : pools) {
        bool fits = true;
        each_selector(*workload.pod, [&](const Node& key, const Node& value) {
            const std::string_view label = key.key == "key" ? key.text : key.key;
            if (!value.known) return;
            for (const std::string_view name :
                 {"agentpool", "kubernetes.azure.com/agentpool", "cloud.google.com/gke-nodepool",
                  "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool"})
                if (label == name) {
                    const Value& its = pool->get(Attr::name);
                    if (!its.known() || its.text != value.text) fits = false;
                }
            if (label.ends_with("/instance-type")) {
                const std::vector<const Value*> sizes = pool->all(Attr::size);
                if (!sizes.empty() && std::none_of(sizes.begin(), sizes.end(), [&](const Value* size) {
                        return !size->known() || equals_ignore_case(size->text, value.text);
                    }))
                    fits = false;
            }
            for (const Value* each : pool->all(Attr::node_label)) {
                const std::size_t equals = each->text.find('=');
                if (equals != std::string_view::npos && each->text.substr(0, equals) == label && each->known() &&
                    each->text.substr(equals + 1) != value.text)
                    fits = false;
            }
        });
        if (fits) found.push_back(pool);
    }
    return found;
}

const Value* repelling_taint(const Workload& workload, const Resource& pool, bool extended) {
    const Value* repelling = nullptr;
    for (const Value* each : pool.all(Attr::taint)) {
        if (!each->known()) return nullptr;
        const auto taint = taint_of(each->text);
        if (!taint || taint->effect == "PreferNoSchedule") continue;
        if (tolerates(*workload.pod, taint->key, taint->value, taint->effect)) continue;
        bool automatic = false;
        if (extended)
            for (const Container& container : workload.containers)
                for (const Quantity& quantity : container.resources) automatic |= quantity.resource == taint->key;
        if (!automatic && !repelling) repelling = each;
    }
    return repelling;
}

bool is_device_plugin(const Workload& workload) {
    return workload.kind == "DaemonSet" &&
           std::any_of(workload.containers.begin(), workload.containers.end(), [](const Container& container) {
               return container.image.present() &&
                      container.image.text.find("k8s-device-plugin") != std::string_view::npos;
           });
}

}  // namespace stoker::lint
