// Slow and vanished peers, streams and the end of the server: a connection that is not let go keeps its memory for
// ever.
#include "io/http/http_server.h"

#include <atomic>
#include <mutex>

#include "io/http/http_test_wire.h"

namespace stoker {
namespace {

using namespace http_test;

// One byte a second keeps nobody waiting: 408 for a head or body that does not end, an end for an idle connection.
TEST(HttpSession, SlowSendersAreTimedOut) {
    const auto server = serve(echo, {.head_timeout_s = 0.2, .body_timeout_s = 0.2, .idle_timeout_s = 0.3});
    const auto trickle = [&](const std::string& begin) {
        Wire wire(server->port());
        wire.send(begin);
        for (int i = 0; i < 200 && wire.send("x"); ++i) {
            pollfd one{.fd = -1, .events = 0, .revents = 0};
            ::poll(&one, 0, 20);
            if (server->stats().open == 0 || server->stats().refused > 0) break;
        }
        return wire.read_until();
    };
    EXPECT_EQ(trickle("GET /").find("HTTP/1.1 408 "), 0u);
    const auto again = serve(echo, {.head_timeout_s = 5, .body_timeout_s = 0.2, .idle_timeout_s = 0.3});
    Wire body(again->port());
    body.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx");
    EXPECT_EQ(body.read_until().find("HTTP/1.1 408 "), 0u);
    Wire idle(again->port());
    EXPECT_EQ(idle.read_until(), "");
    Wire used(again->port());
    used.send(request_for("/a"));
    EXPECT_EQ(count_of(used.read_until(), "HTTP/1.1"), 1);
    EXPECT_TRUE(eventually([&] { return again->stats().open == 0; }));
}

// Somebody who asks for much and reads nothing is cut off.
TEST(HttpSession, SlowReadersAreCutOff) {
    const auto server = serve([](HttpRequest, HttpReply reply) { reply.send(text_answer(std::string(64 << 20, 'x'))); },
                              {.write_timeout_s = 0.2});
    Wire wire(server->port(), 4096);
    wire.send(request_for("/"));
    EXPECT_TRUE(eventually([&] { return server->stats().requests == 1 && server->stats().open == 0; }));
    EXPECT_LT(server->stats().bytes_out, 64u << 20);
}

// Keeps the ends of streams that a handler began, for a test to write to.
struct Streams {
    std::mutex mutex;
    std::vector<std::shared_ptr<HttpStream>> open;
    HttpHandler handler() {
        return [this](HttpRequest, HttpReply reply) {
            const std::lock_guard lock(mutex);
            open.push_back(reply.stream(text_answer("")));
        };
    }
    std::shared_ptr<HttpStream> next() {
        std::shared_ptr<HttpStream> stream;
        EXPECT_TRUE(eventually([&] {
            const std::lock_guard lock(mutex);
            if (open.empty()) return false;
            stream = open.back();
            open.pop_back();
            return true;
        }));
        return stream;
    }
};

// Pieces come as they are written, from another thread, and the connection goes on after the end.
TEST(HttpSession, StreamsInPieces) {
    Streams streams;
    const auto server = serve(streams.handler());
    Wire wire(server->port());
    for (int round = 0; round < 2; ++round) {
        wire.forget();
        wire.send(request_for("/"));
        EXPECT_NE(wire.read_until("\r\n\r\n").find("Transfer-Encoding: chunked"), std::string::npos);
        const auto stream = streams.next();
        EXPECT_TRUE(stream->open());
        EXPECT_TRUE(stream->write("first"));
        wire.read_until("5\r\nfirst\r\n");
        for (int i = 0; i < 1000; ++i) EXPECT_TRUE(stream->write("more"));
        EXPECT_TRUE(stream->write(""));
        stream->close();
        EXPECT_FALSE(stream->write("late"));
        EXPECT_EQ(count_of(wire.read_until("\r\n0\r\n\r\n"), "4\r\nmore\r\n"), 1000);
    }
    EXPECT_EQ(server->stats().connections, 1u);
    Wire old(server->port());
    old.send("GET / HTTP/1.0\r\n\r\n");
    auto stream = streams.next();
    stream->write("plain");
    stream->write("ly");
    stream.reset();  // the last owner lets go
    const std::string answer = old.read_until();
    EXPECT_TRUE(answer.ends_with("\r\n\r\nplainly")) << answer;
    Wire head(server->port());
    head.send("HEAD / HTTP/1.1\r\nHost: a\r\n" + kClose + "\r\n");
    EXPECT_TRUE(head.read_until().ends_with("\r\n\r\n"));
    EXPECT_FALSE(streams.next()->open());
    EXPECT_TRUE(eventually([&] { return server->stats().streams == 0; }));
}

// A reader that stops reading holds no more than the bound, and one that left is seen without a write.
TEST(HttpSession, StreamsEndWithTheirReader) {
    Streams streams;
    const auto server = serve(streams.handler(), {.max_waiting_bytes = 100'000});
    Wire slow(server->port(), 4096);
    slow.send(request_for("/"));
    const auto stream = streams.next();
    std::size_t written = 0;
    while (stream->write(std::string(1000, 'x')) && written < (64 << 20)) written += 1000;
    EXPECT_LT(written, 64u << 20);
    EXPECT_FALSE(stream->open());
    EXPECT_TRUE(eventually([&] { return server->stats().open == 0; }));
    auto left = std::make_unique<Wire>(server->port());
    left->send(request_for("/"));
    const auto second = streams.next();
    left->read_until("\r\n\r\n");
    EXPECT_TRUE(second->open());
    left.reset();
    EXPECT_TRUE(eventually([&] { return !second->open(); }));
    EXPECT_FALSE(second->write("x"));
}

// A stop lets the open request end, cuts streams so that their readers see it, and takes no new connection.
TEST(HttpSession, StopLetsOpenRequestsEnd) {
    std::mutex mutex;
    std::vector<HttpReply> owed;
    std::shared_ptr<HttpStream> stream;
    const auto server = serve([&](HttpRequest request, HttpReply reply) {
        const std::lock_guard lock(mutex);
        if (request.path == "/stream") {
            stream = reply.stream(text_answer(""));
            return;
        }
        owed.push_back(std::move(reply));
    });
    Wire open(server->port()), streaming(server->port()), idle(server->port());
    idle.send("");
    open.send(request_for("/open"));
    streaming.send(request_for("/stream"));
    streaming.read_until("\r\n\r\n");
    ASSERT_TRUE(eventually([&] {
        const std::lock_guard lock(mutex);
        return owed.size() == 1 && stream != nullptr;
    }));
    EXPECT_TRUE(stream->write("tail"));
    std::thread stopper([&] { server->stop(Clock::now() + kPatience); });
    EXPECT_TRUE(streaming.read_until().ends_with("tail\r\n"));  // without the last chunk: it was cut
    EXPECT_FALSE(stream->write("x"));
    idle.read_until();
    {
        const std::lock_guard lock(mutex);
        owed.front().send(text_answer("in time"));
    }
    const std::string answer = open.read_until();
    EXPECT_NE(answer.find("in time"), std::string::npos);
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
    stopper.join();
    EXPECT_EQ(server->stats().open, 0u);
    EXPECT_FALSE(Wire(server->port()).connected());
}

// What is owed after the deadline is dropped; replies and streams may outlive the server.
TEST(HttpSession, EndsWithWorkUndone) {
    std::vector<HttpReply> owed;
    std::shared_ptr<HttpStream> stream;
    std::atomic<int> seen{0};
    {
        const auto server = serve([&](HttpRequest request, HttpReply reply) {
            if (request.path == "/stream") {
                stream = reply.stream(text_answer(""));
            } else {
                owed.push_back(std::move(reply));
            }
            ++seen;
        });
        Wire open(server->port()), streaming(server->port()), half(server->port());
        open.send(request_for("/"));
        streaming.send(request_for("/stream"));
        half.send("GET / HT");
        ASSERT_TRUE(eventually([&] { return seen == 2 && server->stats().open == 3; }));
        server->stop(Clock::now() + std::chrono::milliseconds(50));
        open.read_until();
        EXPECT_TRUE(open.closed());
    }
    EXPECT_FALSE(stream->open());
    EXPECT_FALSE(stream->write("x"));
    stream->close();
    owed.clear();
}

}  // namespace
}  // namespace stoker
