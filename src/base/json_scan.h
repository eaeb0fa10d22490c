// Is a text one JSON value (RFC 8259), and what are the members of its top object: without building a tree. For data
// sets, where a line is looked at once; files of people go through Document, which keeps positions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

struct JsonScan {
    // Empty: it is JSON. Else what was expected, at `column` (from 1, in bytes).
    std::string fault;
    std::size_t column = 0;
    bool object = false;
    // Of the top object, as they are written: the name without its quotes, the value with them. Views into the text.
    std::vector<std::pair<std::string_view, std::string_view>> members;
};
JsonScan scan_json(std::string_view text);

}  // namespace stoker
