#include "sizing/gemm.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

GemmDevice device() {
    return {.flops = 257e12, .bytes_per_s = 1.6e12, .sm_count = 108};
}

// No shape beats the ceiling or the memory, whatever its tiles.
TEST(Gemm, NeverBeatsTheRoofline) {
    for (double m = 1; m < 40000; m = m * 1.7 + 3) {
        for (double n = 8; n < 60000; n = n * 1.9 + 8) {
            for (const double k : {16.0, 512.0, 4096.0, 12289.0}) {
                const double q = gemm_quantisation(device(), m, n, k);
                EXPECT_GT(q, 0);
                EXPECT_LE(q, 1);
                EXPECT_GE(gemm_s(device(), m, n, k, 2, 2), 2 * m * n * k / device().flops);
            }
        }
    }
}

// 109 tiles on 108 multiprocessors take two waves; 108 take one (NVIDIA Matrix Multiplication Background, wave
// quantisation).
TEST(Gemm, OneTileTooManyCostsAWave) {
    const double full = gemm_quantisation(device(), 256 * 108, 128, 4096);
    const double over = gemm_quantisation(device(), 256 * 108 + 256, 128, 4096);
    EXPECT_GT(full, 0.9);
    EXPECT_LT(over, 0.95 * full);
}

// A sliver of a matrix is bound by memory, a large one by the ceiling.
TEST(Gemm, SmallBatchesAreBoundByMemory) {
    EXPECT_NEAR(gemm_s(device(), 1, 8192, 8192, 2, 2), 2.0 * 8192 * 8192 / 1.6e12, 1e-6);
    EXPECT_GT(gemm_quantisation(device(), 8192, 8192, 8192), 0.85);
}

// Odd sizes leave the fast path of the tensor cores.
TEST(Gemm, MisalignedSizesAreSlower) {
    EXPECT_GT(gemm_s(device(), 4096, 4097, 4096, 2, 2), 1.5 * gemm_s(device(), 4096, 4096, 4096, 2, 2));
}

// What is a multiple of 16 bytes but not of 128 lies between: hidden 14,400 over 8 ranks (1,800) lost a fifth of its
// rate against 13,824 (1,728) on A100.
TEST(Gemm, PartlyAlignedSizesLieBetween) {
    GemmDevice partly = device();
    partly.partial_rate = 0.75;
    const double whole = gemm_s(partly, 4096, 1792, 14336, 2, 2) / (1792 * 14336.0),
                 part = gemm_s(partly, 4096, 1800, 14400, 2, 2) / (1800 * 14400.0),
                 odd = gemm_s(partly, 4096, 1801, 14400, 2, 2) / (1801 * 14400.0);
    EXPECT_GT(part, 1.2 * whole);
    EXPECT_GT(odd, 1.2 * part);
}

// Lines of 128 bytes are those of a GPU: a local training of hidden size 352 is not told to be slower for them.
TEST(Gemm, ACpuKnowsNoPartlyAlignedSizes) {
    GemmDevice cpu = device();
    cpu.sm_count = 0;
    cpu.partial_rate = 0.75;
    EXPECT_EQ(gemm_quantisation(cpu, 512, 352, 352), 1);
    EXPECT_EQ(gemm_quantisation(cpu, 512, 353, 352), cpu.misaligned_rate);
}

// Nothing is known of the waves of a CPU: only alignment counts.
TEST(Gemm, CpusHaveNoWaves) {
    GemmDevice cpu = device();
    cpu.sm_count = 0;
    EXPECT_EQ(gemm_quantisation(cpu, 7, 64, 64), 1);
}

}  // namespace
}  // namespace stoker
