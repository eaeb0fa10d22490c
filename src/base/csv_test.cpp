// A cell read wrongly is a wrong prediction that nobody notices; a broken file must say where it is broken.
#include "base/csv.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(CsvTest, QuotedCellsHoldCommasQuotesAndLineEnds) {
    const auto csv = Csv::read("\xEF\xBB\xBFid,notes\r\na,\"x, \"\"y\"\"\nz\"\r\n\r\nb,\n", "rows.csv");
    ASSERT_TRUE(csv.ok());
    ASSERT_EQ(csv->rows(), 2u);
    EXPECT_EQ(csv->at(0, 1), "x, \"y\"\nz");
    EXPECT_EQ(csv->at(1, 0), "b");
    EXPECT_EQ(csv->at(1, 1), "");
    EXPECT_EQ(csv->pos(1, 0).text(), "rows.csv:5:1");
    EXPECT_EQ(csv->column("notes"), 1u);
    EXPECT_FALSE(csv->column("other"));
}

TEST(CsvTest, TheLastLineNeedsNoEnd) {
    const auto csv = Csv::read("id,a\n1,2", "rows.csv");
    ASSERT_TRUE(csv.ok());
    EXPECT_EQ(csv->at(0, 1), "2");
}

TEST(CsvTest, EveryProblemIsReportedWithItsPlace) {
    const auto csv = Csv::read("id,a,a,\n1,2\n\"x\"y,1,2,3\nq\"q,1,2,3\n", "rows.csv");
    ASSERT_FALSE(csv.ok());
    std::vector<std::string> places;
    for (const Problem& problem : csv.error().problems()) places.push_back(problem.pos.text());
    EXPECT_EQ(places, (std::vector<std::string>{"rows.csv:1:6", "rows.csv:1:8", "rows.csv:2:1", "rows.csv:3:4",
                                                "rows.csv:4:2"}));
}

TEST(CsvTest, AQuoteThatDoesNotEndIsShownWhereItBegins) {
    const auto csv = Csv::read("id,a\n1,\"never\nends\n", "rows.csv");
    ASSERT_FALSE(csv.ok());
    EXPECT_EQ(csv.error().problems().front().pos.text(), "rows.csv:2:3");
}

TEST(CsvTest, EmptyAndForeignBytesAreRefused) {
    EXPECT_FALSE(Csv::read("", "rows.csv").ok());
    const auto latin = Csv::read("id\nk\xF6rper\n", "rows.csv");
    ASSERT_FALSE(latin.ok());
    EXPECT_EQ(latin.error().problems().front().pos.text(), "rows.csv:2:2");
}

}  // namespace
}  // namespace stoker
