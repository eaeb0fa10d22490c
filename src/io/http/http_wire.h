// HTTP/1.1 on its way out: heads, chunks, and the answers that the server gives by itself.
#pragma once

#include <string>
#include <string_view>

#include "io/http/http.h"

namespace stoker {

std::string_view http_status_text(int status);  // "Not Found"; "Status" for one without a name
// An RFC 9457 problem: type about:blank, title, status, detail.
HttpResponse http_problem(int status, std::string_view detail);

bool is_http_token(std::string_view name);         // of a method or of a header's name (RFC 9110 5.6.2)
bool is_http_field_value(std::string_view value);  // no control characters, so that nobody smuggles a line into a head
bool http_status_has_body(int status);             // all but 1xx, 204 and 304

enum class HttpFraming { length, chunked, until_close };
// The head that belongs to an answer. Content-Length, Transfer-Encoding and Connection are ours: what the answer says
// about them is left out.
std::string http_response_head(const HttpResponse& response, HttpFraming framing, bool keep_alive);
bool is_sendable(const HttpResponse& response);

void append_http_chunk(std::string& out, std::string_view piece);  // nothing for an empty one: that would be the end
inline constexpr std::string_view kHttpLastChunk = "0\r\n\r\n";

}  // namespace stoker
