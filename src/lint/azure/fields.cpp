#include "lint/azure/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "lint/knowledge.h"

namespace stoker::lint {

namespace {

bool keyed(Attr attr) {
    return attr == Attr::tag || attr == Attr::node_label;
}

void add_leaf(Resource& resource, Attr attr, const Node& leaf, Tree& tree) {
    if (leaf.shape == Shape::null && leaf.known) return;  // as if it were not written
    if (leaf.is_object() && keyed(attr)) {
        for (const Node& entry : children(&leaf)) {
            Value value = Value::of(&entry);
            value.text = tree.keep(fmt::format("{}={}", entry.key, entry.text));
            value.span = entry.whole();
            value.source = entry.source;
            resource.set(attr, value);
        }
        return;
    }
    if (leaf.is_array()) {
        for (const Node& item : children(&leaf)) add_leaf(resource, attr, item, tree);
        return;
    }
    resource.set(attr, Value::of(&leaf));
}

void set_field(Resource& resource, const Node* node, std::string_view path, Attr attr, Tree& tree, int depth) {
    if (depth > 12) return;
    if (node->is_array()) {
        for (const Node& item : children(node)) set_field(resource, &item, path, attr, tree, depth + 1);
        return;
    }
    const std::size_t dot = path.find('.');
    const std::string_view step = path.substr(0, dot);
    for (const Node& child : children(node)) {
        if (!equals_ignore_case(child.key, step)) continue;
        if (dot == std::string_view::npos)
            add_leaf(resource, attr, child, tree);
        else
            set_field(resource, &child, path.substr(dot + 1), attr, tree, depth + 1);
    }
}

}  // namespace

void set_fields(Resource& resource, const Node* body, std::span<const Field> fields, Tree& tree) {
    if (!body) return;
    for (const Field& field : fields) set_field(resource, body, field.path, field.attr, tree, 0);
}

const Node* node_at(const Node* body, std::string_view path) {
    while (body && !path.empty()) {
        const std::size_t dot = std::min(path.find('.'), path.size());
        const Node* found = nullptr;
        if (body->is_array()) body = body->first;
        for (const Node& child : children(body))
            if (equals_ignore_case(child.key, path.substr(0, dot))) found = &child;
        body = found;
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return body;
}

std::string_view text_at(const Node* body, std::string_view path) {
    const Node* node = node_at(body, path);
    return node && node->known && node->is_scalar() ? node->text : std::string_view();
}

Resource& add_resource(File& file, ResourceType type, std::string address, std::string_view written, const Node* body,
                       Span header) {
    Resource& made = file.resources.emplace_back();
    made.type = type;
    made.address = std::move(address);
    made.written = written;
    made.header = header;
    made.whole = body ? Span{std::min(header.begin, body->span.begin), std::max(header.end, body->span.end)} : header;
    made.file = &file;
    made.source = body && body->source ? body->source : &file.source();
    made.node = body;
    return made;
}

Value implied(std::string_view text, const Resource& resource) {
    return Value::known_text(text, resource.header, *resource.source);
}

std::int64_t iso_seconds(std::string_view text) {
    if (text.empty()) return -1;
    std::int64_t total = 0;
    std::int64_t number = 0;
    if (text[0] != 'P' && text[0] != 'p') {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        return error == std::errc{} && end == text.data() + text.size() ? number : -1;
    }
    bool time = false;
    for (std::size_t i = 1; i < text.size(); ++i) {
        const char c = text[i];
        if (c == 'T' || c == 't') {
            time = true;
        } else if (c >= '0' && c <= '9' && number < 1'000'000) {
            number = number * 10 + (c - '0');
        } else {
            const char unit = static_cast<char>(c & ~0x20);
            const std::int64_t seconds = unit == 'D'           ? 86'400
                                         : unit == 'H'         ? 3600
                                         : unit == 'M' && time ? 60
                                         : unit == 'S'         ? 1
                                                               : -1;
            if (seconds < 0) return -1;
            total += number * seconds;
            number = 0;
        }
    }
    return total;
}

void set_idle(Resource& resource, const Node* node, Tree& tree) {
    if (!node) return;
    Value value = Value::of(node);
    if (value.known()) {
        const std::int64_t seconds = iso_seconds(value.text);
        if (seconds < 0)
            value.state = Value::State::unknown;
        else
            value.text = tree.keep(std::to_string(seconds));
    }
    resource.set(Attr::idle_seconds, value);
}

void read_custom_data(File& file, std::size_t resource, const Node* node, Dialect dialect, const ReadOptions& options) {
    if (!node) return;
    Value value = Value::of(node);
    const Node* written = node->origin ? node->origin : node;
    Inlay inlay;
    if (written->source == &file.source()) inlay = inlay_of(*written, dialect);
    if (inlay.text.empty() && written->source == &file.source()) {
        // base64encode(<<EOF ... EOF), base64('...'): the string that is its only argument.
        const std::string_view raw = file.source().text(node->span);
        const std::size_t from = dialect == Dialect::hcl ? raw.find_first_of("<\"") : raw.find('\'');
        // A heredoc with a hole that nobody can fill is read as far as it is written.
        if (from != std::string_view::npos && (node->known || raw.substr(from).starts_with("<<")) &&
            raw.substr(0, from).find(',') == std::string_view::npos) {
            Node inner = *node;
            inner.span.begin += static_cast<std::uint32_t>(from);
            const std::size_t last = raw.find_last_not_of(" \t\r\n)");
            if (last != std::string_view::npos && last >= from)
                inner.span.end = node->span.begin + static_cast<std::uint32_t>(last + 1);
            if (raw[from] == '<') inner.span.end = node->span.end - (raw.ends_with(')') ? 1 : 0);
            while (
                inner.span.end > inner.span.begin && raw[from] == '<' &&
                (file.source().text()[inner.span.end - 1] == '\n' || file.source().text()[inner.span.end - 1] == ' '))
                --inner.span.end;
            inlay = inlay_of(inner, dialect);
        }
    }
    if (dialect == Dialect::hcl && node->is_scalar()) inlay = filled_inlay(std::move(inlay), node->text);
    if (std::string decoded = decode_base64(trim(inlay.text));
        !decoded.empty() && (decoded.starts_with("#") || decoded.starts_with("\x1f\x8b"))) {
        const auto size = static_cast<std::uint32_t>(decoded.size());
        inlay.pieces = {{0, size, written->span, Piece::Kind::changed}};
        inlay.text = std::move(decoded);
    }
    // A template that was filled in, a file beside: it stands where it is asked for.
    if (node->known && node->is_scalar() && !node->text.empty() &&
        (inlay.text.empty() || (written->source == node->source && trim(node->text).starts_with("#")))) {
        const std::string_view start = trim(node->text);
        const bool whole = start.starts_with("#cloud-config") || start.starts_with("#!");
        if (whole && !trim(inlay.text).starts_with("#")) {
            inlay.text = node->text;
            inlay.pieces = {{0, static_cast<std::uint32_t>(inlay.text.size()), node->span, Piece::Kind::changed}};
        }
    }
    if (!inlay.text.empty()) {
        value.text = file.tree.keep(inlay.text);
        value.state = Value::State::known;  // as far as it is written: holes are part of the text
    }
    file.resources[resource].set(Attr::custom_data, value);
    if (inlay.text.empty()) return;
    const std::string_view start = trim(inlay.text);
    if (start.starts_with("#cloud-config"))
        read_guest(file, std::move(inlay.text), std::move(inlay.pieces), {Kind::cloud_init}, options);
    else if (start.starts_with("#!"))
        read_guest(file, std::move(inlay.text), std::move(inlay.pieces), {Kind::launch}, options);
}

void add_size_list(File& file, const Node* list, std::string address, Span header) {
    if (!list) return;
    std::vector<Value> sizes;
    for (const Node& item : children(list))
        if (item.known && item.is_scalar() && Knowledge::looks_like_size(item.text)) sizes.push_back(Value::of(&item));
    if (sizes.empty()) return;
    Resource& made = add_resource(file, ResourceType::size_list, std::move(address), "size list", list, header);
    for (Value& size : sizes) made.attributes.emplace_back(Attr::allowed_size, size);
}

void add_named_size(File& file, std::string_view name, const Node* value, std::string address, Span header) {
    if (!value || !value->known || !value->is_scalar() || value->origin || !Knowledge::looks_like_size(value->text))
        return;
    if (!contains_nocase(name, "size") && !contains_nocase(name, "sku") && !contains_nocase(name, "type") &&
        !contains_nocase(name, "flavor"))
        return;
    Resource& made = add_resource(file, ResourceType::other, std::move(address), "size", value, header);
    made.set(Attr::size, Value::of(value));
}

void add_sizes_of_call(File& file, const Node& arguments, const std::string& address) {
    static constexpr Field image[] = {{Attr::image_publisher, "imageReference.publisher"},
                                      {Attr::image_offer, "imageReference.offer"},
                                      {Attr::image_sku, "imageReference.sku"},
                                      {Attr::image_version, "imageReference.version"},
                                      {Attr::image_publisher, "source_image_reference.publisher"},
                                      {Attr::image_offer, "source_image_reference.offer"},
                                      {Attr::image_sku, "source_image_reference.sku"},
                                      {Attr::image_version, "source_image_reference.version"}};
    for (const Node& argument : children(&arguments)) {
        const std::size_t before = file.resources.size();
        add_sizes_below(file, argument, fmt::format("{}.{}", address, argument.key));
        if (argument.is_scalar() && file.resources.size() > before)
            set_fields(file.resources.back(), &arguments, image, file.tree);
    }
}

void add_sizes_below(File& file, const Node& argument, const std::string& address, int depth) {
    if (argument.is_scalar()) {
        add_named_size(file, argument.key, &argument, address, argument.key_span);
        return;
    }
    std::size_t index = 0;
    if (depth < 6)
        for (const Node& child : children(&argument)) {
            const bool item = child.key.empty();
            add_sizes_below(file, child,
                            item ? fmt::format("{}[{}]", address, index) : fmt::format("{}.{}", address, child.key),
                            depth + 1);
            ++index;
        }
}

}  // namespace stoker::lint
