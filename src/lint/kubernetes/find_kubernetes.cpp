// From manifests to workloads and containers. A pod is recognised by its shape (an object with a list `containers`), so
// that operators' own resources are read too: RayCluster, LeaderWorkerSet, PyTorchJob, JobSet, Volcano jobs and what
// comes after them.
#include <algorithm>

#include <fmt/format.h>

#include "lint/azure/local_modules.h"
#include "lint/kubernetes/container_parts.h"
#include "lint/kubernetes/machine_objects.h"
#include "lint/read.h"
#include "lint/yaml/scalars.h"

namespace stoker::lint {

namespace {

// Values that a search looks at in one document; a manifest has some hundred.
constexpr std::size_t kMostSearched = 50'000;
constexpr std::size_t kMostBeside = 64, kMostBesideBytes = 256u << 10;  // files that may hold a ConfigMap

std::string_view scalar_text_of(const Node* node) {
    return node && node->is_scalar() ? node->text : std::string_view();
}

void add_quantities(const Node* list, bool limit, std::vector<Quantity>& out) {
    if (!list || !list->is_object()) return;
    for (const Node& each : children(list)) out.push_back({each.key, Value::of(&each), each.key_span, limit});
}

void add_words(const Node* list, std::vector<Value>& out) {
    if (!list) return;
    if (list->is_scalar()) {
        if (!list->text.empty()) out.push_back(Value::of(list));
        return;
    }
    for (const Node& each : children(list))
        if (each.is_scalar()) out.push_back(Value::of(&each));
}

struct PodReader {
    File& file;
    const ReadOptions& options;

    void environment(const Node* list, Container& container) {
        if (!list || !list->is_array()) return;
        for (const Node& each : children(list)) {
            const Node* name = each.find("name");
            if (!name) continue;
            EnvVar variable;
            variable.name = name->text;
            const Node* value = each.find("value");
            variable.value = Value::of(value ? value : each.find("valueFrom"));
            if (variable.value.absent()) variable.value.source = each.source;
            variable.span = each.span;
            container.environment.push_back(variable);
            file.environment.push_back(variable);
        }
    }

    Container container(const Node& node, const Workload& workload, bool init) {
        Container made;
        made.node = &node;
        made.init = init;
        made.name = Value::of(node.find("name"));
        made.image = Value::of(node.find("image"));
        const Node* anchor = node.find("name");
        if (!anchor) anchor = node.find("image");
        made.anchor = anchor ? anchor->whole() : Span{node.span.begin, node.span.begin};
        made.address = fmt::format("{}#{}/{}", workload.address, init ? "initContainer" : "container", made.name.text);
        for (const std::string_view key : {"resources", "computeResources"})  // the other one: Tekton
            if (const Node* resources = node.find(key)) {
                add_quantities(resources->find("limits"), true, made.resources);
                add_quantities(resources->find("requests"), false, made.resources);
            }
        environment(node.find("env"), made);
        environment_from(node.find("envFrom"), made);
        add_words(node.find("command"), made.command);
        add_words(node.find("args"), made.command);
        for (Value& word : made.command) refer(word, made);
        return made;
    }

    // ConfigMaps of the same file, or of one beside it; env goes before them.
    void environment_from(const Node* list, Container& container) {
        for (const Node& each : children(list)) {
            const Node* name = each.at({"configMapRef", "name"});
            if (!name || each.find("prefix")) continue;
            if (!take_from(file, name->text, container)) take_from_beside(name->text, container);
        }
    }
    bool take_from(const File& manifests, std::string_view name, Container& container) {
        bool found = false;
        for (const Node* document : manifests.tree.roots) {
            if (scalar_text_of(document->find("kind")) != "ConfigMap" ||
                scalar_text_of(document->at({"metadata", "name"})) != name)
                continue;
            found = true;
            for (const Node& value : children(document->find("data"))) {
                if (!value.is_scalar() || container.env(value.key)) continue;
                EnvVar variable{value.key, Value::of(&value), value.whole()};
                container.environment.push_back(variable);
                if (&manifests == &file) file.environment.push_back(variable);
            }
        }
        return found;
    }
    void take_from_beside(std::string_view name, Container& container) {
        if (file.host || file.call || !options.list || !options.neighbour) return;
        std::size_t count = 0;
        for (const std::string& each : options.list(".")) {
            if ((!each.ends_with(".yaml") && !each.ends_with(".yml")) || ++count > kMostBeside) continue;
            const std::string where = path_from(file.path(), each);
            const auto read = std::find_if(file.neighbours.begin(), file.neighbours.end(),
                                           [&](const auto& other) { return other->path() == where; });
            if (read != file.neighbours.end()) {
                if (take_from(**read, name, container)) return;
                continue;
            }
            auto text = where == file.path() ? std::nullopt : options.neighbour(each);
            if (!text || text->size() > kMostBesideBytes || text->find("ConfigMap") == std::string::npos ||
                text->find("{{") != std::string::npos || text->find('\0') != std::string::npos ||
                text->find(name) == std::string::npos)
                continue;
            file.neighbours.push_back(std::make_unique<File>(where, std::move(*text)));
            read_yaml(*file.neighbours.back());
            if (take_from(*file.neighbours.back(), name, container)) return;
        }
    }

    // $(NAME) in a word, which Kubernetes fills in from the container's own variables.
    void refer(Value& word, const Container& container) {
        if (!word.present() || word.text.find("$(") == std::string_view::npos || word.text.size() > 200) return;
        std::string out;
        bool all = true;
        std::string_view rest = word.text;
        for (std::size_t at = rest.find("$("); at != std::string_view::npos; at = rest.find("$(")) {
            const std::size_t end = rest.find(')', at);
            if (end == std::string_view::npos || (at > 0 && rest[at - 1] == '$')) return;
            const EnvVar* variable = container.env(rest.substr(at + 2, end - at - 2));
            all = all && variable && variable->value.known();
            if (!all) return;
            out += rest.substr(0, at);
            out += variable->value.text;
            rest.remove_prefix(end + 1);
        }
        out += rest;
        word.text = file.tree.keep(out);
        word.state = Value::State::known;
    }

    void containers(const Node* list, Workload& workload, bool init) {
        if (!list || !list->is_array()) return;
        for (const Node& each : children(list))
            if (each.is_object()) workload.containers.push_back(container(each, workload, init));
    }

    void put(Workload workload) {
        file.workloads.push_back(std::move(workload));
        // The containers stay where they are when the list of workloads grows.
        const Node* pod = file.workloads.back().pod;
        for (Container& each : file.workloads.back().containers) {
            read_command(file, each, options);
            if (each.scripts.empty()) written_script(each);
            if (each.scripts.empty()) mounted_script(each, pod);
        }
    }

    // The text that Argo (source) and Tekton (script) give to the interpreter of a container.
    void written_script(Container& container) {
        const Node* text = container.node ? container.node->find("source") : nullptr;
        if (!text && container.node) text = container.node->find("script");
        if (!text || !text->is_scalar() || text->text.empty()) return;
        const std::string_view first = text->text.substr(0, text->text.find('\n'));
        const bool shell = first.starts_with("#!")     ? is_shell_program(first.substr(first.find_last_of("/ ") + 1))
                           : container.command.empty() ? container.node->find("script") == text
                                                       : is_shell_program(container.command.front().text);
        if (!shell) return;
        const File* guest = read_text_guest(file, *text, {Kind::launch, Kind::az}, options, &container);
        if (guest) container.scripts.push_back(guest);
    }

    // bash /scripts/train.sh, where /scripts is a ConfigMap of the same file.
    void mounted_script(Container& container, const Node* pod) {
        std::string_view path;
        for (const Value& word : container.command)
            if (word.known() && path.empty() && word.text.starts_with('/') && word.text.ends_with(".sh"))
                path = word.text;
        if (path.empty() || !pod || !container.node) return;
        const std::size_t slash = path.rfind('/');
        for (const Node& mount : children(container.node->find("volumeMounts"))) {
            std::string_view at = scalar_text_of(mount.find("mountPath"));
            while (at.size() > 1 && at.ends_with('/')) at.remove_suffix(1);
            if (at != path.substr(0, slash) && at != path) continue;
            for (const Node& volume : children(pod->find("volumes"))) {
                if (scalar_text_of(volume.find("name")) != scalar_text_of(mount.find("name"))) continue;
                for (const Node* document : file.tree.roots) {
                    if (scalar_text_of(document->find("kind")) != "ConfigMap" ||
                        scalar_text_of(document->at({"metadata", "name"})) !=
                            scalar_text_of(volume.at({"configMap", "name"})))
                        continue;
                    const Node* data = document->find("data");
                    const Node* text = data ? data->find(path.substr(slash + 1)) : nullptr;
                    if (!text || !text->is_scalar() || text->text.empty()) continue;
                    const File* guest = read_text_guest(file, *text, {Kind::launch}, options, &container);
                    if (guest) container.scripts.push_back(guest);
                    return;
                }
            }
        }
    }
};

// What stands above a pod: how many of it there are, and what its part of the object is called.
struct Above {
    Value replicas, group_size;
    std::string part;
};

Above look_above(const Node& pod, const Node& object) {
    Above above;
    std::string_view list_name;
    for (const Node* at = &pod; at && at != &object; at = at->parent) {
        const Node* parent = at->parent;
        if (!parent) break;
        if (above.part.empty() && parent->is_object())
            for (const std::string_view kept : {"leaderTemplate", "workerTemplate", "headGroupSpec", "predictor",
                                                "transformer", "explainer", "driver", "executor"})
                if (at->key == kept) above.part = kept;
        if (parent->is_array()) {  // workerGroupSpecs, replicatedJobs, tasks: named, or counted
            list_name = parent->key;
            const Node* name = at->find("groupName");
            if (!name) name = at->find("name");
            if (above.part.empty() && name && name->is_scalar()) above.part = name->text;
        }
        if (parent->key.ends_with("ReplicaSpecs") || (parent->key == "services" && at->key != "template"))
            above.part = at->key;
        for (const std::string_view word : {"replicas", "parallelism", "numOfHosts"}) {
            const Node* count = at->is_object() ? at->find(word) : nullptr;
            if (!count || !count->is_scalar()) continue;
            Value& slot = word == "numOfHosts" ? above.group_size : above.replicas;
            if (slot.absent()) slot = Value::of(count);
        }
        if (const Node* size = at->key == "leaderWorkerTemplate" ? at->find("size") : nullptr)
            above.group_size = Value::of(size);
        if (const Node* size = at->at({"multinode", "nodeCount"})) above.group_size = Value::of(size);
    }
    return above;
}

class ObjectReader {
public:
    ObjectReader(File& file, const ReadOptions& options) : file_(file), reader_{file, options}, options_(options) {}

    void document(const Node& root, int depth = 0) {
        const Node* kind = root.find("kind");
        if (!root.is_object() || !kind || !kind->is_scalar()) return;
        if (const Node* items = root.find("items"); items && items->is_array() && kind->text.ends_with("List")) {
            if (depth < 3)
                for (const Node& item : children(items)) document(item, depth + 1);
            return;
        }
        if (!root.find("apiVersion")) return;
        object(root, *kind);
    }

    // A playbook's tasks have manifests among their arguments.
    void manifests_below(const Node& node, int depth = 0) {
        if (depth > 12 || node.is_scalar()) return;
        if (node.is_object() && node.find("apiVersion") && node.find("kind")) return document(node);
        for (const Node& child : children(&node)) manifests_below(child, depth + 1);
    }

private:
    void object(const Node& root, const Node& kind) {
        Workload base;
        base.kind = kind.text;
        base.object = &root;
        base.api_version = scalar_text_of(root.find("apiVersion"));
        const Node* metadata = root.find("metadata");
        if (metadata) {
            base.name = scalar_text_of(metadata->find("name"));
            if (base.name.empty()) base.name = scalar_text_of(metadata->find("generateName"));
            base.name_space = scalar_text_of(metadata->find("namespace"));
        }
        base.address =
            fmt::format("k8s:{}/{}/{}", base.name_space.empty() ? "default" : base.name_space, base.kind, base.name);
        add_machines_of(file_, base);
        if (base.kind == "ConfigMap") {
            config_map(root);
        } else if (base.kind != "CustomResourceDefinition" && base.kind != "Secret") {
            pods_.clear();
            search(root);
        }
        // Beside a ProvisioningRequest a PodTemplate says how large the pods are that capacity is asked for; none is
        // made.
        const bool sizes_only = base.kind == "PodTemplate" &&
                                file_.source().text().find("kind: ProvisioningRequest") != std::string_view::npos;
        if (base.kind == "ConfigMap" || base.kind == "CustomResourceDefinition" || sizes_only || pods_.empty()) {
            file_.workloads.push_back(std::move(base));
            pods_.clear();
            return;
        }
        if (base.kind == "RayJob") entrypoint(root);
        const bool several = pods_.size() > 1;
        std::size_t number = 0;
        for (const Node* pod : pods_) {
            Workload workload = base;
            Above above = look_above(*pod, root);
            workload.replicas = above.replicas;
            workload.group_size = above.group_size;
            if (several) {
                ++number;
                workload.address += "/" + (above.part.empty() ? std::to_string(number) : above.part);
            }
            pod_of(*pod, workload);
            sizes_of(workload);
            reader_.put(std::move(workload));
        }
        pods_.clear();
    }

    void pod_of(const Node& pod, Workload& workload) {
        workload.pod = &pod;
        // The metadata of a template stands beside its spec; KServe and Dynamo have a pod's fields in place.
        if (pod.parent && pod.key == "spec") workload.pod_metadata = pod.parent->find("metadata");
        if (const Node* main = pod.find("mainContainer"); main && main->is_object()) {
            // Dynamo: the container has no name, and its resources and variables stand with the service.
            const Node* service = pod.parent;
            Container made = reader_.container(*main, workload, false);
            if (service) {
                if (const Node* resources = service->find("resources"))
                    for (const bool limit : {true, false})
                        if (const Node* list = resources->find(limit ? "limits" : "requests"))
                            for (const Node& each : children(list))
                                made.resources.push_back({each.key == "gpu" ? "nvidia.com/gpu" : each.key,
                                                          Value::of(&each), each.key_span, limit});
                reader_.environment(service->find("envs"), made);
            }
            workload.containers.push_back(std::move(made));
        }
        if (const Node* model = workload.kind == "InferenceService" ? pod.find("model") : nullptr;
            model && model->is_object()) {
            workload.containers.push_back(reader_.container(*model, workload, false));
            // KServe's runtime for models of Hugging Face gives vLLM what stands here as arguments.
            Container& made = workload.containers.back();
            const Node* format = model->at({"modelFormat", "name"});
            if (made.image.absent() && !made.command.empty() && scalar_text_of(format) == "huggingface")
                for (const std::string_view word : {"serve", "vllm"})
                    made.command.insert(made.command.begin(), Value::known_text(word, format->span, *format->source));
        }
        if (workload.kind == "TrainJob" && pod.key == "trainer") {
            Container made = reader_.container(pod, workload, false);
            for (const bool limit : {true, false})
                for (const Node& each : children(pod.at({"resourcesPerNode", limit ? "limits" : "requests"})))
                    made.resources.push_back({each.key, Value::of(&each), each.key_span, limit});
            workload.replicas = Value::of(pod.find("numNodes"));
            workload.containers.push_back(std::move(made));
        }
        reader_.containers(pod.find("initContainers"), workload, true);
        reader_.containers(pod.find("containers"), workload, false);
        for (const std::string_view key : {"container", "script"})  // Argo
            if (const Node* container = pod.find(key); container && container->is_object())
                workload.containers.push_back(reader_.container(*container, workload, false));
        if (workload.kind.find("Task") != std::string_view::npos || workload.kind.find("Pipeline") == 0)
            reader_.containers(pod.find("steps"), workload, false);  // Tekton
        if (workload.kind == "NIMService") image_in_parts(pod, workload);
    }
    // image: {repository, tag} beside the container's other fields.
    void image_in_parts(const Node& spec, Workload& workload) {
        const Node *repository = spec.at({"image", "repository"}), *tag = spec.at({"image", "tag"});
        if (!repository || !repository->is_scalar()) return;
        Container made = reader_.container(spec, workload, false);
        made.image = Value::of(tag ? tag : repository);
        made.image.text =
            file_.tree.keep(tag ? fmt::format("{}:{}", repository->text, tag->text) : std::string(repository->text));
        if (!repository->known) made.image.state = Value::State::unknown;
        workload.containers.push_back(std::move(made));
    }

    // Sizes that a pod is sent to by affinity; a selector is one key, which the rules about sizes read from the tree.
    void sizes_of(const Workload& workload) {
        const Node* terms = workload.pod->at(
            {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
        for (const Node& term : children(terms))
            for (const Node& expression : children(term.find("matchExpressions"))) {
                const Node *key = expression.find("key"), *operation = expression.find("operator");
                if (!key || !operation || operation->text != "In" || !key->text.ends_with("/instance-type")) continue;
                Resource made;
                made.address = workload.address + "#instance-type";
                made.written = workload.kind;
                made.header = key->whole();
                made.whole = expression.span;
                made.file = &file_;
                made.source = key->source;
                made.node = &expression;
                for (const Node& value : children(expression.find("values")))
                    if (value.is_scalar()) made.set(Attr::size, Value::of(&value));
                file_.resources.push_back(std::move(made));
            }
    }

    static bool is_pod(const Node& node) {
        const Node* containers = node.find("containers");
        if (containers && containers->is_array()) return containers->first && containers->first->is_object();
        if (node.key == "predictor") return node.find("model") != nullptr;
        if (node.key == "trainer") return node.find("numNodes") && node.find("resourcesPerNode");
        if (node.key == "extraPodSpec") return node.find("mainContainer") != nullptr;
        if (const Node* steps = node.find("steps"); steps && steps->is_array() && steps->first)
            return steps->first->find("image") || node.find("stepTemplate");                        // Tekton
        if (node.at({"image", "repository"}) && node.find("resources")) return node.key == "spec";  // NIMService
        const Node *container = node.find("container"), *script = node.find("script");
        return (container && container->is_object() && container->find("image")) ||
               (script && script->is_object() && script->find("image") && script->find("source"));
    }

    void search(const Node& root) {
        std::vector<const Node*> open{&root};
        std::size_t seen = 0;
        while (!open.empty() && ++seen < kMostSearched) {
            const Node& node = *open.back();
            open.pop_back();
            if (node.is_object() && is_pod(node)) {
                pods_.push_back(&node);
                continue;
            }
            const std::size_t before = open.size();
            for (const Node& child : children(&node))
                if (!child.is_scalar() && child.key != "metadata" && child.key != "status") open.push_back(&child);
            std::reverse(open.begin() + static_cast<std::ptrdiff_t>(before), open.end());
        }
    }

    // What a RayJob hands to the cluster that it makes: a command line.
    void entrypoint(const Node& root) {
        const Node* text = root.at({"spec", "entrypoint"});
        if (text && text->is_scalar() && !text->text.empty()) read_text_guest(file_, *text, {Kind::launch}, options_);
    }

    void config_map(const Node& root) {
        const Node* data = root.find("data");
        if (!data || !data->is_object()) return;
        for (const Node& each : children(data)) {
            if (!each.is_scalar() || each.text.empty() || each.key.find('.') == std::string_view::npos) continue;
            const Kinds kinds = classify_guest(each.key, each.text);
            if (!kinds.empty()) read_text_guest(file_, each, kinds, options_);
        }
    }

    File& file_;
    PodReader reader_;
    const ReadOptions& options_;
    std::vector<const Node*> pods_;
};

}  // namespace

void find_kubernetes(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::k8s)) return;
    ObjectReader reader(file, options);
    for (const Node* root : file.tree.roots)
        if (file.kinds.has(Kind::workflow))
            reader.manifests_below(*root);
        else
            reader.document(*root);
}

}  // namespace stoker::lint
