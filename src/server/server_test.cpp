#include "server/server.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "io/http/http_client.h"

namespace stoker {
namespace {

using testing::HasSubstr;

class ServerTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "server-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string folder_;
};

TEST(ListenTest, AddressesArePlain) {
    EXPECT_EQ(parse_listen("127.0.0.1:80")->port, 80);
    EXPECT_EQ(parse_listen("[::1]:0")->address, "::1");
    EXPECT_EQ(parse_listen("8042")->address, "127.0.0.1");
    EXPECT_EQ(parse_listen("localhost:1")->address, "127.0.0.1");
    EXPECT_FALSE(parse_listen("0.0.0.0:1")->loopback());
    EXPECT_TRUE(parse_listen("127.8.0.1:1")->loopback());
    for (const char* wrong : {"", "x", "127.0.0.1", "host.example:80", "1.2.3.4:70000", "1.2.3.4:-1", "1.2.3:80", ":x"})
        EXPECT_FALSE(parse_listen(wrong).ok()) << wrong;
}

// The token would cross the network in the clear.
TEST_F(ServerTest, DoesNotListenElsewhereWithoutTls) {
    const auto refused = Server::start({.folder = folder_, .address = "0.0.0.0"});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::denied);
    EXPECT_THAT(refused.error().text(), HasSubstr("--tls auto"));
}

// What stoker up says about bounds reaches the core: a small machine is not filled by what others submit.
TEST_F(ServerTest, KeepsItsBounds) {
    auto server = Server::start({.folder = folder_, .max_queued = 2, .max_ended = 1});
    ASSERT_TRUE(server.ok()) << server.error().text();
    Engine& engine = (*server)->engine();
    RunSpec spec;
    spec.name = "large";
    spec.command = {"true"};
    spec.per_rank.cpu_milli = 100'000'000;  // fits nowhere, so it waits
    std::vector<RunId> runs;
    for (int i = 0; i < 2; ++i) {
        const auto ack = call(engine, {.what = Submit{.spec = spec}});
        ASSERT_TRUE(ack.ok()) << ack.error().text();
        runs.push_back(ack->run);
    }
    const auto third = call(engine, {.what = Submit{.spec = spec}});
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.error().kind(), ErrorKind::exhausted);
    EXPECT_THAT(third.error().text(), HasSubstr("at most 2 may"));
    for (const RunId run : runs) ASSERT_TRUE(call(engine, {.what = CancelRun{run}}).ok());
    ASSERT_TRUE(call(engine, {.what = Submit{.spec = spec}}).ok());  // its turn forgets what is too much
    ASSERT_TRUE(engine
                    .read([&](const EngineView& view) {
                        EXPECT_EQ(view.state.find(runs[0]), nullptr);
                        EXPECT_NE(view.state.find(runs[1]), nullptr);
                    })
                    .ok());
}

// A command finds the server of its folder, and nothing once the server has gone.
TEST_F(ServerTest, TellsWhereItIsWhileItIs) {
    EXPECT_EQ(server_of(folder_).error().kind(), ErrorKind::not_found);
    {
        auto server = Server::start({.folder = folder_});
        ASSERT_TRUE(server.ok()) << server.error().text();
        const auto address = server_of(folder_);
        ASSERT_TRUE(address.ok()) << address.error().text();
        EXPECT_EQ(address->url, (*server)->url());
        EXPECT_EQ(address->token.size(), 64u);
        struct stat status {};
        ASSERT_EQ(::stat((folder_ + "/token").c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0600u) << "others could read the token";
        auto client = HttpClient::make({.url = address->url});
        ASSERT_TRUE(client.ok());
        EXPECT_EQ((*client)->call({.target = "/healthz"})->status, 200);
        EXPECT_EQ((*client)->call({.target = "/api/v1/runs"})->status, 401);
        HttpCall call{.target = "/api/v1/runs"};
        call.headers.add("Authorization", "Bearer " + address->token);
        EXPECT_EQ((*client)->call(call)->status, 200);

        const auto second = Server::start({.folder = folder_});
        ASSERT_FALSE(second.ok()) << "two servers would start everything twice";
        EXPECT_EQ(second.error().kind(), ErrorKind::conflict);
    }
    EXPECT_EQ(server_of(folder_).error().kind(), ErrorKind::not_found);
}

// The same certificate after a restart, or every client would have to be told anew whom to trust.
TEST_F(ServerTest, KeepsItsCertificate) {
    const auto first = own_certificate(folder_, "127.0.0.1");
    ASSERT_TRUE(first.ok()) << first.error().text();
    EXPECT_EQ(own_certificate(folder_, "127.0.0.1")->certificate_pem, first->certificate_pem);
    std::ofstream(folder_ + "/tls/cert.pem") << "damaged";
    EXPECT_TRUE(own_certificate(folder_, "127.0.0.1").ok());
}

// A name that is asked for later is served too.
TEST_F(ServerTest, ItsCertificateHasTheNamesItIsCalledBy) {
    const auto first = own_certificate(folder_, "127.0.0.1");
    ASSERT_TRUE(first.ok());
    const auto named = own_certificate(folder_, "127.0.0.1", {"stoker.example.org"});
    ASSERT_TRUE(named.ok()) << named.error().text();
    EXPECT_THAT(names_of_certificate(named->certificate_pem), testing::Contains("stoker.example.org"));
    EXPECT_EQ(own_certificate(folder_, "127.0.0.1", {"stoker.example.org"})->certificate_pem, named->certificate_pem);
}

// A browser that was made to resolve a stranger's name to us is refused; the names we go by are not.
TEST_F(ServerTest, AnswersToItsNamesAndTellsWhatItIs) {
    const auto certificate = own_certificate(folder_, "127.0.0.1", {"stoker.example.org", "*.cluster.example"});
    ASSERT_TRUE(certificate.ok()) << certificate.error().text();
    auto server = Server::start(
        {.folder = folder_, .certificate = *certificate, .embedded = true, .host_names = {"other.example"}});
    ASSERT_TRUE(server.ok()) << server.error().text();
    struct Sink final : HttpSink {
        std::promise<HttpResponse> promise;
        void send(HttpResponse response) override { promise.set_value(std::move(response)); }
        std::shared_ptr<HttpStream> stream(HttpResponse) override { return nullptr; }
    };
    const auto as = [&](const std::string& host, const std::string& path) {
        HttpRequest request;
        request.method = "GET";
        request.target = request.path = path;
        request.headers.add("Host", host);
        request.headers.add("Authorization", "Bearer " + (*server)->token());
        auto sink = std::make_shared<Sink>();
        auto answer = sink->promise.get_future();
        (*server)->api().handle(std::move(request), HttpReply(sink));
        return answer.get();
    };
    for (const char* ours : {"stoker.example.org", "a.cluster.example:8443", "other.example", "localhost"})
        EXPECT_EQ(as(ours, "/healthz").status, 200) << ours;
    for (const char* strange : {"evil.example", "cluster.example", "a.b.cluster.example", ".cluster.example"})
        EXPECT_EQ(as(strange, "/healthz").status, 421) << strange;
    EXPECT_THAT(as("localhost", "/api/v1/version").body, HasSubstr("\"embedded\":true"));
    EXPECT_THAT(as("localhost", "/metrics").body, HasSubstr("\nstoker_http_requests_total "));
}

TEST_F(ServerTest, ADamagedTokenIsToldAndNotReplaced) {
    std::ofstream(folder_ + "/token") << "short";
    const auto refused = Server::start({.folder = folder_});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().text(), HasSubstr("token"));
    std::ofstream(folder_ + "/token") << std::string(64, '\xff');
    EXPECT_EQ(Server::start({.folder = folder_}).error().kind(), ErrorKind::invalid);
    std::ofstream(folder_ + "/token") << std::string(64, 'a');
    ASSERT_EQ(::chmod((folder_ + "/token").c_str(), 0644), 0);
    const auto open = Server::start({.folder = folder_});
    ASSERT_FALSE(open.ok()) << "every user of this machine could have it";
    EXPECT_THAT(open.error().text(), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace stoker
