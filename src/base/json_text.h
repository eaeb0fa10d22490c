// Pieces of JSON written straight into a text, byte for byte as Json::dump() writes them.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

void append_json_text(std::string& out, std::string_view text);  // with its quotes
void append_json_number(std::string& out, double number);

}  // namespace stoker
