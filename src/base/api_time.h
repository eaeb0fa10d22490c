// Times as the API writes them: RFC 3339, UTC, microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

std::string rfc3339(std::int64_t us);  // "2026-11-21T19:34:23.000120Z"; empty for 0
// With any offset, or a day, which begins at midnight UTC; nothing for what is no such time.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);

}  // namespace stoker
