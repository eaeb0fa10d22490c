#include "lint/yaml/scalars.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace stoker::lint {

namespace {

bool is_yaml_number(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (text.empty()) return false;
    if (text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN") return true;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o' || text[1] == 'b')) {
        const int base = text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 2;
        return std::all_of(text.begin() + 2, text.end(), [&](char c) {
            return c == '_' ||
                   (base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c >= '0' && c < '0' + base);
        });
    }
    bool digit = false, point = false, power = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c >= '0' && c <= '9') {
            digit = true;
        } else if (c == '_' && digit) {
            continue;
        } else if (c == '.' && !point && !power) {
            point = true;
        } else if ((c == 'e' || c == 'E') && digit && !power) {
            power = true;
            digit = false;
            if (i + 1 < text.size() && (text[i + 1] == '-' || text[i + 1] == '+')) ++i;
        } else {
            return false;
        }
    }
    return digit;
}

bool is_yaml_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Bytes of one escape of a double quoted scalar, the backslash included, and of what it stands for.
std::pair<std::size_t, std::size_t> escape_sizes(std::string_view at) {
    if (at.size() < 2) return {at.size(), 0};
    const auto code = [&](std::size_t digits) -> std::pair<std::size_t, std::size_t> {
        unsigned long value = 0;
        const std::string_view hex = at.substr(2, digits);
        std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
        const std::size_t bytes = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
        return {std::min(at.size(), 2 + digits), bytes};
    };
    switch (at[1]) {
        case 'x': return code(2);
        case 'u': return code(4);
        case 'U': return code(8);
        case 'N':
        case '_': return {2, 2};
        case 'L':
        case 'P': return {2, 3};
        case '\n':
        case '\r': {  // the line goes on: nothing, with the indentation of the next
            std::size_t end = 2;
            while (end < at.size() && is_yaml_blank(at[end])) ++end;
            return {end, 0};
        }
        default: return {2, 1};
    }
}

class ScalarPieces {
public:
    ScalarPieces(const Node& node, std::uint32_t host) : node_(node), host_(host) {}

    void verbatim(std::size_t bytes) {
        if (bytes == 0) return;
        if (!list_.empty()) {
            Piece& last = list_.back();
            if (last.kind == Piece::Kind::verbatim && last.host.end == host_) {
                last.length += static_cast<std::uint32_t>(bytes);
                last.host.end += static_cast<std::uint32_t>(bytes);
                return step(bytes, bytes);
            }
        }
        list_.push_back({guest_,
                         static_cast<std::uint32_t>(bytes),
                         {host_, host_ + static_cast<std::uint32_t>(bytes)},
                         Piece::Kind::verbatim});
        step(bytes, bytes);
    }
    // `guest` bytes were made of `host` bytes.
    void changed(std::size_t guest, std::size_t host) {
        if (guest > 0)
            list_.push_back({guest_,
                             static_cast<std::uint32_t>(guest),
                             {host_, host_ + static_cast<std::uint32_t>(host)},
                             Piece::Kind::changed});
        step(guest, host);
    }
    void skip(std::size_t host) { step(0, host); }
    std::uint32_t guest() const { return guest_; }
    std::uint32_t host() const { return host_; }
    // What is left was made of the rest of the scalar.
    std::vector<Piece> finish(std::uint32_t host_end) {
        const auto size = static_cast<std::uint32_t>(node_.text.size());
        if (guest_ < size) changed(size - guest_, host_end > host_ ? host_end - host_ : 0);
        return std::move(list_);
    }

private:
    void step(std::size_t guest, std::size_t host) {
        guest_ += static_cast<std::uint32_t>(guest);
        host_ += static_cast<std::uint32_t>(host);
    }
    const Node& node_;
    std::uint32_t guest_ = 0, host_ = 0;
    std::vector<Piece> list_;
};

std::vector<Piece> literal_pieces(const Node& node, std::string_view file) {
    const std::size_t header = file.find('\n', node.span.begin);
    if (header == std::string_view::npos || header >= node.span.end)
        return ScalarPieces(node, node.span.begin).finish(node.span.end);
    ScalarPieces pieces(node, static_cast<std::uint32_t>(header + 1));
    while (pieces.guest() < node.text.size()) {
        const std::size_t end = std::min(node.text.find('\n', pieces.guest()), node.text.size());
        const std::string_view line = node.text.substr(pieces.guest(), end - pieces.guest());
        if (pieces.host() >= file.size()) break;
        const std::size_t host_end = std::min(file.find('\n', pieces.host()), file.size());
        const bool crlf = host_end > pieces.host() && file[host_end - 1] == '\r';
        const std::size_t content_end = host_end - (crlf ? 1 : 0);
        if (content_end < pieces.host() + line.size() || file.substr(content_end - line.size(), line.size()) != line)
            break;  // a line end that is none of ours (NEL, a lone CR)
        pieces.skip(content_end - line.size() - pieces.host());
        pieces.verbatim(line.size());
        if (pieces.guest() >= node.text.size()) break;
        if (crlf)
            pieces.changed(1, 2);
        else
            pieces.verbatim(1);
    }
    return pieces.finish(std::max(node.span.end, pieces.host()));
}

}  // namespace

Shape shape_of_plain(std::string_view text) {
    if (text.empty()) return Shape::null;
    switch (text.front()) {
        case '~':
        case 'n':
        case 'N':
            if (text == "~" || text == "null" || text == "Null" || text == "NULL") return Shape::null;
            break;
        default: break;
    }
    if (text.size() <= 5)
        for (const std::string_view word : {"true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes", "YES",
                                            "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"})
            if (text == word) return Shape::boolean;
    const char first = text.front();
    if ((first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.')
        if (is_yaml_number(text)) return Shape::number;
    return Shape::string;
}

bool is_placeholder(std::string_view text) {
    if (text.size() < 2) return false;
    const std::size_t dollar = text.find('$');
    const bool braces = text.find("{{") != std::string_view::npos;
    if (braces) return text.find('\n') == std::string_view::npos;  // a script may well print a Go template
    if (dollar == std::string_view::npos && text.front() != '<' && text.front() != '@') return false;
    if (std::any_of(text.begin(), text.end(), is_yaml_blank))
        return text.front() == '<' && text.back() == '>' && text.size() < 80;
    if (text.front() == '<' && text.back() == '>') return true;
    if (text.size() > 2 && text.front() == '@' && text.back() == '@') return true;
    for (std::size_t at = dollar; at != std::string_view::npos && at + 1 < text.size(); at = text.find('$', at + 1)) {
        const char next = text[at + 1];
        if (std::isalpha(static_cast<unsigned char>(next)) || next == '_' || next == '{' || next == '(') return true;
    }
    return false;
}

std::vector<Piece> pieces_of(const Node& node) {
    if (!node.is_scalar() || node.text.empty() || !node.source) return {};
    const std::string_view file = node.source->text();
    if (node.style == Style::literal) return literal_pieces(node, file);
    std::uint32_t begin = node.span.begin, end = node.span.end;
    if (node.style == Style::single_quoted || node.style == Style::double_quoted) {
        if (end < begin + 2) return {};
        ++begin;
        --end;
    } else if (node.style == Style::folded) {
        const std::size_t header = file.find('\n', begin);
        begin = static_cast<std::uint32_t>(std::min<std::size_t>(header, end));
    }
    // Both texts side by side: equal bytes are verbatim; an escape, and blanks around a line end, are changed.
    ScalarPieces pieces(node, begin);
    const std::string_view text = node.text;
    while (pieces.guest() < text.size() && pieces.host() < end) {
        const std::string_view host = file.substr(pieces.host(), end - pieces.host());
        const char c = host.front();
        if (c == '\\' && node.style == Style::double_quoted) {
            const auto [written, made] = escape_sizes(host);
            pieces.changed(std::min(made, text.size() - pieces.guest()), written);
            continue;
        }
        if (is_yaml_blank(c)) {
            std::size_t blanks = 0, made = 0;
            bool folds = false;
            while (blanks < host.size() && is_yaml_blank(host[blanks])) folds |= host[blanks++] == '\n';
            while (pieces.guest() + made < text.size() && is_yaml_blank(text[pieces.guest() + made])) ++made;
            if (folds) {
                pieces.changed(made, blanks);
                continue;
            }
        }
        if (text[pieces.guest()] != c) break;
        if (c == '\'' && node.style == Style::single_quoted) {
            pieces.changed(1, 2);
            continue;
        }
        pieces.verbatim(1);
    }
    return pieces.finish(end);
}

}  // namespace stoker::lint
