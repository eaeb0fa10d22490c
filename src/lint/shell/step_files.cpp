#include "lint/shell/step_files.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

using Keys = std::string_view;
constexpr std::array<Keys, 5> kActions = {"run", "script", "bash", "inlineScript", "before_script"};
constexpr std::array<Keys, 3> kGitlab = {"script", "before_script", "after_script"};
constexpr std::array<Keys, 2> kBitbucket = {"script", "after-script"};
constexpr std::array<Keys, 2> kCircle = {"run", "command"};
constexpr std::array<Keys, 2> kBuildkite = {"command", "commands"};
constexpr std::array<Keys, 2> kTaskfile = {"cmds", "cmd"};
constexpr std::array<Keys, 1> kDeveloperCli = {"run"};
constexpr std::array<Keys, 2> kSky = {"setup", "run"};
constexpr std::array<Keys, 2> kDstack = {"commands", "init"};
constexpr std::array<Keys, 7> kAnsible = {
    "shell", "command", "raw", "ansible.builtin.shell", "ansible.builtin.command", "ansible.builtin.raw", "cmd"};

constexpr StepDialect kDialects[] = {
    {"GitHub Actions, Azure Pipelines", kActions, false},
    {"GitLab CI", kGitlab, true},
    {"Bitbucket", kBitbucket, true},
    {"CircleCI", kCircle, false},
    {"Buildkite", kBuildkite, true},
    {"Task", kTaskfile, false},
    {"azd", kDeveloperCli, false},
    {"SkyPilot", kSky, false},
    {"dstack", kDstack, true},
    {"Ansible", kAnsible, false},
};

const StepDialect* dialect_of(std::string_view tool) {
    return std::find_if(std::begin(kDialects), std::end(kDialects),
                        [&](const StepDialect& each) { return each.tool == tool; });
}

bool says_any(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// A key of the document itself.
bool has_top_key(std::string_view text, std::string_view key) {
    for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1))
        if (at == 0 || text[at - 1] == '\n') return true;
    return false;
}

std::string_view tool_of(std::string_view path, std::string_view text) {
    const std::string_view name = base_name_of(path);
    if (says_any(path, {".github/workflows/", ".gitea/workflows/", ".forgejo/workflows/"}) ||
        name.starts_with("azure-pipelines") || name == "action.yml" || name == "action.yaml")
        return "GitHub Actions, Azure Pipelines";
    if (name.ends_with(".gitlab-ci.yml") || says_any(path, {".gitlab/ci/"}) ||
        (says_any(path, {".gitlab/", ".gitlab-ci/"}) && says_any(text, {"script:"})))
        return "GitLab CI";
    if (name == "bitbucket-pipelines.yml") return "Bitbucket";
    if (says_any(path, {".circleci/"})) return "CircleCI";
    if (says_any(path, {".buildkite/"}) && says_any(text, {"steps:"})) return "Buildkite";
    if ((name.starts_with("Taskfile") || name.starts_with("taskfile")) && has_top_key(text, "tasks:")) return "Task";
    if (name == "azure.yaml" && has_top_key(text, "hooks:")) return "azd";
    if (has_top_key(text, "apiVersion:") || has_top_key(text, "services:")) return {};
    if ((has_top_key(text, "jobs:") || has_top_key(text, "stages:") || has_top_key(text, "steps:")) &&
        says_any(text, {"runs-on:", "vmImage:", "task: AzureCLI@"}))
        return "GitHub Actions, Azure Pipelines";
    if (has_top_key(text, "type:") && (has_top_key(text, "commands:") || has_top_key(text, "init:")) &&
        says_any(text, {"type: task", "type: service", "type: dev-environment"}))
        return "dstack";
    if (has_top_key(text, "resources:") && (has_top_key(text, "run:") || has_top_key(text, "setup:")) &&
        !has_top_key(text, "kind:"))
        return "SkyPilot";
    if (has_top_key(text, "- hosts:") || says_any(path, {"group_vars/", "host_vars/"}) ||
        says_any(text, {"\n  hosts: "}) || (says_any(path, {"tasks/", "handlers/"}) && has_top_key(text, "- name:")))
        return "Ansible";
    return {};
}

constexpr std::size_t kMostTakenIn = 16, kMostTakenInBytes = 256u << 10;

void take_in(File& file, const ReadOptions& options, const Node* entry, int depth, std::vector<const Node*>& found) {
    if (!entry || depth > 2 || found.size() >= kMostTakenIn) return;
    if (entry->is_array()) {
        for (const Node& each : children(entry)) take_in(file, options, &each, depth + 1, found);
        return;
    }
    const Node* path = entry->is_object() ? entry->find("local") : entry;
    if (!path || !path->is_scalar() || says_any(path->text, {"://", "*", "$"})) return;
    std::string_view name = path->text;
    while (name.starts_with('/')) name.remove_prefix(1);
    auto text = options.neighbour(std::string(name));
    if (!text || text->size() > kMostTakenInBytes || text->find('\0') != std::string::npos) return;
    file.neighbours.push_back(std::make_unique<File>(path_from(file.path(), name), std::move(*text)));
    File& read = *file.neighbours.back();
    read_yaml(read);
    found.insert(found.end(), read.tree.roots.begin(), read.tree.roots.end());
}

}  // namespace

std::vector<const Node*> documents_taken_in(File& file, const ReadOptions& options) {
    std::vector<const Node*> found;
    if (options.neighbour)
        for (const Node* root : file.tree.roots) take_in(file, options, root->find("include"), 0, found);
    return found;
}

std::vector<std::vector<EnvVar>> matrix_rounds(File& file, const Node& job, const std::function<Value(Value)>& filled) {
    std::vector<std::vector<EnvVar>> made;
    const auto add = [&](std::vector<EnvVar>& round, std::string_view key, const Node& value, std::string_view space) {
        const auto put = [&](std::string name, const Node& node) {
            if (node.is_scalar()) round.push_back({file.tree.keep(name), filled(Value::of(&node)), node.key_span});
        };
        if (value.is_scalar()) return put(std::string(space) + std::string(key), value);
        for (const Node& child : children(&value))
            put(std::string(space) + std::string(key) + "." + std::string(child.key), child);
    };
    const Node* matrix = job.at({"strategy", "matrix"});
    if (matrix && matrix->is_object()) {
        made.emplace_back();
        bool axes = false, named = false;
        for (const Node& axis : children(matrix)) {
            if (axis.key == "include" || axis.key == "exclude") continue;
            if (axis.is_object()) {  // Azure Pipelines: a round by its name
                if (!named && !axes) made.clear();
                named = true;
                std::vector<EnvVar>& round = made.emplace_back();
                for (const Node& value : children(&axis)) add(round, value.key, value, "");
            } else if (axis.is_array() && axis.first && !named) {
                axes = true;
                std::vector<std::vector<EnvVar>> longer;
                for (const auto& round : made)
                    for (const Node& value : children(&axis)) {
                        if (longer.size() >= kMostRounds) break;
                        longer.push_back(round);
                        add(longer.back(), axis.key, value, "matrix.");
                    }
                made = std::move(longer);
            }
        }
        if (!axes && !named) made.clear();
        for (const Node& row : children(matrix->find("include"))) {
            if (made.size() >= kMostRounds) break;
            std::vector<EnvVar>& round = made.emplace_back();
            for (const Node& value : children(&row)) add(round, value.key, value, "matrix.");
        }
    }
    for (const Node& row : children(job.at({"parallel", "matrix"}))) {  // GitLab
        std::vector<std::vector<EnvVar>> rows{{}};
        for (const Node& axis : children(&row)) {
            std::vector<std::vector<EnvVar>> longer;
            for (const auto& round : rows) {
                if (axis.is_scalar()) {
                    longer.push_back(round);
                    add(longer.back(), axis.key, axis, "");
                }
                for (const Node& value : children(&axis)) {
                    if (longer.size() >= kMostRounds) break;
                    longer.push_back(round);
                    add(longer.back(), axis.key, value, "");
                }
            }
            rows = std::move(longer);
        }
        for (auto& round : rows)
            if (made.size() < kMostRounds) made.push_back(std::move(round));
    }
    return made;
}

void hide_templates(std::string& text) {
    for (std::size_t at = text.find("{{"); at != std::string::npos; at = text.find("{{", at)) {
        const std::size_t end = text.find("}}", at);
        if (end == std::string::npos) return;
        if (at == 0 || text[at - 1] != '$')  // else an expression of GitHub or Azure
            text.replace(at, end + 2 - at, "${" + std::string(end - at - 1, '_') + "}");
        at = end;
    }
}

bool names_size(std::string_view text) {
    return text.find("Standard_N") != std::string_view::npos &&
           std::any_of(std::begin(kSizeKeys), std::end(kSizeKeys), [&](std::string_view key) {
               return text.find(std::string(key) + ":") != std::string_view::npos;
           });
}

const StepDialect* step_dialect_of(std::string_view path, std::string_view text) {
    const std::string_view tool = tool_of(path, text);
    return tool.empty() ? nullptr : dialect_of(tool);
}

}  // namespace stoker::lint
