// A JSON value that is built and written. Reading goes through Document, which keeps positions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stoker {

// Members keep the order in which they were set. Doubles are written in the shortest form that reads back the same;
// NaN and infinities become null, since JSON has no word for them.
class Json {
public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;

    Json() = default;  // null
    Json(bool b) : value_(b) {}
    Json(double d) : value_(d) {}
    Json(int i) : value_(static_cast<std::int64_t>(i)) {}
    Json(std::int64_t i) : value_(i) {}
    Json(unsigned i) : value_(static_cast<std::int64_t>(i)) {}
    Json(std::size_t i) : value_(static_cast<std::int64_t>(i)) {}  // sizes and counts; never near 2^63
    Json(const char* s) : value_(std::string(s)) {}
    Json(std::string s) : value_(std::move(s)) {}
    Json(std::string_view s) : value_(std::string(s)) {}
    Json(Array a) : value_(std::move(a)) {}
    Json(Object o) : value_(std::move(o)) {}
    static Json array() { return Json(Array{}); }
    static Json object() { return Json(Object{}); }

    Json& set(std::string key, Json value);  // object: appends or replaces; returns *this
    Json& push(Json value);                  // array
    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    const Json* find(std::string_view key) const;
    std::string dump(int indent = 2) const;  // indent 0: one line
    std::string dump_yaml() const;           // the same tree as YAML, strings quoted where YAML would misread them

    const auto& value() const { return value_; }

private:
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace stoker
