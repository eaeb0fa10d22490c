// Azure ML YAML: compute clusters and instances, online deployments, jobs and the steps of pipelines. The command of a
// job is a shell script with ${{inputs.x}} in it.
#include <fmt/format.h>

#include "base/text.h"
#include "lint/azure/fields.h"
#include "lint/azure/local_modules.h"
#include "lint/read.h"
#include "lint/yaml/scalars.h"

namespace stoker::lint {

namespace {

constexpr Field kAmlCluster[] = {{Attr::name, "name"},
                                 {Attr::size, "size"},
                                 {Attr::min_count, "min_instances"},
                                 {Attr::max_count, "max_instances"},
                                 {Attr::priority, "tier"},
                                 {Attr::tag, "tags"}};
constexpr Field kAmlInstance[] = {{Attr::name, "name"},
                                  {Attr::size, "size"},
                                  {Attr::idle_shutdown, "idle_time_before_shutdown"},
                                  {Attr::idle_shutdown, "idle_time_before_shutdown_minutes"},
                                  {Attr::schedule, "schedules.compute_start_stop.action"},
                                  {Attr::tag, "tags"}};
constexpr Field kAmlDeployment[] = {{Attr::name, "name"},
                                    {Attr::size, "instance_type"},
                                    {Attr::count, "instance_count"},
                                    {Attr::size, "resources.instance_type"},
                                    {Attr::count, "resources.instance_count"},
                                    {Attr::environment, "environment"},
                                    {Attr::environment, "environment.image"}};
constexpr Field kAmlJob[] = {{Attr::name, "name"},
                             {Attr::size, "resources.instance_type"},
                             {Attr::count, "resources.instance_count"},
                             {Attr::shm_size, "resources.shm_size"},
                             {Attr::process_count, "distribution.process_count_per_instance"},
                             {Attr::environment, "environment"},
                             {Attr::environment, "environment.image"},
                             {Attr::target, "compute"}};

// Of a step that runs a component: where, and on how many.
constexpr Field kAmlStep[] = {
    {Attr::size, "resources.instance_type"}, {Attr::count, "resources.instance_count"}, {Attr::target, "compute"}};

struct AzuremlFinder {
    File& file;
    const ReadOptions& options;
    std::vector<std::pair<std::size_t, const Node*>> commands;  // index of the service, its command

    Resource& add(ResourceType type, const Node* body, std::string address, std::string_view written,
                  std::span<const Field> fields) {
        const Node* first = body->find("name") ? body->find("name") : body->first;
        const Span header = first ? first->whole() : body->span;
        Resource& made = add_resource(file, type, std::move(address), written, body, header);
        set_fields(made, body, fields, file.tree);
        return made;
    }
    void job(const Node* body, const std::string& name) {
        const Node* command = body->find("command");
        const bool distributed = body->find("distribution") || body->find("resources");
        if (!command && !distributed) return;
        const std::string address = fmt::format("aml:{}", name);
        Resource& made = add(ResourceType::other, body, address, "azureml job", kAmlJob);
        if (const Node* processes = node_at(body, "distribution.process_count_per_instance"))
            made.header = processes->whole();
        // A step of a component has its command there, and its environment here.
        if (command && !command->is_scalar()) return;
        if (!command && !body->find("environment_variables")) return;
        Container container;
        container.node = body;
        container.address = address;
        container.anchor = command ? command->whole() : body->find("environment_variables")->whole();
        if (const Node* node = body->find("name")) container.name = Value::of(node);
        if (const Node* image = node_at(body, "environment.image")) container.image = Value::of(image);
        for (const Node& variable : children(body->find("environment_variables")))
            container.environment.push_back({variable.key, Value::of(&variable), variable.whole()});
        if (command) container.command.push_back(Value::of(command));
        for (const EnvVar& variable : container.environment) file.environment.push_back(variable);
        file.services.push_back(std::move(container));
        if (command) commands.emplace_back(file.services.size() - 1, command);
    }
    // component: ./train.yml: what that says of its processes counts for this step; its places are those of the file.
    void component(const Node& step, const std::string& name) {
        std::string_view path = text_at(&step, "component");
        if (path.starts_with("file:")) path.remove_prefix(5);
        if (!options.neighbour || (!path.ends_with(".yml") && !path.ends_with(".yaml")) ||
            path.find(':') != std::string_view::npos)
            return;
        auto text = options.neighbour(std::string(path));
        if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) return;
        file.neighbours.push_back(std::make_unique<File>(path_from(file.path(), path), std::move(*text)));
        File& read = *file.neighbours.back();
        read_yaml(read);
        if (!read.problems.empty() || read.tree.roots.size() != 1) return;
        const Node* processes = node_at(read.tree.roots[0], "distribution.process_count_per_instance");
        if (!processes || node_at(&step, "distribution")) return;
        Resource& made = add_resource(file, ResourceType::other, fmt::format("aml:{}", name), "azureml job",
                                      read.tree.roots[0], processes->whole());
        set_fields(made, read.tree.roots[0], kAmlJob, file.tree);
        set_fields(made, &step, kAmlStep, file.tree);
    }
    void document(const Node* root) {
        if (!root || !root->is_object()) return;
        const std::string_view type = text_at(root, "type"), schema = text_at(root, "$schema");
        const std::string_view called = text_at(root, "name");
        const std::string name(!called.empty() ? called : text_at(root, "display_name"));
        const auto of = [&](std::string_view part) { return contains_nocase(schema, part); };
        if (equals_ignore_case(type, "amlcompute") || of("amlCompute.schema")) {
            Resource& made = add(ResourceType::aml_compute, root, "aml:" + name, "amlcompute", kAmlCluster);
            set_idle(made, root->find("idle_time_before_scale_down"), file.tree);
        } else if (equals_ignore_case(type, "computeinstance") || of("computeInstance.schema")) {
            add(ResourceType::aml_instance, root, "aml:" + name, "computeinstance", kAmlInstance);
        } else if (of("OnlineDeployment.schema")) {
            add(ResourceType::aml_endpoint, root, "aml:" + name, "online deployment", kAmlDeployment);
        } else if (of("batchDeployment.schema") || of("modelBatchDeployment")) {
            add(ResourceType::other, root, "aml:" + name, "batch deployment", kAmlDeployment);
        } else if (root->find("jobs")) {
            const Node* everywhere = root->at({"settings", "default_compute"});
            for (const Node& step : children(root->find("jobs"))) {
                if (!step.is_object()) continue;
                const std::size_t before = file.resources.size();
                job(&step, fmt::format("{}/{}", name, step.key));
                component(step, fmt::format("{}/{}", name, step.key));
                for (std::size_t i = before; i < file.resources.size(); ++i)
                    if (file.resources[i].get(Attr::target).absent())
                        file.resources[i].set(Attr::target, Value::of(everywhere));
            }
        } else {
            const Node* trial = root->find("trial");
            job(trial && trial->is_object() ? trial : root, name.empty() ? "job" : name);
        }
    }
};

}  // namespace

void find_azureml(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::azureml)) return;
    AzuremlFinder finder{file, options, {}};
    for (const Node* root : file.tree.roots) finder.document(root);
    // All services are there now, so that guests can point at theirs.
    for (const auto& [index, command] : finder.commands) {
        Container& container = file.services[index];
        std::vector<Piece> pieces = pieces_of(*command);
        if (pieces.empty()) continue;
        if (File* guest =
                read_guest(file, std::string(command->text), std::move(pieces), {Kind::launch}, options, &container))
            container.scripts.push_back(guest);
    }
}

}  // namespace stoker::lint
