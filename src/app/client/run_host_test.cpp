#include "app/client/run_host.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "app/client/typed.h"
#include "server/views.h"

namespace stoker {
namespace {

class RunHostTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "host-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        args_.add("folder", folder_);
        session_.quiet = true;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string folder_;
    Session session_;
    Args args_;
};

// Without a server `stoker run` is one, for as long as it takes; a second one finds it.
TEST_F(RunHostTest, IsTheServerWhereThereIsNone) {
    auto host = RunHost::open(session_, args_);
    ASSERT_TRUE(host.ok()) << host.error().text();
    EXPECT_TRUE((*host)->embedded());
    const auto version = get<api::VersionView>((*host)->client(), "/api/v1/version");
    ASSERT_TRUE(version.ok()) << version.error().text();
    EXPECT_TRUE(version->embedded);
    auto second = RunHost::open(session_, args_);
    ASSERT_TRUE(second.ok()) << second.error().text();
    EXPECT_FALSE((*second)->embedded());
    (*host)->close();
    host->reset();
    // The first has gone: the second takes over.
    const auto again = (*second)->again();
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_TRUE((*second)->embedded());
    (*second)->close();
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/server.json"));
}

TEST_F(RunHostTest, UsesTheServerThatRuns) {
    auto server = Server::start({.folder = folder_});
    ASSERT_TRUE(server.ok()) << server.error().text();
    auto host = RunHost::open(session_, args_);
    ASSERT_TRUE(host.ok()) << host.error().text();
    EXPECT_FALSE((*host)->embedded());
    EXPECT_FALSE(get<api::VersionView>((*host)->client(), "/api/v1/version")->embedded);
}

}  // namespace
}  // namespace stoker
