#include "io/http/http_wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::pair<int, std::string_view> kStatusTexts[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

bool is_http_token_char(char c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// These say how the message is framed, which only the connection knows.
bool is_framing_header(std::string_view name) {
    return equals_ignore_case(name, "content-length") || equals_ignore_case(name, "transfer-encoding") ||
           equals_ignore_case(name, "connection") || equals_ignore_case(name, "keep-alive");
}

void append_number(std::string& out, std::size_t number, int base = 10) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    out.append(digits.data(), end);
}

}  // namespace

std::string_view http_status_text(int status) {
    const auto* row = std::lower_bound(std::begin(kStatusTexts), std::end(kStatusTexts), status,
                                       [](const auto& entry, int wanted) { return entry.first < wanted; });
    return row != std::end(kStatusTexts) && row->first == status ? row->second : "Status";
}

HttpResponse http_problem(int status, std::string_view detail) {
    const Json body = Json::object()
                          .set("type", "about:blank")
                          .set("title", http_status_text(status))
                          .set("status", status)
                          .set("detail", printable(detail, 1000));
    return {.status = status, .content_type = "application/problem+json", .headers = {}, .body = body.dump(0) + "\n"};
}

bool is_http_token(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), is_http_token_char);
}

bool is_http_field_value(std::string_view value) {
    return std::none_of(value.begin(), value.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\t') || byte == 0x7f;
    });
}

bool http_status_has_body(int status) {
    return status >= 200 && status != 204 && status != 304;
}

bool is_sendable(const HttpResponse& response) {
    return response.status >= 200 && response.status <= 599 && is_http_field_value(response.content_type) &&
           std::all_of(response.headers.items.begin(), response.headers.items.end(), [](const auto& header) {
               return is_http_token(header.first) && is_http_field_value(header.second);
           });
}

std::string http_response_head(const HttpResponse& response, HttpFraming framing, bool keep_alive) {
    std::string head;
    head.reserve(160);
    head += "HTTP/1.1 ";
    append_number(head, static_cast<std::size_t>(response.status));
    head += ' ';
    head += http_status_text(response.status);
    head += "\r\n";
    if (!response.content_type.empty()) {
        head += "Content-Type: ";
        head += response.content_type;
        head += "\r\n";
    }
    for (const auto& [name, value] : response.headers.items) {
        if (is_framing_header(name)) continue;
        head += name;
        head += ": ";
        head += value;
        head += "\r\n";
    }
    if (framing == HttpFraming::chunked) head += "Transfer-Encoding: chunked\r\n";
    if (framing == HttpFraming::length && http_status_has_body(response.status)) {
        head += "Content-Length: ";
        append_number(head, response.body.size());
        head += "\r\n";
    }
    head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
    return head;
}

void append_http_chunk(std::string& out, std::string_view piece) {
    if (piece.empty()) return;
    append_number(out, piece.size(), 16);
    out += "\r\n";
    out += piece;
    out += "\r\n";
}

}  // namespace stoker
