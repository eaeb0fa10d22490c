// Small helpers on text that every module needs. Widths are columns of a terminal: UTF-8 aware, wide characters count
// two.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

std::vector<std::string_view> split(std::string_view text, char separator);  // "a,,b" -> a, "", b; "" -> one empty part
std::vector<std::string_view> split_lines(std::string_view text);            // \n or \r\n; no empty line after the last
std::vector<std::string_view> split_words(std::string_view text);  // at runs of white space; never an empty part
std::string_view trim(std::string_view text);                      // blanks, tabs and line ends at both ends
std::string lower(std::string_view text);                          // ASCII only
std::string upper(std::string_view text);
bool equals_ignore_case(std::string_view a, std::string_view b);
bool starts_with_ignore_case(std::string_view text, std::string_view prefix);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string join_or(const std::vector<std::string>& parts);  // "a, b or c"
std::string replace_all(std::string_view text, std::string_view what, std::string_view with);

// At most `most` bytes of something foreign, cut at a character, with control characters and invalid UTF-8 shown as
// '?'.
std::string printable(std::string_view text, std::size_t most = 200);
// The byte offset of the first byte that is not UTF-8 (overlong forms, surrogates and values over U+10FFFF included),
// or npos.
std::size_t find_invalid_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

std::size_t display_width(std::string_view text);
std::string pad_right(std::string_view text,
                      std::size_t width);  // text to the left, blanks behind; longer text stays whole
std::string pad_left(std::string_view text, std::size_t width);  // blanks in front, as for numbers
std::string cut(std::string_view text, std::size_t width);       // to at most width columns, ending in "..." when cut
// Lines of at most `width` columns, broken at blanks; a longer word stays whole. Line breaks of the text are kept.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace stoker
