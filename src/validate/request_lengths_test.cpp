// A load whose lengths are taken for another's is told at another rate.
#include "validate/request_lengths.h"

#include <gtest/gtest.h>

namespace stoker::validate {
namespace {

TEST(RequestLengthsTest, ATableOfNamesAndTheirSpreads) {
    const std::string head = "name\tlaw\tprompt_cv\toutput_cv\tmost\n";
    const auto table = LengthTable::read(head + "chat\tgamma\t1.5\t0.5\t4\n", "t.tsv");
    ASSERT_TRUE(table.ok());
    const RequestLengths* chat = table->find("Chat");
    ASSERT_NE(chat, nullptr);
    EXPECT_EQ(chat->law, LengthLaw::gamma);
    EXPECT_EQ(chat->prompt_cv, 1.5);
    EXPECT_EQ(chat->most, 4);
    EXPECT_EQ(table->find("code"), nullptr);
    EXPECT_FALSE(LengthTable::read(head + "chat\tpareto\t1\t1\t\n", "t.tsv").ok());
    EXPECT_FALSE(LengthTable::read(head + "chat\tgamma\t-1\t1\t\n", "t.tsv").ok());
    EXPECT_FALSE(LengthTable::read(head + "chat\tgamma\t1\t1\t0.5\n", "t.tsv").ok());
    const auto embedded = LengthTable::embedded();
    ASSERT_TRUE(embedded.ok()) << embedded.error().text();
    // A burst waits for its longest answer: of ShareGPT none is ten times the mean, as an unbounded law has them.
    EXPECT_LT(embedded->find("sharegpt")->most, 5);
    EXPECT_EQ(embedded->find("uniform")->most, 20);
}

}  // namespace
}  // namespace stoker::validate
