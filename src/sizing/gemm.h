// One matrix multiplication on one device: the roofline with tile, wave and depth quantisation. Sources: NVIDIA Matrix
// Multiplication Background User's Guide (tiles, waves, split-K); Williams et al. 2009 (roofline).
#pragma once

namespace stoker {

struct GemmDevice {
    double flops = 0;        // ceiling for large matrices, FLOP/s
    double bytes_per_s = 0;  // of memory, achievable
    double sm_count = 0;     // 0: nothing is known of waves (CPU)
    double k0 = 350;         // q_K = K/(K + k0): prologue and epilogue of a tile
    double tile_half = 16;   // a tile's rate is i/(i + tile_half), i = m n/(m + n), relative to the largest tile
    double aligned = 8;      // elements; other sizes leave the fast path of the tensor cores
    double misaligned_rate = 0.5;
    double partial_rate = 1;  // of sizes that are aligned, but to no 128 bytes: 8 times `aligned`
    double split_k_max = 4;
};

// Share of the ceiling, in (0, 1]: the best over tile shapes and split-K.
double gemm_quantisation(const GemmDevice& device, double m, double n, double k) noexcept;
// Seconds of (m x k) (k x n), `bytes` per element of the operands; the result is written in `out_bytes`.
double gemm_s(const GemmDevice& device, double m, double n, double k, double bytes, double out_bytes) noexcept;

}  // namespace stoker
