#include "base/codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/newer_keys.h"
#include "base/text.h"

namespace stoker::codec {
namespace {

void expected(const Node& node, std::string_view key, std::string_view what, Problems& problems) {
    const std::string found = node.is_scalar() && !node.text.empty() ? fmt::format("'{}'", printable(node.text, 60))
                                                                     : std::string(to_string(node.kind));
    problems.push_back({.message = key.empty() ? fmt::format("expected {}, found {}", what, found)
                                               : fmt::format("{}: expected {}, found {}", key, what, found),
                        .pos = node.pos});
}

// Begins what is said of such a key and of nothing else.
constexpr std::string_view kUnknownKey = "unknown key ";

}  // namespace

void unknown_keys(const Node& node, const std::vector<std::string_view>& known, Problems& problems) {
    for (const Member& member : node.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        const std::vector<std::string> words(known.begin(), known.end());
        const auto near = nearest(member.key, words);
        problems.push_back({.message = fmt::format("{}{}{}", kUnknownKey, printable(member.key, 60),
                                                   near ? fmt::format(" (did you mean {}?)", *near) : ""),
                            .remedy = near ? "" : "known: " + join(words, ", "),
                            .pos = member.key_pos});
    }
}

void pass_over_unknown_keys(Problems& problems) {
    std::erase_if(problems, [](const Problem& problem) { return problem.message.starts_with(kUnknownKey); });
}

namespace {

class TreeWriter final : public FieldVisitor {
public:
    Json finish() {
        std::sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        return Json(std::move(members_));
    }

private:
    void field(std::string_view key, void* value, const Shape& shape) override {
        if (!is_left_out(value, shape)) members_.emplace_back(std::string(key), write_shaped(value, shape));
    }

    Json::Object members_;
};

}  // namespace

Json write_shaped(const void* value, const Shape& shape) {
    switch (shape.kind) {
        case ShapeKind::boolean: return Json(*static_cast<const bool*>(value));
        case ShapeKind::integer: return Json(load_integer(value, shape));
        case ShapeKind::real: return Json(load_real(value, shape));
        case ShapeKind::text: return Json(*static_cast<const std::string*>(value));
        case ShapeKind::cause: return Json(to_string(*static_cast<const Cause*>(value)));
        case ShapeKind::word: {
            const std::string_view word = shape.word(value);
            return word.empty() ? Json() : Json(word);
        }
        case ShapeKind::id: return shape.is_no_id(value) ? Json("") : Json(shape.id_text(value));
        case ShapeKind::optional: {
            const void* const held = shape.held(value);
            return held != nullptr ? write_shaped(held, *shape.inner) : Json();
        }
        case ShapeKind::list: {
            Json list = Json::array();
            const auto [items, count] = shape.items(value);
            for (std::size_t i = 0; i < count; ++i)
                list.push(write_shaped(item_at(items, *shape.inner, i), *shape.inner));
            return list;
        }
        case ShapeKind::map: {
            Json::Object members;
            each_item(value, shape, [&](const std::string& key, const void* item) {
                members.emplace_back(key, write_shaped(item, *shape.inner));
            });
            return Json(std::move(members));
        }
        case ShapeKind::object: break;
    }
    TreeWriter writer;
    shape.visit(writer, const_cast<void*>(value));  // one list of fields serves both ways; this one only reads
    return writer.finish();
}

namespace {

class TreeReader final : public FieldVisitor {
public:
    TreeReader(const Node& node, Problems& problems) : node_(node), problems_(problems) {}
    void finish() { unknown_keys(node_, known_, problems_); }

private:
    void field(std::string_view key, void* value, const Shape& shape) override {
        known_.push_back(key);
        const Node* member = node_.find(key);
        if (member != nullptr && member->kind != NodeKind::null) read_shaped(*member, key, value, shape, problems_);
    }

    const Node& node_;
    Problems& problems_;
    std::vector<std::string_view> known_;
};

}  // namespace

void read_shaped(const Node& node, std::string_view key, void* value, const Shape& shape, Problems& problems) {
    const bool is_text = node.kind == NodeKind::string;
    switch (shape.kind) {
        case ShapeKind::boolean:
            if (node.kind != NodeKind::boolean) return expected(node, key, "true or false", problems);
            *static_cast<bool*>(value) = node.boolean;
            return;
        case ShapeKind::integer: {
            std::uint64_t bits = 0;
            if (node.kind != NodeKind::number || !parse_integer(node.text, shape, bits))
                return expected(node, key, fmt::format("a whole number from {} to {}", lowest(shape), highest(shape)),
                                problems);
            return store_integer(value, shape, bits);
        }
        case ShapeKind::real:
            if (node.kind != NodeKind::number) return expected(node, key, "a number", problems);
            if (shape.bytes == sizeof(double))
                *static_cast<double*>(value) = node.number;
            else
                *static_cast<float*>(value) = static_cast<float>(node.number);
            return;
        case ShapeKind::text:
            if (!is_text) return expected(node, key, "a text", problems);
            *static_cast<std::string*>(value) = node.text;
            return;
        case ShapeKind::cause: {
            const auto cause = parse_cause(node.text);
            if (!is_text || !cause) return expected(node, key, "a cause", problems);
            *static_cast<Cause*>(value) = *cause;
            return;
        }
        case ShapeKind::word: {
            if (is_text && shape.set_word(value, node.text)) return;
            std::vector<std::string_view> words;
            shape.words(words);
            return expected(node, key, fmt::format("one of {}", fmt::join(words, ", ")), problems);
        }
        case ShapeKind::id:
            if (is_text && node.text.empty()) return;
            if (!is_text || !shape.set_id(value, node.text)) return expected(node, key, "an id", problems);
            return;
        case ShapeKind::optional: return read_shaped(node, key, shape.hold(value), *shape.inner, problems);
        case ShapeKind::list:
            if (!node.is_sequence()) return expected(node, key, "a list", problems);
            shape.clear(value);
            shape.reserve(value, node.items.size());
            for (const auto& item : node.items) read_shaped(*item, key, shape.grow(value), *shape.inner, problems);
            return;
        case ShapeKind::map:
            if (!node.is_mapping()) return expected(node, key, "a mapping", problems);
            shape.clear(value);
            for (const Member& member : node.members)
                read_shaped(*member.value, member.key, shape.item_of(value, member.key), *shape.inner, problems);
            return;
        case ShapeKind::object: break;
    }
    if (!node.is_mapping()) return expected(node, key, "a mapping", problems);
    TreeReader reader(node, problems);
    shape.visit(reader, value);
    reader.finish();
}

Status decode_document(std::string_view text, std::string what, const ReadLimits& limits, void* value,
                       const Shape& shape) {
    TRY(const Document document, Document::parse_json(text, std::move(what), limits));
    Problems problems;
    read_shaped(document.root(), "", value, shape, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return Done{};
}

}  // namespace stoker::codec
