// The text of one input and the places in it. A text that is embedded in another (a script inside a manifest, a
// cloud-config inside customData) knows where each of its bytes stands in the file that people open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::lint {

// Bytes [begin, end) of a Source.
struct Span {
    std::uint32_t begin = 0, end = 0;

    bool empty() const { return begin == end; }
    std::uint32_t size() const { return end - begin; }
    bool contains(Span other) const { return begin <= other.begin && other.end <= end; }
    friend bool operator==(const Span&, const Span&) = default;
};

// Both start at 1; columns count bytes, or what `Columns` says.
struct Place {
    std::uint32_t line = 1, column = 1;
    friend bool operator==(const Place&, const Place&) = default;
};
enum class Columns : std::uint8_t { bytes, code_points, utf16 };  // text and JSON count code points; SARIF, LSP utf16

// A run of bytes of an embedded text, and where it was written. verbatim: byte for byte, so that an edit is possible.
// changed: an escape, a fold, a decoded base64; every byte of it stands at the whole of `host`.
struct Piece {
    enum class Kind : std::uint8_t { verbatim, changed };
    std::uint32_t guest = 0, length = 0;
    Span host;
    Kind kind = Kind::verbatim;
};

// Never moves once made (views into text() are kept everywhere), never changes.
class Source {
public:
    // `path` as people name it: relative where it can be, with forward slashes; "-" is standard input.
    Source(std::string path, std::string text);
    // `pieces`: sorted, without gaps, covering `text`. `outer` outlives this.
    Source(const Source& outer, std::string text, std::vector<Piece> pieces);
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    const std::string& path() const { return outermost().path_; }
    std::string_view text() const { return text_; }
    std::string_view text(Span span) const { return text().substr(span.begin, span.end - span.begin); }
    const Source* outer() const { return outer_; }
    const Source& outermost() const { return outer_ ? outer_->outermost() : *this; }

    // In the outermost file. A span within one changed piece is the whole of what it was made of.
    Span in_outermost(Span span) const;
    // True when every byte stands as it is in the outermost file, in one run: a fix can replace it.
    bool editable(Span span) const;
    // Where an offset of this text stands in the outermost file.
    Place place(std::uint32_t offset, Columns columns = Columns::bytes) const;
    // The line that holds `offset`, without its end. Of this text, not of the outermost.
    Span line_at(std::uint32_t offset) const;
    // The word that begins at a place of this text, at least one byte where there is one; lines and columns start at 1.
    Span word_at(std::uint32_t line, std::uint32_t column) const;
    // "\r\n" where the first line of the outermost file ends so, else "\n".
    std::string_view line_end() const;

private:
    Span in_outer(Span span) const;
    void index_lines() const;

    std::string path_, text_;
    const Source* outer_ = nullptr;
    std::vector<Piece> pieces_;
    mutable std::vector<std::uint32_t> lines_;  // offsets of line starts; made at the first question
};

}  // namespace stoker::lint
