// What a kustomization makes of its resources: patches, images, replicas and generated ConfigMaps laid over the
// manifests that it names. Each value keeps the place where it was written; the manifests alone are checked where they
// stand.
// Longer than 500 lines because each step of kustomize works on the same documents in place.
#include <algorithm>
#include <charconv>
#include <span>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/kubernetes/replacement_paths.h"
#include "lint/read.h"
#include "lint/yaml/scalars.h"

namespace stoker::lint {

namespace {

constexpr int kMostBases = 6;                 // within one another
constexpr std::size_t kMostFiles = 64;        // of one kustomization
constexpr std::size_t kMostCopied = 200'000;  // values

constexpr std::string_view kNames[] = {"kustomization.yaml", "kustomization.yml", "Kustomization"};

std::string_view scalar_of(const Node* node, std::string_view key) {
    const Node* child = node ? node->find(key) : nullptr;
    return child && child->is_scalar() ? child->text : std::string_view();
}

class Kustomizer {
public:
    Kustomizer(File& made, const ReadOptions& options) : made_(made), options_(options) {}

    // False: nothing is changed by it, or something cannot be followed.
    bool build(const Node& root, const std::string& prefix, int depth, std::vector<Node*>& documents) {
        bool changed = root.find("secretGenerator") != nullptr;
        if (depth > kMostBases) return false;
        for (const std::string_view key : {"resources", "bases"})
            for (const Node& entry : children(root.find(key))) changed |= add(entry, prefix, depth, documents);
        for (const Node& entry : children(root.find("configMapGenerator"))) {
            if (Node* map = config_map(entry, prefix)) documents.push_back(map), changed = true;
        }
        for (const Node& entry : children(root.find("components")))
            changed |= component(entry, prefix, depth, documents);
        for (const std::string_view key : {"patches", "patchesStrategicMerge", "patchesJson6902"})
            for (const Node& entry : children(root.find(key))) changed |= patch(entry, prefix, documents);
        for (const Node& entry : children(root.find("labels")))
            for (Node* document : documents)
                changed |= label(*document, entry.find("pairs"), scalar_of(&entry, "includeSelectors") == "true",
                                 scalar_of(&entry, "includeTemplates") == "true");
        for (Node* document : documents) changed |= label(*document, root.find("commonLabels"), true, true);
        for (const Node& entry : children(root.find("images")))
            for (Node* document : documents) changed |= image(*document, entry, 0);
        for (const Node& entry : children(root.find("replacements"))) changed |= replacement(entry, prefix, documents);
        for (const Node& entry : children(root.find("replicas")))
            for (Node* document : documents)
                if (name_of(*document) == scalar_of(&entry, "name") && entry.find("count")) {
                    Node* spec = mutable_child(*document, "spec");
                    if (spec) set(*spec, *entry.find("count"), "replicas"), changed = true;
                }
        return changed;
    }

private:
    static std::string_view name_of(const Node& document) { return scalar_of(document.find("metadata"), "name"); }
    static Node* mutable_child(const Node& node, std::string_view key) { return const_cast<Node*>(node.find(key)); }

    File* beside(const std::string& name) {
        if (made_.neighbours.size() >= kMostFiles || name.find("://") != std::string::npos) return nullptr;
        auto text = options_.neighbour(name);
        if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) return nullptr;
        std::string where = path_from(made_.path(), name);
        made_.neighbours.push_back(std::make_unique<File>(std::move(where), std::move(*text)));
        File& read = *made_.neighbours.back();
        read.kinds.add(Kind::k8s);
        read_yaml(read);
        return read.problems.empty() ? &read : nullptr;
    }
    static bool is_manifest(std::string_view name) {
        return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
    }

    bool add(const Node& entry, const std::string& prefix, int depth, std::vector<Node*>& documents) {
        if (!entry.is_scalar() || !entry.known) return false;
        const std::string name = prefix + std::string(entry.text);
        if (is_manifest(entry.text)) {
            if (const File* read = beside(name))
                for (const Node* root : read->tree.roots)
                    if (root->is_object()) {
                        if (Node* copied = copy(*root)) documents.push_back(copied);
                    }
            return false;
        }
        return folder(name, depth, documents);
    }
    bool folder(const std::string& name, int depth, std::vector<Node*>& documents) {
        for (const std::string_view file : kNames)
            if (const File* read = beside(name + "/" + std::string(file)); read && !read->tree.roots.empty())
                return build(*read->tree.roots[0], name + "/", depth + 1, documents);
        return false;
    }
    bool component(const Node& entry, const std::string& prefix, int depth, std::vector<Node*>& documents) {
        return entry.is_scalar() && folder(prefix + std::string(entry.text), depth, documents);
    }

    // labels: and commonLabels: on the object, on the pods that it makes, and in what selects them.
    // True where that joins a Service to its pods.
    bool label(Node& document, const Node* pairs, bool selectors, bool templates) {
        if (!pairs || !pairs->is_object()) return false;
        const auto lay = [&](std::initializer_list<std::string_view> path) {
            Node* at = &document;
            for (const std::string_view key : path) {
                Node* next = mutable_child(*at, key);
                if (!next) {
                    next = &made_.tree.make(*pairs->source, Shape::object, pairs->span);
                    next->key = key, next->key_span = pairs->key_span;
                    made_.tree.append(*at, *next);
                }
                if (!next->is_object()) return;
                at = next;
            }
            for (const Node& pair : children(pairs)) set(*at, pair, pair.key);
        };
        const std::string_view kind = scalar_of(&document, "kind");
        lay({"metadata", "labels"});
        const bool several =
            kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet" || kind == "ReplicaSet";
        if (!document.find("spec")) return false;
        if (selectors && kind == "Service") lay({"spec", "selector"});
        if (selectors && several) lay({"spec", "selector", "matchLabels"});
        if ((selectors || templates) && (several || kind == "Job")) lay({"spec", "template", "metadata", "labels"});
        if ((selectors || templates) && kind == "CronJob")
            lay({"spec", "jobTemplate", "spec", "template", "metadata", "labels"});
        return selectors && kind == "Service";
    }

    Node* copy(const Node& node, int depth = 0) {
        if (depth > 200 || made_.tree.size() > kMostCopied) return nullptr;
        Node& copied = made_.tree.make(*node.source, node.shape, node.span);
        copied.style = node.style, copied.known = node.known, copied.merged = node.merged;
        copied.key = node.key, copied.key_span = node.key_span, copied.text = node.text;
        for (const Node& child : children(&node))
            if (Node* below = copy(child, depth + 1)) made_.tree.append(copied, *below);
        return &copied;
    }
    void set(Node& object, const Node& value, std::string_view key) {
        Node* copied = copy(value);
        if (!copied) return;
        copied->key = key;
        if (Node* old = mutable_child(object, key))
            replace(*old, *copied);
        else
            made_.tree.append(object, *copied);
    }
    static void replace(Node& old, const Node& with) {
        old.shape = with.shape, old.style = with.style, old.known = with.known, old.merged = with.merged;
        old.text = with.text, old.span = with.span, old.key_span = with.key_span, old.source = with.source;
        old.first = with.first, old.last = with.last;
        for (const Node& child : children(&old)) const_cast<Node&>(child).parent = &old;
    }
    static void remove(Node& parent, const Node& gone) {
        const Node* before = nullptr;
        for (const Node& child : children(&parent)) {
            if (&child == &gone) {
                if (before)
                    const_cast<Node*>(before)->next = gone.next;
                else
                    parent.first = gone.next;
                if (parent.last == &gone) parent.last = before;
                return;
            }
            before = &child;
        }
    }

    // A file beside as a text; null where it cannot be read.
    Node* whole_file(const std::string& relative) {
        if (made_.neighbours.size() >= kMostFiles) return nullptr;
        auto text = options_.neighbour(relative);
        if (!text || text->size() > kMostBytes / 64 || text->find('\0') != std::string::npos) return nullptr;
        made_.neighbours.push_back(std::make_unique<File>(path_from(made_.path(), relative), std::move(*text)));
        const File& read = *made_.neighbours.back();
        Node& whole =
            made_.tree.make(read.source(), Shape::string, {0, static_cast<std::uint32_t>(read.source().text().size())});
        whole.text = read.source().text();
        return &whole;
    }
    // The texts of `envs: [a.env]`, each as a node of its own file.
    std::vector<const Node*> environment_files(const Node& entry, const std::string& prefix) {
        std::vector<const Node*> found;
        std::vector<std::string_view> names;
        for (const Node& name : children(entry.find("envs")))
            if (name.is_scalar()) names.push_back(name.text);
        if (const std::string_view name = scalar_of(&entry, "env"); !name.empty()) names.push_back(name);
        for (const std::string_view name : names)
            if (const Node* whole = whole_file(prefix + std::string(name))) found.push_back(whole);
        return found;
    }
    Node* config_map(const Node& entry, const std::string& prefix) {
        const Node* name = entry.find("name");
        if (!name || !(entry.find("literals") || entry.find("envs") || entry.find("env") || entry.find("files")))
            return nullptr;
        const auto object = [&](std::string_view key) -> Node& {
            Node& node = made_.tree.make(*entry.source, Shape::object, entry.span);
            node.key = key;
            return node;
        };
        const auto text = [&](const Node& at, std::string_view key, std::string_view value) -> Node& {
            Node& node = made_.tree.make(*at.source, Shape::string, at.span);
            node.key = key, node.key_span = at.span, node.text = value;
            return node;
        };
        Node& map = object("");
        made_.tree.append(map, text(*name, "apiVersion", "v1"));
        made_.tree.append(map, text(*name, "kind", "ConfigMap"));
        Node& metadata = object("metadata");
        made_.tree.append(metadata, text(*name, "name", name->text));
        made_.tree.append(map, metadata);
        Node& data = object("data");
        for (const Node* file : environment_files(entry, prefix))
            for (const std::string_view raw : split(file->text, '\n')) {
                const std::string_view line = trim(raw);
                const std::size_t equals = line.find('=');
                if (line.starts_with('#') || equals == std::string_view::npos || equals == 0) continue;
                const auto begin = static_cast<std::uint32_t>(line.data() - file->text.data());
                Node& node = made_.tree.make(
                    *file->source, Shape::string,
                    {begin + static_cast<std::uint32_t>(equals) + 1, begin + static_cast<std::uint32_t>(line.size())});
                node.key = line.substr(0, equals);
                node.key_span = {begin, begin + static_cast<std::uint32_t>(equals)};
                node.text = line.substr(equals + 1);
                made_.tree.append(data, node);
            }
        for (const Node& literal : children(entry.find("literals"))) {
            const std::size_t equals = literal.text.find('=');
            if (equals != std::string_view::npos)
                made_.tree.append(data, text(literal, literal.text.substr(0, equals), literal.text.substr(equals + 1)));
        }
        // files: [start.sh, ds.json=configs/zero2.json]
        for (const Node& file : children(entry.find("files"))) {
            if (!file.is_scalar()) continue;
            const std::size_t equals = file.text.find('=');
            const std::string_view path = equals == std::string_view::npos ? file.text : file.text.substr(equals + 1);
            Node* whole = whole_file(prefix + std::string(path));
            if (!whole) continue;
            whole->key =
                equals == std::string_view::npos ? path.substr(path.rfind('/') + 1) : file.text.substr(0, equals);
            made_.tree.append(data, *whole);
        }
        made_.tree.append(map, data);
        return &map;
    }

    // ---- Patches ----------------------------------------------------------------------------------------------------
    bool patch(const Node& entry, const std::string& prefix, const std::vector<Node*>& documents) {
        const Node* text = entry.is_object() ? entry.find("patch") : nullptr;
        std::string path(entry.is_scalar() ? entry.text : scalar_of(&entry, "path"));
        const bool inline_text = entry.is_scalar() && path.find('\n') != std::string::npos;
        if (inline_text) text = &entry;
        const File* read = nullptr;
        if (text) {
            auto pieces = pieces_of(*text);
            if (pieces.empty() || made_.neighbours.size() >= kMostFiles) return false;
            const File* owner = owner_of(*text);
            if (!owner) return false;
            made_.neighbours.push_back(std::make_unique<File>(*owner, std::string(text->text), std::move(pieces)));
            File& inside = *made_.neighbours.back();
            inside.kinds.add(Kind::k8s);
            read_yaml(inside);
            if (inside.problems.empty()) read = &inside;
        } else if (!path.empty()) {
            read = beside(prefix + path);
        }
        if (!read) return false;
        bool changed = false, fits = false;
        for (const Node* root : read->tree.roots) {
            const Node* target = entry.is_object() ? entry.find("target") : nullptr;
            for (Node* document : documents) {
                if (target ? !is_target(*document, *target) : !root->is_object() || !is_same(*document, *root))
                    continue;
                fits = true;
                if (root->is_array())
                    for (const Node& step : children(root)) changed |= apply(*document, step);
                else if (root->is_object())
                    merge(*document, *root, 0), changed = true;
            }
        }
        // What it patches is not here (a base on another host): nothing that is made has it, and it stands for itself.
        if (!fits && !text && !made_.neighbours.empty() && made_.neighbours.back().get() == read)
            made_.neighbours.pop_back();
        return changed;
    }
    const File* owner_of(const Node& node) const {
        if (node.source == &made_.source()) return &made_;
        for (const auto& file : made_.neighbours)
            if (&file->source() == node.source) return file.get();
        return given_;
    }
    static bool is_same(const Node& document, const Node& other) {
        return scalar_of(&document, "kind") == scalar_of(&other, "kind") && name_of(document) == name_of(other);
    }
    static bool is_target(const Node& document, const Node& target) {
        if (!is_selected(document, target, "labelSelector", "labels") ||
            !is_selected(document, target, "annotationSelector", "annotations"))
            return false;
        return name_fits(scalar_of(&target, "kind"), scalar_of(&document, "kind")) &&
               name_fits(scalar_of(&target, "name"), name_of(document));
    }
    // "a=b,c!=d,e"
    static bool is_selected(const Node& document, const Node& target, std::string_view selector,
                            std::string_view kind) {
        const std::string_view wanted = scalar_of(&target, selector);
        const Node* metadata = document.find("metadata");
        const Node* labels = metadata ? metadata->find(kind) : nullptr;
        for (std::string_view one : split(wanted, ',')) {
            one = trim(one);
            if (one.empty()) continue;
            if (one.find_first_of("( ") != std::string_view::npos) return false;  // "a in (b, c)": not followed
            const std::size_t equals = one.find('=');
            const bool differs = equals != std::string_view::npos && equals > 0 && one[equals - 1] == '!';
            std::string_view key = one.substr(0, differs ? equals - 1 : equals), value;
            if (equals != std::string_view::npos) value = one.substr(one.find_last_of('=') + 1);
            const bool there = labels && labels->find(key);
            const bool same = there && (equals == std::string_view::npos || scalar_of(labels, key) == value);
            if (same == differs) return false;
        }
        return true;
    }
    // What stands at a path of keys with dots between them: a.b.0.c, a.[name=x].c, a.*.c; all that fit.
    static void at_path(Node& node, std::span<const std::string> keys, std::vector<Node*>& found) {
        if (found.size() > 100) return;
        if (keys.empty()) {
            found.push_back(&node);
            return;
        }
        const std::string& key = keys[0];
        if (key == "*" || (key.starts_with('[') && key.ends_with(']'))) {
            const std::string_view inside = std::string_view(key).substr(1, key.size() < 2 ? 0 : key.size() - 2);
            const std::size_t equals = inside.find('=');
            if (key != "*" && equals == std::string_view::npos) {  // a key with dots in it
                if (Node* next = step_into(node, std::string(inside))) at_path(*next, keys.subspan(1), found);
                return;
            }
            for (const Node& child : children(&node))
                if (key == "*" || scalar_of(&child, inside.substr(0, equals)) == inside.substr(equals + 1))
                    at_path(const_cast<Node&>(child), keys.subspan(1), found);
            return;
        }
        if (Node* next = step_into(node, key)) at_path(*next, keys.subspan(1), found);
    }
    bool replacement(const Node& entry, const std::string& prefix, const std::vector<Node*>& documents) {
        const std::string_view path = scalar_of(&entry, "path");
        if (!path.empty()) {
            const File* read = beside(prefix + std::string(path));
            bool changed = false;
            for (const Node* root : read ? read->tree.roots : std::vector<Node*>())
                if (root->is_array())
                    for (const Node& each : children(root)) changed |= replacement(each, prefix, documents);
                else if (!root->find("path"))
                    changed |= replacement(*root, prefix, documents);
            return changed;
        }
        const Node* source = entry.find("source");
        if (!source) return false;
        const std::string_view field = scalar_of(source, "fieldPath");
        const Node* value = nullptr;
        for (Node* document : documents) {
            if (!is_target(*document, *source)) continue;
            std::vector<Node*> found;
            at_path(*document, path_keys(field.empty() ? "metadata.name" : field), found);
            if (found.size() == 1 && found[0]->is_scalar()) value = found[0];
        }
        if (!value || !value->known) return false;
        const Node* from = source->find("options");
        const std::string_view given = part_at(value->text, scalar_of(from, "delimiter"), part_index(from));
        bool changed = false;
        for (const Node& target : children(entry.find("targets"))) {
            const Node* select = target.find("select");
            const Node* options = target.find("options");
            const std::string_view delimiter = scalar_of(options, "delimiter");
            for (Node* document : documents) {
                if (!select || !is_target(*document, *select)) continue;
                for (const Node& each : children(target.find("fieldPaths"))) {
                    std::vector<Node*> found;
                    if (each.is_scalar()) at_path(*document, path_keys(each.text), found);
                    for (Node* at : found) {
                        if (!at->is_scalar()) continue;
                        std::string text = with_part(at->text, delimiter, part_index(options), given);
                        Node& made = made_.tree.make(*value->source, Shape::string, value->span);
                        made.text = made_.tree.keep(std::move(text)), made.key_span = value->key_span;
                        const std::string_view key = at->key;
                        replace(*at, made);
                        at->key = key;
                        changed = true;
                    }
                }
            }
        }
        return changed;
    }
    static std::string_view merge_key(std::string_view list) {
        if (list == "containers" || list == "initContainers" || list == "volumes" || list == "env" ||
            list == "imagePullSecrets")
            return "name";
        return list == "volumeMounts" ? "mountPath" : list == "ports" ? "containerPort" : "";
    }
    void merge(Node& base, const Node& patch, int depth) {
        if (depth > 100) return;
        for (const Node& child : children(&patch)) {
            if (child.key.starts_with("$")) continue;
            Node* old = mutable_child(base, child.key);
            if (old && child.shape == Shape::null) {
                remove(base, *old);
            } else if (old && old->is_object() && child.is_object() && scalar_of(&child, "$patch") != "replace") {
                merge(*old, child, depth + 1);
            } else if (const std::string_view key = merge_key(child.key);
                       old && old->is_array() && child.is_array() && !key.empty()) {
                for (const Node& item : children(&child)) merge_item(*old, item, key, depth + 1);
            } else {
                set(base, child, child.key);
                if (Node* now = mutable_child(base, child.key)) now->key_span = child.key_span;
            }
        }
    }
    void merge_item(Node& list, const Node& item, std::string_view key, int depth) {
        for (const Node& old : children(&list))
            if (old.is_object() && item.is_object() && !scalar_of(&item, key).empty() &&
                scalar_of(&old, key) == scalar_of(&item, key)) {
                if (scalar_of(&item, "$patch") == "delete") return remove(list, old);
                return merge(const_cast<Node&>(old), item, depth);
            }
        if (Node* copied = copy(item)) made_.tree.append(list, *copied);
    }

    // One step of a JSON patch.
    bool apply(Node& document, const Node& step) {
        const std::string_view op = scalar_of(&step, "op"), path = scalar_of(&step, "path");
        const Node* value = step.find("value");
        if (!path.starts_with('/')) return false;
        std::vector<std::string> keys;
        for (const std::string_view part : split(path.substr(1), '/'))
            keys.push_back(replace_all(replace_all(part, "~1", "/"), "~0", "~"));
        Node* at = &document;
        for (std::size_t i = 0; i + 1 < keys.size() && at; ++i) at = step_into(*at, keys[i]);
        if (!at || at->is_scalar()) return false;
        const std::string& last = keys.back();
        Node* old = step_into(*at, last);
        if (op == "remove") {
            if (old) remove(*at, *old);
            return old != nullptr;
        }
        if (!value || (op != "add" && op != "replace")) return false;
        Node* copied = copy(*value);
        if (!copied) return false;
        copied->key = at->is_object() ? made_.tree.keep(last) : std::string_view();
        if (at->is_object() && old) {
            const std::string_view key = old->key;
            replace(*old, *copied);
            old->key = key;
        } else if (at->is_array() && old && op == "replace") {
            replace(*old, *copied);
        } else {
            made_.tree.append(*at, *copied);
        }
        return true;
    }
    static Node* step_into(Node& node, const std::string& key) {
        if (node.is_object()) return mutable_child(node, key);
        std::size_t index = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
        if (!node.is_array() || error != std::errc{} || end != key.data() + key.size()) return nullptr;
        const Node* item = node.first;
        for (; item && index > 0; --index) item = item->next;
        return const_cast<Node*>(item);
    }

    // images: what stands behind the name of an image in each container.
    bool image(Node& node, const Node& entry, int depth) {
        bool changed = false;
        if (depth > 100 || node.is_scalar()) return false;
        for (const Node& child : children(&node)) {
            if (child.key != "image" || !child.is_scalar()) {
                changed |= image(const_cast<Node&>(child), entry, depth + 1);
                continue;
            }
            std::string_view name = child.text.substr(0, child.text.find('@'));
            if (const std::size_t colon = name.rfind(':');
                colon != std::string_view::npos && name.find('/', colon) == std::string_view::npos)
                name = name.substr(0, colon);
            if (name != scalar_of(&entry, "name")) continue;
            const Node *tag = entry.find("newTag"), *digest = entry.find("digest"), *other = entry.find("newName");
            const Node* at = tag ? tag : digest ? digest : other;
            if (!at) continue;
            std::string text(other ? other->text : name);
            if (tag && !tag->text.empty())
                text += ":" + std::string(tag->text);
            else if (digest)
                text += "@" + std::string(digest->text);
            else if (!tag && name.size() < child.text.size())
                text += child.text.substr(name.size());
            Node& value = made_.tree.make(*at->source, Shape::string, at->span);
            value.text = made_.tree.keep(text), value.key_span = at->key_span, value.known = at->known;
            replace(const_cast<Node&>(child), value);
            changed = true;
        }
        return changed;
    }

    File& made_;
    const ReadOptions& options_;

public:
    const File* given_ = nullptr;  // the kustomization itself
};

}  // namespace

void read_kustomization(File& file, const ReadOptions& options) {
    const std::string_view name = std::string_view(file.path()).substr(file.path().rfind('/') + 1);
    if (file.host || file.call || !options.neighbour || file.tree.roots.empty() ||
        std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames))
        return;
    auto made = file_of_call(file, file.path(), std::string(file.source().text()), "kustomization");
    made->kinds.add(Kind::k8s);
    made->call->overlay = true;
    Kustomizer kustomizer(*made, options);
    kustomizer.given_ = &file;
    std::vector<Node*> documents;
    if (!kustomizer.build(*file.tree.roots[0], "", 0, documents) || documents.empty()) {
        // Which manifests it has as they are: what others make of them does not speak for it.
        for (auto& part : made->neighbours)
            if (!part->host) file.neighbours.push_back(std::move(part));
        return;
    }
    made->tree.roots = std::move(documents);
    find_kubernetes(*made, ReadOptions{});
    file.calls.push_back(std::move(made));
}

}  // namespace stoker::lint
