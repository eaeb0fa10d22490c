// Files of a tree, read and checked as `stoker check` does it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lint/azure/local_modules.h"
#include "lint/check.h"
#include "lint/read.h"

namespace stoker::lint {

struct CheckedTree {
    std::vector<std::pair<std::string, std::string>> texts;
    std::vector<std::unique_ptr<File>> files;

    void read() {
        files.clear();
        for (const auto& [path, text] : texts) {
            ReadOptions options;
            options.neighbour = [this, path = path](const std::string& wanted) -> std::optional<std::string> {
                for (const auto& [name, body] : texts)
                    if (name == path_from(path, wanted)) return body;
                return std::nullopt;
            };
            options.list = [this, path = path](const std::string& wanted) {
                std::vector<std::string> names;
                const std::string folder = path_from(path, wanted);
                const std::string start = folder.empty() ? "" : folder + "/";
                for (const auto& [name, body] : texts)
                    if (name.starts_with(start) && name.find('/', start.size()) == std::string::npos)
                        names.push_back(name.substr(start.size()));
                std::sort(names.begin(), names.end());
                return names;
            };
            if (auto file = read_file(path, text, options)) files.push_back(std::move(file));
        }
    }
    std::vector<Finding> findings(std::string_view rule) {
        read();
        Bundle bundle;
        for (const auto& file : files) bundle.files.push_back(file.get());
        CheckOptions options;
        options.as_of = "2026-11-20";
        std::vector<Finding> found = check_bundle(bundle, options, Knowledge::embedded());
        std::erase_if(found, [&](const Finding& finding) { return finding.rule != rule; });
        return found;
    }
    // "path:line" of each finding of a rule.
    std::vector<std::string> places(std::string_view rule) {
        std::vector<std::string> found;
        for (const Finding& finding : findings(rule))
            found.push_back(finding.path + ":" + std::to_string(finding.place.line));
        return found;
    }
};
using Places = std::vector<std::string>;

}  // namespace stoker::lint
