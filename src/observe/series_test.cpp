// Who looks at a chart of last night after the server was killed sees what happened, and a spike with it.
#include "observe/series.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "observe/series_block.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kDay = 1'700'006'400;  // midnight

struct SeriesTest : testing::Test {
    std::string folder = testing::TempDir() + "series-" + std::to_string(::getpid()) + "-" +
                         testing::UnitTest::GetInstance()->current_test_info()->name();
    SeriesTest() { fs::remove_all(folder); }
    ~SeriesTest() override { fs::remove_all(folder); }
    std::unique_ptr<SeriesStore> open(SeriesOptions options = {}) {
        auto store = SeriesStore::open(folder, options);
        EXPECT_TRUE(store.ok());
        return std::move(*store);
    }
    static std::vector<RankSeries> get(SeriesStore& store, std::int64_t from, std::int64_t to,
                                       std::size_t points = 500) {
        auto all = store.query(
            {.run = "r-1", .metrics = {"step_s"}, .rank = {}, .from_s = from, .to_s = to, .max_points = points});
        EXPECT_TRUE(all.ok());
        return *all;
    }
    std::vector<std::string> files(const std::string& prefix) const {
        std::vector<std::string> found;
        for (const auto& each : fs::directory_iterator(folder + "/r-1"))
            if (each.path().filename().string().starts_with(prefix)) found.push_back(each.path().string());
        std::sort(found.begin(), found.end());
        return found;
    }
};

TEST(SeriesBlock, CodesKeepNineBits) {
    for (int i = -511; i <= 511; ++i)
        EXPECT_EQ(series_value(series_code(static_cast<float>(i))), static_cast<float>(i));
    for (const float x : {1e-30f, 0.00123f, 0.2137f, 3.14159f, 65537.f, 8.1e9f, 3e38f, 3.4028235e38f})
        for (const float sign : {1.f, -1.f}) {
            const float back = series_value(series_code(sign * x));
            EXPECT_TRUE(std::isfinite(back));
            EXPECT_LE(std::abs(back - sign * x), x * 0.0040f) << x;
        }
}

TEST(SeriesBlock, ComesBackAsWritten) {
    SeriesBlock block{.start_s = -5, .seconds = 60, .points = 3, .columns = {}};
    block.columns.push_back({0, "cpu", {{2, 4, 8, 4}, {}, {-1, 0, 4, 60}}});
    block.columns.push_back({7, "rss", {{1, 1, 1, 1}}});
    const std::string bytes = encode_block(block);
    const auto back = decode_block(bytes);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->start_s, -5);
    ASSERT_EQ(back->columns.size(), 2u);
    EXPECT_EQ(back->columns[0].cells[2].min, -1);
    EXPECT_EQ(back->columns[0].cells[2].max, 4);
    EXPECT_EQ(back->columns[0].cells[2].count, 60u);
    EXPECT_EQ(back->columns[0].cells[1].count, 0u);
    EXPECT_EQ(back->columns[1].rank, 7);
    EXPECT_EQ(back->columns[1].cells.size(), 3u);
    EXPECT_EQ(decode_block(bytes, [](int rank, std::string_view) { return rank == 7; })->columns.size(), 1u);
    // Any byte that changes, and any cut, is seen.
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string bad = bytes;
        bad[i] = static_cast<char>(bad[i] ^ 0x41);
        EXPECT_FALSE(decode_block(bad)) << i;
        EXPECT_FALSE(decode_block(std::string_view(bytes).substr(0, i)));
    }
}

// What scatters is kept to its scatter, which costs few bits; what does not, and what sticks out, exactly enough to
// see.
TEST(SeriesBlock, NoiseIsRoundedToItsScatterAndSpikesAreNot) {
    std::mt19937 random(5);
    std::normal_distribution<double> noise(0, 0.05);
    SeriesBlock block{.start_s = 0, .seconds = 1, .points = 60, .columns = {}};
    SeriesColumn noisy{.rank = 0, .metric = "step_s", .cells = {}}, still{.rank = 0, .metric = "rss", .cells = {}};
    for (int i = 0; i < 60; ++i) {
        const float value = i == 30 ? 3.F : static_cast<float>(std::exp(noise(random)));
        noisy.cells.push_back({value, value, value, 1});
        const float slow = i < 40 ? 1000.F : 1010.F;
        still.cells.push_back({slow, slow, slow, 1});
    }
    block.columns = {noisy, still};
    const auto read = decode_block(encode_block(block));
    ASSERT_TRUE(read);
    ASSERT_EQ(read->columns.size(), 2u);
    double sum = 0, off = 0;
    for (std::size_t i = 0; i < 60; ++i) {
        const SeriesCell &was = noisy.cells[i], &is = read->columns[1].cells[i];
        EXPECT_NEAR(is.mean, was.mean, (i == 30 ? 0.15 : 0.045)) << i;
        off += is.mean - was.mean, sum += was.mean;
        EXPECT_NEAR(read->columns[0].cells[i].mean, still.cells[i].mean, 4.1) << i;
    }
    EXPECT_LT(std::abs(off / sum), 0.006) << "the mean of a minute stays";
    EXPECT_LT(encode_block({.start_s = 0, .seconds = 1, .points = 60, .columns = {noisy}}).size(), 100u);
}

// What is next to nothing stays next to nothing: a machine that idles at one or two hundredths of a processor is not
// read back as one where others use both.
// Which step it was is asked, and the way from one second to the next is no scatter.
TEST(SeriesBlock, NumbersOfStepsComeBackWhole) {
    SeriesBlock block{.start_s = 0, .seconds = 1, .points = 60, .columns = {}};
    SeriesColumn small{.rank = 0, .metric = "step", .cells = {}}, large = small;
    large.metric = "not_finite";
    for (int i = 0; i < 60; ++i) {
        const auto step = static_cast<float>(17 * i + i % 3), far = static_cast<float>(3'000'000 + 40 * i);
        small.cells.push_back({step, step, step, 1});
        large.cells.push_back({far, far, far, 1});
    }
    block.columns = {small, large};
    const auto read = decode_block(encode_block(block));
    ASSERT_TRUE(read);
    for (const SeriesColumn& column : read->columns)
        for (std::size_t i = 0; i < 60; ++i) {
            const float was = (column.metric == "step" ? small : large).cells[i].mean;
            EXPECT_NEAR(column.cells[i].mean, was, was < 131'072 ? 0 : 1e-5F * was) << column.metric << " " << i;
        }
}

// Every other second has an evaluation: what the steps of a run take on average is what their seconds say.
TEST(SeriesBlock, UnevenStepsKeepTheirMean) {
    SeriesBlock block{.start_s = 1'700'000'000, .seconds = 1, .points = 60, .columns = {{0, "step_s", {}}}};
    double sum = 0, read = 0;
    for (int i = 0; i < 60; ++i) {
        const float value = (i % 2 == 0 ? 0.052F : 0.003F) * (1 + 0.01F * static_cast<float>(i % 7));
        block.columns[0].cells.push_back({.min = value, .mean = value, .max = value, .count = 20});
        sum += value;
    }
    const auto back = decode_block(encode_block(block));
    ASSERT_TRUE(back);
    for (const SeriesCell& cell : back->columns[0].cells) read += cell.mean;
    EXPECT_NEAR(read / sum, 1, 0.08);
}

TEST(SeriesBlock, WhatScattersAroundZeroStaysThere) {
    std::mt19937 random(11);
    std::uniform_int_distribution<int> ticks(0, 2);
    for (const std::int64_t seconds : {1, 60}) {
        SeriesBlock block{.start_s = 0, .seconds = seconds, .points = 60, .columns = {}};
        SeriesColumn idle{.rank = 0, .metric = "foreign_cpu", .cells = {}};
        for (int i = 0; i < 60; ++i) {
            const float value = i == 40 ? 1.5F : static_cast<float>(ticks(random)) * 0.01F;
            idle.cells.push_back({seconds > 1 ? 0.F : value, value, seconds > 1 ? 2 * value : value, 1});
        }
        block.columns = {idle};
        const auto read = decode_block(encode_block(block));
        ASSERT_TRUE(read);
        for (std::size_t i = 0; i < 60; ++i) {
            const SeriesCell &was = idle.cells[i], &is = read->columns.at(0).cells.at(i);
            EXPECT_NEAR(is.mean, was.mean, 0.01) << i;
            EXPECT_NEAR(is.max, was.max, 0.03) << i;
            EXPECT_NEAR(is.min, was.min, 0.02) << i;
        }
    }
}

// Whatever a column is like, what is read back is within a fifth of the value or within its scatter.
TEST(SeriesBlock, NothingIsRoundedFurtherThanPromised) {
    std::mt19937 random(23);
    std::normal_distribution<double> normal(0, 1);
    for (int round = 0; round < 400; ++round) {
        const double level = std::exp(6 * normal(random)), relative = std::exp(2 * normal(random) - 2);
        const double often = round % 3 == 0 ? 0.5 : 1, sign = round % 5 == 0 ? -1 : 1;
        SeriesBlock block{.start_s = 0, .seconds = 1, .points = 120, .columns = {}};
        SeriesColumn column{.rank = 0, .metric = "m", .cells = {}};
        std::vector<double> steps;
        for (int i = 0; i < 120; ++i) {
            const bool there = std::uniform_real_distribution<double>(0, 1)(random) < often;
            const double shape = round % 2 == 0 ? std::exp(relative * normal(random)) : relative * normal(random);
            const auto value = static_cast<float>(there ? sign * level * shape : 0);
            column.cells.push_back({value, value, value, 1});
            if (i > 0)
                steps.push_back(std::abs(static_cast<double>(value) - column.cells[column.cells.size() - 2].mean));
        }
        std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
        const double scatter = 1.48 / std::sqrt(2.0) * steps[steps.size() / 2];
        block.columns = {column};
        const auto read = decode_block(encode_block(block));
        ASSERT_TRUE(read);
        for (std::size_t i = 0; i < 120; ++i) {
            const double was = column.cells[i].mean, is = read->columns.at(0).cells.at(i).mean;
            EXPECT_LE(std::abs(is - was), std::max(0.2 * std::abs(was), 0.75 * scatter)) << round << " " << i;
        }
    }
}

TEST(SeriesBlock, RanksThatAreEqualTakeNextToNothing) {
    SeriesBlock block{.start_s = 0, .seconds = 60, .points = 60, .columns = {}};
    const auto add = [&](int rank, std::string metric, float value) {
        block.columns.push_back({rank, std::move(metric), std::vector<SeriesCell>(60, {value, value, value, 60})});
    };
    for (int rank = 0; rank < 8; ++rank)
        for (const char* metric : {"swap", "threads", "limit_hits", "processes", "a name of one's own"})
            add(rank, metric, metric[0] == 't' ? 9.F : 0.F);
    add(11, "swap", 4);
    const std::string bytes = encode_block(block);
    EXPECT_LT(bytes.size(), 120u);
    const auto read = decode_block(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->columns.size(), 41u);
    for (const SeriesColumn& column : read->columns) {
        const float expected = column.rank == 11 ? 4.F : column.metric == "threads" ? 9.F : 0.F;
        EXPECT_EQ(column.cells.at(59).max, expected) << column.metric << column.rank;
    }
    const auto one =
        decode_block(bytes, [](int rank, std::string_view metric) { return rank == 5 && metric == "threads"; });
    ASSERT_TRUE(one);
    ASSERT_EQ(one->columns.size(), 1u);
    EXPECT_EQ(one->columns[0].rank, 5);
}

// Written before units followed the scatter.
TEST(SeriesBlock, WhatAnOlderOneWroteIsRead) {
    const std::string hex =
        "534b423130000000000a5465000000003c000000040000008350095ec19e762b02036f776e06737465705f730200010f0701de0cc00fdf"
        "0c18b0cff403060003000a811f00200e00c003fc0f";
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    const auto read = decode_block(bytes);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->columns.size(), 2u);
    EXPECT_EQ(read->columns[0].metric, "step_s");
    EXPECT_EQ(read->columns[0].cells[1].count, 8u);
    EXPECT_EQ(read->columns[0].cells[1].mean, 0.5F);
    EXPECT_EQ(read->columns[0].cells[1].max, 2.F);
    EXPECT_EQ(read->columns[0].cells[2].count, 0u);
    EXPECT_EQ(read->columns[1].rank, 3);
    EXPECT_EQ(read->columns[1].cells[3].mean, 4.F);
}

// Whatever the bytes say, reading them ends and takes no more than a block may.
TEST(SeriesBlock, BytesThatLieAreRefused) {
    SeriesBlock block{.start_s = 0, .seconds = 1, .points = 3, .columns = {}};
    block.columns.push_back({0, "cpu", {{1, 1, 1, 1}, {2, 2, 2, 1}, {3, 3, 3, 1}}});
    block.columns.push_back({1, "cpu", {{1, 1, 1, 1}, {2, 2, 2, 1}, {3, 3, 3, 1}}});
    const std::string good = encode_block(block);
    ASSERT_TRUE(decode_block(good));
    const auto sealed = [](std::string bytes) {  // with a checksum that fits
        std::uint32_t hash = 2166136261u;
        for (std::size_t i = BlockHead::kBytes + 4; i < bytes.size(); ++i)
            hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 16777619u;
        for (std::size_t i = 0; i < 4; ++i) bytes[BlockHead::kBytes + i] = static_cast<char>(hash >> (8 * i) & 0xff);
        return bytes;
    };
    for (std::size_t at = BlockHead::kBytes + 4; at < good.size(); ++at)
        for (int value = 0; value < 256; ++value) {
            std::string bytes = good;
            bytes[at] = static_cast<char>(value);
            const auto read = decode_block(sealed(bytes));
            EXPECT_LE(read ? read->columns.size() : 0, std::size_t{1} << 22);
        }
    EXPECT_FALSE(decode_block(good.substr(0, good.size() - 1)));
}

TEST_F(SeriesTest, SpikesStayVisibleHoweverCoarse) {
    auto store = open();
    for (int i = 0; i < 7200; ++i)
        for (int rank = 0; rank < 2; ++rank) store->add("r-1", rank, "step_s", kDay + i, i == 5000 ? 64 : 2 + rank);
    const auto all = get(*store, kDay, kDay + 7200, 10);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_LE(all[0].points.size(), 10u);
    float most = 0;
    std::uint32_t count = 0;
    for (const SeriesPoint& point : all[0].points) {
        most = std::max(most, point.max);
        count += point.count;
        EXPECT_EQ(point.min, 2);
    }
    EXPECT_EQ(most, 64);
    EXPECT_EQ(count, 7200u);
    EXPECT_EQ(all[1].points[0].mean, 3);
    EXPECT_EQ(get(*store, kDay + 7000, kDay + 7100)[0].points.size(), 100u);
    EXPECT_EQ(get(*store, kDay + 7000, kDay + 7100)[0].seconds, 1);
}

TEST_F(SeriesTest, AKillLosesAMinuteAtMost) {
    const int seconds = 5400 + 37;
    {
        auto store = open();
        for (int i = 0; i < seconds; ++i) store->add("r-1", 0, "step_s", kDay + i, 2);
        fs::copy(folder, folder + ".killed", fs::copy_options::recursive);
    }
    fs::remove_all(folder);
    fs::rename(folder + ".killed", folder);
    // The kill came in the middle of a write.
    const std::string last = files("1s").back();
    const auto size = fs::file_size(last);
    std::ofstream(last, std::ios::app | std::ios::binary)
        << encode_block({.start_s = kDay, .seconds = 1, .points = 1, .columns = {{0, "step_s", {{1, 1, 1, 1}}}}})
               .substr(0, 40);
    auto store = open();
    store->add("r-1", 0, "step_s", kDay + seconds + 10, 2);
    EXPECT_EQ(fs::file_size(last), size);
    EXPECT_EQ(store->stats().cut_bytes, 40);
    for (const std::size_t points : {5000u, 100u, 3u}) {
        std::uint32_t count = 0;
        const auto all = get(*store, kDay, kDay + 7200, points);
        for (const SeriesPoint& point : all.at(0).points) count += point.count;
        EXPECT_GE(count, static_cast<std::uint32_t>(seconds - 60)) << points;
        EXPECT_LE(count, static_cast<std::uint32_t>(seconds + 1)) << points;
    }
}

TEST_F(SeriesTest, WhatIsOldGoesAndCoarserStays) {
    auto store = open();
    for (int i = 0; i < 3 * 86'400; i += 20) store->add("r-1", 0, "step_s", kDay + i, 2);
    store->tidy(kDay + 3 * 86'400);
    EXPECT_LE(files("1s").size(), 15u);
    EXPECT_LE(files("1m").size(), 6u);
    EXPECT_EQ(get(*store, kDay, kDay + 3 * 86'400)[0].seconds, 3600);
    EXPECT_EQ(get(*store, kDay, kDay + 3 * 86'400)[0].points.size(), 72u);
    EXPECT_EQ(get(*store, kDay + 2 * 86'400 + 40'000, kDay + 3 * 86'400, 1000)[0].seconds, 60);
    store->end("r-1");
    store->tidy(kDay + 400 * std::int64_t{86'400});
    EXPECT_FALSE(fs::exists(folder + "/r-1"));
}

TEST_F(SeriesTest, IsBoundedInBytesColumnsAndMetrics) {
    auto store = open({.max_bytes = 3000, .max_columns = 10, .max_metrics = 3});
    for (int i = 0; i < 3600; ++i)
        for (int rank = 0; rank < 20; ++rank)
            store->add("r-1", rank, "m" + std::to_string(i % 5), kDay + i, std::sin(i * rank));
    EXPECT_GT(store->stats().refused, 0);
    store->end("r-1");
    store->tidy(kDay + 3600);
    EXPECT_LE(store->bytes(), 3000);
    store->add("r-1", 0, "step_s", kDay, NAN);
    store->add("../r-1", 0, "step_s", kDay, 1);
    store->add("r-1", -1, "step_s", kDay, 1);
    EXPECT_FALSE(fs::exists(folder + "/../r-1"));
    EXPECT_FALSE(store->query({.run = "..", .metrics = {}, .rank = {}, .from_s = 0, .to_s = 1}).ok());
    EXPECT_FALSE(store->query({.run = "r-1", .metrics = {}, .rank = {}, .from_s = 1, .to_s = 1}).ok());
}

TEST_F(SeriesTest, AClockThatIsSetBackCounts) {
    auto store = open();
    for (int i = 0; i < 100; ++i) store->add("r-1", 0, "step_s", kDay + 1'000'000 + i, 2);
    for (int i = 0; i < 100; ++i) store->add("r-1", 0, "step_s", kDay + i, 3);
    store->add("r-1", 0, "step_s", kDay + 30, 9);  // late
    EXPECT_EQ(store->stats().late, 1);
    EXPECT_EQ(get(*store, kDay, kDay + 100)[0].points.size(), 100u);
    EXPECT_EQ(store->newest("r-1"), kDay + 1'000'100);
}

// A file to which nothing more is written takes less room, and says the same.
TEST_F(SeriesTest, FinishedFilesBecomeOneBlock) {
    std::mt19937 random(3);
    std::normal_distribution<double> noise(0, 0.05);
    std::vector<double> values;
    for (int i = 0; i < 700; ++i) values.push_back(std::exp(noise(random)));
    auto store = open();
    std::uintmax_t open_bytes = 0, joined_bytes = 0;
    for (int i = 0; i < 700; ++i) {
        if (i % 60 == 7) continue;  // gaps stay gaps
        for (const char* metric : {"step_s", "cpu", "rss"})
            for (int rank = 0; rank < 4; ++rank)
                store->add("r-1", rank, metric, kDay + i, values[static_cast<std::size_t>(i)]);
        if (i == 299) store->add("r-1", 9, "late_column", kDay + i, 5);
        if (i == 300) open_bytes = fs::file_size(files("1s").front());  // its last block comes with the next point
        if (i == 420) joined_bytes = fs::file_size(files("1s").front());
    }
    EXPECT_GT(joined_bytes, 0u);
    EXPECT_LT(joined_bytes, open_bytes * 3 / 4);
    ASSERT_EQ(files("1s").size(), 3u);
    std::ifstream file(files("1s").front(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const auto head = read_block_head(bytes);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->bytes(), bytes.size()) << "one block";
    EXPECT_EQ(head->points, 300u);
    const auto all = get(*store, kDay, kDay + 700, 1000);
    ASSERT_EQ(all.size(), 4u);
    for (const RankSeries& series : all) {
        ASSERT_EQ(series.points.size(), 688u);
        for (const SeriesPoint& point : series.points)
            EXPECT_NEAR(point.mean, values[static_cast<std::size_t>(point.at_s - kDay)], 0.09);
    }
}

// Of a joined file all is lost that was in it, of one that is still written to the rest.
TEST_F(SeriesTest, DamageInTheMiddleCostsWhatIsBehindItInThatFile) {
    {
        auto store = open();
        for (int i = 0; i < 300; ++i) store->add("r-1", 0, "step_s", kDay + i, 2);
    }
    ASSERT_EQ(files("1s").size(), 1u);
    const std::string file = files("1s").front();
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(36).write("XXXX", 4);
    auto store = open();
    std::size_t most = 0;
    for (const auto& series : get(*store, kDay, kDay + 300, 1000)) most = series.points.size();
    EXPECT_EQ(most, 240u);
    EXPECT_GT(store->stats().damaged_blocks, 0);
}

// Whoever deletes a home has it deleted: points that were still in memory do not make it again.
TEST_F(SeriesTest, AFolderThatIsDeletedStaysSo) {
    auto store = open();
    for (int i = 0; i < 10; ++i) store->add("r-1", 0, "step_s", 1e9 + i, 0.2);
    fs::remove_all(folder);
    store.reset();
    EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace stoker
