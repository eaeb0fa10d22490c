// Commands talk to a server through this client: what it takes for an answer, what it says when there is none, and
// whether it sends a submission twice, is what a user of the command line sees.
#include "io/http/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "io/http/client_connection.h"
#include "io/http/http_server.h"
#include "io/http/tls.h"
#include "io/process.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

// Says what it was told to say to each connection in turn, after a head has come, and closes; or says nothing.
class Puppet {
public:
    struct Scene {
        std::vector<std::string> answers;  // one for each request of the connection
        bool stays_silent = false;         // keeps the connection open at the end
    };
    explicit Puppet(std::vector<Scene> scenes) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener_.get(), raw, size) != 0 || ::listen(listener_.get(), 16) != 0) std::abort();
        ::getsockname(listener_.get(), raw, &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this, scenes = std::move(scenes)] {
            for (const Scene& scene : scenes)
                if (!play(scene)) return;
        });
    }
    ~Puppet() {
        ended_ = true;
        ::shutdown(listener_.get(), SHUT_RDWR);
        thread_.join();
    }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    int requests() const { return requests_; }
    int connections() const { return connections_; }

private:
    bool play(const Scene& scene) {
        const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer) return false;
        ++connections_;
        for (const std::string& answer : scene.answers) {
            std::string seen;
            while (seen.find("\r\n\r\n") == std::string::npos) {
                char buffer[4096];
                const ssize_t size = wait(peer) ? ::recv(peer.get(), buffer, sizeof buffer, 0) : 0;
                if (size <= 0) return !ended_;
                seen.append(buffer, static_cast<std::size_t>(size));
            }
            ++requests_;
            if (::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return true;
        }
        while (scene.stays_silent && !ended_) ::poll(nullptr, 0, 5);
        return true;
    }
    bool wait(const UniqueFd& peer) const {
        pollfd one{.fd = peer.get(), .events = POLLIN, .revents = 0};
        while (!ended_)
            if (::poll(&one, 1, 5) > 0) return true;
        return false;
    }

    UniqueFd listener_;
    std::uint16_t port_ = 0;
    std::atomic<bool> ended_{false};
    std::atomic<int> requests_{0}, connections_{0};
    std::thread thread_;
};

std::unique_ptr<HttpClient> client_of(const std::string& url, const std::string& ca = "") {
    auto client = HttpClient::make({.url = url, .ca_pem = ca});
    EXPECT_TRUE(client.ok()) << client.error().text();
    return std::move(client).value();
}

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Anything but a whole answer is unavailable, with what was wrong; never an empty or a shortened answer.
TEST(HttpClient, BrokenAnswersAreTold) {
    const std::vector<std::pair<std::string, std::string>> table = {
        {"", "closed before an answer"},
        {"HTTP/1.1 200 OK\r\nContent-Le", "before the end of the head"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", "before the end of the body"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "before the end of the body"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "cannot be read"},
        {"SSH-2.0-OpenSSH\r\n", "cannot be read"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(20'000, 'x'), "longer than 10000 bytes"},
        {"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", "head is longer"},
    };
    for (const auto& [bytes, words] : table) {
        Puppet puppet({{.answers = {bytes}}});
        const auto answer = client_of(puppet.url())->call({.target = "/", .max_body_bytes = 10'000});
        ASSERT_FALSE(answer.ok()) << bytes;
        EXPECT_EQ(answer.error().kind(), ErrorKind::unavailable) << answer.error().text();
        EXPECT_NE(answer.error().message().find(words), std::string::npos) << answer.error().text();
        EXPECT_NE(answer.error().text().find("calling GET " + puppet.url() + "/"), std::string::npos);
    }
}

// A connection that was closed meanwhile is opened again, once, and a submission without a key is not sent twice.
TEST(HttpClient, SendsAgainOnlyWhatMayBeSentTwice) {
    {
        Puppet puppet({{.answers = {kOk}}, {.answers = {kOk}}});
        const auto client = client_of(puppet.url());
        for (int i = 0; i < 2; ++i) {
            const auto answer = client->call({.method = "GET"});
            ASSERT_TRUE(answer.ok()) << answer.error().text();
            EXPECT_EQ(answer->body, "ok");
        }
        EXPECT_EQ(puppet.connections(), 2);
    }
    // It takes the second request, and closes without an answer.
    for (const auto& [call, attempts] : std::vector<std::pair<HttpCall, int>>{
             {{.method = "GET"}, 3},
             {{.method = "PUT"}, 3},
             {{.method = "POST"}, 2},
             {{.method = "POST", .headers = {.items = {{"Idempotency-Key", "k"}}}}, 3}}) {
        Puppet puppet({{.answers = {kOk, ""}}, {.answers = {""}}, {.answers = {kOk}}});
        const auto client = client_of(puppet.url());
        ASSERT_TRUE(client->call({.target = "/"}).ok());
        const auto answer = client->call(call);
        EXPECT_FALSE(answer.ok());
        EXPECT_EQ(puppet.requests(), attempts) << call.method;
    }
}

// Every wait has an end.
TEST(HttpClient, TimesOut) {
    for (const std::string& answer : {std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na")}) {
        Puppet puppet({{.answers = {answer}, .stays_silent = true}});
        const auto began = Clock::now();
        const auto result = client_of(puppet.url())->call({.timeout_s = 0.1});
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().kind(), ErrorKind::timed_out) << result.error().text();
        EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
    }
    // A server that takes no bytes: the request is larger than what the kernels hold.
    Puppet puppet({{.answers = {}, .stays_silent = true}});
    const auto result =
        client_of(puppet.url())->call({.method = "PUT", .body = std::string(64 << 20, 'x'), .timeout_s = 0.1});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind(), ErrorKind::timed_out) << result.error().text();
}

TEST(HttpClient, NobodyThere) {
    std::string url;
    {
        Puppet gone({});
        url = gone.url();
    }
    const auto refused = client_of(url)->call({});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::unavailable);
    EXPECT_NE(refused.error().message().find("refused"), std::string::npos) << refused.error().text();
    const auto nameless = client_of("http://no-such-host.invalid")->call({});
    ASSERT_FALSE(nameless.ok());
    EXPECT_EQ(nameless.error().kind(), ErrorKind::unavailable);
}

// An answer that comes before the body is sent is an answer (a 413, a 401), not a broken connection.
TEST(HttpClient, TakesAnEarlyAnswer) {
    const HttpHandler handler = [](HttpRequest, HttpReply reply) { reply.send({}); };
    const auto certificate = make_certificate({"127.0.0.1"}, 1);
    for (const bool tls : {false, true}) {
        HttpServerOptions options{.max_body_bytes = 1000};
        if (tls) options.certificate_pem = certificate->certificate_pem, options.key_pem = certificate->key_pem;
        const auto server = HttpServer::start(options, handler);
        const auto client =
            client_of((tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string((*server)->port()),
                      certificate->certificate_pem);
        for (int i = 0; i < 2; ++i) {
            const auto answer = client->call({.method = "PUT", .body = std::string(8 << 20, 'x')});
            ASSERT_TRUE(answer.ok()) << answer.error().text();
            EXPECT_EQ(answer->status, 413);
        }
    }
}

// Pieces are handed over as they come; errors come whole, and who has enough may say so.
TEST(HttpClient, Streams) {
    const auto server = HttpServer::start({}, [](HttpRequest request, HttpReply reply) {
        if (request.path == "/no")
            return reply.send({.status = 404, .content_type = "text/plain", .headers = {}, .body = "no"});
        const auto stream = reply.stream({.status = 200, .content_type = "text/plain", .headers = {}, .body = {}});
        for (int i = 0; i < 1000; ++i) stream->write(std::to_string(i) + "\n");
    });
    const auto client = client_of("http://localhost:" + std::to_string((*server)->port()));
    std::string seen, expected;
    for (int i = 0; i < 1000; ++i) expected += std::to_string(i) + "\n";
    HttpCall call{.target = "/yes", .on_piece = [&](std::string_view piece) {
                      seen += piece;
                      return true;
                  }};
    auto answer = client->call(call);
    ASSERT_TRUE(answer.ok()) << answer.error().text();
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(answer->body, "");
    seen.clear();
    call.target = "/no";
    answer = client->call(call);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->body, "no");
    EXPECT_EQ(seen, "");
    EXPECT_EQ((*server)->stats().connections, 1u);
    call.target = "/yes";
    call.on_piece = [&](std::string_view) { return false; };
    answer = client->call(call);
    ASSERT_TRUE(answer.ok()) << answer.error().text();
    EXPECT_EQ(answer->status, 200);
    call.on_piece = nullptr;
    EXPECT_EQ(client->call(call)->body, expected);
}

// Only the server that was meant is spoken to.
TEST(HttpClient, ChecksTheCertificate) {
    const auto good = make_certificate({"localhost", "127.0.0.1"}, 10);
    const auto other = make_certificate({"localhost", "127.0.0.1"}, 10);
    const auto named = make_certificate({"example.com"}, 10);
    const HttpHandler handler = [](HttpRequest request, HttpReply reply) {
        reply.send({.status = 200, .content_type = {}, .headers = {}, .body = request.secure ? "secure" : "plain"});
    };
    const auto server =
        HttpServer::start({.certificate_pem = good->certificate_pem, .key_pem = good->key_pem}, handler);
    const auto wrong =
        HttpServer::start({.certificate_pem = named->certificate_pem, .key_pem = named->key_pem}, handler);
    ASSERT_TRUE(server.ok() && wrong.ok());
    const auto call = [](const std::string& host, std::uint16_t port, const std::string& ca) {
        return client_of("https://" + host + ":" + std::to_string(port), ca)->call({});
    };
    for (const std::string host : {"localhost", "127.0.0.1"}) {
        const auto answer = call(host, (*server)->port(), good->certificate_pem);
        ASSERT_TRUE(answer.ok()) << answer.error().text();
        EXPECT_EQ(answer->body, "secure");
        for (const std::string& ca : {other->certificate_pem, std::string()}) {
            const auto untrusted = call(host, (*server)->port(), ca);
            ASSERT_FALSE(untrusted.ok());
            EXPECT_EQ(untrusted.error().kind(), ErrorKind::denied) << untrusted.error().text();
        }
        const auto misnamed = call(host, (*wrong)->port(), named->certificate_pem);
        ASSERT_FALSE(misnamed.ok());
        EXPECT_EQ(misnamed.error().kind(), ErrorKind::denied) << misnamed.error().text();
    }
    const auto plain = HttpServer::start({}, handler);
    const auto confused = call("localhost", (*plain)->port(), good->certificate_pem);
    ASSERT_FALSE(confused.ok());
    EXPECT_EQ(confused.error().kind(), ErrorKind::unavailable) << confused.error().text();
}

// A connection of TLS is kept, too, although the server sends session tickets on it.
TEST(HttpClient, KeepsTlsConnections) {
    const auto certificate = make_certificate({"localhost"}, 10);
    const auto server =
        HttpServer::start({.certificate_pem = certificate->certificate_pem, .key_pem = certificate->key_pem},
                          [](HttpRequest, HttpReply reply) { reply.send({.body = std::string(300'000, 'x')}); });
    const auto client =
        client_of("https://localhost:" + std::to_string((*server)->port()), certificate->certificate_pem);
    for (int i = 0; i < 5; ++i) {
        const auto answer = client->call({.method = "POST", .body = std::string(200'000, 'y')});
        ASSERT_TRUE(answer.ok()) << answer.error().text();
        EXPECT_EQ(answer->body.size(), 300'000u);
    }
    EXPECT_EQ((*server)->stats().connections, 1u);
}

TEST(HttpClient, RefusesWhatCannotBeSent) {
    for (const char* url : {"", "localhost:80", "ftp://a", "http://", "http://a/b", "http://a?x", "http://u@a",
                            "http://a:", "http://a:0", "http://a:70000", "http://a:8x", "http://[::1", "http://[a]",
                            "http://[::1]x", "http://a b", "http://a\r\nX:"}) {
        const auto client = HttpClient::make({.url = url, .ca_pem = {}});
        ASSERT_FALSE(client.ok()) << url;
        EXPECT_EQ(client.error().kind(), ErrorKind::invalid);
    }
    EXPECT_EQ(http::read_server_url("HTTPS://[::1]:8042/")->authority, "[::1]:8042");
    EXPECT_EQ(http::read_server_url("https://Host")->port, 443);
    EXPECT_EQ(http::read_server_url("http://host")->authority, "host");
    EXPECT_FALSE(HttpClient::make({.url = "https://a", .ca_pem = "nonsense"}).ok());
    const auto client = client_of("http://localhost:1");
    for (const HttpCall& call : {HttpCall{.method = "GET /"}, HttpCall{.target = "a"}, HttpCall{.target = "/a b"},
                                 HttpCall{.target = "/\r\nX: y"}, HttpCall{.headers = {.items = {{"X", "a\r\nY: b"}}}},
                                 HttpCall{.headers = {.items = {{"X Y", "a"}}}}}) {
        const auto answer = client->call(call);
        ASSERT_FALSE(answer.ok());
        EXPECT_EQ(answer.error().kind(), ErrorKind::invalid) << answer.error().text();
    }
}

}  // namespace
}  // namespace stoker
