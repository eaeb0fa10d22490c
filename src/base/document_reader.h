// What the YAML and the JSON reader share. Included by the readers only.
#pragma once

#include <string_view>

#include "base/document.h"

namespace stoker::document_reader {

// Refuses what is too large, in another encoding or not UTF-8; returns the text without its byte order mark.
Result<std::string_view> check_text(std::string_view text, FileName file, const ReadLimits& limits);
// Refuses a key that occurs twice, with both places.
Status check_unique_keys(const std::vector<Member>& members);

Error too_many_nodes(SourcePos pos, const ReadLimits& limits);
Error too_deep(SourcePos pos, const ReadLimits& limits);

}  // namespace stoker::document_reader
