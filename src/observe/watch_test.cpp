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
    // Looked at as an engine on this machine does.
    WatchedGang gang(std::vector<LiveRank> live) const {
        struct Meter {
            std::optional<GangMeter> meter;
            std::uint64_t looks = 0;
        };
        const auto meter = std::make_shared<Meter>();
        const MeasureSpec spec{
            .lines = folder + "/metrics.jsonl", .heartbeat = {}, .step_pattern = {}, .folders = {}, .interface = {}};
        return {.run = "r-1",
                .attempt = 1,
                .live = std::move(live),
                .read = [meter, spec](const std::vector<LiveRank>& now, const MeasureQuery& query) -> Result<Measures> {
                    const ProcRoots roots;
                    const MeterOptions options{.roots = roots, .sample = {}, .from_s = query.from_s};
                    if (!meter->meter) meter->meter.emplace(spec, "", options);
                    return Measures{.lines = meter->meter->look(ProcessTable::scan(roots), monotonic_clock_us(), now,
                                                                static_cast<double>(wall_clock_us()) / 1e6),
                                    .next = std::to_string(++meter->looks)};
                }};
    }
    static LiveRank rank(int number, pid_t pid) { return {.rank = number, .pid = pid, .node = "here"}; }
    void line(const std::string& text, int number = 0) const {
        std::ofstream(rank_metrics_file(folder + "/metrics.jsonl", number), std::ios::app) << text << "\n";
    }
};

TEST_F(WatchTest, TellsWhatRanksUseAndHowFastTheyAre) {
    auto observer = Observer::start({.period_s = 0.05, .series = series});
    const pid_t a = busy_child(), b = busy_child();
    line(R"({"step": 7, "step_s": 0.5, "wait_s": 0.25, "loss": 2})");
    line(R"({"step": 6, "step_s": 0.75})", 1);
    observer->watch({gang({rank(0, a), rank(1, b)})});
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

// A look sees a part of a second: the longest step of the whole of it is told, once, and which it was.
TEST_F(WatchTest, TheLongestStepOfASecondIsThatOfAllItsLooks) {
    const double second = std::floor(static_cast<double>(wall_clock_us()) / 1e6) - 100;
    const auto step = [&](int number, double took, double at_s) {
        line("{\"step\": " + std::to_string(number) + ", \"step_s\": " + std::to_string(took) +
             ", \"time\": " + std::to_string(at_s) + "}");
    };
    auto observer = Observer::start({.period_s = 0.05, .series = series, .wall_s = [&] { return second + 1; }});
    // Nothing else is seen of it: what comes late in a minute that is written out does not count.
    const pid_t gone = busy_child();
    ::kill(gone, SIGKILL);
    ::waitpid(gone, nullptr, 0);
    children.pop_back();
    observer->watch({gang({rank(0, gone)})});
    const std::tuple<int, double, double> told[] = {
        {40, 0.8, second + 0.1}, {41, 0.25, second + 0.6}, {42, 0.25, second + 1.1}};
    for (const auto& [number, took, at_s] : told) {
        step(number, took, at_s);
        EXPECT_TRUE(eventually([&, is = number] {
            const auto now = observer->latest("r-1");
            return !now.empty() && now[0].step == is;
        }));
    }
    observer.reset();
    const auto all = series->query({.run = "r-1",
                                    .metrics = {"longest_s", "longest_step", "shortest_s"},
                                    .rank = {},
                                    .from_s = static_cast<std::int64_t>(second),
                                    .to_s = static_cast<std::int64_t>(second) + 1});
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->size(), 3u);
    for (const RankSeries& each : *all) EXPECT_EQ(each.points.at(0).count, 1u) << each.metric;
    EXPECT_NEAR((*all)[0].points[0].mean, 0.8, 0.01);
    EXPECT_EQ((*all)[1].points[0].mean, 40);
    EXPECT_NEAR((*all)[2].points[0].mean, 0.25, 0.01);
}

// A server that starts again does not count the lines that it has counted already.
TEST_F(WatchTest, LinesCountOnceAcrossRestarts) {
    const double now = std::floor(static_cast<double>(wall_clock_us()) / 1e6);
    const pid_t a = busy_child();
    for (int i = 1; i <= 5; ++i)
        line("{\"step\": " + std::to_string(i) + ", \"step_s\": 1, \"time\": " + std::to_string(now - 100 + i) + "}");
    for (int turn = 0; turn < 2; ++turn) {
        auto observer = Observer::start({.period_s = 0.05, .series = series});
        observer->watch({gang({rank(0, a)})});
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

// A rank whose node answers late, in pieces or not at all: what it tells is kept under its own times, what it wrote
// last is asked for when it has ended, and one gang that cannot be asked keeps no other from being seen.
TEST_F(WatchTest, TakesWhatEnginesElsewhereTell) {
    const double now = std::floor(static_cast<double>(wall_clock_us()) / 1e6);
    std::atomic<int> asked = 0, mute_asked = 0, last_asked = 0;
    auto observer = Observer::start({.period_s = 0.02, .series = series});
    const auto tell = [&](const std::vector<LiveRank>& live, const MeasureQuery& query) -> Result<Measures> {
        if (live.empty()) ++last_asked;
        const int turn = asked++;
        EXPECT_EQ(query.cursor, turn == 0 ? "" : "c" + std::to_string(turn));
        return Measures{
            .lines =
                {{.rank = 5, .node = "n2", .at_s = now - 50 + turn % 40, .step = turn, .values = {{"step_s", 0.25}}}},
            .next = "c" + std::to_string(turn + 1),
            .more = turn % 2 == 0,
            .gap = turn == 3};
    };
    const auto mute = [&](const std::vector<LiveRank>&, const MeasureQuery&) -> Result<Measures> {
        ++mute_asked;
        return Error(ErrorKind::unsupported, "it cannot tell");
    };
    const auto lost = [](const std::vector<LiveRank>&, const MeasureQuery&) -> Result<Measures> {
        return Error(ErrorKind::unavailable, "its node does not answer");
    };
    const std::vector<LiveRank> live{{.rank = 5, .pid = 1, .node = "n2"}};
    observer->watch({{.run = "r-2", .attempt = 1, .live = live, .read = lost},
                     {.run = "r-3", .attempt = 1, .live = live, .read = mute},
                     {.run = "r-4", .attempt = 2, .live = live, .read = tell}});
    EXPECT_TRUE(eventually([&] { return asked > 8; }));
    const auto told = observer->latest("r-4");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].rank.node, "n2");
    EXPECT_GT(told[0].step.value_or(0), 2);
    EXPECT_EQ(mute_asked, 1);
    EXPECT_EQ(observer->stats().gaps, 1u);
    EXPECT_NE(observer->stats().error.find("r-2: its node does not answer"), std::string::npos);
    observer->watch({});
    EXPECT_TRUE(eventually([&] { return last_asked > 0 && observer->latest().empty(); }));
    const auto kept = series->query({.run = "r-4",
                                     .metrics = {"step_s"},
                                     .rank = 5,
                                     .from_s = static_cast<std::int64_t>(now) - 60,
                                     .to_s = static_cast<std::int64_t>(now) + 10});
    ASSERT_EQ(kept->size(), 1u);
    EXPECT_GE((*kept)[0].points.size(), 8u);
    EXPECT_EQ((*kept)[0].points[0].at_s, static_cast<std::int64_t>(now) - 50);
}

// A read that never answers, played by the injected clock that the look asks first: the look hangs, callers do not.
TEST_F(WatchTest, ALookThatHangsHoldsNobodyUp) {
    // It hangs until the program ends: one that came back then would find half of the program gone.
    auto observer = Observer::start({.period_s = 0.02, .wall_s = []() -> double {
                                         while (true) std::this_thread::sleep_for(5ms);
                                     }});
    observer->watch({gang({rank(0, busy_child())})});
    EXPECT_TRUE(eventually([&] { return observer->stats().busy_for_s > 0.1; }));
    EXPECT_TRUE(observer->latest().empty());
    const auto begin = std::chrono::steady_clock::now();
    observer.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

}  // namespace
}  // namespace stoker
