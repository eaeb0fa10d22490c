#include "base/tsv.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Cells are found by row and column name; comments, blank lines and a byte order mark are skipped; empty cells are
// kept.
TEST(Tsv, FindsCellsByColumnName) {
    const auto table =
        Tsv::read("\xEF\xBB\xBF# sizes\nname\tgpus\tnote\r\n\nND96\t8\t\r\nNC24\t1\tsmall\n", "sizes.tsv");
    ASSERT_TRUE(table.ok());
    ASSERT_EQ(table->rows(), 2u);
    EXPECT_EQ(table->at(0, *table->column("name")), "ND96");
    EXPECT_EQ(table->at(0, *table->column("note")), "");
    EXPECT_EQ(table->at(1, *table->column("note")), "small");
    EXPECT_EQ(*table->whole_number(0, 1), 8);
    EXPECT_EQ(table->pos(0, 1), (SourcePos{"sizes.tsv", 4, 6}));
    EXPECT_FALSE(table->has_column("price"));
}

// A number that is none is an error at the line and column of its cell.
TEST(Tsv, WrongNumbersHaveTheirPlace) {
    const auto table = Tsv::read("name\tgpus\nA\t8x\nB\tnan\n", "t.tsv");
    ASSERT_TRUE(table.ok());
    EXPECT_EQ(table->number(0, 1).error().text(), "error: gpus: expected a number, found '8x'\n  at t.tsv:2:3\n");
    EXPECT_FALSE(table->number(1, 1).ok());
    EXPECT_FALSE(table->whole_number(0, 1).ok());
    EXPECT_EQ(table->column("price").error().text(),
              "error: there is no column price\n  at t.tsv\n  the columns are name, gpus\n");
}

// Traces come as CSV, some with cells in quotes; a comma inside quotes must not shift every cell behind it.
TEST(Tsv, ReadsCommaSeparatedTextWithQuotes) {
    const Tsv csv = Tsv::read_csv("name,note,count\r\na,\"one, two\",3\r\n\"b\",,\"4\"\r\n", "a.csv").value();
    ASSERT_EQ(csv.rows(), 2U);
    EXPECT_EQ(csv.at(0, 1), "one, two");
    EXPECT_EQ(csv.whole_number(0, 2).value(), 3);
    EXPECT_EQ(csv.at(1, 0), "b");
    EXPECT_EQ(csv.at(1, 1), "");
    EXPECT_EQ(csv.whole_number(1, 2).value(), 4);
    EXPECT_EQ(Tsv::read_csv("a,b\n\"1,2\n", "a.csv")->at(0, 0), "\"1");  // never closed: as it stands
}

// Rows of another length, doubled or nameless columns, a missing header and other encodings are refused with the line.
TEST(Tsv, BrokenFilesAreRefusedWithTheLine) {
    EXPECT_EQ(Tsv::read("a\tb\n1\t2\n3\n", "t.tsv").error().text(),
              "error: the row has 1 cells and the header 2\n  at t.tsv:3\n  separate cells with one tab each\n");
    EXPECT_EQ(Tsv::read("a\ta\n", "t.tsv").error().message(), "two columns are named a");
    EXPECT_EQ(Tsv::read("a\t\n", "t.tsv").error().message(), "a column has no name");
    EXPECT_EQ(Tsv::read("# only\n", "t.tsv").error().message(), "the file has no header line");
    EXPECT_EQ(Tsv::read("a\nb\n\xFF\n", "t.tsv").error().problems()[0].pos.line, 3u);
}

}  // namespace
}  // namespace stoker
