#include "io/http_server.h"

#include <gtest/gtest.h>

#include "io/http_client.h"
#include "io/tls.h"

namespace stoker {
namespace {

TEST(HttpServer, First) {
    for (const bool tls : {false, true}) {
        HttpServerOptions options;
        std::string ca;
        if (tls) {
            auto c = make_certificate({"localhost", "127.0.0.1"}, 10);
            ASSERT_TRUE(c.ok()) << c.error().text();
            options.certificate_pem = ca = c->certificate_pem;
            options.key_pem = c->key_pem;
        }
        auto server = HttpServer::start(options, [](HttpRequest request, HttpReply reply) {
            if (request.path == "/stream") {
                auto s = reply.stream({.status = 200, .content_type = "text/plain", .headers = {}, .body = {}});
                for (int i = 0; i < 10; ++i) s->write("piece " + std::to_string(i) + "\n");
                return;
            }
            if (request.path == "/drop") return;
            reply.send({.status = 200,
                        .content_type = "text/plain",
                        .headers = {},
                        .body = request.method + " " + request.path + request.body});
        });
        ASSERT_TRUE(server.ok()) << server.error().text();
        auto client = HttpClient::make(
            {.url = (tls ? "https://localhost:" : "http://localhost:") + std::to_string((*server)->port()),
             .ca_pem = ca});
        ASSERT_TRUE(client.ok());
        for (const char* target : {"/a", "/stream", "/drop", "/b?x=1"}) {
            auto r = (*client)->call({.target = target});
            ASSERT_TRUE(r.ok()) << r.error().text();
            printf("%d %s\n", r->status, r->body.c_str());
        }
        auto r = (*client)->call({.method = "POST", .target = "/p", .headers = {}, .body = std::string(300000, 'x')});
        ASSERT_TRUE(r.ok()) << r.error().text();
        printf("%d %zu\n", r->status, r->body.size());
        EXPECT_EQ((*server)->stats().connections, 1u);
    }
}

}  // namespace
}  // namespace stoker
