// What leaves the server is framed by the server alone: a handler's header that frames or splits the answer would let
// the next answer be read wrongly.
#include "io/http/http_wire.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(HttpWire, WritesHeads) {
    HttpResponse response{.status = 200, .content_type = "text/plain", .headers = {}, .body = "hello"};
    response.headers.add("ETag", "\"1\"");
    response.headers.add("Content-Length", "99");
    response.headers.add("transfer-encoding", "gzip");
    response.headers.add("Connection", "upgrade");
    const std::string common = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"1\"\r\n";
    EXPECT_EQ(http_response_head(response, HttpFraming::length, true),
              common + "Content-Length: 5\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(http_response_head(response, HttpFraming::chunked, false),
              common + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(http_response_head(response, HttpFraming::until_close, false), common + "Connection: close\r\n\r\n");
    EXPECT_EQ(
        http_response_head({.status = 204, .content_type = {}, .headers = {}, .body = {}}, HttpFraming::length, true),
        "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
}

TEST(HttpWire, RefusesWhatSplitsAHead) {
    const auto with = [](const std::string& name, const std::string& value, int status = 200) {
        HttpResponse response{.status = status, .content_type = "text/plain", .headers = {}, .body = {}};
        response.headers.add(name, value);
        return is_sendable(response);
    };
    EXPECT_TRUE(with("X", "a\tb"));
    EXPECT_FALSE(with("X", "a\r\nb"));
    EXPECT_FALSE(with("X", std::string("a\0b", 3)));
    EXPECT_FALSE(with("X Y", "a"));
    EXPECT_FALSE(with("X:", "a"));
    EXPECT_FALSE(with("", "a"));
    EXPECT_FALSE(with("X", "a", 100));
    EXPECT_FALSE(with("X", "a", 1000));
    EXPECT_FALSE(is_sendable({.status = 200, .content_type = "a\nb", .headers = {}, .body = {}}));
}

TEST(HttpWire, WritesProblemsAndChunks) {
    const HttpResponse problem = http_problem(404, "there is no run \"r-1\"\x01\xff");
    EXPECT_EQ(problem.status, 404);
    EXPECT_EQ(problem.content_type, "application/problem+json");
    EXPECT_EQ(problem.body,
              "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":\"there is no run "
              "\\\"r-1\\\"??\"}\n");
    EXPECT_EQ(http_status_text(599), "Status");
    std::string out;
    append_http_chunk(out, "");
    append_http_chunk(out, std::string(26, 'x'));
    EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace stoker
