// A wrong percentage in the report is a wrong decision about the model.
#include "validate/score.h"

#include <gtest/gtest.h>

namespace stoker::validate {
namespace {

Line line(std::size_t row, std::string group, double predicted, double measured, double spread = 1.2) {
    Line l{.row = row, .id = "r" + std::to_string(row), .group = std::move(group), .metric = "step_s"};
    l.predict(predicted, {1 / spread, 1, spread});
    l.measured = measured;
    l.counted = true;
    return l;
}

TEST(ScoreTest, AGroupCountsOnceWhateverItsSize) {
    std::vector<Line> lines;
    for (std::size_t i = 0; i < 10; ++i) lines.push_back(line(i, "large", 110, 100));
    lines.push_back(line(10, "small", 150, 100));
    const Score s = score(12, lines);
    ASSERT_EQ(s.groups.size(), 2u);
    EXPECT_NEAR(s.median_of_medians, 0.3, 1e-12);
    EXPECT_EQ(s.worst_group, "large") << "small has less than nine lines";
    EXPECT_NEAR(s.groups[0].coverage(), 1, 1e-12);
    EXPECT_NEAR(s.groups[1].coverage(), 0, 1e-12);
    EXPECT_EQ(s.rows_missing, 1u);
}

TEST(ScoreTest, TheNinetiethPercentileIsTheOneOfTheContract) {
    std::vector<Line> lines;
    for (std::size_t i = 0; i < 11; ++i) lines.push_back(line(i, "g", 100 + static_cast<double>(i), 100));
    EXPECT_NEAR(score(11, lines).groups[0].p90, 0.09, 1e-12);  // sorted[floor(0.9 * 10)]
    EXPECT_NEAR(score(11, lines).groups[0].median, 0.05, 1e-12);
    ASSERT_EQ(score(11, lines).groups[0].worst.size(), 5u);
    EXPECT_EQ(score(11, lines).groups[0].worst.front()->id, "r10");
}

TEST(ScoreTest, RefusedAndUncountedLinesHaveNoError) {
    std::vector<Line> lines{line(0, "g", 100, 100), line(1, "g", 300, 100), Line{.row = 2, .id = "x", .group = "g"}};
    lines[1].counted = false;
    lines[2].refused = "unsupported:memory (has 1, wants 2)";
    const Score s = score(3, lines);
    EXPECT_EQ(s.groups[0].scored, 1u);
    EXPECT_EQ(s.groups[0].refused, 1u);
    EXPECT_EQ(s.groups[0].refused_able, 1u);
    EXPECT_EQ(s.refusals.front().text, "unsupported:memory");
    EXPECT_EQ(s.rows_missing, 0u);
}

TEST(ScoreTest, VerdictsAreComparedWhateverTheirCase) {
    const auto verdict = [](std::string was, std::string said) {
        Line l{.id = "x", .group = "g", .outcome = std::move(said)};
        l.measured_outcome = std::move(was);
        return l;
    };
    const Score s =
        score(6, {verdict("fit", "fit"), verdict("fit", "oom"), verdict("OOM", "oom"),
                  verdict("would-OOM (exceeds 80 GB)", "fit"), verdict("crashed-or-OOM", "oom"), verdict("ratio", "")});
    EXPECT_EQ(s.confusion.fit, 2u);
    EXPECT_EQ(s.confusion.fit_called_fit, 1u);
    EXPECT_EQ(s.confusion.oom, 2u);
    EXPECT_EQ(s.confusion.oom_flagged, 1u);
    EXPECT_EQ(s.confusion.mixed, 1u);
    EXPECT_EQ(s.confusion.mixed_flagged, 1u);
    EXPECT_EQ(s.confusion.without, 0u);
}

// Who would rather wait than run out of memory picks another threshold: what it costs must be counted right.
TEST(ScoreTest, AHigherThresholdFlagsMoreOfBoth) {
    const auto verdict = [](std::string was, double fits) {
        Line l{.id = "x", .group = "g", .outcome = "fit", .fits = fits};
        l.measured_outcome = std::move(was);
        return l;
    };
    const Score s = score(4, {verdict("fit", 0.95), verdict("fit", 0.55), verdict("OOM", 0.05),
                              verdict("crashed-or-OOM", 0.65), verdict("ratio", 0.5)});
    ASSERT_EQ(s.verdicts.size(), 9u);
    EXPECT_EQ(s.verdicts[4].fit_called_fit, 2u) << s.verdicts[4].threshold;
    EXPECT_EQ(s.verdicts[4].failed_flagged, 1u);
    EXPECT_EQ(s.verdicts[6].fit_called_fit, 1u) << s.verdicts[6].threshold;
    EXPECT_EQ(s.verdicts[6].failed_flagged, 2u);
}

}  // namespace
}  // namespace stoker::validate
