#include "io/http/http_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "io/http/http_wire.h"

namespace stoker {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// A segment of a path, or one side of a parameter. `form`: '+' is a blank.
Result<std::string> percent_decode(std::string_view text, bool form) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && form) {
            out += ' ';
        } else if (text[i] != '%') {
            out += text[i];
        } else {
            const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return Error(ErrorKind::invalid,
                             fmt::format("the target has '{}', where two hexadecimal digits must follow '%'",
                                         printable(text.substr(i, 3))));
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    if (out.find('\0') != std::string::npos) return Error(ErrorKind::invalid, "the target holds a zero byte (%00)");
    if (find_invalid_utf8(out) != std::string_view::npos)
        return Error(ErrorKind::invalid, "the target is not UTF-8 where it is percent-decoded");
    return out;
}

// RFC 3986 3.3: pchar, without the '%'.
bool is_path_char(char c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return std::string_view("-._~!$&'()*+,;=:@/%").find(c) != std::string_view::npos;
}

// Of a segment in which slashes were encoded: nothing that a path could not have.
bool is_plain_path(std::string_view segment) {
    for (const std::string_view part : split(segment, '/'))
        if (part.empty() || part == "." || part == "..") return false;
    return segment.find('\\') == std::string_view::npos;
}

Result<std::string> read_path(std::string_view raw, bool encoded_slashes) {
    if (raw.empty() || raw.front() != '/')
        return Error(ErrorKind::invalid,
                     fmt::format("the target must be a path that begins with '/', not '{}'", printable(raw, 80)));
    for (const char c : raw)
        if (!is_path_char(c))
            return Error(ErrorKind::invalid,
                         fmt::format("'{}' must be percent-encoded in a path", printable(std::string_view(&c, 1))));
    std::string path;
    path.reserve(raw.size());
    for (std::size_t at = 1; at <= raw.size();) {
        const std::size_t end = std::min(raw.find('/', at), raw.size());
        TRY(const std::string segment, percent_decode(raw.substr(at, end - at), false));
        // An empty last segment is the slash at the end.
        if (segment.empty() && end != raw.size()) return Error(ErrorKind::invalid, "the path has two slashes in a row");
        if (segment == "." || segment == "..")
            return Error(ErrorKind::invalid, "the path has a segment '" + segment + "': send it resolved");
        if (segment.find_first_of("/\\") != std::string::npos && !(encoded_slashes && is_plain_path(segment)))
            return Error(ErrorKind::invalid, "the path holds an encoded slash (%2F or %5C)");
        if (!is_http_field_value(segment)) return Error(ErrorKind::invalid, "the path holds a control character");
        path += '/';
        path += segment;
        at = end + 1;
    }
    return path;
}

}  // namespace

Result<HttpTarget> read_http_target(std::string_view target, bool encoded_slashes) {
    for (const char c : target)
        if (c <= 0x20 || c == 0x7f || c == '#')  // char is signed here: everything beyond ASCII, too
            return Error(ErrorKind::invalid, fmt::format("the target holds {}, which must be percent-encoded",
                                                         c == '#' ? "'#'" : "a blank, control or non-ASCII character"));
    const std::size_t mark = target.find('?');
    HttpTarget out;
    TRY(out.path, read_path(target.substr(0, mark), encoded_slashes));
    if (mark == std::string_view::npos) return out;
    for (const std::string_view part : split(target.substr(mark + 1), '&')) {
        if (part.empty()) continue;
        const std::size_t equals = std::min(part.find('='), part.size());
        TRY(std::string name, percent_decode(part.substr(0, equals), true));
        TRY(std::string value, percent_decode(part.substr(std::min(equals + 1, part.size())), true));
        out.query.emplace_back(std::move(name), std::move(value));
    }
    return out;
}

}  // namespace stoker
