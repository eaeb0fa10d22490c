// What PowerShell's > writes: UTF-16 with a byte order mark.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// The text as UTF-8 when it begins with a UTF-16 byte order mark; nothing when it does not, or when it is no valid
// UTF-16: an odd number of bytes, half a surrogate pair.
std::optional<std::string> utf8_from_utf16(std::string_view bytes);

}  // namespace stoker
