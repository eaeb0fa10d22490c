// Texts within strings, with the place of each of their bytes: scripts in custom_data, commands in JSON.
#include <algorithm>

#include "base/text.h"
#include "lint/hcl/expression.h"

namespace stoker::lint {

namespace {

struct InlayWriter {
    Inlay inlay;

    void add(std::string_view text, Span host, Piece::Kind kind) {
        if (text.empty()) return;
        auto& pieces = inlay.pieces;
        const auto guest = static_cast<std::uint32_t>(inlay.text.size());
        inlay.text += text;
        if (kind == Piece::Kind::verbatim && !pieces.empty() && pieces.back().kind == kind &&
            pieces.back().host.end == host.begin) {
            pieces.back().length += static_cast<std::uint32_t>(text.size());
            pieces.back().host.end = host.end;
            return;
        }
        pieces.push_back({guest, static_cast<std::uint32_t>(text.size()), host, kind});
    }
};

// [begin, end) with backslash escapes, as all of JSON, HCL and Bicep have them.
void add_escaped(InlayWriter& out, std::string_view text, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t at = begin; at < end;) {
        const std::size_t stop = std::min<std::size_t>(text.find('\\', at), end);
        const auto to = static_cast<std::uint32_t>(stop);
        out.add(text.substr(at, to - at), {at, to}, Piece::Kind::verbatim);
        at = to;
        if (at + 1 >= end) break;
        const char next = text[at + 1];
        std::uint32_t length = 2;
        std::string decoded(1, next);
        if (next == 'n') decoded = "\n";
        if (next == 't') decoded = "\t";
        if (next == 'r') decoded = "\r";
        if (next == 'u' && at + 6 <= end) {
            length = 6;
            char32_t code = 0;
            for (std::uint32_t i = at + 2; i < at + 6; ++i) {
                const char c = text[i];
                code = code * 16 + static_cast<char32_t>(c >= '0' && c <= '9' ? c - '0' : ((c | 32) - 'a' + 10) & 15);
            }
            decoded.clear();
            append_utf8(decoded, code >= 0xD800 && code < 0xE000 ? U'?' : code);
        }
        out.add(decoded, {at, at + length}, Piece::Kind::changed);
        at += length;
    }
}

}  // namespace

Inlay inlay_of(const Node& node, Dialect dialect) {
    if (!node.source || node.source->text().size() < node.span.end || node.span.size() < 2) return {};
    const std::string_view text = node.source->text();
    InlayWriter out;
    const std::string_view raw = node.source->text(node.span);
    if (dialect == Dialect::hcl && raw.starts_with("<<")) {
        const bool indented = raw.starts_with("<<-");
        const std::size_t first = raw.find('\n');
        const std::size_t last = raw.rfind('\n');
        if (first == std::string_view::npos || last <= first) return {};
        std::size_t least = std::string_view::npos;
        const auto each_line = [&](auto&& use) {
            for (std::size_t at = first + 1; at <= last;) {
                const std::size_t end = raw.find('\n', at);
                use(at, end + 1);
                at = end + 1;
            }
        };
        if (indented)
            each_line([&](std::size_t begin, std::size_t end) {
                const std::size_t word = raw.find_first_not_of(" \t", begin);
                if (word < end - 1) least = std::min(least, word - begin);
            });
        if (least == std::string_view::npos) least = 0;
        each_line([&](std::size_t begin, std::size_t end) {
            const std::size_t from = std::min(begin + least, end - 1);
            out.add(
                raw.substr(from, end - from),
                {static_cast<std::uint32_t>(node.span.begin + from), static_cast<std::uint32_t>(node.span.begin + end)},
                Piece::Kind::verbatim);
        });
        return std::move(out.inlay);
    }
    if (dialect == Dialect::bicep && raw.starts_with("'''") && raw.size() >= 6) {
        std::uint32_t begin = node.span.begin + 3;
        if (text[begin] == '\r') ++begin;
        if (text[begin] == '\n') ++begin;
        const std::uint32_t end = std::max(begin, node.span.end - 3);
        out.add(text.substr(begin, end - begin), {begin, end}, Piece::Kind::verbatim);
        return std::move(out.inlay);
    }
    const char quote = dialect == Dialect::bicep ? '\'' : '"';
    if (raw.front() != quote || raw.back() != quote) return {};
    add_escaped(out, text, node.span.begin + 1, node.span.end - 1);
    return std::move(out.inlay);
}

Inlay inlay_of_json(const Node& node) {
    return inlay_of(node, Dialect::hcl);
}

std::string decode_base64(std::string_view text) {
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    std::size_t letters = 0;
    for (const char c : text) {
        int value = -1;
        if (c >= 'A' && c <= 'Z') value = c - 'A';
        if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
        if (c >= '0' && c <= '9') value = c - '0' + 52;
        if (c == '+' || c == '-') value = 62;
        if (c == '/' || c == '_') value = 63;
        if (c == '=' || c == '\n' || c == '\r') continue;
        if (value < 0) return {};
        ++letters;
        bits = (bits << 6) | static_cast<std::uint32_t>(value);
        if (++count == 4) {
            out += static_cast<char>(bits >> 16);
            out += static_cast<char>(bits >> 8);
            out += static_cast<char>(bits);
            bits = 0, count = 0;
        }
    }
    if (count == 3) out += static_cast<char>(bits >> 10), out += static_cast<char>(bits >> 2);
    if (count == 2) out += static_cast<char>(bits >> 4);
    return letters >= 16 && count != 1 ? out : std::string();
}

}  // namespace stoker::lint
