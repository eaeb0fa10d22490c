// One digit more in a name is another processor with twice the cores.
#include "validate/processors.h"

#include <gtest/gtest.h>

#include <vector>

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

// Generations share sockets, memory and instructions: a row typed wrong computes in a mode its silicon does not have,
// or reads faster than its channels.
TEST(ProcessorsTest, EachOneIsOfItsGeneration) {
    struct Generation {
        std::string_view name;
        double bf16, int8, memory_gb_s;
        std::vector<std::string_view> printed;
    };
    const std::vector<Generation> generations{
        {"EPYC Milan", 0, 0, 204.8, {"AMD EPYC 7543 32-Core", "AMD EPYC 7B13", "AMD EPYC 7R13"}},
        {"EPYC Genoa",
         64,
         128,
         460.8,
         {"AMD EPYC 9334", "AMD EPYC 9354", "AMD EPYC 9454", "AMD EPYC 9534", "AMD EPYC 9554", "AMD EPYC 9654"}},
        {"EPYC Genoa-X", 64, 128, 460.8, {"AMD EPYC 9684X"}},
        {"EPYC Bergamo", 64, 128, 460.8, {"AMD EPYC 9754 128-Core"}},
        {"EPYC Turin", 128, 256, 576, {"AMD EPYC 9575F", "AMD EPYC 9755"}},
        {"Xeon Ice Lake", 0, 256, 204.8, {"Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz"}},
        {"Xeon Sapphire Rapids",
         1024,
         2048,
         307.2,
         {"Intel Xeon Gold 6454S", "Intel Xeon Platinum 8462Y+", "Intel Xeon Platinum 8468", "Intel Xeon 8488C"}},
        {"Xeon Emerald Rapids", 1024, 2048, 358.4, {"Intel Xeon Platinum 8568Y+"}},
        {"Graviton3 (Neoverse V1)", 64, 128, 307.2, {"AWS Graviton3"}},
        {"Graviton4 (Neoverse V2)", 64, 128, 537.6, {"AWS Graviton4"}},
        {"Xeon Max (Sapphire Rapids)", 1024, 2048, 1638.4, {"Intel Xeon Max 9460 (40 cores, HBM)"}},
    };
    const Processors all = *Processors::embedded();
    for (const Generation& generation : generations)
        for (const std::string_view printed : generation.printed) {
            const Processor* found = all.find(printed);
            ASSERT_NE(found, nullptr) << printed;
            EXPECT_EQ(found->name, generation.name) << printed;
            EXPECT_EQ(found->bf16, generation.bf16) << printed;
            EXPECT_EQ(found->int8, generation.int8) << printed;
            EXPECT_EQ(found->memory_gb_s, generation.memory_gb_s) << printed;
            EXPECT_GE(found->cores, 28) << printed;
        }
    EXPECT_EQ(all.find("AMD EPYC 9684X")->cores, 96);
    EXPECT_EQ(all.find("AMD EPYC 9754 128-Core")->cores, 128);
    EXPECT_EQ(all.find("Intel Xeon Platinum 8468")->cores, 48);
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
