#include "run/spec/secrets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

class SecretsTest : public ::testing::Test {
protected:
    SecretsTest() {
        std::string name = std::filesystem::temp_directory_path() / "stoker-secrets-XXXXXX";
        folder = ::mkdtemp(name.data());
    }
    ~SecretsTest() override { std::filesystem::remove_all(folder); }
    std::string stored(const std::string& variable, const std::string& value) const {
        RunSpec spec;
        spec.environment[variable] = value;
        const Status done = store_secrets(folder, spec);
        return done ? spec.environment[variable] : "refused: " + done.error().text();
    }
    std::string folder;
};

// What a name or a client says is secret leaves the spec, and comes back at the launch.
TEST_F(SecretsTest, ValuesLeaveTheSpec) {
    const std::string canary = "hf_CANARY_0123";
    for (const auto& [variable, value] : std::vector<std::pair<std::string, std::string>>{
             {"HF_TOKEN", canary}, {"AWS_SECRET_ACCESS_KEY", canary}, {"anything", "secret://value/" + canary}}) {
        const std::string reference = stored(variable, value);
        EXPECT_EQ(reference.find(canary), std::string::npos) << reference;
        EXPECT_TRUE(is_secret_reference(reference)) << reference;
        const auto back = read_secret(folder, reference);
        ASSERT_TRUE(back.ok()) << back.error().text();
        EXPECT_EQ(*back, canary);
    }
    // The same value has the same reference, so that a submission that is repeated is the same.
    EXPECT_EQ(stored("HF_TOKEN", canary), stored("HF_TOKEN", canary));
    EXPECT_NE(stored("HF_TOKEN", canary), stored("HF_TOKEN", "another"));
    struct stat status {};
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
        ASSERT_EQ(::stat(each.path().c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 077, 0u) << each.path();
    }
}

// Whoever knows the address of a chat's hook can write there: what stands behind its host leaves the spec, and is found
// again when somebody is told.
TEST_F(SecretsTest, WhatStandsBehindTheHostOfAnAddressLeavesTheSpec) {
    for (const auto& [address, host] : std::vector<std::pair<std::string, std::string>>{
             {"https://hooks.example.com/services/T0/B0/CANARY", "https://hooks.example.com/"},
             {"http://127.0.0.1:8080/?sig=CANARY", "http://127.0.0.1:8080/"},
             {"https://hooks.example.com?sig=CANARY", "https://hooks.example.com/"},
             {"https://anna:CANARY@hooks.example.com", "https://hooks.example.com/"},
             {"https://anna:CANARY@hooks.example.com:444/x", "https://hooks.example.com:444/"}}) {
        RunSpec spec;
        spec.notify = {{address, NotifyOn::any}};
        ASSERT_TRUE(store_secrets(folder, spec).ok());
        const std::string kept = spec.notify->front().to;
        EXPECT_TRUE(kept.starts_with(host + "secret://stored/")) << kept;
        EXPECT_EQ(kept.find("CANARY"), std::string::npos) << kept;
        EXPECT_EQ(read_notify(folder, kept).value(), address);
        // Submitted again, it is the same.
        ASSERT_TRUE(store_secrets(folder, spec).ok());
        EXPECT_EQ(spec.notify->front().to, kept);
        std::set<std::string> needed;
        collect_secrets(spec, needed);
        forget_secrets(folder, needed);
        EXPECT_EQ(read_notify(folder, kept).value(), address);
    }
    for (const char* open :
         {"https://hooks.example.com", "http://hooks.example.com/", "mailto:anna@example.org", "program"}) {
        RunSpec spec;
        spec.notify = {{open, NotifyOn::any}};
        ASSERT_TRUE(store_secrets(folder, spec).ok());
        EXPECT_EQ(spec.notify->front().to, open);
        EXPECT_EQ(read_notify(folder, open).value(), open);
    }
    RunSpec wrong;
    wrong.notify = {{"https://evil.example.com/x/secret://stored/0123456789abcdef", NotifyOn::any}};
    EXPECT_FALSE(store_secrets(folder, wrong).ok());
}

TEST_F(SecretsTest, OtherVariablesStay) {
    for (const char* name : {"TOKENIZERS_PARALLELISM", "MAX_TOKENS", "SEED", "KEYBOARD", "PATH", "SSH_KEYS", "KEY"})
        EXPECT_EQ(stored(name, "7"), "7") << name;
    EXPECT_EQ(stored("HF_TOKEN", ""), "");
}

// Those that name a place of the server are kept as they are, and looked up when they are needed.
TEST_F(SecretsTest, PlacesOfTheServer) {
    EXPECT_EQ(stored("A", "secret://env/STOKER_TEST_SECRET"), "secret://env/STOKER_TEST_SECRET");
    EXPECT_FALSE(read_secret(folder, "secret://env/STOKER_TEST_SECRET_NONE").ok());
    ::setenv("STOKER_TEST_SECRET", "v", 1);
    EXPECT_EQ(*read_secret(folder, "secret://env/STOKER_TEST_SECRET"), "v");
    const std::string file = folder + "-file";
    std::ofstream(file) << "from a file\n";
    EXPECT_EQ(*read_secret(folder, "secret://file/" + file), "from a file");
    EXPECT_EQ(*read_secret(folder, "secret://file" + file), "from a file");  // one slash
    EXPECT_FALSE(read_secret(folder, "secret://file/" + file + "-none").ok());
    std::filesystem::remove(file);
    // Not the server's own, whoever names them.
    std::ofstream(folder + "/token") << "0123";
    EXPECT_EQ(read_secret(folder, "secret://file/" + folder + "/../" + folder.substr(folder.rfind('/') + 1) + "/token")
                  .error()
                  .kind(),
              ErrorKind::denied);
    for (const char* bad : {"secret://", "secret://env/", "secret://vault/x", "secret://stored/../../etc/passwd"})
        EXPECT_NE(stored("A", bad).find("means nothing"), std::string::npos) << bad << ": " << stored("A", bad);
}

TEST_F(SecretsTest, WhatNoRunNeedsIsRemoved) {
    const std::string one = stored("A_TOKEN", "1"), two = stored("A_TOKEN", "2");
    forget_secrets(folder, {two});
    EXPECT_FALSE(read_secret(folder, one).ok());
    EXPECT_EQ(*read_secret(folder, two), "2");
    EXPECT_EQ(stored("A_TOKEN", "1"), one);  // the key is still there
}

// A program that reads a file gets one; the value is found by the same reference, and is not forgotten meanwhile.
TEST_F(SecretsTest, AReferenceCanAskForAFile) {
    const std::string kept = stored("HF_TOKEN", "hf_CANARY_0123");
    RunSpec spec;
    spec.environment = {{"CERT", kept + "#file"}, {"OTHER", "secret://env/HOME#file"}};
    ASSERT_TRUE(store_secrets(folder, spec).ok());
    EXPECT_TRUE(is_secret_file(spec.environment.at("CERT")));
    EXPECT_FALSE(is_secret_file(kept));
    EXPECT_FALSE(is_secret_file("plain#file"));
    EXPECT_EQ(*read_secret(folder, spec.environment.at("CERT")), "hf_CANARY_0123");
    std::set<std::string> needed;
    collect_secrets(spec, needed);
    EXPECT_EQ(needed, std::set<std::string>{kept});
    spec.environment = {{"CERT", "secret://env/#file"}};
    EXPECT_FALSE(store_secrets(folder, spec).ok());
}

// A copy of the folder without the key says nothing; values of before there was a key, and of an older one, go on.
TEST_F(SecretsTest, ValuesAreSealedWhereThereIsAKey) {
    const std::string canary = "hf_CANARY_0123", keys = folder + "/keys.txt";
    const auto bytes = [&] {
        std::string all;
        for (const auto& each : std::filesystem::directory_iterator(folder + "/secrets")) {
            std::ifstream in(each.path(), std::ios::binary);
            all.append(std::istreambuf_iterator<char>(in), {});
        }
        return all;
    };
    const auto use = [&](const std::string& text) {
        std::ofstream(keys) << text;
        ::setenv("STOKER_SECRETS_KEY_FILE", keys.c_str(), 1);
    };
    const std::string first(64, '1'), second(64, '2');
    const std::string open = stored("HF_TOKEN", canary);
    EXPECT_NE(bytes().find(canary), std::string::npos);
    use(first + "\n");
    EXPECT_EQ(*read_secret(folder, open), canary);  // as it lies there
    EXPECT_EQ(*seal_secrets(folder), 1);
    EXPECT_EQ(*seal_secrets(folder), 0);
    const std::string later = stored("OTHER_TOKEN", "hf_CANARY_4567");
    EXPECT_EQ(bytes().find("CANARY"), std::string::npos);
    EXPECT_EQ(*read_secret(folder, open), canary);
    use("# the newest first\n" + second + "\n" + first + "\n");
    EXPECT_EQ(*seal_secrets(folder), 2);
    use(second + "\n");
    EXPECT_EQ(*read_secret(folder, later), "hf_CANARY_4567");
    // Without the right key: said, with the way out, and nothing of the value.
    use(first + "\n");
    const auto lost = read_secret(folder, open);
    ASSERT_FALSE(lost.ok());
    EXPECT_NE(lost.error().text().find("not among those given"), std::string::npos) << lost.error().text();
    EXPECT_FALSE(seal_secrets(folder).ok());
    use("nonsense\n");
    EXPECT_FALSE(seal_secrets(folder).ok());
    ::setenv("STOKER_SECRETS_KEY_FILE", (folder + "/none").c_str(), 1);
    EXPECT_FALSE(seal_secrets(folder).ok());
    ::unsetenv("STOKER_SECRETS_KEY_FILE");
}

}  // namespace
}  // namespace stoker
