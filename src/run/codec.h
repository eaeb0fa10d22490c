// Structs to canonical JSON and back, for the journal, snapshots and specs. A struct names its fields once:
//     template <class V>
//     void fields(V& visit, Lease& lease) {
//         visit("stop_at_us", lease.stop_at_us);
//     }
// and an enum its words: `constexpr std::array kNames...; auto enum_names(E)`. Keys are written in sorted order,
// numbers are integers. Empty texts, maps and optionals are left out and read back as empty; everything else is always
// written, so that a default that changes later does not change what was recorded.
#pragma once

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/cause.h"
#include "base/document.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/table.h"

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

// An id of nothing is the empty text.
template <TextId T>
bool is_no_id(const T& id) {
    return id == T{};
}

template <class T>
Json write(const T& value);

class Writer {
public:
    template <class T>
    void operator()(std::string_view key, const T& value) {
        if constexpr (std::is_same_v<T, std::string> || IsTextMap<T>::value) {
            if (value.empty()) return;
        } else if constexpr (IsOptional<T>::value) {
            if (!value) return;
        } else if constexpr (TextId<T>) {
            if (is_no_id(value)) return;
        }
        members_.emplace_back(std::string(key), write(value));
    }
    Json finish() {
        std::sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        return Json(std::move(members_));
    }

private:
    Json::Object members_;
};

template <class T>
Json write(const T& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
        return Json(value);
    } else if constexpr (std::is_same_v<T, Cause>) {
        return Json(to_string(value));
    } else if constexpr (Named<T>) {
        for (const auto& [each, name] : enum_names(value))
            if (each == value) return Json(std::string_view(name));
        return Json();
    } else if constexpr (std::is_integral_v<T>) {
        return Json(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
        return Json(static_cast<double>(value));
    } else if constexpr (TextId<T>) {
        return is_no_id(value) ? Json("") : Json(value.text());
    } else if constexpr (IsOptional<T>::value) {
        return value ? write(*value) : Json();
    } else if constexpr (IsVector<T>::value) {
        Json list = Json::array();
        for (const auto& item : value) list.push(write(item));
        return list;
    } else if constexpr (IsTextMap<T>::value) {
        Json::Object members;
        for (const auto& [key, item] : value) members.emplace_back(key, write(item));
        return Json(std::move(members));
    } else {
        Writer writer;
        fields(writer, const_cast<T&>(value));  // one list of fields serves both ways; Writer only reads
        return writer.finish();
    }
}

// Every problem is added with its place; what cannot be read keeps its default.
template <class T>
void read(const Node& node, std::string_view key, T& value, Problems& problems);

void expected(const Node& node, std::string_view key, std::string_view what, Problems& problems);
bool read_integer(const Node& node, std::string_view key, std::int64_t low, std::uint64_t high, std::uint64_t& bits,
                  Problems& problems);
void unknown_keys(const Node& node, const std::vector<std::string_view>& known, Problems& problems);

class Reader {
public:
    Reader(const Node& node, Problems& problems) : node_(node), problems_(problems) {}
    template <class T>
    void operator()(std::string_view key, T& value) {
        known_.push_back(key);
        const Node* member = node_.find(key);
        if (member != nullptr && member->kind != NodeKind::null) read(*member, key, value, problems_);
    }
    void finish() { unknown_keys(node_, known_, problems_); }

private:
    const Node& node_;
    Problems& problems_;
    std::vector<std::string_view> known_;
};

template <class T>
void read(const Node& node, std::string_view key, T& value, Problems& problems) {
    if constexpr (std::is_same_v<T, bool>) {
        if (node.kind != NodeKind::boolean) return expected(node, key, "true or false", problems);
        value = node.boolean;
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (node.kind != NodeKind::string) return expected(node, key, "a text", problems);
        value = node.text;
    } else if constexpr (std::is_same_v<T, Cause>) {
        const auto cause = parse_cause(node.text);
        if (node.kind != NodeKind::string || !cause) return expected(node, key, "a cause", problems);
        value = *cause;
    } else if constexpr (Named<T>) {
        std::vector<std::string> words;
        for (const auto& [each, name] : enum_names(T{})) {
            if (node.kind == NodeKind::string && node.text == name) {
                value = each;
                return;
            }
            words.emplace_back(name);
        }
        std::string list;
        for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
        expected(node, key, "one of " + list, problems);
    } else if constexpr (std::is_integral_v<T>) {
        std::uint64_t bits = 0;
        constexpr auto kLow = std::is_signed_v<T> ? static_cast<std::int64_t>(std::numeric_limits<T>::min()) : 0;
        if (read_integer(node, key, kLow, static_cast<std::uint64_t>(std::numeric_limits<T>::max()), bits, problems))
            value = static_cast<T>(bits);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (node.kind != NodeKind::number) return expected(node, key, "a number", problems);
        value = node.number;
    } else if constexpr (TextId<T>) {
        if (node.kind == NodeKind::string && node.text.empty()) return;
        const auto id = T::parse(node.text);
        if (node.kind != NodeKind::string || !id) return expected(node, key, "an id", problems);
        value = *id;
    } else if constexpr (IsOptional<T>::value) {
        value.emplace();
        read(node, key, *value, problems);
    } else if constexpr (IsVector<T>::value) {
        if (!node.is_sequence()) return expected(node, key, "a list", problems);
        value.clear();
        value.reserve(node.items.size());
        for (const auto& item : node.items) read(*item, key, value.emplace_back(), problems);
    } else if constexpr (IsTextMap<T>::value) {
        if (!node.is_mapping()) return expected(node, key, "a mapping", problems);
        value.clear();
        for (const Member& member : node.members) read(*member.value, member.key, value[member.key], problems);
    } else {
        if (!node.is_mapping()) return expected(node, key, "a mapping", problems);
        Reader reader(node, problems);
        fields(reader, value);
        reader.finish();
    }
}

template <class T>
std::string encode(const T& value) {
    return write(value).dump(0);
}

// `what` names the text in problems: "record 17", "request".
template <class T>
Result<T> decode(std::string_view text, std::string what, const ReadLimits& limits = {}) {
    TRY(const Document document, Document::parse_json(text, std::move(what), limits));
    Problems problems;
    T value{};
    read(document.root(), "", value, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return value;
}

}  // namespace stoker::codec
