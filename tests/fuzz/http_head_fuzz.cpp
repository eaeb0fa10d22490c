// Any bytes of a peer: what is read does not depend on how the bytes were cut, stays within its bounds, and what a
// handler gets is normalised. The same bytes are also read as the answer of a server.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"
#include "io/http/http_parser.h"
#include "io/http/http_wire.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

namespace {

using namespace stoker;

constexpr HttpLimits kLimits{.max_head_bytes = 1024, .max_headers = 10, .max_body_bytes = 512};

void check_request(const HttpRequest& request) {
    REQUIRE(is_http_token(request.method));
    REQUIRE(request.path.starts_with('/') && (request.path + "/").find("/../") == std::string::npos);
    REQUIRE((request.path + "/").find("/./") == std::string::npos && request.path.find("//") == std::string::npos);
    REQUIRE(is_http_field_value(request.path) && find_invalid_utf8(request.path) == std::string_view::npos);
    for (const auto& [name, value] : request.query)
        REQUIRE(find_invalid_utf8(name) == std::string_view::npos && value.find('\0') == std::string::npos);
    REQUIRE(request.headers.items.size() <= kLimits.max_headers && request.body.size() <= kLimits.max_body_bytes);
    int hosts = 0, lengths = 0, codings = 0;
    for (const auto& [name, value] : request.headers.items) {
        REQUIRE(is_http_token(name) && is_http_field_value(value));
        hosts += equals_ignore_case(name, "host");
        lengths += equals_ignore_case(name, "content-length");
        codings += equals_ignore_case(name, "transfer-encoding");
    }
    REQUIRE(hosts <= 1 && lengths + codings <= 1);
}

std::string read_all(std::string_view bytes, std::size_t step) {
    HttpRequestParser parser(kLimits);
    std::string story;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::string_view piece = bytes.substr(at, step);
        const std::size_t used = parser.feed(piece);
        REQUIRE(used <= piece.size());
        at += used;
        if (parser.state() == HttpRequestParser::State::refused) {
            REQUIRE(parser.refusal_status() >= 400 && parser.refusal_status() < 600 && !parser.refusal().empty());
            return story + std::to_string(parser.refusal_status());
        }
        if (parser.state() == HttpRequestParser::State::complete) {
            const HttpRequest request = parser.take();
            check_request(request);
            story += request.method + " " + request.path + " " + request.body + "\n";
        } else {
            REQUIRE(used == piece.size());
        }
    }
    return story;
}

std::string read_answer(std::string_view bytes, std::size_t step) {
    HttpResponseParser parser(false, kLimits);
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        parser.feed(bytes.substr(at, step));
        if (parser.state() == HttpResponseParser::State::complete) break;
    }
    parser.finish();
    REQUIRE(parser.response().body.size() <= kLimits.max_body_bytes);
    if (parser.state() == HttpResponseParser::State::complete) return parser.response().body;
    REQUIRE(parser.state() == HttpResponseParser::State::broken && !parser.what_is_wrong().empty());
    return "broken";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const std::string whole = read_all(bytes, std::max<std::size_t>(size, 1));
    for (const std::size_t step : {1, 7}) REQUIRE(read_all(bytes, step) == whole);
    const std::string answer = read_answer(bytes, std::max<std::size_t>(size, 1));
    REQUIRE(read_answer(bytes, 1) == answer);
    return 0;
}
