#include <algorithm>
#include <vector>

#include "base/embedded.h"
#include "base/text.h"
#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// A row of data/lint/cloud_config_keys.tsv: the path of a key ("write_files[].path"), what it may be ("string|int"),
// what a list in it may hold, and whether it must be there.
struct CloudKey {
    std::string_view path, types, items, need;
};
const std::vector<CloudKey>& cloud_keys() {
    static const std::vector<CloudKey> keys = [] {
        std::vector<CloudKey> rows;
        bool head = true;
        for (const std::string_view line : split_lines(embedded_bytes("lint/cloud_config_keys.tsv"))) {
            if (line.empty() || line.starts_with('#')) continue;
            if (!head) {
                const auto fields = split(line, '\t');
                if (fields.size() >= 4) rows.push_back({fields[0], fields[1], fields[2], fields[3]});
            }
            head = false;
        }
        return rows;
    }();
    return keys;
}

bool is_yaml_bool(const Node& node) {
    return node.shape == Shape::boolean ||
           (node.style == Style::plain &&
            (equals_ignore_case(node.text, "yes") || equals_ignore_case(node.text, "no") ||
             equals_ignore_case(node.text, "on") || equals_ignore_case(node.text, "off")));
}
std::string_view cloud_type(const Node& node) {
    if (node.is_object()) return "object";
    if (node.is_array()) return "array";
    if (node.shape == Shape::null) return "null";
    if (is_yaml_bool(node)) return "bool";
    if (node.shape == Shape::number) return node.text.find('.') == std::string_view::npos ? "int" : "number";
    return "string";
}
bool type_allowed(std::string_view types, const Node& node) {
    const std::string_view type = cloud_type(node);
    for (const std::string_view each : split(types, '|')) {
        if (each == type || each == "any") return true;
        if (each.starts_with('=') && node.is_scalar() && each.substr(1) == node.text)
            return true;  // one of an enumeration
    }
    return false;
}

struct CloudChecker {
    const File& part;
    Report& report;

    void tell(const Node& at, const std::string& path, std::string message) {
        Finding* finding = report.add(*at.source, at.whole(), "cloud-init:" + path, std::move(message));
        if (finding) finding->advice = "cloud-init logs it and goes on without this part; check with cloud-init schema";
    }
    static std::string words(std::string_view types) {
        std::string text;
        for (const std::string_view each : split(types, '|')) {
            if (!text.empty()) text += " or ";
            text += each.starts_with('=') ? "\"" + std::string(each.substr(1)) + "\"" : std::string(each);
        }
        return text;
    }
    void check(const Node& node, const CloudKey& key, const std::string& path) {
        if (!node.known && node.is_scalar()) return;
        if (!type_allowed(key.types, node)) {
            tell(node, path, path + " is " + std::string(cloud_type(node)) + "; cloud-init takes " + words(key.types));
            return;
        }
        if (node.is_array() && key.items != "any" && !key.items.empty())
            for (const Node& item : children(&node)) {
                if (!item.known && item.is_scalar()) continue;
                if (!type_allowed(key.items, item)) {
                    tell(item, path + "[]",
                         "an entry of " + path + " is " + std::string(cloud_type(item)) + "; cloud-init takes " +
                             words(key.items));
                    continue;
                }
                if (item.is_object()) object(item, std::string(key.path) + "[]", path + "[]");
            }
        if (node.is_object()) object(node, std::string(key.path), path);
    }
    void object(const Node& node, const std::string& prefix, const std::string& shown) {
        for (const CloudKey& key : cloud_keys()) {
            if (!key.path.starts_with(prefix) || key.path.size() <= prefix.size() + 1 || key.path[prefix.size()] != '.')
                continue;
            const std::string_view name = key.path.substr(prefix.size() + 1);
            if (name.find_first_of(".[") != std::string_view::npos) continue;
            const Node* child = node.find(name);
            if (child)
                check(*child, key, shown + "." + std::string(name));
            else if (key.need == "required")
                tell(node, shown + "." + std::string(name),
                     "an entry of " + shown.substr(0, shown.find('[')) + " has no " + std::string(name) +
                         ", which it must have");
        }
    }
};

}  // namespace

void check_ini001(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        if (!part.kinds.has(Kind::cloud_init) || part.tree.roots.empty()) return;
        // A template is no cloud-config before it is rendered.
        const std::string_view text = part.source().text();
        if (text.starts_with("## template:") || text.find("{{") != std::string_view::npos ||
            text.find("{%") != std::string_view::npos || !part.problems.empty())
            return;
        const Node* root = part.tree.roots.front();
        if (!root->is_object()) return;
        CloudChecker checker{part, report};
        for (const CloudKey& key : cloud_keys()) {
            if (key.path.find_first_of(".[") != std::string_view::npos) continue;
            if (const Node* child = root->find(key.path)) checker.check(*child, key, std::string(key.path));
        }
    });
}

}  // namespace stoker::lint
