#include "sizing/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker {
namespace {

struct Tile {
    double m, n;
};
// Output tiles that cuBLAS chooses among, largest first (NVIDIA Matrix Multiplication Background User's Guide, table
// 1).
constexpr std::array<Tile, 7> kTiles{{{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 64}}};

double intensity(Tile tile) noexcept {
    return tile.m * tile.n / (tile.m + tile.n);
}

bool multiple(double value, double of) noexcept {
    const double q = value / of;
    return std::abs(q - std::round(q)) < 1e-9;
}

}  // namespace

double gemm_quantisation(const GemmDevice& device, double m, double n, double k) noexcept {
    // Tensor cores take multiples of 16 bytes; what is a multiple of 128 bytes is read in whole lines (Matrix
    // Multiplication Background, section 2.2: on A100 the most efficient).
    const double line = 8 * device.aligned;
    const bool whole = multiple(n, device.aligned) && multiple(k, device.aligned);
    // A processor without tiles was measured by shape.
    if (device.sm_count <= 0) return whole ? 1 : device.misaligned_rate;
    const double aligned = !whole                                     ? device.misaligned_rate
                           : !multiple(n, line) || !multiple(k, line) ? device.partial_rate
                                                                      : 1;
    const double largest = intensity(kTiles[0]) / (intensity(kTiles[0]) + device.tile_half);
    double best = 0;
    for (const Tile tile : kTiles) {
        const double tiles = std::ceil(m / tile.m) * std::ceil(n / tile.n);
        const double q_tile = m * n / (tiles * tile.m * tile.n);
        const double rate = intensity(tile) / (intensity(tile) + device.tile_half) / largest;
        for (double split = 1; split <= device.split_k_max; split *= 2) {
            const double waves = tiles * split / device.sm_count;
            const double q_wave = waves / std::ceil(waves);
            const double depth = k / split;
            best = std::max(best, q_tile * q_wave * rate * depth / (depth + device.k0));
        }
    }
    return std::min(1.0, best * aligned);
}

double gemm_s(const GemmDevice& device, double m, double n, double k, double bytes, double out_bytes) noexcept {
    if (m <= 0 || n <= 0 || k <= 0) return 0;
    const double compute = 2 * m * n * k / (device.flops * gemm_quantisation(device, m, n, k));
    const double traffic = (bytes * (m * k + k * n) + out_bytes * m * n) / device.bytes_per_s;
    return std::max(compute, traffic);
}

}  // namespace stoker
