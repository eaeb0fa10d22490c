// One declarative table per type drives reading a Document, the unknown-key message, the reference page and the JSON
// Schema.
//   static const RecordTable<Data> table = RecordTable<Data>("data", "What the model learns from.")
//       .count("tokens", &Data::tokens, "Training tokens in all.", "150B")
//       .count("sequence", &Data::sequence, "Tokens of one sequence.", "8192", 1, 1e8);
//   Data data = table.read(node, problems);   // problems collects everything wrong, each with its place
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/json.h"
#include "base/units.h"

namespace stoker {

using Problems = std::vector<Problem>;

class RecordInfo;
// What a field holds, for messages, the reference page and the schema.
struct FieldInfo {
    std::string key{};
    // "count", "number", "whole number", "bytes", "duration", "money", "text", "yes/no", "one of", "list of ...", or a
    // record's name
    std::string type{};
    std::string description{};  // one sentence
    std::string example{};
    std::vector<std::string> choices{};
    std::vector<std::string> other_names{};  // what people call it elsewhere: offered for an unknown key, never read
    bool required = false;
    bool asked = false;  // required, and whoever reads the whole asks for it in words of its own
    std::shared_ptr<const RecordInfo> record{};  // nested record, also when it is a list of them
    double low = 0, high = 0;                    // bounds for numbers, equal when there are none
};

class RecordInfo {
public:
    std::string name, description;
    std::vector<FieldInfo> fields;
    std::vector<std::string> keys() const;
    std::vector<std::string> shorthand;  // other forms accepted in place of the mapping, in words
    Json json_schema() const;  // draft 2020-12, additionalProperties false; shorthand becomes anyOf with string
    std::string reference_markdown() const;
};

// The nearest of the known words by edit distance, or nothing when none is near. Ties: the first.
// Case and the separators - _ and blank are ignored; near is a distance of at most a third of the word.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace stoker

#include "base/table_impl.h"
