// Reads the fields of one mapping in a Document and collects everything wrong with them, each at its place.
// For foreign files (config.json, az answers) whose unknown keys are none of our business; our own formats use
// RecordTable.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/document.h"
#include "base/table.h"

namespace stoker {

class FieldReader {
public:
    using Names = std::initializer_list<std::string_view>;

    // node must be a mapping. Both live longer than the reader.
    FieldReader(const Node& node, Problems& problems) : node_(node), problems_(problems) {}

    // The first of these names that has a value; JSON's null counts as absent.
    const Node* find(Names names) const;
    bool has(Names names) const { return find(names) != nullptr; }

    // Absent: nothing. Present and not a number, or out of range: a problem, and nothing.
    std::optional<double> number(Names names, double low, double high);
    std::optional<int> integer(Names names, int low, int high);
    std::optional<bool> boolean(Names names);
    std::optional<std::string> text(Names names);

    // Absent is a problem too; the value is then 0, which callers never divide by without a look at `problems`.
    int required_integer(Names names, int low, int high);
    double required_number(Names names, double low, double high);
    std::string required_text(Names names);

    void problem(std::string message, const Node* at = nullptr, std::string remedy = {});
    const Node& node() const { return node_; }

private:
    const Node& node_;
    Problems& problems_;
};

// "300 problems" help nobody: the first twenty, and a line with the number of the rest.
Error error_of(Problems problems);

// The list itself, or the list under `member` when the answer is wrapped in an object, as REST pages are.
Result<const Node*> list_of(const Node& root, std::string_view member, std::string_view what);

}  // namespace stoker
