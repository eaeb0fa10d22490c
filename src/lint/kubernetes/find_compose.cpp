// Services of a compose file as containers. Compose replaces $NAME and ${NAME:-default} in every scalar before anything
// else reads it; so do we, with .env beside the file.
#include <algorithm>
#include <cctype>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/kubernetes/container_parts.h"
#include "lint/read.h"

namespace stoker::lint {

namespace {

using Variables = std::unordered_map<std::string, std::string>;

Variables variables_beside(const ReadOptions& options) {
    Variables found;
    if (!options.neighbour) return found;
    const auto text = options.neighbour(".env");
    if (!text) return found;
    for (std::string_view line : split_lines(*text)) {
        line = trim(line);
        if (line.starts_with("export ")) line = trim(line.substr(7));
        const std::size_t equals = line.find('=');
        if (line.empty() || line[0] == '#' || equals == std::string_view::npos) continue;
        std::string_view value = trim(line.substr(equals + 1));
        if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0])
            value = value.substr(1, value.size() - 2);
        else if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos)
            value = trim(value.substr(0, comment));
        found.emplace(trim(line.substr(0, equals)), value);
    }
    return found;
}

bool is_name_byte(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Appends what `text` stands for; false where a variable has no value.
bool substitute(std::string_view text, const Variables& variables, std::string& out, int depth = 0) {
    bool known = true;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '$' || at + 1 >= text.size()) {
            out += text[at];
            continue;
        }
        if (text[at + 1] == '$') {
            out += '$';
            ++at;
            continue;
        }
        if (text[at + 1] != '{') {
            std::size_t end = at + 1;
            while (end < text.size() && is_name_byte(text[end])) ++end;
            if (end == at + 1) {
                out += '$';
                continue;
            }
            const auto it = variables.find(std::string(text.substr(at + 1, end - at - 1)));
            if (it == variables.end())
                known = false;
            else
                out += it->second;
            at = end - 1;
            continue;
        }
        std::size_t end = at + 2;
        for (int open = 1; end < text.size(); ++end) {
            if (text[end] == '{') ++open;
            if (text[end] == '}' && --open == 0) break;
        }
        if (end >= text.size()) return false;
        const std::string_view inside = text.substr(at + 2, end - at - 2);
        std::size_t name_end = 0;
        while (name_end < inside.size() && is_name_byte(inside[name_end])) ++name_end;
        const std::string_view rest = inside.substr(name_end);
        const auto it = variables.find(std::string(inside.substr(0, name_end)));
        const bool empty_counts = rest.starts_with('-') || rest.starts_with('+');
        const bool set = it != variables.end() && (empty_counts || !it->second.empty());
        const std::string_view operation = rest.starts_with(':') ? rest.substr(1) : rest;
        if (operation.starts_with('-') && !set && depth < 8)
            known = substitute(operation.substr(1), variables, out, depth + 1) && known;
        else if (operation.starts_with('+') && depth < 8)
            known = (set && substitute(operation.substr(1), variables, out, depth + 1)) && known;
        else if (set)
            out += it->second;
        else
            known = false;
        at = end;
    }
    return known;
}

// Whether git leaves `.env` out, by the .gitignore beside it and above: what it holds is then nobody else's.
bool env_is_ignored(const ReadOptions& options) {
    std::string up;
    for (int floors = 0; floors < 5; ++floors, up += "../") {
        const auto text = options.neighbour(up + ".gitignore");
        if (!text) continue;
        for (std::string_view line : split_lines(*text)) {
            line = trim(line);
            while (line.starts_with('/') || line.starts_with("**/")) line.remove_prefix(line.find('/') + 1);
            if (line == ".env" || line == ".env*" || line == "*.env" || line == ".*" || line == "*") return true;
        }
    }
    return false;
}

// ${NAME} or $NAME and nothing else: its value stands in `.env`.
void place_in_env_file(Node& node, std::string_view written, File& env) {
    std::string_view name = written.substr(1);
    if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_byte)) return;
    const std::string_view all = env.source().text();
    for (std::string_view line : split_lines(all)) {
        const std::size_t equals = line.find('=');
        std::string_view key = trim(line.substr(0, equals));
        if (key.starts_with("export ")) key = trim(key.substr(7));
        if (equals == std::string_view::npos || key != name) continue;
        const std::size_t at = line.find(node.text, equals);
        if (at == std::string_view::npos || node.text.empty()) return;
        const auto begin = static_cast<std::uint32_t>(line.data() + at - all.data());
        node.source = &env.source();
        node.span = {begin, begin + static_cast<std::uint32_t>(node.text.size())};
        return;
    }
}

// All scalars of the tree, once: aliases share their children.
void substitute_all(File& file, const ReadOptions& options) {
    if (file.source().text().find('$') == std::string_view::npos) return;
    const Variables variables = variables_beside(options);
    File* env = nullptr;
    if (!variables.empty() && !env_is_ignored(options)) {
        const std::size_t slash = file.path().rfind('/');
        file.neighbours.push_back(std::make_unique<File>(
            (slash == std::string::npos ? "" : file.path().substr(0, slash + 1)) + ".env", *options.neighbour(".env")));
        env = file.neighbours.back().get();
    }
    std::vector<Node*> open(file.tree.roots.begin(), file.tree.roots.end());
    std::size_t left = file.tree.size() * 2 + 16;
    while (!open.empty() && left-- > 0) {
        Node& node = *open.back();
        open.pop_back();
        if (node.is_scalar()) {
            if (node.text.find('$') == std::string_view::npos || node.style == Style::literal) continue;
            std::string text;
            if (const std::string_view written = node.text; substitute(written, variables, text)) {
                node.text = file.tree.keep(std::move(text));
                if (env && written.starts_with('$')) place_in_env_file(node, written, *env);
            } else {
                node.known = false;
            }
            continue;
        }
        for (const Node& child : children(&node)) {
            // An aliased list has its children from the anchor, which is walked on its own.
            if (child.merged && !child.is_scalar()) continue;
            open.push_back(const_cast<Node*>(&child));  // made by read_yaml for this file, changed by it alone
        }
    }
}

Value compose_value_part(const Node& node, std::size_t at, std::size_t size) {
    Value value = Value::of(&node);
    value.text = node.text.substr(at, size);
    const std::string_view file = node.source->text();
    const char* begin = value.text.data();
    if (begin >= file.data() && begin + size <= file.data() + file.size()) {
        value.span.begin = static_cast<std::uint32_t>(begin - file.data());
        value.span.end = value.span.begin + static_cast<std::uint32_t>(size);
    } else if (const std::size_t found = file.substr(node.span.begin, node.span.size()).find(value.text);
               size > 0 && found != std::string_view::npos) {  // a variable elsewhere in the same text
        value.span.begin = node.span.begin + static_cast<std::uint32_t>(found);
        value.span.end = value.span.begin + static_cast<std::uint32_t>(size);
    }
    value.node = nullptr;
    return value;
}

struct ServiceReader {
    File& file;

    void environment(const Node* list, Container& container) {
        if (!list) return;
        for (const Node& each : children(list)) {
            EnvVar variable;
            if (list->is_object()) {
                variable.name = each.key;
                variable.value = Value::of(&each);
                variable.span = each.whole();
                if (each.shape == Shape::null) variable.value.state = Value::State::unknown;  // from the shell
            } else if (each.is_scalar()) {
                const std::size_t equals = each.text.find('=');
                variable.name = each.text.substr(0, equals);
                if (equals == std::string_view::npos) {
                    variable.value = Value::of(&each);
                    variable.value.state = Value::State::unknown;
                } else {
                    variable.value = compose_value_part(each, equals + 1, each.text.size() - equals - 1);
                }
                variable.span = each.span;
            } else {
                continue;
            }
            container.environment.push_back(variable);
            file.environment.push_back(variable);
        }
    }

    // A list is words; a string is split as a shell would, without running one.
    void words(const Node* node, std::vector<Value>& out) {
        if (!node) return;
        if (node->is_array()) {
            for (const Node& each : children(node))
                if (each.is_scalar()) out.push_back(Value::of(&each));
            return;
        }
        if (!node->is_scalar()) return;
        const std::string_view text = node->text;
        for (std::size_t at = 0; at < text.size();) {
            if (std::isspace(static_cast<unsigned char>(text[at]))) {
                ++at;
                continue;
            }
            std::string word;
            const std::size_t begin = at;
            bool changed = false;
            while (at < text.size() && !std::isspace(static_cast<unsigned char>(text[at]))) {
                const char c = text[at];
                if (c == '\'' || c == '"') {
                    changed = true;
                    ++at;
                    while (at < text.size() && text[at] != c) {
                        if (c == '"' && text[at] == '\\' && at + 1 < text.size()) ++at;
                        word += text[at++];
                    }
                    ++at;
                } else {
                    if (c == '\\' && at + 1 < text.size()) {
                        changed = true;
                        ++at;
                    }
                    word += text[at++];
                }
            }
            at = std::min(at, text.size());
            const bool quoted = changed && at >= begin + 2 && word == text.substr(begin + 1, at - begin - 2);
            Value value = quoted ? compose_value_part(*node, begin + 1, at - begin - 2)
                                 : compose_value_part(*node, begin, at - begin);
            if (changed && !quoted) value.text = file.tree.keep(std::move(word));
            out.push_back(value);
        }
    }

    void add_gpu(Container& container, std::string_view resource, const Value& amount, Span key) {
        container.resources.push_back({resource, amount, key, true});
    }

    void reservation(const Node& device, Container& container) {
        const Node* driver = device.find("driver");
        const Node* capabilities = device.find("capabilities");
        bool gpu = driver && (driver->text == "nvidia" || driver->text == "amd");
        for (const Node& each : children(capabilities)) {
            gpu |= each.text == "gpu";
            for (const Node& inner : children(&each)) gpu |= inner.text == "gpu";
        }
        const Node* count = device.find("count");
        const Node* ids = device.find("device_ids");
        for (const Node& id : children(ids)) gpu |= id.text.starts_with("nvidia.com/gpu");
        if (!gpu) return;
        const std::string_view resource = driver && driver->text == "amd" ? "amd.com/gpu" : "nvidia.com/gpu";
        if (count && count->is_scalar()) return add_gpu(container, resource, Value::of(count), count->key_span);
        Value amount = Value::known_text("all", device.span, *device.source);
        if (ids) {
            bool known = ids->is_array();
            for (const Node& id : children(ids)) known &= id.known && id.text != "nvidia.com/gpu=all";
            amount.span = ids->span;
            if (known) amount.text = file.tree.keep(std::to_string(ids->count()));
        }
        add_gpu(container, resource, amount, ids ? ids->key_span : device.span);
    }

    void devices(const Node& service, Container& container) {
        for (const Node& device : children(service.at({"deploy", "resources", "reservations", "devices"})))
            if (device.is_object()) reservation(device, container);
        if (const Node* gpus = service.find("gpus")) {
            if (gpus->is_array()) {
                for (const Node& device : children(gpus)) {
                    const Node* count = device.find("count");
                    add_gpu(container, "nvidia.com/gpu",
                            count ? Value::of(count) : Value::known_text("all", device.span, *device.source),
                            gpus->key_span);
                }
            } else {
                add_gpu(container, "nvidia.com/gpu", Value::of(gpus), gpus->key_span);
            }
        }
        for (const Node& device : children(service.find("devices")))
            if (device.is_scalar() && device.text.starts_with("nvidia.com/gpu="))
                add_gpu(container, "nvidia.com/gpu", Value::known_text("all", device.span, *device.source),
                        device.span);
        const Node* runtime = service.find("runtime");
        if (container.resources.empty() && runtime && runtime->text == "nvidia") {
            Value amount = Value::of(runtime);  // which devices, the image or NVIDIA_VISIBLE_DEVICES says
            amount.state = Value::State::unknown;
            add_gpu(container, "nvidia.com/gpu", amount, runtime->key_span);
        }
    }

    Container service(const Node& node) {
        Container container;
        container.node = &node;
        container.address = fmt::format("compose:{}", node.key);
        container.name = Value::known_text(node.key, node.key_span, *node.source);
        container.anchor = node.key_span;
        container.image = Value::of(node.find("image"));
        container.built_here = node.find("build") != nullptr;
        devices(node, container);
        environment(node.find("environment"), container);
        words(node.find("entrypoint"), container.command);
        words(node.find("command"), container.command);
        return container;
    }
};

}  // namespace

namespace {

// compose.override.yaml, which docker compose lays over compose.yaml without being asked: for its devices.
File* override_beside(File& file, const ReadOptions& options) {
    const std::size_t slash = file.path().rfind('/');
    const std::string name = file.path().substr(slash == std::string::npos ? 0 : slash + 1);
    const std::size_t dot = name.rfind('.');
    if (!options.neighbour || (name.substr(0, dot) != "compose" && name.substr(0, dot) != "docker-compose"))
        return nullptr;
    for (const std::string_view end : {".override.yaml", ".override.yml"}) {
        auto text = options.neighbour(name.substr(0, dot) + std::string(end));
        if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) continue;
        file.neighbours.push_back(std::make_unique<File>(
            file.path().substr(0, slash == std::string::npos ? 0 : slash + 1) + name.substr(0, dot) + std::string(end),
            std::move(*text)));
        File& read = *file.neighbours.back();
        read_yaml(read);
        return read.problems.empty() && read.tree.roots.size() == 1 ? &read : nullptr;
    }
    return nullptr;
}

// extends: what the service does not say itself it has from another one, of this file or of one beside it.
void inherit(File& file, const Node& services, Node& service, const ReadOptions& options, int depth = 0) {
    const Node* extends = service.find("extends");
    if (!extends || depth > 4) return;
    const Node* name = extends->is_scalar() ? extends : extends->find("service");
    const Node* path = extends->find("file");
    if (!name || name->text.empty()) return;
    const Node* all = &services;
    if (path) {
        auto text = options.neighbour ? options.neighbour(std::string(path->text)) : std::nullopt;
        if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) return;
        file.neighbours.push_back(std::make_unique<File>(path_from(file.path(), path->text), std::move(*text)));
        File& read = *file.neighbours.back();
        read_yaml(read);
        if (!read.problems.empty() || read.tree.roots.size() != 1) return;
        all = read.tree.roots[0]->find("services");
    }
    Node* base = const_cast<Node*>(all ? all->find(name->text) : nullptr);
    if (!base || base == &service || !base->is_object()) return;
    inherit(file, *all, *base, options, depth + 1);
    for (const Node& each : children(base)) {
        if (service.find(each.key) || each.key == "extends" || each.key == "depends_on") continue;
        Node& copied = file.tree.make(*each.source, each.shape, each.span);
        copied.style = each.style, copied.known = each.known, copied.text = each.text;
        copied.key = each.key, copied.key_span = each.key_span, copied.merged = true;
        copied.first = each.first, copied.last = each.last, copied.origin = each.origin;
        file.tree.append(service, copied);
    }
    const_cast<Node*>(extends)->key = "extends, read";  // for what is not read, rules stay silent
}

}  // namespace

void find_compose(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::compose)) return;
    substitute_all(file, options);
    for (const Node* root : file.tree.roots)
        if (const Node* services = root->find("services"))
            for (const Node& service : children(services))
                if (service.is_object()) inherit(file, *services, const_cast<Node&>(service), options);
    ServiceReader reader{file};
    const auto over = override_beside(file, options);
    for (const Node* root : file.tree.roots)
        for (const Node& service : children(root->find("services")))
            if (service.is_object()) file.services.push_back(reader.service(service));
    for (Container& each : file.services)
        if (const Node* more = over ? over->tree.roots[0]->at({"services", each.name.text}) : nullptr;
            more && each.resources.empty())
            reader.devices(*more, each);
    for (Container& each : file.services) read_command(file, each, options);
}

}  // namespace stoker::lint
