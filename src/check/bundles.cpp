#include "check/bundles.h"
#include "base/paths.h"

#include <algorithm>
#include <map>
#include <set>

namespace stoker {

namespace {

enum class Sort : unsigned char { chart, terraform, kustomization, compose, configured };

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::optional<Sort> sort_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
    if (name == "stoker.toml") return Sort::configured;
    if (name == "Chart.yaml") return Sort::chart;
    if (name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization")
        return Sort::kustomization;
    if (name.ends_with(".tf") || name.ends_with(".tf.json")) return Sort::terraform;
    const bool yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    if (yaml && (name.starts_with("docker-compose") || name.starts_with("compose.") || name.starts_with("compose-")))
        return Sort::compose;
    return std::nullopt;
}

// Folders of local modules, with the folder that names each first.
std::map<std::string, std::string> local_modules(const std::vector<CheckInput>& inputs) {
    std::map<std::string, std::string> callers;
    for (const CheckInput& input : inputs) {
        if (!input.file || !input.file->kinds.has(lint::Kind::terraform)) continue;
        for (const lint::Node* root : input.file->tree.roots) {
            for (const lint::Node& block : lint::children(root)) {
                if (block.key != "module") continue;
                const lint::Node* source = block.find("source");
                if (!source || !source->known) continue;
                if (!source->text.starts_with("./") && !source->text.starts_with("../")) continue;
                const std::string folder = folder_of(input.path);
                std::string module = tidy_path((folder.empty() ? "" : folder + "/") + std::string(source->text));
                if (module == ".") module.clear();
                if (module != folder) callers.emplace(std::move(module), folder);
            }
        }
    }
    return callers;
}

// The folder at the top of its tree in which a file lies; empty at the top itself.
std::string top_folder(const CheckInput& input) {
    std::size_t at = 0;
    if (!input.root.empty() && input.path.starts_with(input.root + "/")) at = input.root.size() + 1;
    const std::size_t slash = input.path.find('/', at);
    return slash == std::string::npos ? std::string() : input.path.substr(0, slash);
}

// Kustomizations that take one another in (an overlay its base and its components) are one: the folder that holds all
// of them. One folder for each such group.
std::set<std::string> kustomization_groups(const std::set<std::string>& folders,
                                           const std::vector<CheckInput>& inputs) {
    std::map<std::string, std::string> group;  // of a folder: another of its group, in the end the first
    for (const std::string& folder : folders) group[folder] = folder;
    const auto first_of = [&](std::string folder) {
        while (group[folder] != folder) folder = group[folder];
        return folder;
    };
    for (const CheckInput& input : inputs) {
        if (!input.file || sort_of(input.path) != Sort::kustomization || input.file->tree.roots.empty()) continue;
        const std::string folder = folder_of(input.path);
        if (!group.contains(folder)) continue;
        for (const std::string_view key : {"resources", "bases", "components"})
            for (const lint::Node& entry : lint::children(input.file->tree.roots[0]->find(key))) {
                if (!entry.is_scalar() || entry.text.find("://") != std::string_view::npos) continue;
                std::string other = tidy_path((folder.empty() ? "" : folder + "/") + std::string(entry.text));
                if (other == ".") other.clear();
                if (group.contains(other)) group[first_of(other)] = first_of(folder);
            }
    }
    std::map<std::string, std::string> holders;
    for (const std::string& folder : folders) {
        const auto [holder, fresh] = holders.emplace(first_of(folder), folder);
        if (fresh) continue;
        std::string& above = holder->second;
        while (!above.empty() && !lies_in(folder, above)) above = folder_of(above);
    }
    std::set<std::string> tops;
    for (const auto& [first, holder] : holders) tops.insert(holder);
    return tops;
}

}  // namespace

std::vector<InputBundle> group_bundles(const std::vector<CheckInput>& inputs, const std::vector<WalkedFile>& walked) {
    const std::map<std::string, std::string> callers = local_modules(inputs);
    // Follows modules to the root that uses them; a module that names itself ends the search.
    const auto root_of = [&](std::string folder) {
        for (int steps = 0; steps < 32; ++steps) {
            const auto caller = callers.find(folder);
            if (caller == callers.end()) break;
            folder = caller->second;
        }
        return folder;
    };
    std::map<std::pair<std::string, Sort>, std::set<std::string>> found;  // by tree and sort: folders
    for (const WalkedFile& file : walked) {
        const auto sort = sort_of(file.path);
        if (!sort) continue;
        const std::string folder = folder_of(file.path);
        if (*sort == Sort::terraform && callers.contains(folder)) continue;
        found[{file.named ? std::string() : file.root, *sort}].insert(folder);
    }
    std::set<std::string> tops;
    for (const auto& [key, each] : found) {
        const std::set<std::string> folders =
            key.second == Sort::kustomization ? kustomization_groups(each, inputs) : each;
        if (key.second == Sort::configured || folders.size() > 1) tops.insert(folders.begin(), folders.end());
    }

    // Several infrastructures are several clusters: which of them a manifest elsewhere is for is not known, and a
    // script that makes one more is for what lies with it.
    const bool collection = std::any_of(found.begin(), found.end(), [](const auto& each) {
        return each.first.second == Sort::terraform && each.second.size() > 1;
    });
    std::map<std::string, InputBundle> bundles;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const CheckInput& input = inputs[i];
        if (!input.file) continue;
        std::string folder = folder_of(input.path);
        if (input.file->kinds.has(lint::Kind::terraform)) folder = root_of(folder);
        while (!tops.contains(folder) && !folder.empty()) folder = folder_of(folder);
        // Named files are one tree, whichever folders they are in.
        const bool top = tops.contains(folder);
        if (!top && collection) folder = top_folder(input);
        const std::string key = (top ? "b" : "t") + folder;
        InputBundle& bundle = bundles[key];
        if (bundle.inputs.empty()) bundle.folder = folder.empty() && !top ? "." : folder;
        bundle.inputs.push_back(i);
    }
    std::vector<InputBundle> list;
    for (auto& [key, bundle] : bundles) list.push_back(std::move(bundle));
    return list;
}

}  // namespace stoker
