#include "lint/hcl/definitions.h"

#include <algorithm>
#include <array>
#include <set>

#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostOthers = 24;
constexpr std::array<std::string_view, 3> kReadAnyway = {"variables.tf", "vars.tf", "locals.tf"};

}  // namespace

std::vector<std::string> files_that_define(const File& file, const ReadOptions& options,
                                           const std::function<bool(bool local, std::string_view name)>& known) {
    std::set<std::string> missing;
    const auto look_in = [&](std::string_view text) {
        for (const bool local : {true, false}) {
            const std::string_view space = local ? "local." : "var.";
            for (std::size_t at = text.find(space); at != std::string_view::npos; at = text.find(space, at + 1)) {
                const std::size_t from = at + space.size();
                std::size_t to = from;
                while (to < text.size() && (shell_name_char(text[to]) || text[to] == '-')) ++to;
                const std::string_view name = text.substr(from, to - from);
                if (!name.empty() && !known(local, name)) missing.emplace(name);
            }
        }
    };
    look_in(file.source().text());
    std::set<std::string_view> there;
    for (const auto& beside : file.neighbours)
        if (beside->kinds.has(Kind::terraform) && !beside->host) {
            look_in(beside->source().text());
            there.insert(base_name_of(beside->path()));
        }
    std::vector<std::string> files;
    if (missing.empty()) return files;
    std::size_t count = 0;
    for (const std::string& name : options.list(".")) {
        if (!name.ends_with(".tf") || name == base_name_of(file.path()) || there.contains(name) ||
            std::find(kReadAnyway.begin(), kReadAnyway.end(), name) != kReadAnyway.end())
            continue;
        if (++count > kMostOthers) break;
        const auto other = options.neighbour(name);
        if (!other || (other->find("locals") == std::string::npos && other->find("variable \"") == std::string::npos))
            continue;
        if (std::any_of(missing.begin(), missing.end(),
                        [&](const std::string& each) { return other->find(each) != std::string::npos; }))
            files.push_back(name);
    }
    return files;
}

}  // namespace stoker::lint
