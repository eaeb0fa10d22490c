// One digit more in a name is another processor with twice the cores.
#include "validate/processors.h"

#include <gtest/gtest.h>

namespace stoker::validate {
namespace {

TEST(ProcessorsTest, TheLongestPartOfANameDecides) {
    const Processors all = *Processors::embedded();
    ASSERT_NE(all.find("CPU: Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz"), nullptr);
    EXPECT_EQ(all.find("CPU: Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz")->cores, 28);
    EXPECT_EQ(all.find("CPU: Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz")->cores, 40);
    EXPECT_EQ(all.find("CPU: Abacus"), nullptr);
}

TEST(ProcessorsTest, ASocketComputesWhatItsInstructionsDo) {
    const Processors all = *Processors::embedded();
    const Catalog catalog = *Catalog::embedded();
    const Device device = device_of(*all.find("CPU: INTEL(R) XEON(R) PLATINUM 8592+"), catalog);
    EXPECT_FALSE(device.gpu);
    EXPECT_NEAR(device.peak(Precision::int8), 64 * 1.9e9 * 2048, 1e9);
    EXPECT_NEAR(device.memory_bytes_per_s, 358.4e9, 1e6);
    EXPECT_GT(device.matmul(Precision::bf16), 0);
}

TEST(ProcessorsTest, ATableWithoutCoresIsRefused) {
    const std::string head =
        "words\tname\tcores\tghz\tfp32_flop_per_cycle\tbf16_flop_per_cycle\tint8_op_per_cycle\t"
        "memory_gb_s\n";
    EXPECT_TRUE(Processors::read(head + "9\tNine\t4\t2\t32\t\t\t20\n", "t.tsv").ok());
    EXPECT_FALSE(Processors::read(head + "9\tNine\t0\t2\t32\t\t\t20\n", "t.tsv").ok());
    EXPECT_FALSE(Processors::read(head + "\tNine\t4\t2\t32\t\t\t20\n", "t.tsv").ok());
}

}  // namespace
}  // namespace stoker::validate
