#include "lint/hcl/module_outputs.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostAskedFiles = 32;          // read beside one file
constexpr std::size_t kMostAskedBytes = 256u << 10;  // of one module

}  // namespace

const Node* module_outputs(File& file, const Node& call, const std::string& folder, int depth,
                           const ReadOptions& options) {
    ModuleCall made;
    made.name = "module." + std::string(call.labels[0]);
    made.caller = &file;
    made.span = call.key_span;
    made.depth = depth;
    for (const Node& argument : children(&call)) made.inputs.emplace_back(argument.key, &argument);
    ReadOptions inside;
    inside.neighbour = [outer = options.neighbour, folder](const std::string& path) {
        return outer(folder + "/" + path);
    };
    inside.list = [outer = options.list, folder](const std::string& path) { return outer(folder + "/" + path); };
    Node& result = file.tree.make(file.source(), Shape::object, call.span);
    std::size_t bytes = 0;
    for (const std::string& each : options.list(folder)) {
        if (!each.ends_with(".tf") || file.neighbours.size() > kMostAskedFiles) continue;
        auto text = options.neighbour(folder + "/" + each);
        if (!text || text->find("output") == std::string::npos || (bytes += text->size()) > kMostAskedBytes) continue;
        const std::size_t slash = file.path().rfind('/');
        std::string path = slash == std::string::npos ? "" : file.path().substr(0, slash + 1);
        path += folder + "/" + each;
        if (path == file.path()) continue;
        file.neighbours.push_back(std::make_unique<File>(std::move(path), std::move(*text)));
        File& read = *file.neighbours.back();
        read.kinds.add(Kind::terraform);
        read.call = made;
        read_hcl(read, inside);
        if (read.tree.roots.empty()) continue;
        for (const Node& block : children(read.tree.roots[0])) {
            const Node* value = block.key == "output" && block.labels.size() == 1 ? block.find("value") : nullptr;
            if (!value) continue;
            Node& output = file.tree.make(*value->source, value->shape, value->span);
            output.style = value->style, output.known = value->known, output.text = value->text;
            output.first = value->first, output.last = value->last;
            output.origin = value->origin, output.key = block.labels[0];
            file.tree.append(result, output);
        }
    }
    return result.first ? &result : nullptr;
}

}  // namespace stoker::lint
