#include "lint/node.h"

#include <memory>
#include <new>
#include <type_traits>

namespace stoker::lint {

const Node* Node::find(std::string_view name) const {
    const Node* found = nullptr;
    if (is_object())
        for (const Node* child = first; child; child = child->next)
            if (child->key == name) found = child;
    return found;
}

const Node* Node::at(std::initializer_list<std::string_view> keys) const {
    const Node* node = this;
    for (const std::string_view name : keys)
        if (!(node = node->find(name))) return nullptr;
    return node;
}

std::size_t Node::count() const {
    std::size_t n = 0;
    for (const Node* child = first; child; child = child->next) ++n;
    return n;
}

Node& Tree::make(const Source& source, Shape shape, Span span) {
    static_assert(std::is_trivially_destructible_v<Node>);
    Node& node = *new (arena_.take(sizeof(Node), alignof(Node))) Node;
    ++size_;
    node.shape = shape;
    node.span = span;
    node.source = &source;
    return node;
}

void Tree::append(Node& parent, Node& child) {
    child.parent = &parent;
    if (parent.last)
        const_cast<Node*>(parent.last)->next = &child;
    else
        parent.first = &child;
    parent.last = &child;
}

std::span<const std::string_view> Tree::keep_labels(const std::vector<std::string_view>& labels) {
    if (labels.empty()) return {};
    auto* const to = static_cast<std::string_view*>(
        arena_.take(labels.size() * sizeof(std::string_view), alignof(std::string_view)));
    std::uninitialized_copy(labels.begin(), labels.end(), to);
    return {to, labels.size()};
}

}  // namespace stoker::lint
