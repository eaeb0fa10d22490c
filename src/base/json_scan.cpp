#include "base/json_scan.h"

namespace stoker {
namespace {

constexpr int kMostNested = 512;  // deeper is no sample

class Scanner {
public:
    Scanner(std::string_view text, JsonScan& out) : text_(text), out_(out) {}

    void scan() {
        blanks();
        out_.object = at_ < text_.size() && text_[at_] == '{';
        if (!value(0)) return;
        blanks();
        if (at_ < text_.size()) fail("the end after the value");
    }

private:
    bool fail(const char* expected) {
        if (out_.fault.empty()) {
            out_.fault = std::string("expected ") + expected;
            out_.column = at_ + 1;
        }
        return false;
    }
    char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void blanks() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
            ++at_;
    }

    bool value(int depth) {
        if (depth > kMostNested) return fail("fewer than 512 levels");
        switch (here()) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return string();
            case 't': return word("true");
            case 'f': return word("false");
            case 'n': return word("null");
            default: return number();
        }
    }

    bool object(int depth) {
        ++at_;
        blanks();
        if (here() == '}') return ++at_, true;
        for (;;) {
            blanks();
            const std::size_t name = at_ + 1;
            if (here() != '"') return fail("a member name in double quotes");
            if (!string()) return false;
            const std::size_t name_end = at_ - 1;
            blanks();
            if (here() != ':') return fail("':' after a member name");
            ++at_;
            blanks();
            const std::size_t begin = at_;
            if (!value(depth + 1)) return false;
            if (depth == 0)
                out_.members.emplace_back(text_.substr(name, name_end - name), text_.substr(begin, at_ - begin));
            blanks();
            if (here() == ',') {
                ++at_;
                continue;
            }
            if (here() != '}') return fail("',' or '}' after a member");
            ++at_;
            return true;
        }
    }

    bool array(int depth) {
        ++at_;
        blanks();
        if (here() == ']') return ++at_, true;
        for (;;) {
            blanks();
            if (!value(depth + 1)) return false;
            blanks();
            if (here() == ',') {
                ++at_;
                continue;
            }
            if (here() != ']') return fail("',' or ']' after an element");
            ++at_;
            return true;
        }
    }

    static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

    bool string() {
        ++at_;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"') return ++at_, true;
            if (static_cast<unsigned char>(c) < 0x20) return fail("an escape in place of a control character");
            if (c != '\\') {
                ++at_;
                continue;
            }
            ++at_;
            switch (here()) {
                case '"':
                case '\\':
                case '/':
                case 'b':
                case 'f':
                case 'n':
                case 'r':
                case 't': ++at_; break;
                case 'u':
                    ++at_;
                    for (int i = 0; i < 4; ++i, ++at_)
                        if (!is_hex(here())) return fail("four hexadecimal digits after \\u");
                    break;
                default: return fail("an escape that JSON has");
            }
        }
        return fail("the closing quote of a string");
    }

    bool word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return fail("a value");
        at_ += expected.size();
        return true;
    }

    bool digits() {
        const std::size_t first = at_;
        while (here() >= '0' && here() <= '9') ++at_;
        return at_ > first || fail("a digit");
    }
    bool number() {
        const std::size_t first = at_;
        if (here() == '-') ++at_;
        if (here() == '0') {
            ++at_;
        } else if (here() >= '1' && here() <= '9') {
            digits();
        } else {
            return at_ = first, fail("a value");
        }
        if (here() == '.') {
            ++at_;
            if (!digits()) return false;
        }
        if (here() == 'e' || here() == 'E') {
            ++at_;
            if (here() == '+' || here() == '-') ++at_;
            if (!digits()) return false;
        }
        return true;
    }

    std::string_view text_;
    JsonScan& out_;
    std::size_t at_ = 0;
};

}  // namespace

JsonScan scan_json(std::string_view text) {
    JsonScan out;
    Scanner(text, out).scan();
    return out;
}

}  // namespace stoker
