#include "lint/kubernetes/replacement_paths.h"

#include <algorithm>

#include "lint/pattern.h"

namespace stoker::lint {

std::vector<std::string> path_keys(std::string_view path) {
    std::vector<std::string> keys{""};
    int level = 0;
    for (std::size_t k = 0; k < path.size(); ++k) {
        if (path[k] == '\\' && k + 1 < path.size()) {
            keys.back() += path[++k];
            continue;
        }
        level += path[k] == '[' ? 1 : path[k] == ']' ? -1 : 0;
        if (path[k] == '.' && level == 0)
            keys.emplace_back();
        else
            keys.back() += path[k];
    }
    return keys;
}
// A part of a text between delimiters, or all of it.
std::string_view part_at(std::string_view text, std::string_view delimiter, std::size_t index) {
    if (delimiter.empty()) return text;
    for (; index > 0; --index) {
        const std::size_t at = text.find(delimiter);
        if (at == std::string_view::npos) return {};
        text.remove_prefix(at + delimiter.size());
    }
    return text.substr(0, text.find(delimiter));
}
std::string with_part(std::string_view text, std::string_view delimiter, std::size_t index, std::string_view part) {
    if (delimiter.empty()) return std::string(part);
    std::vector<std::string_view> parts;
    for (std::size_t cut = text.find(delimiter);; cut = text.find(delimiter)) {
        parts.push_back(text.substr(0, cut));
        if (cut == std::string_view::npos) break;
        text.remove_prefix(cut + delimiter.size());
    }
    if (index >= parts.size()) parts.emplace_back();
    parts[std::min(index, parts.size() - 1)] = part;
    std::string out;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        if (k > 0) out += delimiter;
        out += parts[k];
    }
    return out;
}

std::size_t part_index(const Node* options) {
    const Node* index = options ? options->find("index") : nullptr;
    const std::string_view text = index && index->is_scalar() ? index->text : std::string_view();
    return text.size() == 1 && text[0] >= '0' && text[0] <= '9' ? static_cast<std::size_t>(text[0] - '0') : 0;
}

bool name_fits(std::string_view wanted, std::string_view name) {
    if (wanted.empty() || wanted == name) return true;
    if (wanted.find_first_of(".*+?[(|^$") == std::string_view::npos) return false;
    const auto pattern = TextPattern::read("^(?:" + std::string(wanted) + ")$");
    return pattern && !pattern->match(name).empty();
}

}  // namespace stoker::lint
