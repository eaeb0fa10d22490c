#include "lint/azure/local_modules.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

constexpr int kMostModuleDepth = 4;                 // calls within calls
constexpr std::size_t kMostModuleCalls = 64;        // of one file, those within its modules included
constexpr std::size_t kMostModuleFiles = 32;        // of one folder
constexpr std::size_t kMostModuleBytes = 2u << 20;  // read for all calls of one file

File& first_caller(File& file) {
    File* at = &file;
    while (at->call) at = at->call->caller;
    return *at;
}

}  // namespace

std::string path_from(std::string_view file, std::string_view relative) {
    std::vector<std::string_view> steps;
    const auto add = [&](std::string_view path) {
        for (const std::string_view step : split(path, '/')) {
            if (step.empty() || step == ".") continue;
            if (step == ".." && !steps.empty() && steps.back() != "..")
                steps.pop_back();
            else
                steps.push_back(step);
        }
    };
    const std::size_t slash = file.rfind('/');
    if (slash != std::string_view::npos) add(file.substr(0, slash));
    add(relative);
    std::string path = file.starts_with('/') ? "/" : "";
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (i > 0) path += '/';
        path += steps[i];
    }
    return path;
}

std::unique_ptr<File> file_of_call(File& caller, std::string path, std::string text, std::string_view name, Span at) {
    auto made = std::make_unique<File>(std::move(path), std::move(text));
    made->call.emplace();
    made->call->name = name;
    made->call->caller = &caller;
    made->call->span = at;
    return made;
}

void read_module_call(File& caller, std::string name, std::string_view source, const Node& call, const Node* arguments,
                      const ReadOptions& options) {
    if (caller.host || !options.neighbour || (!source.starts_with("./") && !source.starts_with("../"))) return;
    const bool bicep = caller.kinds.has(Kind::bicep);
    if (!bicep && !options.list) return;
    const int depth = caller.call ? caller.call->depth + 1 : 1;
    File& root = first_caller(caller);
    if (depth > kMostModuleDepth || ++root.module_calls > kMostModuleCalls) return;

    std::string folder(source);
    std::vector<std::string> names;
    if (bicep) {
        if (!folder.ends_with(".bicep")) return;
        const std::size_t slash = folder.rfind('/');
        names.push_back(folder.substr(slash + 1));
        folder.resize(slash);
    } else {
        while (folder.ends_with('/')) folder.pop_back();
        for (std::string& file : options.list(folder))
            if (file.ends_with(".tf") || file.ends_with(".tf.json")) names.push_back(std::move(file));
    }
    if (names.empty() || names.size() > kMostModuleFiles) return;
    // A module that calls itself ends here, and would not end in Terraform.
    for (const File* at = &caller; at; at = at->call ? at->call->caller : nullptr)
        for (const std::string& file : names)
            if (at->path() == path_from(caller.path(), folder + "/" + file)) return;

    std::vector<std::pair<std::string, std::string>> texts;
    for (const std::string& file : names) {
        auto text = options.neighbour(folder + "/" + file);
        if (!text || (root.module_bytes += text->size()) > kMostModuleBytes) return;
        texts.emplace_back(path_from(caller.path(), folder + "/" + file), std::move(*text));
    }
    ReadOptions inside;
    inside.size = options.size;
    inside.neighbour = [outer = options.neighbour, folder](const std::string& path) {
        return outer(folder + "/" + path);
    };
    if (options.list)
        inside.list = [outer = options.list, folder](const std::string& path) { return outer(folder + "/" + path); };
    ModuleCall made;
    made.name = caller.call ? caller.call->name + "." + name : std::move(name);
    made.caller = &caller;
    made.span = {call.key_span.begin, std::max(call.key_span.end, call.span.begin)};
    made.depth = depth;
    for (const Node& argument : children(arguments)) made.inputs.emplace_back(argument.key, &argument);
    for (auto& [path, text] : texts) read_called(caller, std::move(path), std::move(text), made, inside);
}

}  // namespace stoker::lint
