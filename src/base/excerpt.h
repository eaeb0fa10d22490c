// The line of a source that a message talks about, with a caret under the column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

//     4 | data: {tokens: 150B, sequnce: 8192}
//       |                      ^
// At most `width` columns: of a longer line the part around the caret, with "..." where it was cut. Empty where there
// is no such line, or where the line is not text.
std::string source_excerpt(std::string_view text, const SourcePos& pos, std::size_t width = 100);

}  // namespace stoker
