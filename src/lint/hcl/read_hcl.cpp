// HCL: blocks, attributes and expressions; variables and locals followed through the files beside it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lint/hcl/definitions.h"
#include "lint/hcl/expression.h"
#include "lint/hcl/module_outputs.h"
#include "lint/hcl/parse_hcl.h"
#include "lint/hcl/read_hcl_json.h"

namespace stoker::lint {

namespace {

// Modules that are read for what they give: of one file, and within one another.
constexpr std::size_t kMostAskedModules = 8;
constexpr int kMostAskedDepth = 2;

constexpr std::size_t kMostCopies = 64;  // of a resource with for_each

class HclEvaluator : public Evaluator {
public:
    using Evaluator::Evaluator;

    // Variables and locals of this file; then what the files beside it say.
    void learn() {
        learn_from(file_);
        const std::string_view text = file_.source().text();
        const bool asks = text.find("var.") != std::string_view::npos || text.find("local.") != std::string_view::npos;
        const bool cloud = text.find("resource \"") != std::string_view::npos ||
                           text.find("module \"") != std::string_view::npos ||
                           (file_.call && text.find("output \"") != std::string_view::npos);
        if (options_.neighbour && asks && cloud && !file_.host)
            for (const char* name : {"variables.tf", "vars.tf", "locals.tf", "terraform.tfvars"}) learn_beside(name);
        if (options_.list && asks && cloud && !file_.host && of_a_root())
            for (const std::string& name : options_.list("."))
                if (name.ends_with(".auto.tfvars")) learn_beside(name.c_str());
        // What those files themselves ask for may stand in others again.
        for (int round = 0; round < 2 && options_.list && options_.neighbour && asks && cloud && !file_.host; ++round)
            for (const std::string& name : files_that_define(file_, options_, [this](bool local, std::string_view of) {
                     return local ? locals_.contains(of) : variables_.contains(of);
                 }))
                learn_beside(name.c_str());
        if (options_.neighbour && asks && file_.path().ends_with(".tf.json"))
            for (const char* name : {"variables.tf.json", "terraform.tfvars.json"}) learn_beside(name);
        if (!file_.call) return;
        for (const auto& [name, value] : file_.call->inputs) give(name, value);
    }

    // What optional(type, default) says stands where a default leaves it out; kept for values from elsewhere.
    void fill_optional(const File& file) {
        if (file.tree.roots.empty()) return;
        for (const Node& block : children(file.tree.roots[0])) {
            const Node* type = block.key == "variable" ? block.find("type") : nullptr;
            const auto it = expressions_.pending.find(type);
            if (it == expressions_.pending.end()) continue;
            Node* defaults = optional_defaults(*it->second.expression, 0);
            if (!defaults) continue;
            defaults->key = "(optional)";
            file_.tree.append(const_cast<Node&>(block), *defaults);
            if (const Node* value = block.find("default")) overlay(settle(value), defaults, 0);
        }
    }

    // Blocks that override.tf or *_override.tf give again: what they say comes last, and the last counts.
    void merge_overrides() {
        const auto is_override = [](std::string_view path) {
            const std::string_view name = path.substr(path.rfind('/') + 1);
            return name == "override.tf" || name.ends_with("_override.tf");
        };
        Node& root = *file_.tree.roots[0];
        if (is_override(file_.path())) {
            for (const Node& block : children(&root))
                if (block.key == "resource") const_cast<Node&>(block).key = "override";
            return;
        }
        if (file_.host || !options_.list || !options_.neighbour || !root.first ||
            file_.source().text().find("resource \"") == std::string_view::npos)
            return;
        for (const std::string& name : options_.list(".")) {
            if (!is_override(name)) continue;
            const File* read = read_beside(name.c_str());
            if (!read || read->tree.roots.empty()) continue;
            for (const Node& over : children(read->tree.roots[0]))
                for (const Node& block : children(&root))
                    if (over.key == "resource" && block.key == "resource" &&
                        std::equal(over.labels.begin(), over.labels.end(), block.labels.begin(), block.labels.end()))
                        for (const Node& value : children(&over)) {
                            settle_below(&value);
                            replace(const_cast<Node&>(block), value);
                        }
        }
    }

    // dynamic blocks of resources that are there once; those of copies were made with them.
    void expand_blocks() {
        if (file_.source().text().find("dynamic") == std::string_view::npos) return;
        for (const Node& block : children(file_.tree.roots[0]))
            if (block.key == "resource") expand_below(const_cast<Node&>(block), 0);
    }

    // A resource of which the file itself says that there is none. What a default switches off is still on offer.
    void drop_absent() {
        for (const Node& block : children(file_.tree.roots[0])) {
            if (block.key != "resource" && block.key != "module") continue;
            bool absent = false;
            if (const Node* count = block.find("count"))
                absent = Value::of(count).as_int() == std::optional<std::int64_t>(0) && !rests_on_default(count);
            if (const Node* each = block.find("for_each"))
                absent = absent || (each->known && !each->is_scalar() && !each->first && !rests_on_default(each));
            if (absent) const_cast<Node&>(block).key = "not made";
        }
    }

    // A resource with for_each over what is written: one copy each, with each.key and each.value.
    void spread() {
        Node* root = file_.tree.roots[0];
        for (const Node *block = root->first, *last = root->last; block;
             block = block == last ? nullptr : block->next) {
            const bool module = block->key == "module" && block->labels.size() == 1;
            if (!module && (block->key != "resource" || block->labels.size() != 2)) continue;
            if (!module && spread_count(*root, const_cast<Node&>(*block))) continue;
            const Node* each = block->find("for_each");
            if (!each || each->is_scalar() || !each->known || each->count() > kMostCopies || each->count() == 0)
                continue;
            bool all = true;
            for (const Node& item : children(each)) {
                Node& key = file_.tree.make(*item.source, Shape::string, item.span);
                const bool object = each->is_object();
                key.text = object ? item.key : item.text;
                key.known = object || item.known;
                Node& pair = file_.tree.make(*item.source, Shape::object, item.span);
                Node& first = file_.tree.make(*item.source, Shape::string, key.span);
                first = key;
                first.key = "key";
                Node* second = copy_with(&item, {});
                if (!second) continue;
                second->key = "value";
                file_.tree.append(pair, first);
                file_.tree.append(pair, *second);
                Node* made = copy_with(block, {{"each", &pair}});
                if (!made) all = false;
                if (!made) continue;
                made->key = block->key, made->key_span = block->key_span;
                if (module)
                    made->labels = file_.tree.keep_labels({block->labels[0], key.text});
                else
                    made->labels = file_.tree.keep_labels({block->labels[0], block->labels[1], key.text});
                file_.tree.append(*root, *made);
            }
            if (all) const_cast<Node*>(block)->key = "for_each";  // its copies stand for it
        }
    }

    // count = 2 where count.index decides what a resource is: one copy each, when that makes something known.
    bool spread_count(Node& root, Node& block) {
        const Node* count = block.find("count");
        const auto number = count ? Value::of(count).as_int() : std::nullopt;
        if (!number || *number < 1 || *number > static_cast<std::int64_t>(kMostCopies)) return false;
        if (file_.source().text(block.span).find("count.index") == std::string_view::npos) return false;
        std::vector<Node*> copies;
        bool more = false;
        for (std::int64_t i = 0; i < *number; ++i) {
            Node& index = file_.tree.make(file_.source(), Shape::number, count->span);
            index.text = file_.tree.keep(std::to_string(i));
            index.key = "index";
            Node& pair = file_.tree.make(file_.source(), Shape::object, count->span);
            file_.tree.append(pair, index);
            Node* made = copy_with(&block, {{"count", &pair}});
            if (!made) return false;
            for (const Node& child : children(made)) {
                const Node* before = block.find(child.key);
                more = more || (child.key != "name" && child.is_scalar() && child.known && before && !before->known);
                if (child.key == "count") const_cast<Node&>(child).key = "count made";
            }
            made->key = block.key, made->key_span = block.key_span;
            made->labels = file_.tree.keep_labels({block.labels[0], block.labels[1], index.text});
            copies.push_back(made);
        }
        if (!more) return false;
        for (Node* made : copies) file_.tree.append(root, *made);
        block.key = "count";
        return true;
    }

protected:
    const Node* lookup(std::string_view space, std::string_view name) override {
        if (space == "var") {
            const auto it = variables_.find(name);
            if (it == variables_.end()) return nullptr;
            on_default_ = on_default_ || !it->second.given;
            return it->second.value;
        }
        if (space == "local") {
            const auto it = locals_.find(name);
            return it == locals_.end() ? nullptr : it->second;
        }
        if (space == "module") return outputs_of(name);
        // The workspace that everybody begins with.
        if (space == "terraform" && name == "workspace") {
            if (!workspace_) {
                workspace_ = &file_.tree.make(file_.source(), Shape::string, {0, 0});
                workspace_->text = "default";
            }
            on_default_ = true;
            return workspace_;
        }
        // Files beside are asked for by names relative to here.
        if (space == "path" && (name == "module" || (name == "root" && !file_.call))) {
            if (!here_) {
                here_ = &file_.tree.make(file_.source(), Shape::string, {0, 0});
                here_->text = ".";
            }
            return here_;
        }
        return nullptr;
    }

private:
    void give(std::string_view name, const Node* value) {
        if (const auto it = optional_.find(name); it != optional_.end() && value && !value->is_scalar()) {
            Node* whole = copy_with(value, {});
            if (whole) overlay(whole, it->second, 0), value = whole;
        }
        variables_[name] = {value, true};
    }
    // The defaults that a type names, as an object; below "*" those of each member of a map or list. Null: none.
    Node* optional_defaults(const Expression& type, int depth) {
        if (type.kind != Expression::Kind::call || !type.first || depth > kExpressionDepth) return nullptr;
        Node* made = nullptr;
        const auto put = [&](std::string_view key, Node* node) {
            if (!node) return;
            if (!made) made = &file_.tree.make(file_.source(), Shape::object, {0, 0});
            node->key = key;
            file_.tree.append(*made, *node);
        };
        if (type.name == "map" || type.name == "list" || type.name == "set") {
            put("*", optional_defaults(*type.first, depth + 1));
        } else if (type.name == "optional" && type.first->next) {
            return nullptr;
        } else if (type.name == "object" && type.first->kind == Expression::Kind::value) {
            for (const Node& member : children(type.first->node)) {
                const auto it = expressions_.pending.find(&member);
                if (it == expressions_.pending.end()) continue;
                const Expression& of = *it->second.expression;
                if (of.kind == Expression::Kind::call && of.name == "optional" && of.first && of.first->next) {
                    if (const Expression& value = *of.first->next; value.kind == Expression::Kind::value)
                        put(member.key, copy_with(value.node, {}));
                } else {
                    put(member.key, optional_defaults(of, depth + 1));
                }
            }
        }
        return made;
    }
    void overlay(const Node* value, const Node* defaults, int depth) {
        if (!value || value->is_scalar() || depth > kExpressionDepth) return;
        if (const Node* each = defaults->find("*")) {
            for (const Node& child : children(value)) overlay(settle(&child), each, depth + 1);
            return;
        }
        if (!value->is_object()) return;
        for (const Node& wanted : children(defaults)) {
            const Node* found = value->find(wanted.key);
            if (found && wanted.is_object() && found->is_object())
                overlay(found, &wanted, depth + 1);
            else if (!found && !(wanted.is_object() && wanted.first && wanted.find("*")))
                if (Node* copied = copy_with(&wanted, {})) file_.tree.append(const_cast<Node&>(*value), *copied);
        }
    }
    void replace(Node& block, const Node& value) {
        const Node* old = block.find(value.key);
        Node& made = file_.tree.make(file_.source(), value.shape, old ? old->span : block.span);
        made.style = value.style, made.known = value.known, made.text = value.text;
        made.first = value.first, made.last = value.last;
        made.key = value.key, made.key_span = old ? old->key_span : block.key_span;
        made.origin = value.origin ? value.origin : &value;
        file_.tree.append(block, made);
    }
    void expand_below(Node& block, int depth) {
        if (depth > 8) return;
        for (const Node *child = block.first, *last = block.last; child;
             child = child == last ? nullptr : child->next) {
            if (child->source != &file_.source() || !child->is_object()) continue;
            if (child->key == "dynamic" && expand_dynamic(*child, block))
                const_cast<Node*>(child)->key = "dynamic made";
            else if (!child->labels.empty() || !child->key.empty())
                expand_below(const_cast<Node&>(*child), depth + 1);
        }
    }

    struct Variable {
        const Node* value = nullptr;
        bool given = false;  // by a file of values or a call, not by its default
    };

    // module.NAME: an object of what the module in a folder beside gives for these inputs.
    const Node* outputs_of(std::string_view name) {
        const auto [it, fresh] = modules_.emplace(name, nullptr);  // while it is worked out, it is not known
        if (!fresh) return it->second;
        if (!options_.neighbour || !options_.list || file_.host || modules_.size() > kMostAskedModules) return nullptr;
        const int depth = file_.call ? file_.call->depth + 1 : 1;
        if (depth > kMostAskedDepth) return nullptr;
        const Node* call = nullptr;
        for (const Node& block : children(file_.tree.roots[0]))
            if (block.key == "module" && block.labels.size() == 1 && block.labels[0] == name) call = &block;
        const Node* source = call ? call->find("source") : nullptr;
        if (!source || !source->known || call->find("for_each") || call->find("count")) return nullptr;
        std::string folder(source->text);
        while (folder.ends_with('/')) folder.pop_back();
        if (!folder.starts_with("./") && !folder.starts_with("../")) return nullptr;
        settle_below(call);
        return modules_[name] = module_outputs(file_, *call, folder, depth, options_);
    }

    // No module: what Terraform gives a root by itself, it gives it with a file of variables that is named, too.
    bool of_a_root() const { return !file_.call || file_.call->overlay; }

    void learn_beside(const char* name) {
        const bool values = std::string_view(name).find(".tfvars") != std::string_view::npos;
        if (values && !of_a_root()) return;
        const File* read = read_beside(name);
        if (!read || read->tree.roots.empty()) return;
        learn_from(*read);
        if (values)
            for (const Node& value : children(read->tree.roots[0])) give(value.key, &value);
    }

    // The file of that name in this folder; null where there is none, or it is this one.
    const File* read_beside(const char* name) {
        const std::string& path = file_.path();
        const std::size_t slash = path.rfind('/');
        const std::string beside = slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
        if (beside == path) return nullptr;
        auto other = options_.neighbour(name);
        if (!other || other->size() > kMostBytes || other->find('\0') != std::string::npos) return nullptr;
        file_.neighbours.push_back(std::make_unique<File>(beside, std::move(*other)));
        File& read = *file_.neighbours.back();
        read.kinds.add(Kind::terraform);
        if (beside.ends_with(".json")) {
            read_hcl(read, ReadOptions{});
        } else {
            parse_hcl(read, expressions_);
            join(read);
            fill_optional(read);
        }
        return &read;
    }

    void learn_from(const File& file) {
        if (file.tree.roots.empty()) return;
        for (const Node& block : children(file.tree.roots[0])) {
            if (block.key == "variable" && block.labels.size() == 1) {
                if (const Node* defaults = block.find("(optional)")) optional_.emplace(block.labels[0], defaults);
                if (const Node* value = block.find("default"))
                    variables_.emplace(block.labels[0], Variable{value, false});
            } else if (block.key == "locals") {
                for (const Node& value : children(&block)) locals_.emplace(value.key, &value);
            }
        }
    }

    std::unordered_map<std::string_view, Variable> variables_;
    std::unordered_map<std::string_view, const Node*> locals_, optional_;
    std::unordered_map<std::string_view, const Node*> modules_;
    Node* here_ = nullptr;
    Node* workspace_ = nullptr;
};

}  // namespace

void read_hcl(File& file, const ReadOptions& options) {
    Expressions expressions;
    HclEvaluator evaluator(file, expressions, Dialect::hcl, options);
    if (file.path().ends_with(".json") && !file.host) {
        read_hcl_json(file, expressions);
        evaluator.place_at_holder();
    } else {
        parse_hcl(file, expressions);
    }
    if (file.tree.roots.empty()) return;
    evaluator.fill_optional(file);
    evaluator.learn();
    evaluator.merge_overrides();
    evaluator.settle_all();
    evaluator.drop_absent();
    evaluator.spread();
    evaluator.expand_blocks();
}

}  // namespace stoker::lint
