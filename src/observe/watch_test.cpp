// Who watches a run sees what its ranks do now, and the server goes on whatever those ranks do.
#include "observe/watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

bool eventually(const std::function<bool()>& condition) {
    const auto begin = std::chrono::steady_clock::now();
    while (!condition()) {
        if (std::chrono::steady_clock::now() - begin > 60s) return false;
        std::this_thread::sleep_for(10ms);
    }
    return true;
}

struct WatchTest : testing::Test {
    std::string folder = testing::TempDir() + "watch-" + std::to_string(::getpid()) + "-" +
                         testing::UnitTest::GetInstance()->current_test_info()->name();
    std::shared_ptr<SeriesStore> series;
    std::vector<pid_t> children;
    WatchTest() {
        fs::remove_all(folder);
        fs::create_directories(folder);
        auto opened = SeriesStore::open(folder + "/series");
        series = std::shared_ptr<SeriesStore>(std::move(*opened));
    }
    ~WatchTest() override {
        for (const pid_t child : children) {
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
        }
        series.reset();
        fs::remove_all(folder);
    }
    pid_t busy_child() {
        const pid_t child = ::fork();
        if (child == 0)
            for (volatile std::uint64_t i = 0;;) i = i + 1;
        children.push_back(child);
        return child;
    }
    WatchedRank rank(int number, pid_t pid) const {
        return {.run = "r-1",
                .attempt = 1,
                .rank = number,
                .pid = pid,
                .start_ticks = start_ticks(pid).value_or(0),
                .sources = {
                    {.kind = StepSource::Kind::lines, .path = rank_metrics_file(folder + "/metrics.jsonl", number)}}};
    }
    void line(const std::string& text, int number = 0) const {
        std::ofstream(rank_metrics_file(folder + "/metrics.jsonl", number), std::ios::app) << text << "\n";
    }
};

TEST(RankMetricsFile, StandsBesideTheFirst) {
    EXPECT_EQ(rank_metrics_file("/a/metrics.jsonl", 0), "/a/metrics.jsonl");
    EXPECT_EQ(rank_metrics_file("/a/metrics.jsonl", 12), "/a/metrics.rank-12.jsonl");
    EXPECT_EQ(rank_metrics_file("/a.b/metrics", 1), "/a.b/metrics.rank-1");
    EXPECT_EQ(rank_metrics_file("/a/.hidden", 1), "/a/.hidden.rank-1");
}

TEST_F(WatchTest, TellsWhatRanksUseAndHowFastTheyAre) {
    auto observer = Observer::start({.period_s = 0.05, .series = series});
    const pid_t a = busy_child(), b = busy_child();
    line(R"({"step": 7, "step_s": 0.5, "wait_s": 0.25, "loss": 2})");
    line(R"({"step": 6, "step_s": 0.75})", 1);
    observer->watch({rank(0, a), rank(1, b)});
    EXPECT_TRUE(eventually([&] {
        const auto now = observer->latest("r-1");
        return now.size() == 2 && now[0].step == 7 && now[1].step == 6 && now[1].values.contains("step_s") &&
               now[0].values.contains("rss") && now[0].values.contains("run_wait") && now[0].values.contains("cpu") &&
               now[0].values.at("cpu") > 0.05;
    }));
    EXPECT_TRUE(observer->latest("r-2").empty());
    EXPECT_EQ(observer->stats().ranks, 2u);
    // One vanishes, and later all are gone: the series are on disk.
    ::kill(a, SIGKILL);
    ::waitpid(a, nullptr, 0);
    children.erase(children.begin());
    line(R"({"step": 8, "step_s": 0.5})", 1);
    EXPECT_TRUE(eventually([&] { return observer->latest("r-1").back().step == 8; }));
    observer->watch({});
    EXPECT_TRUE(eventually([&] { return observer->latest().empty() && observer->stats().ranks == 0; }));
    const auto now = static_cast<std::int64_t>(wall_clock_us() / 1'000'000);
    auto other = SeriesStore::open(folder + "/series");
    const auto all = (*other)->query(
        {.run = "r-1", .metrics = {"step_s", "cpu"}, .rank = {}, .from_s = now - 3600, .to_s = now + 10});
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->size(), 4u);
    EXPECT_EQ((*all)[1].metric, "step_s");
    EXPECT_EQ((*all)[1].points.at(0).mean, 0.5f);
    EXPECT_EQ((*all)[3].rank, 1);
}

// A server that starts again does not count the lines that it has counted already.
TEST_F(WatchTest, LinesCountOnceAcrossRestarts) {
    const double now = std::floor(static_cast<double>(wall_clock_us()) / 1e6);
    const pid_t a = busy_child();
    for (int i = 1; i <= 5; ++i)
        line("{\"step\": " + std::to_string(i) + ", \"step_s\": 1, \"time\": " + std::to_string(now - 100 + i) + "}");
    for (int turn = 0; turn < 2; ++turn) {
        auto observer = Observer::start({.period_s = 0.05, .series = series});
        observer->watch({rank(0, a)});
        EXPECT_TRUE(eventually([&] { return observer->stats().ticks >= 3; }));
        observer.reset();
    }
    const auto all = series->query({.run = "r-1",
                                    .metrics = {"step_s"},
                                    .rank = {},
                                    .from_s = static_cast<std::int64_t>(now) - 200,
                                    .to_s = static_cast<std::int64_t>(now) + 100});
    ASSERT_EQ(all->size(), 1u);
    std::uint32_t count = 0;
    for (const SeriesPoint& point : (*all)[0].points) count += point.count;
    EXPECT_EQ(count, 5u);
}

// A read that never answers, played by the injected clock that the look asks first: the look hangs, callers do not.
TEST_F(WatchTest, ALookThatHangsHoldsNobodyUp) {
    const auto released = std::make_shared<std::atomic<bool>>(false);
    auto observer = Observer::start({.period_s = 0.02, .wall_s = [released] {
                                         while (!*released) std::this_thread::sleep_for(5ms);
                                         return 1.0;
                                     }});
    observer->watch({rank(0, busy_child())});
    EXPECT_TRUE(eventually([&] { return observer->stats().busy_for_s > 0.1; }));
    EXPECT_TRUE(observer->latest().empty());
    const auto begin = std::chrono::steady_clock::now();
    observer.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    *released = true;
}

TEST(Measures, EveryNameIsDescribedOnce) {
    std::vector<std::string_view> names;
    for (const MeasureInfo& each : measures()) names.push_back(each.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
    ProcessSample a, b;
    b.at_us = 1'000'000;
    b.run_wait_s = a.run_wait_s = 1;
    b.voluntary_switches = a.voluntary_switches = b.involuntary_switches = a.involuntary_switches = 1;
    b.swap_bytes = b.memory_used_bytes = b.memory_limit_bytes = 1;
    b.read_bytes = a.read_bytes = b.write_bytes = a.write_bytes = b.read_calls = a.read_calls = 1;
    b.call_read_bytes = a.call_read_bytes = b.memory_limit_hits = a.memory_limit_hits = 1;
    b.throttled_s = a.throttled_s = b.cpu_limit = 1;
    b.network = a.network = NetBytes{};
    for (const auto& [name, value] : measures_of(a, b, &a))
        EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
}

}  // namespace
}  // namespace stoker
