// docker-bake.hcl: the Dockerfile of each target, built with the arguments that the target gives it.
#include "lint/shell/read_bake.h"
#include "base/text.h"
#include "lint/azure/fields.h"
#include "lint/azure/local_modules.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostTargetsOfBake = 32, kMostBakeBytes = 256u << 10;

// A value that is written, or the default of the variable that it names.
const Node* baked_value(const File& file, const Node& written) {
    if (written.known || !written.source) return written.is_scalar() ? &written : nullptr;
    std::string_view name = trim(written.source->text(written.span));
    if (name.starts_with("\"${") && name.ends_with("}\"")) name = name.substr(3, name.size() - 5);
    for (const Node& block : children(file.tree.roots.front()))
        if (block.key == "variable" && !block.labels.empty() && block.labels[0] == name)
            if (const Node* value = block.find("default"); value && value->known && value->is_scalar()) return value;
    return nullptr;
}

}  // namespace

void read_bake_targets(File& file, const ReadOptions& options) {
    const std::string_view name = base_name_of(file.path());
    if (!name.starts_with("docker-bake") || !options.neighbour || file.call || file.host || file.tree.roots.empty())
        return;
    std::size_t count = 0;
    for (const Node& target : children(file.tree.roots.front())) {
        const Node* arguments = target.key == "target" ? target.find("args") : nullptr;
        if (!arguments || !arguments->is_object() || ++count > kMostTargetsOfBake) continue;
        const std::string_view written = text_at(&target, "dockerfile"), context = text_at(&target, "context");
        std::string path(written.empty() ? std::string_view("Dockerfile") : written);
        if (!context.empty() && context != "." && context.find(':') == std::string_view::npos)
            path = std::string(context) + "/" + path;
        auto text = options.neighbour(path);
        if (!text || text->size() > kMostBakeBytes || text->find('\0') != std::string::npos) continue;
        auto made =
            file_of_call(file, path_from(file.path(), path), std::move(*text), "docker buildx bake", target.key_span);
        if (!made) continue;
        made->kinds = {Kind::dockerfile};
        for (const Node& argument : children(arguments)) {
            const Node* value = baked_value(file, argument);
            if (!value) continue;
            Node& given = made->tree.make(*value->source, Shape::string, value->span);
            given.text = value->text;
            made->call->inputs.emplace_back(argument.key, &given);
        }
        read_dockerfile(*made, {});
        if (!made->call->inputs.empty()) file.calls.push_back(std::move(made));
    }
}

}  // namespace stoker::lint
