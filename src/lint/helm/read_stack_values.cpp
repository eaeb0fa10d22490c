// Values of charts that are not in the repository, where their shape is known: the models of vLLM's production stack
// are servers with the command line that the chart makes of them (helm/templates/deployment-vllm-multi.yaml there).
#include <fmt/format.h>

#include "lint/read.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostModels = 64;
constexpr int kDeepestValues = 8;

struct StackOption {
    std::string_view key, option;
};
constexpr StackOption kStackOptions[] = {{"tensorParallelSize", "--tensor-parallel-size"},
                                         {"pipelineParallelSize", "--pipeline-parallel-size"},
                                         {"maxModelLen", "--max-model-len"},
                                         {"dtype", "--dtype"}};

Container server_of(File& file, const Node& model) {
    Container made;
    made.node = &model;
    const Node *name = model.find("name"), *repository = model.find("repository"), *tag = model.find("tag");
    made.name = Value::of(name);
    made.anchor = name ? name->whole() : model.span;
    made.address = fmt::format("helm:{}", made.name.text);
    if (repository && repository->is_scalar()) {
        made.image = Value::of(tag && tag->is_scalar() ? tag : repository);
        made.image.text = file.tree.keep(tag && tag->is_scalar() ? fmt::format("{}:{}", repository->text, tag->text)
                                                                 : std::string(repository->text));
    }
    if (const Node* devices = model.find("requestGPU")) {
        const Node* type = model.find("requestGPUType");
        made.resources.push_back({type && type->is_scalar() ? type->text : std::string_view("nvidia.com/gpu"),
                                  Value::of(devices), devices->key_span, true});
    }
    const auto word = [&](std::string_view text, const Node& at) {
        made.command.push_back(Value::known_text(text, at.whole(), *at.source));
    };
    word("vllm", model);
    word("serve", model);
    if (const Node* url = model.find("modelURL")) made.command.push_back(Value::of(url));
    const bool one_pod = !model.find("raySpec");  // else its ranks are in pods of their own
    for (const auto& [key, option] : kStackOptions)
        if (const Node* value = model.at({"vllmConfig", key}); value && one_pod) {
            word(option, *value);
            made.command.push_back(Value::of(value));
        }
    for (const Node& argument : children(model.at({"vllmConfig", "extraArgs"})))
        if (argument.is_scalar()) made.command.push_back(Value::of(&argument));
    for (const Node& variable : children(model.find("env")))
        if (const Node* key = variable.find("name"), *value = variable.find("value"); key && value) {
            made.environment.push_back({key->text, Value::of(value), variable.span});
            file.environment.push_back(made.environment.back());
        }
    return made;
}

// Where a chart that is not here puts `resources`, they are those of a container, whatever the key above them says.
void resources_below(File& file, const Node& node, const std::string& path, int depth) {
    if (!node.is_object() || depth > kDeepestValues || file.services.size() >= kMostModels) return;
    if (const Node* resources = node.find("resources")) {
        Container made;
        made.node = &node;
        made.address = fmt::format("helm:{}", path);
        made.anchor = resources->key_span;
        for (const std::string_view part : {"requests", "limits"})
            for (const Node& each : children(resources->find(part)))
                if (each.is_scalar() && is_accelerator_resource(each.key))
                    made.resources.push_back({each.key, Value::of(&each), each.key_span, part == "limits"});
        if (!made.resources.empty()) file.services.push_back(std::move(made));
    }
    for (const Node& each : children(&node))
        resources_below(file, each, path.empty() ? std::string(each.key) : path + "." + std::string(each.key),
                        depth + 1);
}

}  // namespace

void read_stack_values(File& file) {
    if (!file.kinds.has(Kind::helm) || file.host) return;
    const std::string_view path = file.path();
    if (contains_nocase(path.substr(path.rfind('/') + 1), "values"))
        for (const Node* root : file.tree.roots) resources_below(file, *root, {}, 0);
    for (const Node* root : file.tree.roots)
        for (const Node& model : children(root->at({"servingEngineSpec", "modelSpec"})))
            if (model.is_object() && file.services.size() < kMostModels)
                file.services.push_back(server_of(file, model));
}

}  // namespace stoker::lint
