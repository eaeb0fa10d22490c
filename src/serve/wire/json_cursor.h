// Goes once through JSON that a stranger wrote: checks all of it (RFC 8259, UTF-8, depth) and says where values lie.
// Nothing is copied and no tree is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::wire {

struct JsonFault {
    const char* code = "invalid_json";  // or invalid_utf8, too_deep
    std::string what;
    std::size_t at = 0;      // byte offset
    std::string field = {};  // that is of a wrong type; empty: it is not about one
};

struct JsonSpan {
    std::size_t begin = 0, end = 0;
    std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
    std::size_t size() const { return end - begin; }
};

class JsonCursor {
public:
    explicit JsonCursor(std::string_view text, int max_depth = 64) : text_(text), max_depth_(max_depth) {}

    std::size_t at() const { return at_; }
    const std::optional<JsonFault>& fault() const { return fault_; }

    char peek();                      // the next byte that is no blank; 0 at the end
    bool skip_value(JsonSpan& span);  // false: there is a fault
    // Members of the object that begins here, its name still escaped; the cursor stands at the value, which the
    // callback takes (skip_value or one of these). False: a fault, or the callback said so.
    bool object(const std::function<bool(std::string_view raw_name, std::size_t name_at)>& member);
    bool array(const std::function<bool()>& item);
    bool string(JsonSpan& span);  // with its quotes
    bool at_end();                // nothing but blanks follows; else a fault
    bool fail(const char* code, std::string what, std::size_t at);

private:
    bool literal(std::string_view word);
    bool number();
    bool enter();

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0, max_depth_;
    std::optional<JsonFault> fault_;
};

// The text of a string in quotes, unescaped; nothing for a lone surrogate.
std::optional<std::string> json_unescaped(std::string_view quoted);
// A whole number without fraction and exponent.
std::optional<std::int64_t> json_integer(std::string_view text);

}  // namespace stoker::wire
