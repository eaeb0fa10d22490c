// Structs to canonical JSON and back, for the journal, snapshots and specs. A struct names its fields once:
//     template <class V>
//     void fields(V& visit, Lease& lease) {
//         visit("stop_at_us", lease.stop_at_us);
//     }
// and an enum its words: `constexpr std::array kNames...; auto enum_names(E)`. Keys are written in sorted order,
// numbers are integers. Empty texts, maps and optionals are left out and read back as empty; everything else is always
// written, so that a default that changes later does not change what was recorded.
//
// Journals and snapshots are written and read without a tree in between (encode, decode); whatever is not exactly as we
// write it goes through Document, which says where it is wrong.
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
#include "base/json_text.h"
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

// Appends what write(value).dump(0) would be. False when a list of fields is not sorted: that text is of no use.
template <class T>
bool append(std::string& out, const T& value);

class TextWriter {
public:
    explicit TextWriter(std::string& out) : out_(out) { out_ += '{'; }
    template <class T>
    void operator()(std::string_view key, const T& value) {
        if constexpr (std::is_same_v<T, std::string> || IsTextMap<T>::value) {
            if (value.empty()) return;
        } else if constexpr (IsOptional<T>::value) {
            if (!value) return;
        } else if constexpr (TextId<T>) {
            if (is_no_id(value)) return;
        }
        sorted_ = sorted_ && last_ < key;
        if (!last_.empty()) out_ += ',';
        last_ = key;
        ((out_ += '"') += key) += "\":";
        sorted_ = append(out_, value) && sorted_;
    }
    bool finish() {
        out_ += '}';
        return sorted_;
    }

private:
    std::string& out_;
    std::string_view last_;
    bool sorted_ = true;
};

template <class T>
bool append(std::string& out, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        out += value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, std::string>) {
        append_json_text(out, value);
    } else if constexpr (std::is_same_v<T, Cause>) {
        append_json_text(out, to_string(value));
    } else if constexpr (Named<T>) {
        for (const auto& [each, name] : enum_names(value))
            if (each == value) {
                append_json_text(out, name);
                return true;
            }
        out += "null";
    } else if constexpr (std::is_integral_v<T>) {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value));
        out.append(digits, end.ptr);
    } else if constexpr (std::is_floating_point_v<T>) {
        append_json_number(out, static_cast<double>(value));
    } else if constexpr (TextId<T>) {
        append_json_text(out, is_no_id(value) ? std::string() : value.text());
    } else if constexpr (IsOptional<T>::value) {
        if (value) return append(out, *value);
        out += "null";
    } else if constexpr (IsVector<T>::value) {
        bool sorted = true;
        char before = '[';
        for (const auto& item : value) {
            out += before;
            before = ',';
            sorted = append(out, item) && sorted;
        }
        out += value.empty() ? "[]" : "]";
        return sorted;
    } else if constexpr (IsTextMap<T>::value) {
        bool sorted = true;
        char before = '{';
        for (const auto& [key, item] : value) {
            out += before;
            before = ',';
            append_json_text(out, key);
            out += ':';
            sorted = append(out, item) && sorted;
        }
        out += value.empty() ? "{}" : "}";
        return sorted;
    } else {
        TextWriter writer(out);
        fields(writer, const_cast<T&>(value));
        return writer.finish();
    }
    return true;
}

template <class T>
std::string encode(const T& value) {
    std::string text;
    return append(text, value) ? text : write(value).dump(0);
}

// A text exactly as we write it: no space, keys in our order, nothing unknown. False from the first thing that is not
// so; what was read until then is of no use.
class TextReader {
public:
    explicit TextReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}
    template <class T>
    bool whole(T& value) {
        return read(value) && at_ == end_;
    }

private:
    class Fields;
    static constexpr int kMostDepth = 100;

    bool take(char c) {
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
    bool take(std::string_view word) {
        if (static_cast<std::size_t>(end_ - at_) < word.size() || std::string_view(at_, word.size()) != word)
            return false;
        at_ += word.size();
        return true;
    }
    // Without escapes a view of the text, else of `room_`.
    bool text(std::string_view& out);
    bool number(std::string_view& out);
    template <class T>
    bool read(T& value);

    const char *at_, *end_;
    int depth_ = 0;
    std::string room_;
};

class TextReader::Fields {
public:
    explicit Fields(TextReader& reader) : reader_(reader) {}
    template <class T>
    void operator()(std::string_view key, T& value) {
        if (!good_) return;
        const char* const before = reader_.at_;
        const bool here =
            (first_ || reader_.take(',')) && reader_.take('"') && reader_.take(key) && reader_.take("\":");
        if (!here) {
            reader_.at_ = before;  // left out, so it keeps its default
            return;
        }
        first_ = false;
        good_ = reader_.read(value);
    }
    bool finish() { return good_ && reader_.take('}'); }

private:
    TextReader& reader_;
    bool first_ = true, good_ = true;
};

template <class T>
bool TextReader::read(T& value) {
    [[maybe_unused]] std::string_view word;
    if constexpr (std::is_same_v<T, bool>) {
        value = at_ != end_ && *at_ == 't';
        return value ? take("true") : take("false");
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (!text(word)) return false;
        value = word;
        return true;
    } else if constexpr (std::is_same_v<T, Cause>) {
        const auto cause = text(word) ? parse_cause(word) : std::nullopt;
        if (cause) value = *cause;
        return cause.has_value();
    } else if constexpr (Named<T>) {
        if (!text(word)) return false;
        for (const auto& [each, name] : enum_names(T{}))
            if (word == name) {
                value = each;
                return true;
            }
        return false;
    } else if constexpr (std::is_arithmetic_v<T>) {
        if (!number(word)) return false;
        const auto [last, code] = std::from_chars(word.data(), word.data() + word.size(), value);
        return code == std::errc() && last == word.data() + word.size();
    } else if constexpr (TextId<T>) {
        if (!text(word)) return false;
        if (word.empty()) return true;
        const auto id = T::parse(word);
        if (id) value = *id;
        return id.has_value();
    } else if constexpr (IsOptional<T>::value) {
        return read(value.emplace());
    } else if constexpr (IsVector<T>::value) {
        value.clear();
        if (!take('[')) return false;
        if (take(']')) return true;
        do {
            if (!read(value.emplace_back())) return false;
        } while (take(','));
        return take(']');
    } else if constexpr (IsTextMap<T>::value) {
        value.clear();
        if (!take('{')) return false;
        if (take('}')) return true;
        do {
            if (!text(word) || (!value.empty() && !(value.rbegin()->first < word))) return false;
            auto& item = value.emplace_hint(value.end(), std::string(word), typename T::mapped_type{})->second;
            if (!take(':') || !read(item)) return false;
        } while (take(','));
        return take('}');
    } else {
        if (!take('{') || ++depth_ > kMostDepth) return false;
        Fields visit(*this);
        fields(visit, value);
        --depth_;
        return visit.finish();
    }
}

// `what` names the text in problems: "record 17", "request".
template <class T>
Result<T> decode(std::string_view text, std::string what, const ReadLimits& limits = {}) {
    if (T value{}; text.size() <= limits.max_bytes && TextReader(text).whole(value)) return value;
    TRY(const Document document, Document::parse_json(text, std::move(what), limits));
    Problems problems;
    T value{};
    read(document.root(), "", value, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return value;
}

}  // namespace stoker::codec
