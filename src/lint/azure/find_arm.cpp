// ARM templates: expressions evaluated by scope, nested deployments, copy loops, the parameter file beside a template.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "lint/azure/fields.h"
#include "lint/azure/local_modules.h"
#include "lint/read.h"

namespace stoker::lint {

namespace {

constexpr int kMostNested = 8;
constexpr std::int64_t kMostCopies = 64;  // of a resource or a list

// Names of parameters and variables are equal in any case.
struct ArmNameLess {
    bool operator()(std::string_view a, std::string_view b) const {
        const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
        return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                            [&](char x, char y) { return small(x) < small(y); });
    }
};

constexpr int kMostLinked = 3;  // templates within one another that stand in files of their own
constexpr std::size_t kMostLinkedFiles = 16;

// One scope: the parameters and variables of one template.
class ArmEvaluator : public Evaluator {
public:
    ArmEvaluator(File& file, const ReadOptions& options) : Evaluator(file, expressions_mine_, Dialect::arm, options) {}

    void learn(const Node* template_node, const Node* given) {
        for (const Node& parameter : children(node_at(template_node, "parameters")))
            if (const Node* value = node_at(&parameter, "defaultValue")) parameters_[parameter.key] = {value, true};
        for (const Node& parameter : children(given))
            if (const Node* value = node_at(&parameter, "value")) parameters_[parameter.key] = {value, false};
        for (const Node& variable : children(node_at(template_node, "variables"))) variables_[variable.key] = &variable;
        for (const Node& space : children(node_at(template_node, "functions")))
            for (const Node& member : children(node_at(&space, "members")))
                learn_function(std::string(text_at(&space, "namespace")) + "." + std::string(member.key), member);
    }
    // The copies of a body that says "copy": those that can be counted; empty where they cannot.
    std::vector<const Node*> copies_of(const Node* body, const Node* count, std::string_view name) {
        std::vector<const Node*> made;
        const auto number = count ? Value::of(count).as_int() : std::nullopt;
        if (!number || *number < 1 || *number > kMostCopies) return made;
        const std::string_view named = file_.tree.keep("copyIndex:" + std::string(name));
        for (std::int64_t i = 0; i < *number; ++i) {
            Node& index = file_.tree.make(file_.source(), Shape::number, body->span);
            index.text = file_.tree.keep(std::to_string(i));
            Node* copied = copy_with(body, {{"copyIndex", &index}, {named, &index}});
            if (!copied) return {};
            copied->parent = body->parent;
            made.push_back(copied);
        }
        return made;
    }
    // "copy": [{"name": "rules", "count": 2, "input": ...}] within properties or variables is a list of that name.
    void expand_lists(const Node* body, int depth) {
        if (!body || depth > static_cast<int>(kMostDepth) || body->key == "template") return;
        if (const Node* loops = body->is_object() ? body->find("copy") : nullptr; loops && loops->is_array())
            for (const Node& loop : children(loops)) {
                const Node* input = loop.find("input");
                if (!input || !loop.find("name")) continue;
                const auto items = copies_of(input, settle(loop.find("count")), loop.find("name")->text);
                if (items.empty()) continue;
                Node& list = file_.tree.make(file_.source(), Shape::array, loop.span);
                list.key = loop.find("name")->text, list.key_span = loop.find("name")->span;
                for (const Node* item : items) {
                    Node& kept = const_cast<Node&>(*item);
                    kept.key = {}, kept.key_span = {};
                    file_.tree.append(list, kept);
                }
                file_.tree.append(const_cast<Node&>(*body), list);
            }
        for (const Node& child : children(body))
            if (child.key != "copy") expand_lists(&child, depth + 1);
    }
    void name_variable(const Node& variable) { variables_[variable.key] = &variable; }
    // Reads the expressions below a node; nested templates of their own scope are left to that scope.
    void gather(const Node* node, int depth) {
        if (!node || depth > static_cast<int>(kMostDepth)) return;
        if (!node->known && node->shape == Shape::string) {
            gather_text(*node);
            return;
        }
        if (node->key == "template" && depth > 0 && inner_scope(node)) return;
        for (const Node& child : children(node)) gather(&child, depth + 1);
    }
    static bool inner_scope(const Node* template_node) {
        return template_node->parent &&
               equals_ignore_case(text_at(template_node->parent, "expressionEvaluationOptions.scope"), "inner");
    }

protected:
    const Node* lookup(std::string_view space, std::string_view name) override {
        if (space == "parameters") {
            const auto it = parameters_.find(name);
            if (it == parameters_.end()) return nullptr;
            on_default_ = on_default_ || it->second.by_default;
            return it->second.value;
        }
        const auto it = space == "variables" ? variables_.find(name) : variables_.end();
        return it == variables_.end() ? nullptr : it->second;
    }

private:
    void learn_function(std::string name, const Node& member) {
        const Node* value = node_at(&member, "output.value");
        if (!value || value->known || value->text.size() < 3) return;
        ExpressionReader reader(file_, expressions_mine_, Dialect::arm, value->text.substr(0, value->text.size() - 1));
        reader.fix_span(value->span);
        reader.at = 1;
        Expressions::Function made;
        for (const Node& parameter : children(member.find("parameters")))
            made.parameters.push_back(text_at(&parameter, "name"));
        if ((made.body = reader.expression(0))) expressions_mine_.functions.emplace(std::move(name), std::move(made));
    }
    void gather_text(const Node& node) {
        const std::string_view text = node.text;
        if (text.size() < 3 || expressions_mine_.pending.contains(&node)) return;
        ExpressionReader reader(file_, expressions_mine_, Dialect::arm, text.substr(0, text.size() - 1));
        reader.fix_span(node.span);
        reader.at = 1;
        const Expression* e = reader.expression(0);
        if (!e) return;
        expressions_mine_.pending.emplace(&node, Expressions::Pending{e});
    }

    Expressions expressions_mine_;
    struct Parameter {
        const Node* value = nullptr;
        bool by_default = false;
    };
    std::map<std::string_view, Parameter, ArmNameLess> parameters_;
    std::map<std::string_view, const Node*, ArmNameLess> variables_;
};

// The same values in the same places; what is not known is as it is written.
bool alike(const Node* a, const Node* b, int depth) {
    if (a == b || depth > 40) return true;
    if (!a || !b || a->shape != b->shape || a->key != b->key || a->text != b->text) return false;
    const Node* x = a->first;
    const Node* y = b->first;
    for (; x && y; x = x->next, y = y->next)
        if (!alike(x, y, depth + 1)) return false;
    return !x && !y;
}

struct ArmFinder {
    File& file;
    const ReadOptions& options;
    std::deque<ArmEvaluator> scopes;  // live as long as the finder: nodes settle when they are asked for

    void read_template(const Node* node, const Node* given, const std::string& prefix, int depth) {
        if (!node || !node->is_object() || depth > kMostNested) return;
        ArmEvaluator& scope = scopes.emplace_back(file, options);
        scope.learn(node, given);
        scope.gather(node, 0);
        if (file.source().text().find("\"copy\"") != std::string_view::npos) {
            const Node* variables = node_at(node, "variables");
            scope.expand_lists(variables, 1);
            for (const Node& variable : children(variables)) scope.name_variable(variable);
            scope.expand_lists(node_at(node, "resources"), 1);
        }
        lists(node, prefix);
        resources(node, scope, prefix, depth);
    }

    void lists(const Node* node, const std::string& prefix) {
        if (file.call) return;  // judged in the file itself
        for (const Node& parameter : children(node_at(node, "parameters"))) {
            const std::string address = fmt::format("arm:{}parameters/{}", prefix, parameter.key);
            if (const Node* allowed = node_at(&parameter, "allowedValues"))
                add_size_list(file, allowed, address + "#allowed", parameter.key_span);
            add_named_size(file, parameter.key, node_at(&parameter, "defaultValue"), address, parameter.key_span);
        }
        for (const Node& variable : children(node_at(node, "variables"))) {
            const std::string address = fmt::format("arm:{}variables/{}", prefix, variable.key);
            if (variable.is_scalar())
                add_named_size(file, variable.key, &variable, address, variable.key_span);
            else
                add_size_list(file, &variable, address, variable.key_span);
        }
    }

    void resources(const Node* node, ArmEvaluator& scope, const std::string& prefix, int depth) {
        for (const Node& resource : children(node_at(node, "resources")))
            if (resource.is_object()) add(&resource, scope, prefix, "", depth);
    }

    void add(const Node* body, ArmEvaluator& scope, const std::string& prefix, const std::string& outer_type,
             int depth) {
        if (depth > kMostNested) return;
        const Node* type_node = node_at(body, "type");
        if (!type_node) return;
        std::string type(type_node->text);
        if (!outer_type.empty() && !starts_with_ignore_case(type, "Microsoft.")) type = outer_type + "/" + type;
        const Node* name = node_at(body, "name");
        const std::string called(name ? name->text.substr(0, 120) : std::string_view());
        const std::string address = fmt::format("arm:{}{}/{}", prefix, type, called);  // the name as it is written
        // What the template itself says is not made; what a default switches off is still on offer.
        const Node* condition = scope.settle(node_at(body, "condition"));
        const Node* copies = scope.settle(node_at(body, "copy.count"));
        const bool absent =
            (condition && Value::of(condition).as_bool() == std::optional(false) &&
             !scope.rests_on_default(condition)) ||
            (copies && Value::of(copies).as_int() == std::optional<std::int64_t>(0) && !scope.rests_on_default(copies));
        if (equals_ignore_case(type, "Microsoft.Resources/deployments")) {
            if (absent) return;
            linked(body, scope, called);
            const Node* nested = node_at(body, "properties.template");
            if (nested && ArmEvaluator::inner_scope(nested)) {
                scope.settle_below(node_at(body, "properties.parameters"));
                read_template(nested, node_at(body, "properties.parameters"), prefix + called + "/", depth + 1);
            } else if (nested) {
                resources(nested, scope, prefix + called + "/", depth + 1);
            }
            return;
        }
        const bool wanted = starts_with_ignore_case(type, "Microsoft.Compute/") ||
                            starts_with_ignore_case(type, "Microsoft.ContainerService/") ||
                            starts_with_ignore_case(type, "Microsoft.Batch/") ||
                            starts_with_ignore_case(type, "Microsoft.Network/") ||
                            starts_with_ignore_case(type, "Microsoft.MachineLearningServices/") ||
                            starts_with_ignore_case(type, "Microsoft.DevTestLab/") ||
                            starts_with_ignore_case(type, "Microsoft.Insights/") ||
                            starts_with_ignore_case(type, "Microsoft.Consumption/") ||
                            starts_with_ignore_case(type, "Microsoft.ContainerRegistry/") ||
                            starts_with_ignore_case(type, "Microsoft.Storage/");
        if (wanted && !absent && depth == 0 && copies && body->find("copy") && body->find("copy")->is_object()) {
            const auto made = scope.copies_of(body, copies, text_at(body, "copy.name"));
            bool differ = false;  // copies that are all alike are one resource of that number
            for (const Node* each : made) {
                scope.settle_below(each);
                differ = differ || !alike(each, made[0], 0);
            }
            if (differ && made.size() > 1) {
                for (const Node* each : made) {
                    const_cast<Node*>(each->find("copy"))->key = "copy made";
                    add(each, scope, prefix, outer_type, depth);
                }
                return;
            }
        }
        if (wanted && !absent) {
            scope.settle_below(body);
            ArmBody arm;
            arm.type = file.tree.keep(type);
            arm.address = address;
            arm.written = arm.type;
            arm.body = body;
            arm.header = name ? name->whole() : type_node->whole();
            if (copies) arm.count = Value::of(copies);
            add_arm_resource(file, arm, Dialect::hcl, options);  // strings of JSON have the escapes of HCL
        }
        for (const Node& child : children(node_at(body, "resources")))
            if (child.is_object()) add(&child, scope, prefix, type, depth + 1);
    }

    // A template that stands beside, with what this one gives it.
    void linked(const Node* body, ArmEvaluator& scope, const std::string& called) {
        const Node* path = scope.settle(node_at(body, "properties.templateLink.relativePath"));
        const int depth = file.call ? file.call->depth + 1 : 1;
        if (!path || !path->known || !options.neighbour || file.host || depth > kMostLinked ||
            file.calls.size() >= kMostLinkedFiles || path->text.starts_with('/'))
            return;
        const std::string where = path_from(file.path(), path->text);
        for (const File* at = &file; at; at = at->call ? at->call->caller : nullptr)
            if (at->path() == where) return;
        auto text = options.neighbour(std::string(path->text));
        if (!text || text->size() > kMostBytes / 16) return;
        const Node* given = node_at(body, "properties.parameters");
        scope.settle_below(given);
        ModuleCall made;
        made.name = called;
        made.caller = &file;
        made.span = path->whole();
        made.depth = depth;
        for (const Node& parameter : children(given)) made.inputs.emplace_back(parameter.key, &parameter);
        ReadOptions inside;
        const std::size_t slash = path->text.rfind('/');
        const std::string folder(slash == std::string_view::npos ? std::string_view()
                                                                 : path->text.substr(0, slash + 1));
        inside.size = options.size;
        inside.neighbour = [outer = options.neighbour, folder](const std::string& name) {
            return outer(folder + name);
        };
        read_called(file, where, std::move(*text), std::move(made), inside);
    }
    // The parameters of the call that this file was read for.
    const Node* inputs() const {
        Node& given = file.tree.make(file.source(), Shape::object, {0, 0});
        for (const auto& [name, value] : file.call->inputs) {
            Node& parameter = file.tree.make(*value->source, value->shape, value->span);
            parameter.first = value->first, parameter.last = value->last, parameter.key = name;
            file.tree.append(given, parameter);
        }
        return &given;
    }

    // azuredeploy.parameters.json beside azuredeploy.json: what it gives stands for the defaults.
    const Node* parameter_file() {
        if (!options.neighbour || file.host) return nullptr;
        const std::string& path = file.path();
        const std::size_t slash = path.rfind('/');
        const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
        if (!name.ends_with(".json") || name.ends_with(".parameters.json")) return nullptr;
        const std::string wanted = name.substr(0, name.size() - 5) + ".parameters.json";
        auto text = options.neighbour(wanted);
        if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) return nullptr;
        file.neighbours.push_back(std::make_unique<File>(
            slash == std::string::npos ? wanted : path.substr(0, slash + 1) + wanted, std::move(*text)));
        File& read = *file.neighbours.back();
        read.kinds.add(Kind::arm);
        read_json(read);
        return read.tree.roots.empty() ? nullptr : node_at(read.tree.roots[0], "parameters");
    }
};

}  // namespace

void find_arm(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::arm) || file.tree.roots.empty()) return;
    const Node* root = file.tree.roots[0];
    if (!root->is_object()) return;
    ArmFinder finder{file, options, {}};
    if (node_at(root, "resources"))
        finder.read_template(root, file.call ? finder.inputs() : finder.parameter_file(), "", 0);
    else  // a parameter file: the sizes it gives
        for (const Node& parameter : children(node_at(root, "parameters")))
            add_named_size(file, parameter.key, node_at(&parameter, "value"),
                           fmt::format("arm:parameters/{}", parameter.key), parameter.key_span);
}

}  // namespace stoker::lint
