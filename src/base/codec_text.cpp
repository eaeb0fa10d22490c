// The codec's way without a tree: journals and snapshots as we write them ourselves.
#include <charconv>

#include "base/codec.h"
#include "base/json_text.h"
#include "base/text.h"

namespace stoker::codec {

namespace {

class TextWriter final : public FieldVisitor {
public:
    explicit TextWriter(std::string& out) : out_(out) { out_ += '{'; }
    bool finish() {
        out_ += '}';
        return sorted_;
    }

private:
    void field(std::string_view key, void* value, const Shape& shape) override {
        if (is_left_out(value, shape)) return;
        sorted_ = sorted_ && last_ < key;
        if (!last_.empty()) out_ += ',';
        last_ = key;
        ((out_ += '"') += key) += "\":";
        sorted_ = append_shaped(out_, value, shape) && sorted_;
    }

    std::string& out_;
    std::string_view last_;
    bool sorted_ = true;
};

}  // namespace

bool append_shaped(std::string& out, const void* value, const Shape& shape) {
    bool sorted = true;
    switch (shape.kind) {
        case ShapeKind::boolean: out += *static_cast<const bool*>(value) ? "true" : "false"; return true;
        case ShapeKind::integer: {
            char digits[24];
            const auto end = std::to_chars(digits, digits + sizeof digits, load_integer(value, shape));
            out.append(digits, end.ptr);
            return true;
        }
        case ShapeKind::real: append_json_number(out, load_real(value, shape)); return true;
        case ShapeKind::text: append_json_text(out, *static_cast<const std::string*>(value)); return true;
        case ShapeKind::cause: append_json_text(out, to_string(*static_cast<const Cause*>(value))); return true;
        case ShapeKind::word:
            if (const std::string_view word = shape.word(value); !word.empty())
                append_json_text(out, word);
            else
                out += "null";
            return true;
        case ShapeKind::id:
            append_json_text(out, shape.is_no_id(value) ? std::string() : shape.id_text(value));
            return true;
        case ShapeKind::optional:
            if (const void* const held = shape.held(value)) return append_shaped(out, held, *shape.inner);
            out += "null";
            return true;
        case ShapeKind::list: {
            const auto [items, count] = shape.items(value);
            out += '[';
            for (std::size_t i = 0; i < count; ++i) {
                if (i > 0) out += ',';
                sorted = append_shaped(out, item_at(items, *shape.inner, i), *shape.inner) && sorted;
            }
            out += ']';
            return sorted;
        }
        case ShapeKind::map: {
            char before = '{';
            each_item(value, shape, [&](const std::string& key, const void* item) {
                out += before;
                before = ',';
                append_json_text(out, key);
                out += ':';
                sorted = append_shaped(out, item, *shape.inner) && sorted;
            });
            out += before == '{' ? "{}" : "}";
            return sorted;
        }
        case ShapeKind::object: break;
    }
    TextWriter writer(out);
    shape.visit(writer, const_cast<void*>(value));
    return writer.finish();
}

std::string encode_shaped(const void* value, const Shape& shape) {
    std::string text;
    return append_shaped(text, value, shape) ? text : write_shaped(value, shape).dump(0);
}

namespace {

class TextReader {
public:
    explicit TextReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}
    bool whole(void* value, const Shape& shape) { return read(value, shape) && at_ == end_; }

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
    bool read(void* value, const Shape& shape);

    const char *at_, *end_;
    int depth_ = 0;
    std::string room_;
};

class TextReader::Fields final : public FieldVisitor {
public:
    explicit Fields(TextReader& reader) : reader_(reader) {}
    bool finish() { return good_ && reader_.take('}'); }

private:
    void field(std::string_view key, void* value, const Shape& shape) override {
        if (!good_) return;
        const char* const before = reader_.at_;
        const bool here =
            (first_ || reader_.take(',')) && reader_.take('"') && reader_.take(key) && reader_.take("\":");
        if (!here) {
            reader_.at_ = before;  // left out, so it keeps its default
            return;
        }
        first_ = false;
        good_ = reader_.read(value, shape);
    }

    TextReader& reader_;
    bool first_ = true, good_ = true;
};

bool TextReader::read(void* value, const Shape& shape) {
    std::string_view word;
    switch (shape.kind) {
        case ShapeKind::boolean: {
            const bool yes = at_ != end_ && *at_ == 't';
            *static_cast<bool*>(value) = yes;
            return take(yes ? std::string_view("true") : std::string_view("false"));
        }
        case ShapeKind::integer: {
            std::uint64_t bits = 0;
            if (!number(word) || !parse_integer(word, shape, bits)) return false;
            store_integer(value, shape, bits);
            return true;
        }
        case ShapeKind::real: {
            if (!number(word)) return false;
            const auto parse = [&word](auto& real) {
                const auto [last, code] = std::from_chars(word.data(), word.data() + word.size(), real);
                return code == std::errc() && last == word.data() + word.size();
            };
            return shape.bytes == sizeof(double) ? parse(*static_cast<double*>(value))
                                                 : parse(*static_cast<float*>(value));
        }
        case ShapeKind::text:
            if (!text(word)) return false;
            *static_cast<std::string*>(value) = word;
            return true;
        case ShapeKind::cause: {
            const auto cause = text(word) ? parse_cause(word) : std::nullopt;
            if (cause) *static_cast<Cause*>(value) = *cause;
            return cause.has_value();
        }
        case ShapeKind::word: return text(word) && shape.set_word(value, word);
        case ShapeKind::id: return text(word) && (word.empty() || shape.set_id(value, word));
        case ShapeKind::optional: return read(shape.hold(value), *shape.inner);
        case ShapeKind::list:
            shape.clear(value);
            if (!take('[')) return false;
            if (take(']')) return true;
            do {
                if (!read(shape.grow(value), *shape.inner)) return false;
            } while (take(','));
            return take(']');
        case ShapeKind::map:
            shape.clear(value);
            if (!take('{')) return false;
            if (take('}')) return true;
            do {
                if (!text(word)) return false;
                if (const std::string* last = shape.last_key(value); last != nullptr && !(*last < word)) return false;
                void* const item = shape.item_of(value, std::string(word));
                if (!take(':') || !read(item, *shape.inner)) return false;
            } while (take(','));
            return take('}');
        case ShapeKind::object: break;
    }
    if (!take('{') || ++depth_ > kMostDepth) return false;
    Fields visit(*this);
    shape.visit(visit, value);
    --depth_;
    return visit.finish();
}

bool TextReader::text(std::string_view& out) {
    if (!take('"')) return false;
    const char* const begin = at_;
    bool ascii = true;
    const auto plain = [&] {
        for (; at_ != end_ && *at_ != '"' && *at_ != '\\'; ++at_) {
            const auto c = static_cast<unsigned char>(*at_);
            if (c < 0x20 || c == 0x7F) return false;
            ascii = ascii && c < 0x80;
        }
        return at_ != end_;
    };
    if (!plain()) return false;
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    if (*at_ == '\\') {
        room_ = out;
        while (*at_ == '\\') {
            constexpr std::string_view kLetters = "\"\\nrtbf", kMeant = "\"\\\n\r\t\b\f";
            if (++at_ == end_) return false;
            const std::size_t letter = kLetters.find(*at_);
            if (letter == std::string_view::npos) return false;  // \u is rare
            room_ += kMeant[letter];
            const char* const next = ++at_;
            if (!plain()) return false;
            room_.append(next, at_);
        }
        out = room_;
    }
    ++at_;
    return ascii || find_invalid_utf8(out) == std::string_view::npos;
}

bool TextReader::number(std::string_view& out) {
    const char* const begin = at_;
    while (at_ != end_ &&
           ((*at_ >= '0' && *at_ <= '9') || std::string_view("+-.eE").find(*at_) != std::string_view::npos))
        ++at_;
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    const std::string_view digits = out.substr(out.starts_with('-') ? 1 : 0);
    if (digits.empty() || digits.front() < '0' || digits.front() > '9') return false;
    return digits.front() != '0' || digits.size() == 1 || digits[1] < '0' || digits[1] > '9';
}

}  // namespace

bool decode_exactly(std::string_view text, void* value, const Shape& shape) {
    return TextReader(text).whole(value, shape);
}

}  // namespace stoker::codec
