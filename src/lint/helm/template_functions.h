// The functions of Go's templates, Sprig and Helm that manifests are written with.
#pragma once

#include <string_view>
#include <vector>

#include "lint/file.h"

namespace stoker::lint::helm {

// Makes values of templates; they live as long as the file.
struct Values {
    File& scratch;
    const Node* text(std::string value) const;
    const Node* number(double value) const;
    const Node* boolean(bool value) const;
    const Node* nothing() const;
    Node& list(Shape shape) const;
    void put(Node& parent, const Node& value,
             std::string_view key = {}) const;  // a copy, since a node hangs in one list
};

// An object with what `over` says in place of what `base` says.
Node& merged(const Node& base, const Node& over, const Values& make, int depth = 0);

bool is_true(const Node& value);  // as `if` takes it
std::string text_of(const Node& value);

// Those that charts use now and then; null as below.
const Node* call_rarer_function(std::string_view name, const std::vector<const Node*>& args, const Values& values);
// Null: a function that is not known here, or arguments it cannot take; what it gives is open.
const Node* call_function(std::string_view name, const std::vector<const Node*>& args, const Values& values);

}  // namespace stoker::lint::helm
