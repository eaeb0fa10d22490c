// The frames of the language server protocol, and what its positions mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/document.h"
#include "base/json.h"
#include "lint/source.h"

namespace stoker {

// Bytes in, messages out: "Content-Length: N\r\n\r\n" and N bytes of JSON.
class LspFrames {
public:
    void feed(std::string_view bytes) { buffer_ += bytes; }
    // The next whole message; an Error when what comes can no longer be told apart.
    Result<std::optional<std::string>> next();

private:
    std::string buffer_;
};
std::string lsp_frame(const Json& message);

struct LspPosition {
    std::uint32_t line = 0, character = 0;  // from 0, in UTF-16 units
};
// The byte at a position; the end of the line, or of the text, when it lies behind that.
std::size_t lsp_offset(std::string_view text, LspPosition position);
Json lsp_range(const lint::Source& source, lint::Span span);
std::optional<LspPosition> lsp_position(const Node* node);  // {line, character}

std::string path_of_uri(std::string_view uri);  // of file://; empty for others
std::string uri_of_path(std::string_view path);

}  // namespace stoker
