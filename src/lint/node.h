// One tree for YAML, JSON, HCL and Bicep: joins, suppressions, fixes and fingerprints need not know the language.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/arena.h"
#include "lint/source.h"

namespace stoker::lint {

enum class Shape : std::uint8_t { null, boolean, number, string, array, object };
enum class Style : std::uint8_t { plain, single_quoted, double_quoted, literal, folded, heredoc };

// Shallow constness is meant: nodes are made by one front end and are not changed after it.
struct Node {
    Shape shape = Shape::null;
    Style style = Style::plain;
    // False where the text rests on something that cannot be followed: a variable without default, a template, a
    // call. `text` is then what is written. An unknown never satisfies and never violates a condition.
    bool known = true;
    bool merged = false;    // came in by a YAML merge key or an alias: `span` is where it was written
    Span key_span;          // empty in lists
    Span span;              // the value, without a comment behind it; of lists and objects all they hold
    std::string_view key;   // decoded
    std::string_view text;  // scalars, decoded and evaluated: "true", "8", "Standard_ND96asr_v4"
    std::span<const std::string_view> labels;  // of an HCL or Bicep block: resource "type" "name"
    const Node* parent = nullptr;
    // Children hang together by `next`, as written, doubles of a key included.
    const Node *first = nullptr, *last = nullptr, *next = nullptr;
    // Where the value was written when that is elsewhere: the default of the variable that is named here.
    const Node* origin = nullptr;
    const Source* source = nullptr;  // that `span` and `key_span` are of

    bool is_object() const { return shape == Shape::object; }
    bool is_array() const { return shape == Shape::array; }
    bool is_scalar() const { return !is_object() && !is_array(); }
    const Node* find(std::string_view key) const;  // the last of that key, as readers of YAML and JSON have it
    // find() step by step; null where one is missing: at({"spec", "template", "spec"}).
    const Node* at(std::initializer_list<std::string_view> keys) const;
    std::size_t count() const;  // of children
    // Key through value; the value alone in lists.
    Span whole() const { return key_span.empty() ? span : Span{key_span.begin, std::max(key_span.end, span.end)}; }
};

// for (const Node& child : children(node)); nothing for null.
class Children {
public:
    explicit Children(const Node* node) : first_(node ? node->first : nullptr) {}
    struct Iterator {
        const Node* at;
        const Node& operator*() const { return *at; }
        Iterator& operator++() {
            at = at->next;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at != other.at; }
    };
    Iterator begin() const { return {first_}; }
    Iterator end() const { return {nullptr}; }

private:
    const Node* first_;
};
inline Children children(const Node* node) {
    return Children(node);
}

// Owns the nodes of one text, and what they had to be decoded into.
class Tree {
public:
    Node& make(const Source& source, Shape shape, Span span);
    void append(Node& parent, Node& child);
    std::string_view keep(std::string_view text) { return arena_.keep(text); }
    std::span<const std::string_view> keep_labels(const std::vector<std::string_view>& labels);
    std::size_t size() const { return size_; }

    std::vector<Node*> roots;  // one per YAML document; one of all else

private:
    Arena arena_;
    std::size_t size_ = 0;  // nodes made
};

}  // namespace stoker::lint
