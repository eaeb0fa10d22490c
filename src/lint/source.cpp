#include "lint/source.h"

#include <algorithm>

namespace stoker::lint {

Source::Source(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

Source::Source(const Source& outer, std::string text, std::vector<Piece> pieces)
    : text_(std::move(text)), outer_(&outer), pieces_(std::move(pieces)) {}

Span Source::in_outer(Span span) const {
    if (pieces_.empty()) return {};
    const auto piece_at = [&](std::uint32_t offset) {
        auto it = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                   [](std::uint32_t at, const Piece& piece) { return at < piece.guest; });
        return it == pieces_.begin() ? it : it - 1;
    };
    const auto first = piece_at(span.begin);
    Span result;
    result.begin = first->kind == Piece::Kind::verbatim
                       ? first->host.begin + std::min(span.begin - first->guest, first->host.size())
                       : first->host.begin;
    // The end is where the last byte ends, so that a span never reaches into the separator after its piece.
    const auto last = span.empty() ? first : piece_at(span.end - 1);
    result.end = last->kind == Piece::Kind::verbatim
                     ? last->host.begin + std::min(span.end - last->guest, last->host.size())
                     : (span.empty() ? result.begin : last->host.end);
    result.end = std::max(result.begin, result.end);
    return result;
}

Span Source::in_outermost(Span span) const {
    return outer_ ? outer_->in_outermost(in_outer(span)) : span;
}

bool Source::editable(Span span) const {
    if (!outer_) return true;
    const Span outside = in_outer(span);
    for (const Piece& piece : pieces_) {
        const Span within{piece.guest, piece.guest + piece.length};
        if (within.begin <= span.begin && span.end <= within.end && piece.kind == Piece::Kind::verbatim)
            return outer_->editable(outside);
    }
    return false;
}

void Source::index_lines() const {
    lines_.push_back(0);
    for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1))
        lines_.push_back(static_cast<std::uint32_t>(at + 1));
}

Place Source::place(std::uint32_t offset, Columns columns) const {
    if (outer_) return outermost().place(in_outermost({offset, offset}).begin, columns);
    if (lines_.empty()) index_lines();
    offset = std::min(offset, static_cast<std::uint32_t>(text_.size()));
    const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - 1;
    Place place{static_cast<std::uint32_t>(line - lines_.begin() + 1), 1};
    if (columns == Columns::bytes) {
        place.column = offset - *line + 1;
        return place;
    }
    for (std::uint32_t at = *line; at < offset; ++at) {
        const auto byte = static_cast<unsigned char>(text_[at]);
        if ((byte & 0xC0u) != 0x80u) ++place.column;
        if (columns == Columns::utf16 && byte >= 0xF0u) ++place.column;  // a pair of surrogates
    }
    return place;
}

Span Source::line_at(std::uint32_t offset) const {
    offset = std::min(offset, static_cast<std::uint32_t>(text_.size()));
    const std::size_t before = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    std::size_t end = text_.find('\n', offset);
    if (end == std::string::npos) end = text_.size();
    if (end > begin && text_[end - 1] == '\r') --end;
    return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

Span Source::word_at(std::uint32_t line, std::uint32_t column) const {
    if (lines_.empty()) index_lines();
    if (line == 0 || line > lines_.size()) return {};
    const Span row = line_at(lines_[line - 1]);
    const std::uint32_t begin = std::min(row.end, row.begin + (column > 0 ? column - 1 : 0));
    std::uint32_t end = begin;
    const auto in_word = [](char c) { return std::string_view(" \t,:[]{}#\"'").find(c) == std::string_view::npos; };
    while (end < row.end && in_word(text_[end])) ++end;
    return {begin, std::max(end, std::min(begin + 1, row.end))};
}

std::string_view Source::line_end() const {
    const std::string& text = outermost().text_;
    const std::size_t at = text.find('\n');
    return at != std::string::npos && at > 0 && text[at - 1] == '\r' ? "\r\n" : "\n";
}

}  // namespace stoker::lint
