// A client that is rude, or one too many, must cost the others nothing: everybody who calls the server is hurt when
// these break.
#include "io/http/http_server.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "io/http/http_client.h"
#include "io/http/http_test_wire.h"
#include "io/http/tls.h"

namespace stoker {
namespace {

using namespace http_test;

// Requests sent at once are answered one after the other, in order, whatever the cuts between the packets.
TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
    const auto server = serve(echo);
    std::string all;
    for (int i = 0; i < 50; ++i) all += request_for("/" + std::to_string(i) + "x");
    all += "POST /last HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + kClose + "\r\n3\r\nabc\r\n0\r\n\r\n";
    for (const std::size_t step : {std::size_t{13}, all.size()}) {
        Wire wire(server->port());
        for (std::size_t at = 0; at < all.size(); at += step)
            ASSERT_TRUE(wire.send(std::string_view(all).substr(at, step)));
        const std::string answers = wire.read_until();
        std::size_t at = 0;
        for (int i = 0; i < 50; ++i) {
            at = answers.find("GET /" + std::to_string(i) + "x", at);
            ASSERT_NE(at, std::string::npos) << i;
        }
        EXPECT_NE(answers.find("POST /last abc", at), std::string::npos);
        EXPECT_EQ(count_of(answers, "HTTP/1.1 200 OK"), 51);
    }
    EXPECT_EQ(server->stats().requests, 102u);
    EXPECT_TRUE(eventually([&] { return server->stats().open == 0; }));
}

// HEAD has the headers of GET and no body; 204 has neither body nor length; HTTP/1.0 closes unless asked not to.
TEST(HttpServer, FramesAnswersAsTheRequestWants) {
    const auto server = serve([](HttpRequest request, HttpReply reply) {
        if (request.path == "/empty") return reply.send({.status = 204, .content_type = {}, .headers = {}, .body = {}});
        echo(std::move(request), std::move(reply));
    });
    Wire head(server->port());
    head.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n" + request_for("/empty") + request_for("/end", kClose));
    const std::string answers = head.read_until();
    EXPECT_NE(answers.find("Content-Length: 8\r\n"), std::string::npos) << answers;
    EXPECT_EQ(answers.find("HEAD /a "), std::string::npos) << answers;
    const std::string empty = answers.substr(answers.find("HTTP/1.1 204"));
    EXPECT_EQ(empty.substr(0, empty.find("\r\n\r\n")).find("Content-Length"), std::string::npos) << empty;
    EXPECT_NE(answers.find("Connection: close\r\n"), std::string::npos) << answers;

    Wire old(server->port());
    old.send("GET /a HTTP/1.0\r\n\r\n");
    EXPECT_NE(old.read_until().find("GET /a"), std::string::npos);
    Wire kept(server->port());
    kept.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_NE(kept.read_until("GET /a").find("Connection: keep-alive"), std::string::npos);
    kept.send("GET /b HTTP/1.0\r\n\r\n");
    EXPECT_NE(kept.read_until().find("GET /b"), std::string::npos);
    // Half closed: a client may say that it sends no more and still gets its answer.
    Wire half(server->port());
    half.send(request_for("/half"));
    half.end_sending();
    EXPECT_NE(half.read_until().find("GET /half"), std::string::npos);
}

// A client that asks before it sends its body is told to go on, or is refused before it has sent anything.
TEST(HttpServer, AnswersExpectContinue) {
    const auto server = serve(echo);
    Wire wire(server->port());
    wire.send("PUT /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    EXPECT_EQ(wire.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    wire.send("hello");
    EXPECT_NE(wire.read_until("hello").find("PUT /a hello"), std::string::npos);
    Wire large(server->port());
    large.send("PUT /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n");
    EXPECT_EQ(large.read_until().find("HTTP/1.1 413 "), 0u);
}

// What is refused is told as a problem, also to a client that is still sending, and the connection ends.
TEST(HttpServer, RefusesWithAProblem) {
    const auto server = serve(echo);
    for (const auto& [bytes, status] : std::vector<std::pair<std::string, std::string>>{
             {"GET / HTTP/1.1\r\n\r\n", "400"},
             {"GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
             {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "405"},
             {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "501"},
             {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505"},
             {"GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x'), "431"},
             {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n" + std::string(3'000'000, 'x'), "413"}}) {
        Wire wire(server->port());
        wire.send(bytes);
        const std::string answer = wire.read_until();
        EXPECT_EQ(answer.find("HTTP/1.1 " + status + " "), 0u) << answer;
        EXPECT_NE(answer.find("Content-Type: application/problem+json\r\n"), std::string::npos) << answer;
        EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
        EXPECT_NE(answer.find("{\"type\":\"about:blank\",\"title\":"), std::string::npos) << answer;
        EXPECT_NE(answer.find("\"status\":" + status + ","), std::string::npos) << answer;
        EXPECT_EQ(answer.find("Allow: ") != std::string::npos, status == "405") << answer;
    }
    EXPECT_EQ(server->stats().refused, 7u);
    EXPECT_EQ(server->stats().requests, 0u);
}

// Handlers that answer badly cost nobody a connection: no answer and an exception are 500, and no header is smuggled.
TEST(HttpServer, BadHandlersAnswer500) {
    const auto server = serve([](HttpRequest request, HttpReply reply) {
        if (request.path == "/throws") throw std::runtime_error("no");
        HttpResponse response = text_answer("x");
        if (request.path == "/splits") response.headers.add("X", "a\r\nSet-Cookie: b");
        if (request.path == "/odd") response.status = 42;
        if (request.path == "/frames") response.headers.add("Content-Length", "999");
        if (request.path != "/drops") reply.send(std::move(response));
    });
    auto client = HttpClient::make({.url = "http://127.0.0.1:" + std::to_string(server->port()), .ca_pem = {}});
    for (const auto& [target, status] : std::vector<std::pair<std::string, int>>{
             {"/drops", 500}, {"/throws", 500}, {"/splits", 500}, {"/odd", 500}, {"/frames", 200}}) {
        const auto answer = (*client)->call({.target = target});
        ASSERT_TRUE(answer.ok()) << target << answer.error().text();
        EXPECT_EQ(answer->status, status) << target;
        EXPECT_EQ(answer->headers.find("set-cookie"), std::nullopt);
    }
    EXPECT_EQ(server->stats().connections, 1u);
}

TEST(HttpServer, TooManyConnectionsAreTold) {
    std::mutex mutex;
    std::vector<std::function<void()>> owed;
    const auto server = serve(
        [&](HttpRequest request, HttpReply reply) {
            auto shared = std::make_shared<std::pair<HttpRequest, HttpReply>>(std::move(request), std::move(reply));
            const std::lock_guard lock(mutex);
            owed.push_back([shared] { echo(std::move(shared->first), std::move(shared->second)); });
        },
        {.max_connections = 2});
    Wire a(server->port()), b(server->port());
    a.send(request_for("/a"));
    b.send(request_for("/b"));
    while (server->stats().requests < 2) std::this_thread::yield();
    Wire c(server->port());
    const std::string answer = c.read_until();
    EXPECT_EQ(answer.find("HTTP/1.1 503 "), 0u) << answer;
    EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos) << answer;
    {
        const std::lock_guard lock(mutex);
        for (const auto& each : owed) each();
    }
    EXPECT_NE(a.read_until("GET /a").find("GET /a"), std::string::npos);
    EXPECT_NE(b.read_until("GET /b").find("GET /b"), std::string::npos);
}

// A stranger who opens all connections and asks nothing, or never to the end, keeps nobody out.
TEST(HttpServer, ThoseWhoAskNothingMakeRoom) {
    const auto server = serve(echo, {.max_connections = 8});
    std::vector<std::unique_ptr<Wire>> silent;
    for (int i = 0; i < 8; ++i) {
        silent.push_back(std::make_unique<Wire>(server->port()));
        if (i % 2 == 0) silent.back()->send("GET / HTT");
    }
    while (server->stats().open < 8) std::this_thread::yield();
    for (int i = 0; i < 20; ++i) {
        Wire wire(server->port());
        wire.send(request_for("/" + std::to_string(i)));
        EXPECT_NE(wire.read_until("GET /" + std::to_string(i)).find("200 OK"), std::string::npos) << i;
    }
    EXPECT_LE(server->stats().open, 9u);
}

TEST(HttpServer, TooManyRequestsAreTold) {
    const auto server = serve(echo, {.requests_per_second = 0.01, .burst = 3});
    auto client = HttpClient::make({.url = "http://127.0.0.1:" + std::to_string(server->port()), .ca_pem = {}});
    for (int i = 0; i < 5; ++i) {
        const auto answer = (*client)->call({.target = "/"});
        ASSERT_TRUE(answer.ok()) << answer.error().text();
        EXPECT_EQ(answer->status, i < 3 ? 200 : 429);
        // One more comes every 100 s.
        EXPECT_EQ(std::stoi(std::string(answer->headers.find("retry-after").value_or("0"))) > 90, i >= 3);
    }
}

// Answers come from other threads than the loop's, many at a time, and each reaches whom it is for.
TEST(HttpServer, ManyThreadsAnswer) {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<HttpRequest, HttpReply>> queue;
    bool ended = false;
    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i)
        workers.emplace_back([&] {
            while (true) {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return ended || !queue.empty(); });
                if (queue.empty()) return;
                auto [request, reply] = std::move(queue.front());
                queue.pop_front();
                lock.unlock();
                echo(std::move(request), std::move(reply));
            }
        });
    const auto server = serve([&](HttpRequest request, HttpReply reply) {
        const std::lock_guard lock(mutex);
        queue.emplace_back(std::move(request), std::move(reply));
        changed.notify_one();
    });
    std::atomic<int> right{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 16; ++c)
        callers.emplace_back([&, c] {
            auto client = HttpClient::make({.url = "http://127.0.0.1:" + std::to_string(server->port()), .ca_pem = {}});
            for (int i = 0; i < 100; ++i) {
                const std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
                const auto answer = (*client)->call({.target = path});
                if (answer && answer->body == "GET " + path + " ") ++right;
            }
        });
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(right, 1600);
    EXPECT_EQ(server->stats().connections, 16u);
    {
        const std::lock_guard lock(mutex);
        ended = true;
    }
    changed.notify_all();
    for (auto& worker : workers) worker.join();
}

TEST(HttpServer, SaysWhyItCannotStart) {
    const auto server = serve(echo);
    const auto again = HttpServer::start({.port = server->port()}, echo);
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().kind(), ErrorKind::unavailable);
    EXPECT_NE(again.error().message().find("is in use by another program"), std::string::npos);
    EXPECT_EQ(HttpServer::start({.address = "localhost"}, echo).error().kind(), ErrorKind::invalid);
    EXPECT_EQ(HttpServer::start({.address = "192.0.2.1"}, echo).error().kind(), ErrorKind::unavailable);
    EXPECT_EQ(HttpServer::start({.certificate_pem = "x", .key_pem = "y"}, echo).error().kind(), ErrorKind::invalid);
    EXPECT_EQ(HttpServer::start({.certificate_pem = "x"}, echo).error().kind(), ErrorKind::invalid);
}

// What plays no TLS on a TLS port is closed; what stalls in the handshake is timed out.
TEST(HttpServer, TlsEndsForThoseWhoDoNotSpeakIt) {
    const auto certificate = make_certificate({"localhost"}, 10);
    ASSERT_TRUE(certificate.ok());
    const auto server = serve(
        echo,
        {.certificate_pem = certificate->certificate_pem, .key_pem = certificate->key_pem, .head_timeout_s = 0.2});
    Wire plain(server->port());
    plain.send(request_for("/"));
    plain.read_until();
    Wire silent(server->port());
    silent.read_until();
    EXPECT_EQ(server->stats().requests, 0u);
    EXPECT_TRUE(eventually([&] { return server->stats().open == 0; }));
}

// curl is a reader that we did not write.
TEST(HttpServer, CurlUnderstandsIt) {
    if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no curl here";
    std::string folder = (std::filesystem::temp_directory_path() / "http_server_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const auto certificate = make_certificate({"localhost", "127.0.0.1", "::1"}, 10);
    ASSERT_TRUE(certificate.ok());
    std::ofstream(folder + "/ca.pem") << certificate->certificate_pem;
    std::ofstream(folder + "/body") << std::string(400'000, 'x');
    const HttpHandler handler = [](HttpRequest request, HttpReply reply) {
        if (request.path != "/stream")
            return reply.send(text_answer(request.method + std::to_string(request.body.size())));
        const auto stream = reply.stream(text_answer(""));
        for (int i = 0; i < 3; ++i) stream->write("piece");
    };
    const auto curl = [&](const std::string& arguments) {
        const std::string command =
            "curl -sS --noproxy '*' -m 20 --cacert " + folder + "/ca.pem " + arguments + " 2>&1";
        FILE* pipe = ::popen(command.c_str(), "r");
        std::string out;
        char buffer[4096];
        while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, size);
        ::pclose(pipe);
        return out;
    };
    for (const bool tls : {false, true}) {
        HttpServerOptions options;
        if (tls) {
            options.certificate_pem = certificate->certificate_pem;
            options.key_pem = certificate->key_pem;
        }
        const auto server = serve(handler, options);
        for (const std::string host : {"localhost", "127.0.0.1"}) {
            const std::string url = (tls ? "https://" : "http://") + host + ":" + std::to_string(server->port());
            EXPECT_EQ(curl(url + "/a " + url + "/b"), "GET0GET0");
            EXPECT_EQ(curl("-T " + folder + "/body -H 'Expect: 100-continue' " + url + "/"), "PUT400000");
            EXPECT_EQ(curl("-T - -H 'Transfer-Encoding: chunked' " + url + "/ <" + folder + "/body"), "PUT400000");
            EXPECT_EQ(curl(url + "/stream"), "piecepiecepiece");
            EXPECT_EQ(curl("-I -o /dev/null -w '%{http_code}' " + url), "200");
            EXPECT_EQ(curl("--http1.0 " + url + "/a"), "GET0");
        }
        if (!tls) continue;
        const std::string old = curl("--tlsv1.0 --tls-max 1.1 https://localhost:" + std::to_string(server->port()));
        EXPECT_NE(old.find("curl: (35)"), std::string::npos) << old;
    }
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stoker
