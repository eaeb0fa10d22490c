#include "check/lsp_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace stoker {

namespace {

constexpr std::size_t kMostHeadBytes = 4096;
constexpr std::size_t kMostMessageBytes = 64u << 20;

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

Result<std::optional<std::string>> LspFrames::next() {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos) {
        if (buffer_.size() > kMostHeadBytes)
            return Error(ErrorKind::invalid, "this is not the language server protocol: no Content-Length header");
        return std::optional<std::string>();
    }
    std::size_t length = 0;
    bool found = false;
    for (std::string_view line : split_lines(std::string_view(buffer_).substr(0, end))) {
        if (!starts_with_ignore_case(line, "content-length:")) continue;
        line = trim(line.substr(15));
        const auto [last, code] = std::from_chars(line.data(), line.data() + line.size(), length);
        found = code == std::errc() && last == line.data() + line.size();
    }
    if (!found) return Error(ErrorKind::invalid, "a message of the language server protocol without Content-Length");
    if (length > kMostMessageBytes)
        return Error(
            ErrorKind::invalid,
            fmt::format("a message of the language server protocol has {} bytes; at most 64 MiB are read", length));
    if (buffer_.size() < end + 4 + length) return std::optional<std::string>();
    std::string body = buffer_.substr(end + 4, length);
    buffer_.erase(0, end + 4 + length);
    return std::optional<std::string>(std::move(body));
}

std::string lsp_frame(const Json& message) {
    const std::string body = message.dump(0);
    return fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
}

std::size_t lsp_offset(std::string_view text, LspPosition position) {
    std::size_t at = 0;
    for (std::uint32_t line = 0; line < position.line; ++line) {
        const std::size_t end = text.find('\n', at);
        if (end == std::string_view::npos) return text.size();
        at = end + 1;
    }
    for (std::uint32_t units = 0; units < position.character && at < text.size() && text[at] != '\n';) {
        if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') break;
        const auto byte = static_cast<unsigned char>(text[at]);
        const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        units += length == 4 ? 2 : 1;
        at = std::min(at + length, text.size());
    }
    return at;
}

Json lsp_range(const lint::Source& source, lint::Span span) {
    const auto position = [&](std::uint32_t offset) {
        const lint::Place place = source.place(offset, lint::Columns::utf16);
        return Json::object().set("line", place.line - 1).set("character", place.column - 1);
    };
    return Json::object().set("start", position(span.begin)).set("end", position(span.end));
}

std::optional<LspPosition> lsp_position(const Node* node) {
    const Node* line = node && node->is_mapping() ? node->find("line") : nullptr;
    const Node* character = node && node->is_mapping() ? node->find("character") : nullptr;
    if (!line || !character || line->kind != NodeKind::number || character->kind != NodeKind::number)
        return std::nullopt;
    if (line->number < 0 || line->number > 1e9 || character->number < 0 || character->number > 1e9) return std::nullopt;
    return LspPosition{static_cast<std::uint32_t>(line->number), static_cast<std::uint32_t>(character->number)};
}

std::string path_of_uri(std::string_view uri) {
    if (!uri.starts_with("file://")) return {};
    uri.remove_prefix(7);
    if (!uri.starts_with('/')) uri.remove_prefix(std::min(uri.find('/'), uri.size()));  // a host
    std::string path;
    for (std::size_t i = 0; i < uri.size(); ++i) {
        if (uri[i] == '%' && i + 2 < uri.size() && hex_digit(uri[i + 1]) >= 0 && hex_digit(uri[i + 2]) >= 0) {
            path += static_cast<char>(hex_digit(uri[i + 1]) * 16 + hex_digit(uri[i + 2]));
            i += 2;
        } else {
            path += uri[i];
        }
    }
    return path;
}

std::string uri_of_path(std::string_view path) {
    std::string uri = "file://";
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view("-._~/").find(c) != std::string_view::npos;
        if (plain)
            uri += c;
        else
            uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri;
}

}  // namespace stoker
