// Reads JSON (RFC 8259) into a Document: recursive descent with a depth limit, places kept, nothing lenient.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/document.h"
#include "base/document_reader.h"
#include "base/text.h"

namespace stoker {
namespace {

using document_reader::check_unique_keys;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_word(char c) {
    return is_digit(c) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

class JsonDocumentReader {
public:
    JsonDocumentReader(std::string_view text, FileName file, const ReadLimits& limits)
        : at_(text.data()), end_(text.data() + text.size()), line_start_(at_), file_(file), limits_(limits) {}

    Result<Document> read() {
        skip_blanks();
        if (at_ == end_) return error(here(), "the file is empty", "a JSON value is expected, such as {}");
        auto root = std::make_unique<Node>();
        TRY_VOID(read_value(*root, 0));
        skip_blanks();
        if (at_ != end_) return unexpected("the end of the file");
        return Document(std::move(root));
    }

private:
    SourcePos here() const { return place(at_); }
    SourcePos place(const char* p) const { return {file_, line_, static_cast<std::uint32_t>(p - line_start_ + 1)}; }

    static Error error(SourcePos pos, std::string message, std::string remedy = {}) {
        return Error(ErrorKind::invalid, std::move(message), pos, std::move(remedy));
    }

    // What stands here is none of what could: the usual reasons are told by name.
    Error unexpected(std::string_view expected) const {
        if (at_ == end_) return error(here(), fmt::format("the file ends where {} is expected", expected));
        const char c = *at_;
        if (c == '#' || (c == '/' && at_ + 1 < end_ && (at_[1] == '/' || at_[1] == '*')))
            return error(here(), "JSON has no comments", "remove the comment, or write the file as YAML");
        if (c == '\'') return error(here(), "JSON text stands in double quotes, not in single ones");
        const char* word_end = at_;
        while (word_end - at_ < 40 && word_end < end_ && is_word(*word_end)) ++word_end;
        const std::string_view word(at_, static_cast<std::size_t>(word_end - at_));
        if (!word.empty() && !is_digit(c))
            return error(here(), fmt::format("found {} where {} is expected", word, expected), word_remedy(word));
        return error(here(), fmt::format("found '{}' where {} is expected", first_character(), expected));
    }

    static std::string word_remedy(std::string_view word) {
        if (equals_ignore_case(word, "true") || equals_ignore_case(word, "false")) return "write " + lower(word);
        if (word == "None" || word == "nil" || word == "undefined" || word == "NULL" || word == "Null")
            return "write null";
        if (equals_ignore_case(word, "nan") || starts_with_ignore_case(word, "inf"))
            return "JSON has finite numbers only";
        return "put text in double quotes";
    }

    std::string first_character() const {
        std::size_t size = 1;
        while (at_ + size < end_ && (static_cast<unsigned char>(at_[size]) & 0xC0) == 0x80) ++size;
        return printable(std::string_view(at_, size));
    }

    void skip_blanks() {
        while (at_ != end_) {
            switch (*at_) {
                case '\n':
                    ++at_;
                    ++line_;
                    line_start_ = at_;
                    break;
                case ' ':
                case '\t':
                case '\r': ++at_; break;
                default: return;
            }
        }
    }

    // The reader is at a character that is not blank, or at the end.
    Status read_value(Node& node, std::size_t depth) {
        node.pos = here();
        if (++nodes_ > limits_.max_nodes) return document_reader::too_many_nodes(node.pos, limits_);
        if (at_ == end_) return unexpected("a value");
        switch (*at_) {
            case '{': return read_object(node, depth + 1);
            case '[': return read_array(node, depth + 1);
            case '"':
                node.kind = NodeKind::string;
                node.quoted = true;
                return read_string(node.text);
            case 't': return read_word(node, "true", NodeKind::boolean, true);
            case 'f': return read_word(node, "false", NodeKind::boolean, false);
            case 'n': return read_word(node, "null", NodeKind::null, false);
            default:
                if (*at_ == '-' || is_digit(*at_)) return read_number(node);
                if (*at_ == '+' || *at_ == '.')
                    return error(here(), "a JSON number begins with a digit or a minus sign");
                return unexpected("a value");
        }
    }

    Status read_word(Node& node, std::string_view word, NodeKind kind, bool value) {
        const auto left = static_cast<std::size_t>(end_ - at_);
        if (left < word.size() || std::string_view(at_, word.size()) != word) return unexpected("a value");
        if (left > word.size() && is_word(at_[word.size()])) return unexpected("a value");
        node.kind = kind;
        node.boolean = value;
        node.text = word;
        at_ += word.size();
        return done();
    }

    Status read_number(Node& node) {
        const char* const begin = at_;
        const char* p = at_;
        const auto digits = [&] {
            const char* const first = p;
            while (p != end_ && is_digit(*p)) ++p;
            return p != first;
        };
        if (*p == '-') ++p;
        const char* const whole = p;
        if (!digits()) return error(place(begin), "a minus sign without a number behind it");
        if (*whole == '0' && p - whole > 1) return error(place(begin), "a JSON number has no leading zeros");
        if (p != end_ && *p == '.') {
            ++p;
            if (!digits()) return error(place(begin), "a number needs digits behind its point");
        }
        if (p != end_ && (*p == 'e' || *p == 'E')) {
            ++p;
            if (p != end_ && (*p == '+' || *p == '-')) ++p;
            if (!digits()) return error(place(begin), "a number needs digits in its exponent");
        }
        if (p != end_ && is_word(*p))
            return error(place(begin), "a number with letters behind it", "put text in double quotes");
        if (std::from_chars(begin, p, node.number).ec != std::errc())
            return error(place(begin), "the number is out of range");
        node.kind = NodeKind::number;
        node.text.assign(begin, p);
        at_ = p;
        return done();
    }

    Status read_string(std::string& out) {
        const char* const open = at_++;
        for (;;) {
            const char* const begin = at_;
            while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
            out.append(begin, at_);
            if (at_ == end_ || *at_ == '\n' || *at_ == '\r')
                return error(place(open), "the text that begins here has no closing quote on its line",
                             "a line break inside text is written \\n");
            if (*at_ == '"') {
                ++at_;
                return done();
            }
            if (*at_ != '\\')
                return error(here(), fmt::format("the control character U+{:04X} must be written as an escape",
                                                 static_cast<unsigned>(*at_)));
            TRY_VOID(read_escape(out));
        }
    }

    Status read_escape(std::string& out) {
        const char* const begin = at_++;
        if (at_ == end_) return error(place(begin), "the file ends inside text");
        switch (*at_++) {
            case '"': out += '"'; return done();
            case '\\': out += '\\'; return done();
            case '/': out += '/'; return done();
            case 'b': out += '\b'; return done();
            case 'f': out += '\f'; return done();
            case 'n': out += '\n'; return done();
            case 'r': out += '\r'; return done();
            case 't': out += '\t'; return done();
            case 'u': return read_unicode_escape(out, begin);
            default: return error(place(begin), "unknown escape in text", "a backslash itself is written \\\\");
        }
    }

    Status read_unicode_escape(std::string& out, const char* begin) {
        char32_t c = 0, low = 0;
        if (!read_hex(c)) return error(place(begin), "\\u needs four hexadecimal digits");
        if (c >= 0xD800 && c <= 0xDFFF) {
            const bool pair = c < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u' &&
                              (at_ += 2, read_hex(low)) && low >= 0xDC00 && low <= 0xDFFF;
            if (!pair) return error(place(begin), "half of a surrogate pair; the other half is missing");
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
        append_utf8(out, c);
        return done();
    }

    bool read_hex(char32_t& c) {
        if (end_ - at_ < 4) return false;
        std::uint32_t value = 0;
        if (std::from_chars(at_, at_ + 4, value, 16).ptr != at_ + 4) return false;
        c = value;
        at_ += 4;
        return true;
    }

    Status read_array(Node& node, std::size_t depth) {
        node.kind = NodeKind::sequence;
        if (depth > limits_.max_depth) return document_reader::too_deep(node.pos, limits_);
        ++at_;
        skip_blanks();
        if (at_ != end_ && *at_ == ']') return ++at_, done();
        for (;;) {
            node.items.push_back(std::make_unique<Node>());
            TRY_VOID(read_value(*node.items.back(), depth));
            skip_blanks();
            if (at_ != end_ && *at_ == ']') return ++at_, done();
            if (at_ == end_ || *at_ != ',') return unexpected("a comma or ]");
            const SourcePos comma = here();
            ++at_;
            skip_blanks();
            if (at_ != end_ && *at_ == ']') return error(comma, "JSON allows no comma before ]", "remove this comma");
        }
    }

    Status read_object(Node& node, std::size_t depth) {
        node.kind = NodeKind::mapping;
        if (depth > limits_.max_depth) return document_reader::too_deep(node.pos, limits_);
        ++at_;
        skip_blanks();
        if (at_ != end_ && *at_ == '}') return ++at_, done();
        node.members.reserve(4);
        for (;;) {
            if (at_ == end_ || *at_ != '"') return unexpected("a key in double quotes");
            Member& member = node.members.emplace_back(Member{{}, here(), std::make_unique<Node>()});
            TRY_VOID(read_string(member.key));
            skip_blanks();
            if (at_ == end_ || *at_ != ':') return unexpected("a colon behind the key");
            ++at_;
            skip_blanks();
            TRY_VOID(read_value(*member.value, depth));
            skip_blanks();
            if (at_ != end_ && *at_ == '}') return ++at_, check_unique_keys(node.members);
            if (at_ == end_ || *at_ != ',') return unexpected("a comma or }");
            const SourcePos comma = here();
            ++at_;
            skip_blanks();
            if (at_ != end_ && *at_ == '}') return error(comma, "JSON allows no comma before }", "remove this comma");
        }
    }

    const char* at_;
    const char* end_;
    const char* line_start_;
    std::uint32_t line_ = 1;
    FileName file_;
    const ReadLimits& limits_;
    std::size_t nodes_ = 0;
};

}  // namespace

Result<Document> Document::parse_json(std::string_view text, std::string file, const ReadLimits& limits) {
    const FileName name(file);
    TRY(const std::string_view body, document_reader::check_text(text, name, limits));
    return JsonDocumentReader(body, name, limits).read();
}

}  // namespace stoker
