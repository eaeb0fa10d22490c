// What two readers of HTTP could understand differently reaches no handler: smuggled requests break here.
#include "io/http/http_parser.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using State = HttpRequestParser::State;

// Fed whole, and byte by byte: both must say the same.
int status_of(const std::string& bytes, HttpLimits limits = {}) {
    HttpRequestParser whole(limits), slow(limits);
    whole.feed(bytes);
    for (const char c : bytes) slow.feed({&c, 1});
    EXPECT_EQ(whole.state() == State::refused, slow.state() == State::refused) << bytes;
    EXPECT_EQ(whole.refusal_status(), slow.refusal_status()) << bytes;
    EXPECT_EQ(whole.refusal(), slow.refusal()) << bytes;
    if (whole.state() == State::refused) return whole.refusal_status();
    return whole.state() == State::complete ? 200 : 0;  // 0: waits for more
}

std::string get(const std::string& headers, const std::string& target = "/") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}
std::string chunked(const std::string& body) {
    return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}
std::string zero_byte(std::string text) {
    for (char& c : text)
        if (c == '@') c = '\0';
    return text;
}

struct Hostile {
    const char* what;
    std::string bytes;
    int status;
};

// The golden table. A head that is refused stays refused, with this status.
TEST(HttpParser, RefusesHostileHeads) {
    const Hostile table[] = {
        {"CL and TE", get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400},
        {"TE and CL", get("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400},
        {"two lengths", get("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
        {"two equal lengths", get("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
        {"a list of lengths", get("Content-Length: 5, 5\r\n"), 400},
        {"a signed length", get("Content-Length: +3\r\n"), 400},
        {"a negative length", get("Content-Length: -3\r\n"), 400},
        {"a hexadecimal length", get("Content-Length: 0x10\r\n"), 400},
        {"an empty length", get("Content-Length:\r\n"), 400},
        {"a length beyond 64 bits", get("Content-Length: 99999999999999999999999\r\n"), 400},
        {"a length beyond the bound", get("Content-Length: 99999999\r\n"), 413},
        {"blank before the colon", get("Content-Length : 5\r\n"), 400},
        {"tab before the colon", get("X\t: 5\r\n"), 400},
        {"no name", get(": 5\r\n"), 400},
        {"no colon", get("Nonsense\r\n"), 400},
        {"blank in a name", get("X Y: 5\r\n"), 400},
        {"obs-fold", get("X: a\r\n b\r\n"), 400},
        {"obs-fold with a tab", get("X: a\r\n\tb\r\n"), 400},
        {"blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
        {"bare LF after a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
        {"bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n", 400},
        {"bare CR in a value", get("X: a\rb\r\n"), 400},
        {"CR instead of CRLF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\rX", 400},
        {"zero byte in a value", zero_byte(get("X: a@b\r\n")), 400},
        {"zero byte in the target", zero_byte(get("", "/a@b")), 400},
        {"DEL in a value", get("X: a\x7f\r\n"), 400},
        {"not UTF-8 in a value", get("X: a\xff\r\n"), 400},
        {"two hosts", get("Host: b\r\n"), 400},
        {"no host", "GET / HTTP/1.1\r\nX: a\r\n\r\n", 400},
        {"no headers at all", "GET / HTTP/1.1\r\n\r\n", 400},
        {"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
        {"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        {"host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
        {"TE xchunked", get("Transfer-Encoding: xchunked\r\n"), 400},
        {"TE chunked, identity", get("Transfer-Encoding: chunked, identity\r\n"), 400},
        {"TE gzip, chunked", get("Transfer-Encoding: gzip, chunked\r\n"), 400},
        {"TE identity", get("Transfer-Encoding: identity\r\n"), 400},
        {"TE twice", get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
        {"TE with a vertical tab",
         get("Transfer-Encoding: \x0b"
             "chunked\r\n"),
         400},
        {"TE in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"unknown expectation", get("Expect: tea\r\n"), 417},
        {"absolute form", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"authority form", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"asterisk form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"fragment", get("", "/a#b"), 400},
        {"not ASCII in the target", get("", "/\xc3\xa9"), 400},
        {"half a percent code", get("", "/%4"), 400},
        {"no percent code", get("", "/%zz"), 400},
        {"encoded zero byte", get("", "/%00"), 400},
        {"encoded line feed", get("", "/a%0ab"), 400},
        {"encoded slash", get("", "/a%2fb"), 400},
        {"encoded backslash", get("", "/a%5cb"), 400},
        {"encoded garbage", get("", "/%ff%fe"), 400},
        {"dots", get("", "/a/../b"), 400},
        {"encoded dots", get("", "/a/%2e%2E/b"), 400},
        {"a dot", get("", "/./a"), 400},
        {"two slashes", get("", "//a"), 400},
        {"two slashes inside", get("", "/a//b"), 400},
        {"a zero byte in the query", get("", "/?a=%00"), 400},
        {"garbage in the query", get("", "/?a=%ff"), 400},
        {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
        {"HTTP/0.9", "GET /\r\n\r\n", 400},
        {"version in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
        {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"a tab as blank", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"blank in front", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"unknown method", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"method in lower case", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"RTSP", "GET / RTSP/1.0\r\nHost: a\r\n\r\n", 400},
        {"TLS on a plain port", std::string("\x16\x03\x01\x02", 4), 400},
        {"chunk of no size", chunked("\r\n"), 400},
        {"chunk of a negative size", chunked("-1\r\nx\r\n"), 400},
        {"chunk with 0x", chunked("0x1\r\nx\r\n"), 400},
        {"chunk beyond 64 bits", chunked("fffffffffffffffff\r\n"), 400},
        {"chunk beyond the bound", chunked("ffffffff\r\n" + std::string(2 << 20, 'x')), 413},
        {"chunk ended by LF", chunked("1\nx\n0\n\n"), 400},
        {"chunk longer than told", chunked("1\r\nxy\r\n0\r\n\r\n"), 400},
        {"chunk with a blank after the size", chunked("1 \r\nx\r\n0\r\n\r\n"), 400},
        {"CR instead of CRLF after the chunks", chunked("0\r\n\rX"), 400},
        {"endless chunk extension", chunked("1;" + std::string(40'000, 'a')), 400},
        {"endless trailers", chunked("1\r\nx\r\n0\r\n" + std::string(40'000, 'a')), 400},
        {"endless target", "GET /" + std::string(20'000, 'a'), 431},
        {"endless header", get("X: " + std::string(20'000, 'a')), 431},
        {"endless empty lines",
         [] {
             std::string s;
             for (int i = 0; i < 9000; ++i) s += "\r\n";
             return s;
         }(),
         431},
        {"101 headers",
         [] {
             std::string s;
             for (int i = 0; i < 101; ++i) s += "X: a\r\n";
             return get(s);
         }(),
         431},
    };
    for (const Hostile& one : table) EXPECT_EQ(status_of(one.bytes), one.status) << one.what;
    // Zeros in front of a chunk's size are digits like others, but not without end.
    EXPECT_EQ(status_of(chunked(std::string(40'000, '0')), {.max_body_bytes = 1000}), 400);
}

// What is well-formed passes, and arrives decoded.
TEST(HttpParser, ReadsRequests) {
    HttpRequestParser parser({});
    const std::string text =
        "\r\nPOST /api/v1/runs%20x/?state=a+b&x=%2F%26&flag&=z HTTP/1.1\r\nHost: [::1]:80\r\nX-Empty:\r\nX-Padded: \t "
        "a b "
        "\t\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n";
    const std::size_t used = parser.feed(text);
    ASSERT_EQ(parser.state(), State::complete) << parser.refusal();
    EXPECT_EQ(text.substr(used), "GET / HTTP/1.1\r\n");
    EXPECT_TRUE(parser.keep_alive());
    const HttpRequest request = parser.take();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/api/v1/runs x/");
    EXPECT_EQ(request.target, "/api/v1/runs%20x/?state=a+b&x=%2F%26&flag&=z");
    EXPECT_EQ(request.parameter("state"), "a b");
    EXPECT_EQ(request.parameter("x"), "/&");
    EXPECT_EQ(request.parameter("flag"), "");
    EXPECT_EQ(request.parameter("none"), std::nullopt);
    EXPECT_EQ(request.headers.find("x-empty"), "");
    EXPECT_EQ(request.headers.find("X-PADDED"), "a b");
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(parser.state(), State::head);
    EXPECT_FALSE(parser.begun());
}

// One byte at a time and all at once are the same to the parser; trailers are read over; an upgrade is not taken up.
TEST(HttpParser, ReadsChunksAndPipelines) {
    const std::string text = chunked("3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n") +
                             get("Connection: Upgrade\r\nUpgrade: h2c\r\n", "/two") +
                             get("Connection: close\r\n", "/three") + "GET /four HTTP/1.0\r\n\r\n";
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, text.size()}) {
        HttpRequestParser parser({});
        std::vector<std::string> seen;
        for (std::size_t at = 0; at < text.size();) {
            at += parser.feed(std::string_view(text).substr(at, std::min(step, text.size() - at)));
            ASSERT_NE(parser.state(), State::refused) << parser.refusal();
            if (parser.state() != State::complete) continue;
            const bool keep = parser.keep_alive();
            const HttpRequest request = parser.take();
            seen.push_back(request.path + " " + request.body + (keep ? " keep" : " close"));
            EXPECT_EQ(request.headers.find("trailer"), std::nullopt);
        }
        EXPECT_EQ(seen,
                  (std::vector<std::string>{"/ abc0123456789 keep", "/two  keep", "/three  close", "/four  close"}));
    }
}

TEST(HttpParser, TellsWhoWaitsForContinue) {
    HttpRequestParser parser({});
    parser.feed("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_TRUE(parser.expects_continue());
    parser.feed("x");
    EXPECT_FALSE(parser.expects_continue());
    HttpRequestParser nothing_to_wait_with({});
    nothing_to_wait_with.feed(get("Expect: 100-continue\r\n"));
    EXPECT_EQ(nothing_to_wait_with.state(), State::complete);
    EXPECT_FALSE(nothing_to_wait_with.expects_continue());
}

struct Answer {
    const char* what;
    std::string bytes;
    HttpResponseParser::State state;
    std::string body;
};

// A broken answer is told as broken, never taken for a short one.
TEST(HttpParser, ReadsAnswers) {
    using S = HttpResponseParser::State;
    const std::string ok = "HTTP/1.1 200 OK\r\n";
    const Answer table[] = {
        {"length", ok + "Content-Length: 3\r\n\r\nabc", S::complete, "abc"},
        {"chunks", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", S::complete, "abc"},
        {"until close", ok + "\r\nabc", S::complete, "abc"},
        {"no content", "HTTP/1.1 204 No Content\r\n\r\n", S::complete, ""},
        {"after 100", "HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 1\r\n\r\na", S::complete, "a"},
        {"no reason", "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", S::complete, "a"},
        {"cut length", ok + "Content-Length: 4\r\n\r\nabc", S::broken, ""},
        {"cut chunks", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", S::broken, ""},
        {"cut head", ok + "Content-", S::broken, ""},
        {"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", S::broken, ""},
        {"gzip", ok + "Transfer-Encoding: gzip\r\n\r\nabc", S::broken, ""},
        {"content coding", ok + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", S::broken, ""},
        {"length and chunks", ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", S::broken, ""},
        {"two lengths", ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", S::broken, ""},
        {"too long a body", ok + "Content-Length: 2000\r\n\r\n" + std::string(2000, 'x'), S::broken, ""},
        {"too long a head", ok + "X: " + std::string(20'000, 'x') + "\r\n\r\n", S::broken, ""},
        {"too many headers",
         [&] {
             std::string s = ok;
             for (int i = 0; i < 101; ++i) s += "X: a\r\n";
             return s + "\r\n";
         }(),
         S::broken, ""},
        {"switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", S::broken, ""},
        {"nothing", "", S::broken, ""},
    };
    for (const Answer& one : table) {
        for (const std::size_t step : {std::size_t{1}, std::size_t{100'000}}) {
            HttpResponseParser parser(false, {.max_body_bytes = 1000});
            for (std::size_t at = 0; at < one.bytes.size(); at += step)
                parser.feed(std::string_view(one.bytes).substr(at, step));
            parser.finish();
            EXPECT_EQ(parser.state(), one.state) << one.what << " " << parser.what_is_wrong();
            EXPECT_EQ(parser.state() == S::complete ? parser.response().body : "", one.body) << one.what;
            EXPECT_EQ(parser.what_is_wrong().empty(), parser.state() != S::broken) << one.what;
        }
    }
    HttpResponseParser head(true, {});
    head.feed("HTTP/1.1 200 OK\r\nA:\r\nB: \r\nContent-Length: 1000\r\n\r\n");
    EXPECT_EQ(head.state(), S::complete);
    EXPECT_EQ(head.response().headers.find("a"), "");
    EXPECT_EQ(head.response().headers.find("b"), "");
    EXPECT_TRUE(head.keep_alive());
}

}  // namespace
}  // namespace stoker
