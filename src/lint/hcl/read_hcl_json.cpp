#include "lint/hcl/read_hcl_json.h"

#include <algorithm>

namespace stoker::lint {

namespace {

// The blocks of Terraform's JSON as those of HCL: resource "type" "name" { ... }, with the places of the JSON.
class HclFromJson {
public:
    HclFromJson(File& file, Expressions& expressions) : file_(file), expressions_(expressions) {}

    void read() {
        read_json(file_);
        const Node* top = file_.tree.roots.empty() ? nullptr : file_.tree.roots[0];
        Node& root = file_.tree.make(file_.source(), Shape::object, top ? top->span : Span{});
        file_.tree.roots.assign(1, &root);
        if (!top || !top->is_object()) return;
        const bool values = file_.path().ends_with(".tfvars.json");
        for (Node* child : list_of(top)) {
            const std::string_view key = child->key;
            if (values)
                put(root, *child);
            else if (key == "resource" || key == "data")
                for (Node* type : list_of(child))
                    for (Node* name : list_of(type)) blocks(root, *name, key, {type->key, name->key}, true);
            else if (key == "variable" || key == "output" || key == "module" || key == "provider")
                for (Node* name : list_of(child)) blocks(root, *name, key, {name->key}, false);
            else if (key == "locals" || key == "terraform")
                blocks(root, *child, key, {}, false);
        }
    }

private:
    void put(Node& parent, Node& child) {
        child.next = nullptr;  // it hung below another
        file_.tree.append(parent, child);
    }
    static std::vector<Node*> list_of(const Node* node) {
        std::vector<Node*> list;
        if (node && !node->is_scalar())
            for (const Node& child : children(node)) list.push_back(const_cast<Node*>(&child));
        return list;
    }
    void blocks(Node& root, Node& body, std::string_view key, std::vector<std::string_view> labels, bool nested) {
        if (body.is_array()) {
            const Span name = body.key_span;
            for (Node* item : list_of(&body)) {
                item->key_span = name;
                if (item->is_object()) blocks(root, *item, key, labels, nested);
            }
            return;
        }
        if (!body.is_object()) return;
        body.key = key;
        body.labels = file_.tree.keep_labels(labels);
        put(root, body);
        if (nested) spread_lists(body, 0);
        if (key != "variable") templates(body, 0);
    }
    // A list of objects below a key is that many blocks; "dynamic": {"name": {...}} has its label as a key.
    void spread_lists(Node& body, int depth) {
        if (depth > kExpressionDepth) return;
        const std::vector<Node*> list = list_of(&body);
        body.first = body.last = nullptr;
        for (Node* child : list) {
            std::vector<Node*> items;
            if (child->is_array() || (child->key == "dynamic" && child->is_object())) items = list_of(child);
            if (items.empty() ||
                !std::all_of(items.begin(), items.end(), [](const Node* item) { return item->is_object(); })) {
                put(body, *child);
                if (child->is_object()) spread_lists(*child, depth + 1);
                continue;
            }
            for (Node* item : items) {
                if (child->is_object()) item->labels = file_.tree.keep_labels({item->key});
                item->key = child->key, item->key_span = child->key_span;
                put(body, *item);
                spread_lists(*item, depth + 1);
            }
        }
    }
    void templates(Node& node, int depth) {
        if (depth > static_cast<int>(kMostDepth)) return;
        for (Node* child : list_of(&node)) {
            if (!child->is_scalar()) {
                templates(*child, depth + 1);
            } else if (child->shape == Shape::string && (child->text.find("${") != std::string_view::npos ||
                                                         child->text.find("%{") != std::string_view::npos)) {
                ExpressionReader reader(file_, expressions_, Dialect::hcl, child->text);
                reader.fix_span(child->span);
                const Expression* e = reader.bare_template(0);
                child->known = false;
                if (e) expressions_.pending.emplace(child, Expressions::Pending{e});
            }
        }
    }

    File& file_;
    Expressions& expressions_;
};

}  // namespace

void read_hcl_json(File& file, Expressions& expressions) {
    HclFromJson(file, expressions).read();
}

}  // namespace stoker::lint
