// Keys of stored secrets that change while a server runs, in a file and in a vault.
#include "server/seal_keys.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/http/http_server.h"
#include "io/seal.h"
#include "run/spec/secrets.h"

namespace stoker {
namespace {

using testing::HasSubstr;

const std::string kFirst(64, '1'), kSecond(64, '2');
constexpr const char* kCanary = "hf_CANARY_0123";

class SealKeysTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "keys-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override {
        for (const char* name :
             {"STOKER_SECRETS_KEY_FILE", "STOKER_SECRETS_KEY_VAULT", "AZURE_POD_IDENTITY_AUTHORITY_HOST"})
            ::unsetenv(name);
        EXPECT_TRUE(use_seal_keys("").ok());
        std::filesystem::remove_all(folder_);
    }
    std::string store() {
        RunSpec spec;
        spec.name = "run";
        spec.command = {"true"};
        spec.environment["HF_TOKEN"] = kCanary;
        EXPECT_TRUE(store_secrets(folder_, spec).ok());
        return spec.environment.at("HF_TOKEN");
    }
    std::string bytes() const {
        std::string all;
        for (const auto& each : std::filesystem::directory_iterator(folder_ + "/secrets")) {
            // What is being written is not there yet.
            if (each.path().filename() == "key" || each.path().extension() == ".tmp") continue;
            std::ifstream in(each.path(), std::ios::binary);
            all.append(std::istreambuf_iterator<char>(in), {});
        }
        return all;
    }
    // Ten seconds at most.
    bool sealed_with(const std::string& key) const {
        for (int i = 0; i < 2000; ++i) {
            if (is_sealed_with(*read_seal_key(key), bytes())) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }
    std::string folder_;
};

// Whoever takes an old key away after a rotation must not find that the server still needed it.
TEST_F(SealKeysTest, WhatIsStoredFollowsTheFileWithoutARestart) {
    const std::string file = folder_ + "/keys.txt";
    const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
    write(kFirst + "\n");
    ::setenv("STOKER_SECRETS_KEY_FILE", file.c_str(), 1);
    const auto keys = SealKeys::start({.folder = folder_, .file_every_s = 0.01});
    ASSERT_TRUE(keys.ok()) << keys.error().text();
    const std::string stored = store();
    EXPECT_TRUE(sealed_with(kFirst));
    write(kSecond + "\n" + kFirst + "\n");
    EXPECT_TRUE(sealed_with(kSecond));
    write(kSecond + "\n");
    EXPECT_EQ(*read_secret(folder_, stored), kCanary);
    EXPECT_EQ(bytes().find("CANARY"), std::string::npos);
}

// A vault and the metadata service of a machine, as far as they are asked.
struct Azure {
    std::atomic<int> tokens = 0, wrong = 0;
    std::mutex mutex;  // guards what follows
    std::string value = kFirst;
    int status = 200;
    std::unique_ptr<HttpServer> server;

    Azure() {
        auto started = HttpServer::start({}, [this](HttpRequest request, HttpReply reply) {
            HttpResponse answer;
            answer.content_type = "application/json";
            if (request.path == "/metadata/identity/oauth2/token") {
                const bool right = request.headers.find("Metadata").has_value() &&
                                   request.target.find("vault.azure.net") != std::string::npos;
                ++(right ? tokens : wrong);
                answer.body = R"({"access_token":"token-of-the-machine","token_type":"Bearer"})";
            } else if (request.path == "/secrets/stoker") {
                const auto bearer = request.headers.find("Authorization");
                if (!bearer || *bearer != "Bearer token-of-the-machine" ||
                    request.target.find("api-version=") == std::string::npos)
                    ++wrong;
                const std::lock_guard guard(mutex);
                answer.status = status;
                answer.body = R"({"value":")" + replaced(value) + R"(","id":"x"})";
            } else {
                answer.status = 404;
            }
            reply.send(std::move(answer));
        });
        EXPECT_TRUE(started.ok());
        server = std::move(*started);
    }
    static std::string replaced(const std::string& text) {
        std::string out;
        for (const char c : text) out += c == '\n' ? std::string("\\n") : std::string(1, c);
        return out;
    }
    void holds(const std::string& text, int code = 200) {
        const std::lock_guard guard(mutex);
        value = text;
        status = code;
    }
    std::string url() const { return fmt::format("http://127.0.0.1:{}", server->port()); }
};

// No key lies on the machine: it is asked for as the machine, and again, so that another version holds by itself.
TEST_F(SealKeysTest, AVaultIsAskedAsTheMachineAndAskedAgain) {
    Azure azure;
    ::setenv("STOKER_SECRETS_KEY_VAULT", (azure.url() + "/secrets/stoker").c_str(), 1);
    ::setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", azure.url().c_str(), 1);
    const std::string stored = store();
    EXPECT_NE(bytes().find(kCanary), std::string::npos);
    const auto keys = SealKeys::start({.folder = folder_, .vault_every_s = 0.02});
    ASSERT_TRUE(keys.ok()) << keys.error().text();
    EXPECT_TRUE(sealed_with(kFirst));
    azure.holds("", 503);  // away for a while: what is known goes on
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    EXPECT_EQ(*read_secret(folder_, stored), kCanary);
    azure.holds(kSecond + "\n" + kFirst);
    EXPECT_TRUE(sealed_with(kSecond));
    EXPECT_EQ(*read_secret(folder_, stored), kCanary);
    EXPECT_GE(azure.tokens, 2);
    EXPECT_EQ(azure.wrong, 0);
}

// A server that cannot open what it stored says so at its start, and whom to ask for what.
TEST_F(SealKeysTest, AVaultThatRefusesEndsTheStart) {
    Azure azure;
    ::setenv("STOKER_SECRETS_KEY_VAULT", (azure.url() + "/secrets/stoker").c_str(), 1);
    ::setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", azure.url().c_str(), 1);
    azure.holds(kFirst, 403);
    const auto refused = SealKeys::start({.folder = folder_});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::denied);
    EXPECT_THAT(refused.error().text(), HasSubstr("Key Vault Secrets User"));
    EXPECT_EQ(refused.error().text().find(kFirst), std::string::npos);
    azure.holds("nonsense");
    EXPECT_FALSE(SealKeys::start({.folder = folder_}).ok());
    ::setenv("STOKER_SECRETS_KEY_VAULT", "http://vault.example.org/secrets/x", 1);
    EXPECT_THAT(SealKeys::start({.folder = folder_}).error().text(), HasSubstr("no https:// address"));
    ::setenv("STOKER_SECRETS_KEY_FILE", "/etc/keys", 1);
    EXPECT_THAT(SealKeys::start({.folder = folder_}).error().text(), HasSubstr("are both set"));
}

}  // namespace
}  // namespace stoker
