// Times as HTTP writes them (RFC 9110 5.6.7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

std::string http_date(std::int64_t time_s);                         // "Fri, 24 May 2013 00:00:00 GMT"
std::optional<std::int64_t> read_http_date(std::string_view text);  // of this form only
// Retry-After as seconds from now on: a date, or a number of seconds, which some write with a fraction; rounded up.
std::optional<std::int64_t> read_retry_after(std::string_view text, std::int64_t now_s);

}  // namespace stoker
