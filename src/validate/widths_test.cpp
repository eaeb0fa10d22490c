// Widths taken from the sources that they are reported for would always hold 80 % of them, and say nothing to a
// stranger.
#include "validate/widths.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::validate {
namespace {

// Rows of one source, all off by the same share, with an interval of half and twice before it grows.
std::vector<Line> source_off_by(const std::string& source, double factor, std::size_t rows, bool apart = false) {
    std::vector<Line> lines;
    for (std::size_t i = 0; i < rows; ++i) {
        Line line{.row = i, .source = source};
        line.predict(100, {0.5, 1, 2});
        line.measured = 100 * factor;
        line.counted = true;
        line.kept_apart = apart;
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<Line> joined(const std::vector<std::vector<Line>>& all) {
    std::vector<Line> out;
    for (const auto& one : all) out.insert(out.end(), one.begin(), one.end());
    return out;
}

// The one that is far off is judged by what the others need, which is less, so that none of it is inside.
TEST(Widths, ASourceIsJudgedByTheOthers) {
    const auto lines = joined({source_off_by("a", 1.1, 3), source_off_by("b", 1.1, 3), source_off_by("far", 1.9, 3)});
    const auto widths = widths_left_out(lines, *Catalog::embedded(), MeasuredWork::serving);
    ASSERT_TRUE(widths);
    ASSERT_EQ(widths->sources.size(), 3u);
    EXPECT_EQ(widths->sources[2].source, "far");
    EXPECT_EQ(widths->sources[2].inside, 0u);
    EXPECT_NEAR(widths->sources[2].scale, std::log(1.1) / std::log(2), 1e-9);
    EXPECT_NEAR(widths->sources[0].scale, std::log(1.9) / std::log(2), 1e-9);  // 80 % of two sources needs both
    EXPECT_EQ(widths->sources[0].inside, 3u);
    EXPECT_NEAR(widths->inside, 2.0 / 3, 1e-9);
}

// A thousand rows of one benchmark would otherwise choose the width of everything.
TEST(Widths, ASourceCountsOnceWhateverItsRows) {
    std::vector<std::vector<Line>> all = {source_off_by("many", 1.05, 1000)};
    for (const char* name : {"a", "b", "c", "d"}) all.push_back(source_off_by(name, 1.5, 2));
    const auto widths = widths_left_out(joined(all), *Catalog::embedded(), MeasuredWork::serving);
    ASSERT_TRUE(widths);
    EXPECT_NEAR(widths->chosen, std::log(1.5) / std::log(2), 1e-9);
}

// Rows of one device that no constant saw are told apart from others of their source, and do not judge themselves.
TEST(Widths, RowsKeptApartAreJudgedWithoutTheirSource) {
    const auto lines = joined({source_off_by("a", 1.1, 3), source_off_by("b", 1.1, 3), source_off_by("half", 1.3, 3),
                               source_off_by("half", 1.9, 2, true)});
    const auto widths = widths_left_out(lines, *Catalog::embedded(), MeasuredWork::serving);
    ASSERT_TRUE(widths);
    EXPECT_EQ(widths->apart_sources, 1u);
    EXPECT_EQ(widths->apart_rows, 2u);
    EXPECT_EQ(widths->apart_rows_inside, 0u);
    EXPECT_NEAR(widths->sources.back().scale, std::log(1.1) / std::log(2), 1e-9);
}

TEST(Widths, TwoSourcesChooseNothing) {
    const auto lines = joined({source_off_by("a", 1.1, 3), source_off_by("b", 1.2, 3)});
    EXPECT_FALSE(widths_left_out(lines, *Catalog::embedded(), MeasuredWork::training));
}

}  // namespace
}  // namespace stoker::validate
