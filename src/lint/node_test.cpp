// When this breaks, a text that was decoded, or a node, changes or moves while others are read.
#include "lint/node.h"

#include <gtest/gtest.h>

namespace stoker::lint {
namespace {

TEST(Tree, KeepsWhatItWasGivenWhereItIs) {
    const Source source("x", "text");
    Tree tree;
    std::vector<std::string_view> kept;
    std::vector<const Node*> nodes;
    for (int i = 0; i < 5000; ++i) {
        kept.push_back(tree.keep(std::string(static_cast<std::size_t>(i % 700), static_cast<char>('a' + i % 26))));
        Node& node = tree.make(source, Shape::string, {0, static_cast<std::uint32_t>(i)});
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&node) % alignof(Node), 0u);
        nodes.push_back(&node);
    }
    EXPECT_EQ(tree.size(), 5000u);
    for (int i = 0; i < 5000; ++i) {
        const auto k = static_cast<std::size_t>(i);
        EXPECT_EQ(kept[k], std::string(k % 700, static_cast<char>('a' + i % 26)));
        EXPECT_EQ(nodes[k]->span.end, k);
    }
}

TEST(Tree, KeepsLabelsInOrder) {
    Tree tree;
    const auto labels = tree.keep_labels({"resource", "type", "name"});
    ASSERT_EQ(labels.size(), 3u);
    EXPECT_EQ(labels[2], "name");
    EXPECT_TRUE(tree.keep_labels({}).empty());
    EXPECT_TRUE(tree.keep("").empty());
}

TEST(Node, FindsTheLastOfAKey) {
    const Source source("x", "");
    Tree tree;
    Node& object = tree.make(source, Shape::object, {});
    for (const std::string_view text : {"1", "2"}) {
        Node& child = tree.make(source, Shape::string, {});
        child.key = "a";
        child.text = text;
        tree.append(object, child);
    }
    EXPECT_EQ(object.find("a")->text, "2");
    EXPECT_EQ(object.find("b"), nullptr);
    EXPECT_EQ(object.count(), 2u);
}

}  // namespace
}  // namespace stoker::lint
