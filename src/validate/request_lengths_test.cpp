// A load whose lengths are taken for another's is told at another rate.
#include "validate/request_lengths.h"

#include <gtest/gtest.h>

namespace stoker::validate {
namespace {

TEST(RequestLengthsTest, ATableOfNamesAndTheirSpreads) {
    const std::string head = "name\tlaw\tprompt_cv\toutput_cv\n";
    const auto table = LengthTable::read(head + "chat\tgamma\t1.5\t0.5\n", "t.tsv");
    ASSERT_TRUE(table.ok());
    const RequestLengths* chat = table->find("Chat");
    ASSERT_NE(chat, nullptr);
    EXPECT_EQ(chat->law, LengthLaw::gamma);
    EXPECT_EQ(chat->prompt_cv, 1.5);
    EXPECT_EQ(table->find("code"), nullptr);
    EXPECT_FALSE(LengthTable::read(head + "chat\tpareto\t1\t1\n", "t.tsv").ok());
    EXPECT_FALSE(LengthTable::read(head + "chat\tgamma\t-1\t1\n", "t.tsv").ok());
    EXPECT_TRUE(LengthTable::embedded().ok());
}

}  // namespace
}  // namespace stoker::validate
