// A setting read from the wrong words moves every figure of a source; one that is not read is a silent default.
#include "validate/stated.h"

#include <gtest/gtest.h>

#include "validate/sample.h"

namespace stoker::validate {
namespace {

constexpr const char* kHead = "column\tcell\thow\twords\tunless\tfrom\n";

Csv rows(const std::string& header, const std::string& line) {
    return *Csv::read(header + "\n" + line + "\n", "rows.csv");
}

TEST(StatedTest, WordsBecomeTheColumnThatTheyAre) {
    const Csv csv =
        rows("id,notes,framework,source,model_name,scenario,engine",
             "a,\"attn_dp=8 moe_tp=1; gemm=fp8_block moe=fp8; --swiglu --kv-channels=64\",,,,poisson qps=2.5,");
    const Row row(csv, 0);
    EXPECT_EQ(stated_number(row, "attn_dp"), 8);
    EXPECT_EQ(stated_word(row, "gemm_precision"), "fp8_block");
    EXPECT_TRUE(stated(row, "gated"));
    EXPECT_EQ(stated_number(row, "head_width"), 64);
    EXPECT_EQ(stated_number(row, "request_rate"), 2.5);
    EXPECT_EQ(stated_number(row, "moe_ep"), std::nullopt);
    EXPECT_FALSE(stated(row, "states_offload"));
}

// A load generator's run is so many requests of such lengths, however its notes put it.
TEST(StatedTest, HowManyRequestsAndOfWhichLengths) {
    const Csv csv = rows("id,notes", "a,\"1,000 requests at once, sharegpt; means of lengths\"");
    EXPECT_EQ(stated_number(Row(csv, 0), "requests"), 1000);
    EXPECT_EQ(stated_word(Row(csv, 0), "lengths"), "sharegpt");
    const Csv drawn = rows("id,notes", "a,\"500 random requests; --num-prompts=7; lengths random around the means\"");
    EXPECT_EQ(stated_number(Row(drawn, 0), "requests"), 500);
    EXPECT_EQ(stated_word(Row(drawn, 0), "lengths"), "uniform");
    const Csv silent = rows("id,notes", "a,requests at an infinite rate");
    EXPECT_FALSE(stated_number(Row(silent, 0), "requests"));
    EXPECT_FALSE(stated_word(Row(silent, 0), "lengths"));
}

// PaddleNLP's tables say it as papers do; unread, their memory was told 1.9 times too large.
TEST(StatedTest, FlashAttentionInAnySpelling) {
    for (const char* notes : {"FlashAttention, no recompute", "flash attention on", "flash_attention=True"}) {
        const Csv csv = rows("id,notes,framework", "a,\"" + std::string(notes) + "\",x");
        EXPECT_TRUE(stated(Row(csv, 0), "flash_attention")) << notes;
    }
    const Csv csv = rows("id,notes,framework", "a,without FlashAttention,x");
    EXPECT_FALSE(stated(Row(csv, 0), "flash_attention"));
}

// Who writes the column has said it; the words beside it are then only words.
TEST(StatedTest, AColumnOfTheFileGoesBeforeWords) {
    const Csv csv = rows("id,notes,attn_dp", "a,attn_dp=8,4");
    EXPECT_EQ(stated_number(Row(csv, 0), "attn_dp"), 4);
}

TEST(StatedTest, WordsBesideWhichTheOthersDoNotCount) {
    const Csv csv = rows("id,notes,framework", "a,activation offload True,torchtune");
    EXPECT_FALSE(stated(Row(csv, 0), "states_offload"));
}

TEST(StatedTest, TheEvidenceStandsBesideTheValue) {
    const Csv csv = rows("id,notes", "a,\"attn_dp=8; lora r 16\"");
    EXPECT_EQ(columns_csv(csv),
              "id,column,value,cell,words\n\"a\",attn_dp,\"8\",notes,\"attn_dp\"\n\"a\",lora_rank,\"16\",notes,\"lora "
              "r\"\n");
}

TEST(StatedTest, ATableThatReadsWhatWasMeasuredIsRefused) {
    EXPECT_TRUE(Statements::read(std::string(kHead) + "a\tnotes\tnumber\ta\t\tx\n", "t.tsv").ok());
    EXPECT_FALSE(Statements::read(std::string(kHead) + "a\tttft_ms\tnumber\ta\t\tx\n", "t.tsv").ok());
    EXPECT_FALSE(Statements::read(std::string(kHead) + "measured_a\tnotes\tnumber\ta\t\tx\n", "t.tsv").ok());
    EXPECT_FALSE(Statements::read(std::string(kHead) + "a\tnotes\tguess\ta\t\tx\n", "t.tsv").ok());
    EXPECT_FALSE(Statements::read(std::string(kHead) + "a\tnotes\tsays\t\t\tx\n", "t.tsv").ok());
}

}  // namespace
}  // namespace stoker::validate
