#include "lint/node.h"

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
    Node& node = nodes_.emplace_back();
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

std::string_view Tree::keep(std::string text) {
    return strings_.emplace_back(std::move(text));
}

std::span<const std::string_view> Tree::keep_labels(std::vector<std::string_view> labels) {
    return labels_.emplace_back(std::move(labels));
}

}  // namespace stoker::lint
