// What the codec knows of a type: one small table of functions, so that reading and writing are compiled once and not
// once for every struct. A struct names its fields once (base/codec.h); what `fields` is handed is a FieldVisitor.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/cause.h"

namespace stoker::codec {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsTextMap : std::false_type {};
template <class T>
struct IsTextMap<std::map<std::string, T>> : std::true_type {};

template <class T>
concept TextId = requires(const T& id, std::string_view text) {
    { id.text() } -> std::same_as<std::string>;
    { T::parse(text) } -> std::same_as<std::optional<T>>;
};
template <class T>
concept Named = std::is_enum_v<T> && requires(T value) {
    enum_names(value);
};

enum class ShapeKind : std::uint8_t { boolean, integer, real, text, cause, word, id, optional, list, map, object };

class FieldVisitor;

// Values are handed over by address; `inner` is the shape of what an optional, a list or a map holds.
struct Shape {
    ShapeKind kind;
    bool is_signed = false;  // integer
    std::size_t bytes = 0;   // of one value in memory
    const Shape* inner = nullptr;

    // word: an enum with names. The word is empty for a value without one; set_word is false for an unknown word.
    std::string_view (*word)(const void* value) = nullptr;
    bool (*set_word)(void* value, std::string_view word) = nullptr;
    void (*words)(std::vector<std::string_view>& all) = nullptr;
    // id: the text of an id of nothing is empty.
    std::string (*id_text)(const void* value) = nullptr;
    bool (*set_id)(void* value, std::string_view text) = nullptr;
    bool (*is_no_id)(const void* value) = nullptr;
    // optional
    const void* (*held)(const void* value) = nullptr;  // nullptr: nothing
    void* (*hold)(void* value) = nullptr;
    // list: items stand side by side.
    std::pair<const void*, std::size_t> (*items)(const void* value) = nullptr;
    void* (*grow)(void* value) = nullptr;
    void (*reserve)(void* value, std::size_t count) = nullptr;
    // map: each() calls `take(context, key, item)` in the order of the keys.
    void (*each)(const void* value, void* context,
                 void (*take)(void* context, const std::string& key, const void* item)) = nullptr;
    void* (*item_of)(void* value, std::string key) = nullptr;
    const std::string* (*last_key)(const void* value) = nullptr;  // nullptr: the map is empty
    // list and map
    void (*clear)(void* value) = nullptr;
    // object; with_new hands over one as it is made, and is nullptr where that takes more than its type.
    void (*with_new)(void* context, void (*take)(void* context, void* value)) = nullptr;
    void (*visit)(FieldVisitor& visitor, void* value) = nullptr;
};

template <class T>
constexpr Shape make_shape();

// One object a type: shapes may be compared by address.
template <class T>
inline constexpr Shape kShape = make_shape<T>();

// What a list of fields calls for each of them. `key` lives as long as the program.
class FieldVisitor {
public:
    template <class T>
    void operator()(std::string_view key, T& value) {
        field(key, const_cast<std::remove_const_t<T>*>(&value), kShape<std::remove_const_t<T>>);
    }

protected:
    ~FieldVisitor() = default;

private:
    virtual void field(std::string_view key, void* value, const Shape& shape) = 0;
};

// What the writers leave out: an empty text or map, an optional of nothing, an id of nothing.
bool may_be_left_out(const Shape& shape);
bool is_left_out(const void* value, const Shape& shape);

std::int64_t load_integer(const void* value, const Shape& shape);
void store_integer(void* value, const Shape& shape, std::uint64_t bits);  // of either sign: the low bytes are the same
std::int64_t lowest(const Shape& shape);
std::uint64_t highest(const Shape& shape);
// Digits that are a whole number from lowest() to highest(), and nothing else.
bool parse_integer(std::string_view digits, const Shape& shape, std::uint64_t& bits);
double load_real(const void* value, const Shape& shape);

inline const void* item_at(const void* items, const Shape& shape, std::size_t i) {
    return static_cast<const char*>(items) + i * shape.bytes;
}
void each_item(const void* map, const Shape& shape, auto&& take) {
    using Take = std::remove_reference_t<decltype(take)>;
    shape.each(map, &take, [](void* context, const std::string& key, const void* item) {
        (*static_cast<Take*>(context))(key, item);
    });
}

template <class T>
constexpr Shape make_shape() {
    Shape s{.kind = ShapeKind::object, .bytes = sizeof(T)};
    if constexpr (std::is_same_v<T, bool>) {
        s.kind = ShapeKind::boolean;
    } else if constexpr (std::is_same_v<T, std::string>) {
        s.kind = ShapeKind::text;
    } else if constexpr (std::is_same_v<T, Cause>) {
        s.kind = ShapeKind::cause;
    } else if constexpr (Named<T>) {
        s.kind = ShapeKind::word;
        s.word = [](const void* value) {
            for (const auto& [each, name] : enum_names(T{}))
                if (each == *static_cast<const T*>(value)) return std::string_view(name);
            return std::string_view();
        };
        s.set_word = [](void* value, std::string_view word) {
            for (const auto& [each, name] : enum_names(T{}))
                if (word == name) {
                    *static_cast<T*>(value) = each;
                    return true;
                }
            return false;
        };
        s.words = [](std::vector<std::string_view>& all) {
            for (const auto& entry : enum_names(T{})) all.emplace_back(entry.second);
        };
    } else if constexpr (std::is_integral_v<T>) {
        s.kind = ShapeKind::integer;
        s.is_signed = std::is_signed_v<T>;
    } else if constexpr (std::is_floating_point_v<T>) {
        static_assert(sizeof(T) == sizeof(double) || sizeof(T) == sizeof(float));
        s.kind = ShapeKind::real;
    } else if constexpr (TextId<T>) {
        s.kind = ShapeKind::id;
        s.id_text = [](const void* value) { return static_cast<const T*>(value)->text(); };
        s.set_id = [](void* value, std::string_view text) {
            const auto id = T::parse(text);
            if (id) *static_cast<T*>(value) = *id;
            return id.has_value();
        };
        s.is_no_id = [](const void* value) { return *static_cast<const T*>(value) == T{}; };
    } else if constexpr (IsOptional<T>::value) {
        s.kind = ShapeKind::optional;
        s.inner = &kShape<typename T::value_type>;
        s.held = [](const void* value) -> const void* {
            const T& held = *static_cast<const T*>(value);
            return held ? &*held : nullptr;
        };
        s.hold = [](void* value) -> void* { return &static_cast<T*>(value)->emplace(); };
    } else if constexpr (IsVector<T>::value) {
        static_assert(!std::is_same_v<typename T::value_type, bool>, "its items have no address");
        s.kind = ShapeKind::list;
        s.inner = &kShape<typename T::value_type>;
        s.items = [](const void* value) {
            const T& list = *static_cast<const T*>(value);
            return std::pair<const void*, std::size_t>(list.data(), list.size());
        };
        s.grow = [](void* value) -> void* { return &static_cast<T*>(value)->emplace_back(); };
        s.reserve = [](void* value, std::size_t count) { static_cast<T*>(value)->reserve(count); };
        s.clear = [](void* value) { static_cast<T*>(value)->clear(); };
    } else if constexpr (IsTextMap<T>::value) {
        s.kind = ShapeKind::map;
        s.inner = &kShape<typename T::mapped_type>;
        s.each = [](const void* value, void* context, void (*take)(void*, const std::string&, const void*)) {
            for (const auto& [key, item] : *static_cast<const T*>(value)) take(context, key, &item);
        };
        s.item_of = [](void* value, std::string key) -> void* {
            T& map = *static_cast<T*>(value);
            return &map.try_emplace(map.end(), std::move(key))->second;
        };
        s.last_key = [](const void* value) {
            const T& map = *static_cast<const T*>(value);
            return map.empty() ? nullptr : &map.rbegin()->first;
        };
        s.clear = [](void* value) { static_cast<T*>(value)->clear(); };
    } else {
        if constexpr (std::is_default_constructible_v<T>)
            s.with_new = [](void* context, void (*take)(void*, void*)) {
                T value{};
                take(context, &value);
            };
        s.visit = [](FieldVisitor& visitor, void* value) { fields(visitor, *static_cast<T*>(value)); };
    }
    return s;
}

}  // namespace stoker::codec
