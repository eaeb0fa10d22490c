#include "lint/kubernetes/machine_objects.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

// Machines and pools that operators make from objects: Cluster API, Azure Service Operator, Crossplane.
void add_machine_size(File& file, const Workload& object) {
    const Node& root = *object.object;
    struct Path {
        std::string_view kind;
        std::vector<std::string_view> steps;
    };
    static const std::vector<Path> paths = {{"AzureMachineTemplate", {"spec", "template", "spec", "vmSize"}},
                                            {"AzureMachinePool", {"spec", "template", "vmSize"}},
                                            {"ManagedClustersAgentPool", {"spec", "vmSize"}},
                                            {"VirtualMachine", {"spec", "hardwareProfile", "vmSize"}},
                                            {"KubernetesClusterNodePool", {"spec", "forProvider", "vmSize"}},
                                            {"LinuxVirtualMachine", {"spec", "forProvider", "size"}}};
    for (const Path& path : paths) {
        if (path.kind != object.kind) continue;
        const Node* size = &root;
        for (const std::string_view step : path.steps) size = size ? size->find(step) : nullptr;
        if (!size || !size->is_scalar()) continue;
        Resource made;
        made.address = object.address;
        made.written = object.kind;
        made.header = size->whole();
        made.whole = root.span;
        made.file = &file;
        made.source = size->source;
        made.node = &root;
        made.set(Attr::size, Value::of(size));
        file.resources.push_back(std::move(made));
    }
}

// Pools that are Kubernetes objects: Karpenter's and Cluster API's for AKS.
void add_pool_object(File& file, const Workload& object) {
    const Node* spec = object.object->find("spec");
    const Node* kind = object.object->find("kind");
    if (!spec) return;
    Resource made;
    made.type = ResourceType::node_pool;
    made.address = object.address;
    made.written = object.kind;
    made.header = kind->whole();
    made.whole = object.object->span;
    made.file = &file;
    made.source = kind->source;
    made.node = object.object;
    made.set(Attr::name, Value::of(object.object->at({"metadata", "name"})));
    const Node* nodes = object.kind == "NodePool" ? spec->at({"template", "spec"}) : spec;
    if (object.kind == "NodePool" && !nodes) return;
    for (const Node& taint : children(nodes->find("taints"))) {
        const Node *key = taint.find("key"), *value = taint.find("value"), *effect = taint.find("effect");
        if (!key || !effect) continue;
        Value all = Value::of(key);
        all.text = file.tree.keep(value ? fmt::format("{}={}:{}", key->text, value->text, effect->text)
                                        : fmt::format("{}:{}", key->text, effect->text));
        if (!effect->known || (value && !value->known)) all.state = Value::State::unknown;
        made.set(Attr::taint, all);
    }
    for (const Node* labels : {spec->at({"template", "metadata", "labels"}), spec->find("nodeLabels")})
        for (const Node& label : children(labels)) {
            Value all = Value::of(&label);
            all.text = file.tree.keep(fmt::format("{}={}", label.key, label.text));
            made.set(Attr::node_label, all);
        }
    if (object.kind == "AzureManagedMachinePool") {
        made.set(Attr::size, Value::of(spec->find("sku")));
        made.set(Attr::priority, Value::of(spec->find("scaleSetPriority")));
    }
    for (const Node& need : children(nodes->find("requirements"))) {
        const Node *key = need.find("key"), *operation = need.find("operator"), *values = need.find("values");
        if (!key || !operation || operation->text != "In" || !values || !values->first) continue;
        if (key->text == "node.kubernetes.io/instance-type")
            for (const Node& value : children(values)) made.set(Attr::size, Value::of(&value));
        if (key->text == "karpenter.sh/capacity-type" && values->count() == 1)
            made.set(Attr::priority, Value::of(values->first));
    }
    file.resources.push_back(std::move(made));
}

}  // namespace

void add_machines_of(File& file, const Workload& object) {
    if (object.kind == "NodePool" || object.kind == "AzureManagedMachinePool") add_pool_object(file, object);
    add_machine_size(file, object);
}

}  // namespace stoker::lint
