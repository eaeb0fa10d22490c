#include "app/server/server.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/http_client.h"

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

TEST_F(ServerTest, ADamagedTokenIsToldAndNotReplaced) {
    std::ofstream(folder_ + "/token") << "short";
    const auto refused = Server::start({.folder = folder_});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().text(), HasSubstr("token"));
}

}  // namespace
}  // namespace stoker
