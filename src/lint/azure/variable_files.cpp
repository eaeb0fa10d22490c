#include "lint/azure/variable_files.h"

#include <algorithm>

#include "lint/azure/local_modules.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostVariableFiles = 6, kMostVariableBytes = 256u << 10;

bool given_by_name(std::string_view name) {
    return name.ends_with(".tfvars") && !name.ends_with(".auto.tfvars") && name != "terraform.tfvars";
}

bool asks_for(std::string_view text, const Node& variable) {
    const std::string use = "var." + std::string(variable.key);
    for (std::size_t at = text.find(use); at != std::string_view::npos; at = text.find(use, at + 1)) {
        const char next = at + use.size() < text.size() ? text[at + use.size()] : ' ';
        if (!((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || (next >= '0' && next <= '9') ||
              next == '_' || next == '-'))
            return true;
    }
    return false;
}

// The locals beside rest on it, which this file asks for.
bool by_locals(const File& file, const Node& variable) {
    if (file.source().text().find("local.") == std::string::npos) return false;
    return std::any_of(file.neighbours.begin(), file.neighbours.end(), [&](const auto& beside) {
        return beside->path().ends_with(".tf") && asks_for(beside->source().text(), variable);
    });
}

}  // namespace

void read_variable_files(File& file, const ReadOptions& options) {
    if (file.call || file.host || !options.neighbour || !options.list || !file.path().ends_with(".tf")) return;
    const std::string_view text = file.source().text();
    if (text.find("var.") == std::string_view::npos && text.find("local.") == std::string_view::npos) return;
    if (text.find("resource \"") == std::string_view::npos && text.find("module \"") == std::string_view::npos) return;
    std::vector<std::string> names;
    for (const char* folder : {".", "env", "envs", "environments", "vars", "tfvars", "config", "configs", "projects",
                               "clusters", "stages", "workspaces", "variables"})
        for (const std::string& name : options.list(folder))
            if (given_by_name(name) && names.size() < kMostVariableFiles)
                names.push_back(folder == std::string_view(".") ? name : std::string(folder) + "/" + name);
    for (const std::string& name : names) {
        auto values = options.neighbour(name);
        if (!values || values->size() > kMostVariableBytes || values->find('\0') != std::string::npos) continue;
        file.neighbours.push_back(std::make_unique<File>(path_from(file.path(), name), std::move(*values)));
        File& given = *file.neighbours.back();
        given.kinds.add(Kind::terraform);
        read_hcl(given, ReadOptions{});
        if (given.tree.roots.empty() || !given.problems.empty()) continue;
        const Node* all = given.tree.roots[0];
        bool asked = false;
        for (const Node& each : children(all)) asked = asked || asks_for(text, each) || by_locals(file, each);
        if (!asked) continue;
        ModuleCall call;
        call.name = name;
        call.caller = &given;
        call.overlay = true;
        for (const Node& value : children(all)) call.inputs.emplace_back(value.key, &value);
        read_called(file, file.path(), std::string(text), std::move(call), options);
    }
}

}  // namespace stoker::lint
