// What was measured must not get into a prediction, and a setting in the notes must be read as it is written.
#include "validate/row.h"

#include <gtest/gtest.h>

#include "validate/sample.h"

namespace stoker::validate {
namespace {

TEST(RowTest, TheHeaderTellsTheKind) {
    for (const RowKind kind : {RowKind::training, RowKind::inference, RowKind::memory}) {
        const auto csv = Csv::read(sample_csv(kind, {}), "rows.csv");
        ASSERT_TRUE(csv.ok());
        EXPECT_EQ(*kind_of(*csv, "rows.csv"), kind);
    }
    const auto other = Csv::read("id,colour\n", "rows.csv");
    EXPECT_FALSE(kind_of(*other, "rows.csv").ok());
    const auto without = Csv::read("measured_step_s\n", "rows.csv");
    EXPECT_FALSE(kind_of(*without, "rows.csv").ok());
}

TEST(RowDeathTest, AMeasuredColumnCannotBeReadAsAnInput) {
    const auto csv = Csv::read(sample_csv(RowKind::training, {training_row()}), "rows.csv");
    const Row row(*csv, 0);
    EXPECT_TRUE(row.given("measured_step_s"));
    EXPECT_EQ(row.measured("measured_step_s"), 3.5);
    EXPECT_DEATH((void)row.text("measured_step_s"), "is_measured");
    EXPECT_DEATH((void)row.number("measured_step_s"), "is_measured");
    for (const char* column : {"ttft_ms", "tpot_ms", "images_per_s", "samples_per_s", "latency_ms_p99", "peak_mem_gb",
                               "outcome", "measured_mfu_pct"})
        EXPECT_TRUE(is_measured(column)) << column;
}

TEST(RowTest, ACellThatIsNoNumberIsNamed) {
    const auto csv =
        Csv::read(sample_csv(RowKind::training, {training_row({{"layers", "many"}, {"tp", "2.5"}})}), "rows.csv");
    const Row row(*csv, 0);
    EXPECT_EQ(row.whole("gpus"), 16);
    EXPECT_FALSE(row.whole("layers"));
    EXPECT_FALSE(row.whole("tp"));
    EXPECT_EQ(row.invalid(), "layers");
    EXPECT_FALSE(row.whole("vpp"));
    EXPECT_FALSE(row.given("no such column"));
}

TEST(RowTest, SettingsInNotesAreReadByTheirNames) {
    EXPECT_EQ(number_behind("grad_accum=4; MP mode PURE", "grad_accum"), 4);
    EXPECT_FALSE(number_behind("grad_accum=4", "grad_acc"));
    EXPECT_EQ(number_behind("lora r 16.0; checked", "lora r"), 16);
    EXPECT_FALSE(number_behind("lora r ; checked", "lora r"));
    EXPECT_EQ(number_behind("trainable 2,097,152; max", "trainable"), 2097152);
    EXPECT_EQ(number_behind("tp=1, zero1=-1; ZeRO-1", "zero1"), -1);
    EXPECT_EQ(number_behind("llama-bench -b 32 is", "llama-bench -b"), 32);
    EXPECT_EQ(count_of("sonnet, 1,024 requests at once", "requests"), 1024);
    EXPECT_EQ(count_of("from requests/s; 300 requests in five minutes", "requests"), 300);
    EXPECT_FALSE(count_of("many requests", "requests"));
    EXPECT_FALSE(count_of("v100 requests", "requests"));
    EXPECT_TRUE(says("x; MP mode PURE; y", "mp mode pure"));
    EXPECT_FALSE(says("impure", "pure"));
    const std::string flags = "--num-experts=8; --swiglu=true; --use-x=false; --bare; --num=3";
    EXPECT_EQ(flag_number(flags, "num-experts"), 8);
    EXPECT_EQ(flag_number(flags, "num"), 3);
    EXPECT_TRUE(flag_set(flags, "swiglu"));
    EXPECT_FALSE(flag_set(flags, "use-x"));
    EXPECT_TRUE(flag_set(flags, "bare"));
    EXPECT_FALSE(flag_value(flags, "absent"));
}

}  // namespace
}  // namespace stoker::validate
