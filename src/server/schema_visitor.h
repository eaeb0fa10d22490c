// JSON Schemas (draft 2020-12) from the same lists of fields that write and read the structs (base/codec.h). What the
// writer leaves out when it is empty is optional, the rest is required; a reader has no required fields but those that
// the table of hints names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/shape.h"

namespace stoker::api {

// What a type cannot say: meaning, bounds, pattern. By "Component.field".
struct Hint {
    std::string_view key, description;
    std::optional<std::int64_t> low, high;  // of the number, or of the length of a text or list
    std::string_view pattern = {};
    bool required = false;  // also in requests
};
const std::vector<Hint>& hints();
const Hint* hint_of(std::string_view component, std::string_view field);

class Schemas {
public:
    // A $ref to the component, made when it is not there yet. In requests the name ends in "Input".
    template <class T>
    Json ref(bool input = false) {
        return ref(codec::kShape<T>, input);
    }
    template <class T>
    Json schema(bool input) {
        return schema(codec::kShape<T>, input);
    }
    Json ref(const codec::Shape& shape, bool input);
    // A struct that is no component is written in place.
    Json schema(const codec::Shape& shape, bool input);
    void put(std::string name, Json schema) { made_[std::move(name)] = std::move(schema); }
    const std::map<std::string, Json>& all() const { return made_; }

private:
    class Visitor;
    Json object(const codec::Shape& shape, std::string name, bool input);

    std::map<std::string, Json> made_;
};

}  // namespace stoker::api
