#include "deploy/local/gang_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace stoker {
namespace {

LaunchOrder sample_order() {
    LaunchOrder order{.operation = {"k3x7q", 99},
                      .tree = TreeKind::cgroup,
                      .cgroups = {.unified = "/sys/fs/cgroup",
                                  .unified_limits = true,
                                  .unified_devices = true,
                                  .v1 = {{"memory", "/m"}}},
                      .max_processes = 5,
                      .isolate_devices = true,
                      .device_files = {{"/dev/nvidia0", "/dev/nvidiactl"}},
                      .image_digest = "sha256:ab",
                      .status_retry_s = 1.5};
    order.gang = {.attempt = {{7}, 2}, .epoch = (std::uint64_t{1} << 60) + 1, .folder = "/w", .log_folder = "/l"};
    order.gang.ranks = {{.node = "alpha",
                         .arguments = {"sh", "-c", "echo \"quoted\"\n\ttab"},
                         .environment = {{"A", "ä=b"}, {"EMPTY", ""}},
                         .cpu_milli = 1500,
                         .memory_bytes = std::int64_t{1} << 40,
                         .devices = {"GPU-1", "0"}}};
    return order;
}

// What a driver writes a keeper reads, to the last bit of a large number.
TEST(GangFiles, OrderComesBackAsItWas) {
    const LaunchOrder order = sample_order();
    const auto again = parse_launch_order(to_json(order).dump(0), "launch.json");
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(to_json(*again).dump(), to_json(order).dump());
    EXPECT_EQ(again->gang.epoch, order.gang.epoch);
    EXPECT_EQ(again->gang.ranks[0].environment.at("A"), "ä=b");
    EXPECT_EQ(again->cgroups.v1.at("memory"), "/m");
}

// What ranks share is written once; what each has for itself, or lacks, comes back as well, and so do orders of before,
// which say all of it for each rank.
TEST(GangFiles, RanksOfALargeGangComeBackEachWithItsOwn) {
    LaunchOrder order = sample_order();
    order.device_files.clear();
    const RankSpec first = order.gang.ranks[0];
    const auto fill = [&](int ranks) {
        order.gang.ranks.assign(static_cast<std::size_t>(ranks), first);
        for (int i = 0; i < ranks; ++i) {
            auto& environment = order.gang.ranks[static_cast<std::size_t>(i)].environment;
            environment["RANK"] = environment["SLURM_PROCID"] = environment["OMPI_COMM_WORLD_RANK"] = std::to_string(i);
            environment["LONG"] = std::string(2000, 'x');
        }
    };
    fill(16'384);
    EXPECT_LT(to_json(order).dump(0).size(), 4u << 20);
    fill(3);
    order.gang.ranks[1].environment.erase("EMPTY");
    order.gang.ranks[2].arguments = {"other"};
    const auto again = parse_launch_order(to_json(order).dump(0), "launch.json");
    ASSERT_TRUE(again.ok()) << again.error().text();
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(again->gang.ranks[i].environment, order.gang.ranks[i].environment) << i;
        EXPECT_EQ(again->gang.ranks[i].arguments, order.gang.ranks[i].arguments) << i;
    }
    std::string before = to_json(sample_order()).dump(0);
    const std::string alike =
        R"("alike":{"arguments":["sh","-c","echo \"quoted\"\n\ttab"],"environment":{"A":"ä=b","EMPTY":""}},)";
    const std::size_t at = before.find(alike);
    ASSERT_NE(at, std::string::npos) << before;
    before.erase(at, alike.size());
    const std::string own = R"("environment":{},"cpu_milli")";
    ASSERT_NE(before.find(own), std::string::npos) << before;
    before.replace(before.find(own), own.size(), R"("arguments":["old"],"environment":{"B":"1"},"cpu_milli")");
    const auto old = parse_launch_order(before, "launch.json");
    ASSERT_TRUE(old.ok()) << old.error().text();
    EXPECT_EQ(old->gang.ranks[0].arguments, std::vector<std::string>{"old"});
    EXPECT_EQ(old->gang.ranks[0].environment, (std::map<std::string, std::string>{{"B", "1"}}));
}

TEST(GangFiles, StatusComesBackAsItWas) {
    GangStatus status{
        .state = GangState::ended, .started = true, .epoch = 3, .cause = Cause::oom, .detail = "x", .ended_at_us = 9};
    status.ranks = {{.pid = 5,
                     .started_at_us = 1,
                     .ended_at_us = 2,
                     .ended_as = 1,
                     .exit_code = 3,
                     .cause = Cause::user_error,
                     .detail = "d",
                     .seconds = 0.25,
                     .peak_memory_bytes = 77},
                    {.pid = 6, .signal = 9}};
    const auto again = parse_gang_status(to_json(status).dump(), "status.json");
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(to_json(*again).dump(), to_json(status).dump());
    EXPECT_EQ(again->ranks[0].exit_code, 3);
    EXPECT_FALSE(again->ranks[0].signal.has_value());
    EXPECT_EQ(again->ranks[1].signal, 9);
}

// A file cut anywhere, or with another type somewhere, is an error and never half a status.
TEST(GangFiles, DamageIsAnError) {
    const std::string order = to_json(sample_order()).dump(0);
    for (std::size_t size = 0; size < order.size(); ++size)
        EXPECT_FALSE(parse_launch_order(order.substr(0, size), "launch.json").ok()) << size;
    const std::string status = to_json(GangStatus{.ranks = {{.pid = 1}}}).dump(0);
    for (std::size_t size = 0; size < status.size(); ++size)
        EXPECT_FALSE(parse_gang_status(status.substr(0, size), "status.json").ok()) << size;
    for (const char* text : {"[]", "{}", "null", R"({"state":"ended"})", R"({"pid":-1,"start_ticks":1,"boot_id":""})",
                             R"({"pid":1.5,"start_ticks":1,"boot_id":""})"}) {
        EXPECT_FALSE(parse_gang_status(text, "status.json").ok()) << text;
        EXPECT_FALSE(parse_keeper_id(text, "keeper.json").ok()) << text;
        EXPECT_FALSE(parse_launch_order(text, "launch.json").ok()) << text;
    }
}

TEST(GangFiles, MissingAndReplacedFilesAreToldApart) {
    std::string folder = std::filesystem::temp_directory_path() / "stoker-files-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    EXPECT_EQ(read_gang_status(folder).error().kind(), ErrorKind::not_found);
    const KeeperId keeper{.pid = 12, .start_ticks = 34, .boot_id = "b"};
    ASSERT_TRUE(replace_file(folder + "/keeper.json", to_json(keeper).dump(), true));
    EXPECT_EQ(read_keeper_id(folder)->start_ticks, 34u);
    ASSERT_TRUE(replace_file(folder + "/status.json", "{", false));
    EXPECT_EQ(read_gang_status(folder).error().kind(), ErrorKind::invalid);
    EXPECT_EQ(replace_file(folder + "/no/such/file", "x", true).error().kind(), ErrorKind::not_found);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stoker
