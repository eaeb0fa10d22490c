#include "lint/shell/node_text.h"

#include <algorithm>

namespace stoker::lint {

std::vector<Piece> pieces_of_scalar(std::string_view decoded, const Source& source, Span span) {
    std::vector<Piece> pieces;
    const std::string_view written = source.text(span);
    if (const std::size_t whole =
            decoded.find('\n') == std::string_view::npos ? written.find(decoded) : std::string_view::npos;
        whole != std::string_view::npos) {
        const auto begin = span.begin + static_cast<std::uint32_t>(whole);
        pieces.push_back({0,
                          static_cast<std::uint32_t>(decoded.size()),
                          {begin, begin + static_cast<std::uint32_t>(decoded.size())},
                          Piece::Kind::verbatim});
        return pieces;
    }
    // Line by line, each at or behind the one before: a line that is not found was folded or escaped.
    std::size_t cursor = 0;
    for (std::size_t from = 0; from < decoded.size();) {
        const std::size_t newline = decoded.find('\n', from);
        const std::size_t stop = newline == std::string_view::npos ? decoded.size() : newline + 1;
        const std::string_view line = decoded.substr(from, (newline == std::string_view::npos ? stop : newline) - from);
        Piece piece;
        piece.guest = static_cast<std::uint32_t>(from);
        piece.length = static_cast<std::uint32_t>(stop - from);
        const std::size_t window = std::min(written.size(), cursor + line.size() + 4096);
        const std::size_t at = written.substr(0, window).find(line, cursor);
        if (at == std::string_view::npos) {
            piece.host = span;
            piece.kind = Piece::Kind::changed;
        } else {
            const auto begin = span.begin + static_cast<std::uint32_t>(at);
            piece.host = {begin, std::min(begin + piece.length, span.end)};
            cursor = at + line.size();
        }
        pieces.push_back(piece);
        from = stop;
    }
    return pieces;
}

}  // namespace stoker::lint
