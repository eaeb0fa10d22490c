#include <fmt/format.h>

#include "lint/azure/fields.h"
#include "lint/azure/local_modules.h"
#include "lint/read.h"

namespace stoker::lint {

namespace {

struct BicepFinder {
    File& file;
    const ReadOptions& options;

    static std::string_view type_of(std::string_view label) { return label.substr(0, label.find('@')); }

    // Of a round of a loop: how many there are, when the list is written.
    Value count_of(const Node& statement) const {
        const Node* loop = statement.find("loop");
        if (!loop) return {};
        Value count = Value::of(loop);
        if (!loop->is_array() && !loop->is_object()) return count;
        count.state = Value::State::known;
        count.text = file.tree.keep(std::to_string(loop->count()));
        return count;
    }

    void resource(const Node& node, const Node* body, std::string type, const std::string& parent, int depth,
                  const std::string& round = "") {
        if (!body || depth > 8) return;
        const std::string_view symbol = node.labels[0];
        ArmBody arm;
        arm.type = file.tree.keep(type);
        arm.address = fmt::format("bicep:{}{}", symbol, round);
        arm.written = arm.type;
        arm.body = body;
        arm.header = {node.key_span.begin, std::max(node.key_span.end, body->span.begin)};
        const std::string_view text = file.source().text();
        while (arm.header.end > arm.header.begin &&
               (text[arm.header.end - 1] == ' ' || text[arm.header.end - 1] == '='))
            --arm.header.end;
        if (round.empty()) arm.count = count_of(node);
        arm.target = parent;
        if (node.labels.size() < 3) add_arm_resource(file, arm, Dialect::bicep, options);
        for (const Node& child : children(body))
            if (child.key == "resource" && child.labels.size() >= 2)
                resource(child, &child, fmt::format("{}/{}", type, type_of(child.labels[1])), std::string(symbol),
                         depth + 1);
    }

    void statement(const Node& node) {
        if (node.labels.empty()) return;
        const Span header{node.key_span.begin, node.span.end};
        const Node* value = node.find("value");
        if ((node.key == "param" || node.key == "var") && file.call) return;  // judged in the file itself
        if (node.key == "param" || node.key == "var") {
            const std::string address = fmt::format("bicep:{} {}", node.key, node.labels[0]);
            if (const Node* allowed = node.find("allowed")) add_size_list(file, allowed, address + "#allowed", header);
            // A table that parameters are chosen from offers nothing to anybody.
            if (node.key == "var" && value && !value->is_scalar() && !file.path().ends_with(".bicepparam"))
                add_size_list(file, value, address, header);
            add_named_size(file, node.labels[0], value, address, header);
        } else if (node.key == "resource" && node.labels.size() >= 2 && value && value->is_object()) {
            const Node* rounds = node.find("rounds");
            const std::string type(type_of(node.labels[1]));
            if (!rounds || !rounds->known || !rounds->is_array() || !rounds->first) {
                resource(node, value, type, "", 0);
                return;
            }
            int round = 0;
            for (const Node& body : children(rounds)) resource(node, &body, type, "", 0, fmt::format("[{}]", round++));
        } else if (node.key == "module" && value) {
            if (const Node* params = value->find("params"); params && !file.call)
                add_sizes_of_call(file, *params, fmt::format("bicep:{}", node.labels[0]));
            if (node.labels.size() >= 2) calls_of(node, *value);
        }
    }

    // A module is called once for each round of its loop, and once where the rounds are not known.
    void calls_of(const Node& node, const Node& body) const {
        std::string path(node.labels[1]);
        if (!path.starts_with('.') && path.find(':') == std::string::npos && path.ends_with(".bicep"))
            path.insert(0, "./");
        const Node* rounds = node.find("rounds");
        const std::string name(node.labels[0]);
        if (!rounds || !rounds->known || !rounds->is_array() || !rounds->first)
            return read_module_call(file, name, path, node, body.find("params"), options);
        int round = 0;
        for (const Node& each : children(rounds))
            read_module_call(file, fmt::format("{}[{}]", name, round++), path, node, each.find("params"), options);
    }
};

}  // namespace

void find_bicep(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::bicep) || file.tree.roots.empty()) return;
    BicepFinder finder{file, options};
    for (const Node& node : children(file.tree.roots[0])) finder.statement(node);
}

}  // namespace stoker::lint
