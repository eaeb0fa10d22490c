// Document: what a user wrote in YAML or JSON, as a tree in which every key and every value knows its place.
// Read once, never changed; nodes stay valid as long as the Document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class NodeKind : std::uint8_t { null, boolean, number, string, sequence, mapping };
std::string_view to_string(NodeKind kind);  // "a list", "a mapping", "text": for messages

struct Node;
struct Member {
    std::string key;
    SourcePos key_pos;
    std::unique_ptr<Node> value;
};
struct Node {
    NodeKind kind = NodeKind::null;
    bool boolean = false;
    double number = 0;  // set for number; text keeps the exact digits
    std::string text;   // scalar as written (unquoted); for numbers too
    bool quoted = false;
    std::vector<std::unique_ptr<Node>> items;
    std::vector<Member> members;  // in the order written, keys unique
    SourcePos pos;

    const Node* find(std::string_view key) const;  // member value or nullptr
    bool is_mapping() const { return kind == NodeKind::mapping; }
    bool is_sequence() const { return kind == NodeKind::sequence; }
    bool is_scalar() const { return kind != NodeKind::mapping && kind != NodeKind::sequence; }
};

// What a reader refuses rather than swallows. Every default is far above what a person or a cloud's listing writes.
struct ReadLimits {
    std::size_t max_bytes = 16u << 20;
    std::size_t max_nodes = 2'000'000;  // after aliases are expanded, so that a YAML bomb ends here
    std::size_t max_depth = 100;
    std::size_t max_aliases = 1000;  // their text, expanded, also counts against max_bytes
};

class Document {
public:
    // By the file's name: .json is JSON, all else YAML. Text that is not UTF-8 is an error with its place, as is
    // everything that two readers could understand differently: duplicate keys, several documents, unknown tags, lone
    // surrogates.
    static Result<Document> parse(std::string_view text, std::string file, const ReadLimits& limits = {});
    static Result<Document> parse_yaml(std::string_view text, std::string file, const ReadLimits& limits = {});
    static Result<Document> parse_json(std::string_view text, std::string file, const ReadLimits& limits = {});
    const Node& root() const { return *root_; }
    explicit Document(std::unique_ptr<Node> root) : root_(std::move(root)) {}

private:
    std::unique_ptr<Node> root_;
};

}  // namespace stoker
