#include "workload/import/import_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker {

Result<RunFileTool> tool_of_script(std::string_view text) {
    if (text.starts_with("#!")) return RunFileTool::slurm;
    for (const std::string_view line : split_lines(text)) {
        if (line.starts_with("#SBATCH")) return RunFileTool::slurm;
        if (!line.empty() && line.front() != '#') break;
    }
    return RunFileTool::stoker;
}

Result<RunFileTool> tool_of_document(const Node& root) {
    if (!root.is_mapping() || root.find("version") != nullptr) return RunFileTool::stoker;
    const auto has = [&](std::string_view key) { return root.find(key) != nullptr; };
    const auto scalar = [&](std::string_view key) { return has(key) && root.find(key)->is_scalar(); };
    if (has("apiVersion"))
        return Error(ErrorKind::unsupported, "this is a manifest of Kubernetes (it has apiVersion), which is not read",
                     root.find("apiVersion")->pos,
                     "write a run section: stoker template list shows files to start from");
    if (scalar("type") && !has("kind")) {
        const std::string& type = root.find("type")->text;
        for (const char* known : {"task", "dev-environment"})
            if (type == known) return RunFileTool::dstack;
        for (const char* other : {"service", "fleet", "gateway", "volume"}) {
            if (type == other)
                return Error(ErrorKind::unsupported, fmt::format("a dstack file of type {} is not read", type),
                             root.find("type")->pos, "type task and dev-environment are");
        }
    }
    if (has("kind")) return RunFileTool::stoker;
    for (const char* key : {"num_nodes", "envs", "workdir", "file_mounts", "setup", "resources"})
        if (has(key)) return RunFileTool::skypilot;
    return scalar("run") ? RunFileTool::skypilot : RunFileTool::stoker;
}

namespace import_detail {

std::string shown(const Node& node) {
    if (node.is_scalar()) return printable(node.text, 60);
    return std::string(to_string(node.kind));
}

std::string least_of(const Node& node) {
    std::string_view text = trim(node.text);
    if (const std::size_t range = text.find(".."); range != std::string_view::npos) text = text.substr(0, range);
    while (text.ends_with('+') || text.ends_with('x')) text.remove_suffix(1);
    return std::string(trim(text));
}

void read_accelerators(const Node& node, const std::string& key, ImportedRun& out) {
    const Node* one = &node;
    if (node.is_sequence() && !node.items.empty()) {
        one = node.items.front().get();
        for (std::size_t i = 1; i < node.items.size(); ++i)
            out.report.drop(node.items[i]->pos, fmt::format("{}: {}", key, shown(*node.items[i])),
                            "the first one of the list is taken");
    }
    GpuWish wish{.model = {}, .count = 1};
    std::string count;
    SourcePos pos = one->pos;
    if (one->is_mapping() && !one->members.empty()) {
        wish.model = one->members.front().key;
        count = least_of(*one->members.front().value);
        for (std::size_t i = 1; i < one->members.size(); ++i)
            out.report.drop(one->members[i].key_pos, fmt::format("{}: {}", key, printable(one->members[i].key, 60)),
                            "the first one is taken");
    } else if (one->is_scalar()) {
        const std::size_t colon = one->text.find(':');
        wish.model = one->text.substr(0, colon);
        if (colon != std::string::npos) count = one->text.substr(colon + 1);
    }
    if (!count.empty()) {
        const auto parsed = parse_count(count);
        if (!parsed || *parsed <= 0 || *parsed > 16)
            return out.report.drop(pos, fmt::format("{}: {}", key, shown(*one)), "no number of GPUs that one node has");
        wish.count = *parsed;
    }
    out.run.gpus = wish.count;
    out.run.gpu = wish.model;
    out.run.at["gpus"] = out.run.at["gpu"] = pos;
    out.report.take(pos, fmt::format("{}: {}", key, shown(*one)),
                    fmt::format("gpu: {}, gpus: {:g}", wish.model, wish.count));
}

void read_variables(const Node& node, const std::string& key, ImportedRun& out) {
    const auto add = [&](const std::string& name, std::string value, SourcePos pos) {
        if (name.empty() || name.find('=') != std::string::npos)
            return out.report.drop(pos, key + ": " + printable(name, 60), "no name of a variable");
        out.run.environment[name] = {std::move(value), pos};
        out.report.take(pos, key + ": " + printable(name, 60), "environment");
    };
    for (const Member& member : node.members) {
        const Node& value = *member.value;
        if (value.kind == NodeKind::null || !value.is_scalar())
            out.report.drop(member.key_pos, key + ": " + printable(member.key, 60),
                            "it has no value in the file; --env NAME=VALUE gives one");
        else
            add(member.key, value.text, value.pos);
    }
    for (const auto& item : node.items) {
        const std::size_t equals = item->text.find('=');
        if (!item->is_scalar() || equals == std::string::npos)
            out.report.drop(item->pos, key + ": " + shown(*item),
                            "it has no value in the file; --env NAME=VALUE gives one");
        else
            add(item->text.substr(0, equals), item->text.substr(equals + 1), item->pos);
    }
}

}  // namespace import_detail
}  // namespace stoker
