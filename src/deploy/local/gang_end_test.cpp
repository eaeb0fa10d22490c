#include "deploy/local/gang_end.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace stoker {
namespace {

class Buried : public ::testing::Test {
protected:
    Buried() {
        std::string name = std::filesystem::temp_directory_path() / "stoker-end-XXXXXX";
        folder = ::mkdtemp(name.data());
        order.operation = {"aaaaa", 1};
        order.gang.epoch = 4;
        order.gang.ranks = {{.node = "alpha", .arguments = {"x"}}, {.node = "beta", .arguments = {"x"}}};
    }
    ~Buried() override { std::filesystem::remove_all(folder); }
    Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::string folder;
    LaunchOrder order;
};

// After a reboot nothing of a gang can run, whoever has its keeper's pid now; the machine is the cause.
TEST_F(Buried, RebootIsALostNode) {
    GangStatus running{.state = GangState::running, .started = true, .ranks = {{.pid = 11}, {.pid = 12}}};
    const KeeperId keeper{.pid = ::getpid(), .start_ticks = *start_ticks(::getpid()), .boot_id = "another"};
    ASSERT_TRUE(replace_file(folder + "/keeper.json", to_json(keeper).dump(), false));
    ASSERT_TRUE(replace_file(folder + "/status.json", to_json(running).dump(), false));
    EXPECT_FALSE(find_keeper(folder));
    auto status = bury(folder, order, soon);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->cause, Cause::node_lost);
    EXPECT_EQ(status->ranks[1].cause, Cause::node_lost);
    EXPECT_EQ(status->ranks[1].ended_as, 2);
    // Written down: the next one reads the same.
    EXPECT_EQ(to_json(*read_gang_status(folder)).dump(), to_json(*status).dump());
    EXPECT_EQ(to_json(*bury(folder, order, soon)).dump(), to_json(*status).dump());
}

// The cause that the keeper had found before it was killed stays the cause.
TEST_F(Buried, FirstCauseStays) {
    GangStatus stopping{.state = GangState::stopping, .started = true, .cause = Cause::oom, .detail = "rank 1"};
    stopping.ranks = {{.pid = 11}, {.pid = 12, .ended_as = 1, .cause = Cause::oom}};
    ASSERT_TRUE(replace_file(folder + "/status.json", to_json(stopping).dump(), false));
    const auto status = bury(folder, order, soon);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->cause, Cause::oom);
    EXPECT_EQ(status->ranks[0].ended_as, 2);
}

// Who waits for a run whose folder was deleted waits for ever, unless its end is told without it.
TEST_F(Buried, DeletedFolderIsAnEnd) {
    const auto status = bury(folder + "/none", order, soon);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->state, GangState::ended);
    EXPECT_EQ(status->cause, Cause::platform);
    EXPECT_EQ(status->detail, "its folder was deleted while it ran");
    EXPECT_FALSE(std::filesystem::exists(folder + "/none"));
    // Of one that nothing is known of, nothing is told.
    EXPECT_EQ(bury(folder + "/none", {}, soon).error().kind(), ErrorKind::not_found);
}

// Facts are told once each, ends in their order, whichever statuses were seen in between.
TEST_F(Buried, FactsAreToldOnceAndInOrder) {
    GangStatus status{.state = GangState::running, .started = true, .ranks = {{.pid = 11}, {.pid = 12}}};
    Told told;
    auto facts = untold_facts(order, status, told);
    ASSERT_EQ(facts.size(), 2u);
    EXPECT_EQ(facts[1].node, "beta");
    EXPECT_EQ(facts[1].epoch, 4u);
    EXPECT_TRUE(untold_facts(order, status, told).empty());
    status.ranks[1].ended_as = 1;
    status.ranks[0].ended_as = 2;
    status.ranks[0].cause = Cause::ok;
    status.state = GangState::ended;
    status.cause = Cause::oom;
    facts = untold_facts(order, status, told);
    ASSERT_EQ(facts.size(), 3u);
    EXPECT_EQ(facts[0].rank, 1);
    EXPECT_EQ(facts[1].rank, 0);
    EXPECT_EQ(facts[2].kind, FactKind::gang_ended);
    EXPECT_EQ(facts[2].cause, Cause::oom);
    // A status without the starts, as after damage: only what is missing.
    Told fresh;
    EXPECT_EQ(untold_facts(order, GangStatus{.state = GangState::ended, .ranks = {{}, {}}}, fresh).size(), 1u);
}

}  // namespace
}  // namespace stoker
