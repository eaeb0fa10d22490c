// Measures matrix products and memory traffic of the machine. The product is blocked and packed the way BLAS libraries
// do it (Goto and van de Geijn, 2008): a panel of B stays in the second cache, a tile of C in registers.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>

#include "base/result.h"
#include "io/clock.h"
#include "io/machine/machine.h"
#include "io/processor_time.h"

// A debug build must not call the machine slow: the loops below are compiled for speed in every build.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

namespace stoker {
namespace {

// One tile: C[R x 2W] += A panel (depth x R, packed) times B panel (depth x 2W, packed), W the floats of a vector.
using Tile = void (*)(int depth, const float* a, const float* b, float* c, int stride);

// A macro and not a template, since the instructions are an attribute of the function. R * 2 sums plus two of B and one
// of A fit the registers: 16 of them for AVX2, 32 for AVX-512.
#define STOKER_TILE(NAME, ATTRIBUTES, W, R)                                                                      \
    ATTRIBUTES void NAME(int depth, const float* a, const float* b, float* c, int stride) {                      \
        typedef float Vector __attribute__((vector_size(W * 4), aligned(4), may_alias));                         \
        Vector sum[R][2];                                                                                        \
        for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = Vector{};                                            \
        for (int k = 0; k < depth; ++k, a += R, b += 2 * W) {                                                    \
            const Vector b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + W); \
            STOKER_UNROLL for (int r = 0; r < R; ++r) {                                                          \
                sum[r][0] += a[r] * b0;                                                                          \
                sum[r][1] += a[r] * b1;                                                                          \
            }                                                                                                    \
        }                                                                                                        \
        for (int r = 0; r < R; ++r, c += stride) {                                                               \
            *reinterpret_cast<Vector*>(c) += sum[r][0];                                                          \
            *reinterpret_cast<Vector*>(c + W) += sum[r][1];                                                      \
        }                                                                                                        \
    }
#define STOKER_UNROLL _Pragma("GCC unroll 16")

STOKER_TILE(tile_portable, , 4, 4)
#if defined(__x86_64__)
STOKER_TILE(tile_avx2, __attribute__((target("avx2,fma"))), 8, 6)
STOKER_TILE(tile_avx512, __attribute__((target("avx512f"))), 16, 12)
#endif
#undef STOKER_TILE

struct Kernel {
    const char* name;
    Tile tile;
    int rows, columns;  // of a tile
};

std::vector<Kernel> kernels() {
    std::vector<Kernel> out;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) out.push_back({"avx512f", tile_avx512, 12, 32});
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back({"avx2", tile_avx2, 6, 16});
#endif
    out.push_back({"portable", tile_portable, 4, 8});
    return out;
}

constexpr int kDepth = 256, kRows = 96, kColumns = 512;  // blocks: A 96 KiB, B 512 KiB

// Rows from `first` on, `count` of them, in panels of `rows`, each depth by depth; missing rows are zero.
void pack_a(const Kernel& kernel, const float* a, int lead, int count, int depth, float* out) {
    for (int i = 0; i < count; i += kernel.rows)
        for (int k = 0; k < depth; ++k)
            for (int r = 0; r < kernel.rows; ++r) *out++ = i + r < count ? a[(i + r) * lead + k] : 0.0F;
}

void pack_b(const Kernel& kernel, const float* b, int lead, int count, int depth, float* out) {
    for (int j = 0; j < count; j += kernel.columns)
        for (int k = 0; k < depth; ++k)
            for (int c = 0; c < kernel.columns; ++c) *out++ = j + c < count ? b[k * lead + j + c] : 0.0F;
}

// Tiles at the rim go through a small square, so that the inner loop has no conditions.
void tile_at_rim(const Kernel& kernel, int depth, const float* a, const float* b, float* c, int lead, int rows,
                 int columns) {
    float square[12 * 32] = {};
    kernel.tile(depth, a, b, square, kernel.columns);
    for (int r = 0; r < rows; ++r)
        for (int j = 0; j < columns; ++j) c[r * lead + j] += square[r * kernel.columns + j];
}

void multiply_block(const Kernel& kernel, const float* packed_a, const float* packed_b, int rows, int columns,
                    int depth, float* c, int lead) {
    for (int j = 0; j < columns; j += kernel.columns) {
        const float* b = packed_b + static_cast<std::ptrdiff_t>(j) * depth;
        for (int i = 0; i < rows; i += kernel.rows) {
            const float* a = packed_a + static_cast<std::ptrdiff_t>(i) * depth;
            float* tile = c + static_cast<std::ptrdiff_t>(i) * lead + j;
            const bool whole = i + kernel.rows <= rows && j + kernel.columns <= columns;
            if (whole)
                kernel.tile(depth, a, b, tile, lead);
            else
                tile_at_rim(kernel, depth, a, b, tile, lead, std::min(kernel.rows, rows - i),
                            std::min(kernel.columns, columns - j));
        }
    }
}

void multiply_with(const Kernel& kernel, int rows, int columns, int depth, const float* a, const float* b, float* c) {
    std::vector<float> packed_a((kRows + kernel.rows) * kDepth), packed_b((kColumns + kernel.columns) * kDepth);
    for (int k = 0; k < depth; k += kDepth) {
        const int block_depth = std::min(kDepth, depth - k);
        for (int j = 0; j < columns; j += kColumns) {
            const int block_columns = std::min(kColumns, columns - j);
            pack_b(kernel, b + static_cast<std::ptrdiff_t>(k) * columns + j, columns, block_columns, block_depth,
                   packed_b.data());
            for (int i = 0; i < rows; i += kRows) {
                const int block_rows = std::min(kRows, rows - i);
                pack_a(kernel, a + static_cast<std::ptrdiff_t>(i) * depth + k, depth, block_rows, block_depth,
                       packed_a.data());
                multiply_block(kernel, packed_a.data(), packed_b.data(), block_rows, block_columns, block_depth,
                               c + static_cast<std::ptrdiff_t>(i) * columns + j, columns);
            }
        }
    }
}

// The processor time of the busiest thread: what all of them take on a machine that has nothing else to do. By the
// clock on the wall a machine that compiles something beside would look many times slower than it is.
double on_all(int threads, const std::function<void(int)>& work) {
    std::vector<double> took(static_cast<std::size_t>(threads));
    const auto timed = [&](int t) {
        const double start = processor_s_of_thread();
        work(t);
        took[static_cast<std::size_t>(t)] = processor_s_of_thread() - start;
    };
    {
        std::vector<std::jthread> others;
        for (int t = 1; t < threads; ++t) others.emplace_back([&timed, t] { timed(t); });
        timed(0);
    }
    return *std::max_element(took.begin(), took.end());
}

Spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    return {values.front(), values[values.size() / 2], values.back(), static_cast<int>(values.size())};
}

// Repeats until the time is used up, at least once; `amount` is what one repeat does, and `work` says what it took.
Spread repeat(double seconds, double amount, const std::function<double()>& work) {
    std::vector<double> rates;
    const double end = monotonic_seconds() + seconds;
    double longest = 0;
    do {
        const double start = monotonic_seconds();
        rates.push_back(amount / std::max(work(), 1e-9));
        longest = std::max(longest, monotonic_seconds() - start);
    } while (monotonic_seconds() + longest < end);
    return spread_of(std::move(rates));
}

Spread measure_matmul(const Kernel& kernel, int threads, double seconds) {
    // Each thread has its own rows of C and A; all read the same B.
    const auto run = [&](int n, const float* a, const float* b, float* c) {
        return on_all(threads, [&](int t) {
            const int first = n * t / threads, end = n * (t + 1) / threads;
            const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(first) * n;
            if (end > first) multiply_with(kernel, end - first, n, n, a + offset, b, c + offset);
        });
    };
    // A small product, also the warm-up, tells which size takes about a twentieth of the time.
    int n = 256;
    std::vector<float> a, b, c;
    const auto fill = [&] {
        const auto size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
        a.assign(size, 0.5F);
        b.assign(size, 0.25F);
        c.assign(size, 0.0F);
    };
    fill();
    const Spread small = repeat(seconds / 10, 2.0 * n * n * n, [&] { return run(n, a.data(), b.data(), c.data()); });
    const double wanted = std::cbrt(small.max * seconds / 20 / 2);
    n = static_cast<int>(std::clamp(wanted, 256.0, 8192.0)) / 192 * 192 + 192;
    fill();
    return repeat(seconds * 0.85, 2.0 * n * n * n, [&] { return run(n, a.data(), b.data(), c.data()); });
}

Spread measure_triad(const Machine& machine, int threads, double seconds) {
    // Arrays beyond four times the cache, as STREAM asks, but never more than an eighth of the memory for all three.
    const double cache = machine.last_level_cache.v > 0 ? machine.last_level_cache.v * machine.sockets : 32 * kMiB;
    double bytes = std::clamp(4 * cache, 64 * kMiB, 1024 * kMiB);
    if (machine.usable_memory().v > 0) bytes = std::min(bytes, machine.usable_memory().v / 24);
    const auto size = static_cast<std::size_t>(bytes / sizeof(double));
    // Not initialised here: each thread first touches the pages that it will use, which places them near it.
    const std::unique_ptr<double[]> a(new double[size]), b(new double[size]), c(new double[size]);
    const auto part = [&](int t) {
        return std::pair(size * static_cast<std::size_t>(t) / static_cast<std::size_t>(threads),
                         size * static_cast<std::size_t>(t + 1) / static_cast<std::size_t>(threads));
    };
    on_all(threads, [&](int t) {
        const auto [begin, end] = part(t);
        std::fill(a.get() + begin, a.get() + end, 0.0);
        std::fill(b.get() + begin, b.get() + end, 1.0);
        std::fill(c.get() + begin, c.get() + end, 2.0);
    });
    return repeat(seconds, 24.0 * static_cast<double>(size), [&] {
        return on_all(threads, [&](int t) {
            const auto [begin, end] = part(t);
            double* const out = a.get();
            const double* const in = b.get();
            const double* const scaled = c.get();
            for (std::size_t i = begin; i < end; ++i) out[i] = in[i] + 3.0 * scaled[i];
        });
    });
}

}  // namespace

MachineSpeed measure_machine(const Machine& machine, bool quick) {
    const Kernel kernel = kernels().front();
    MachineSpeed speed;
    speed.kernel = kernel.name;
    speed.threads = machine.usable_cores();
    speed.matmul_flops = measure_matmul(kernel, speed.threads, quick ? 0.8 : 8);
    speed.triad_bytes = measure_triad(machine, speed.threads, quick ? 0.5 : 6);
    return speed;
}

CoreSpeed measure_core(const Machine& machine, double seconds) {
    CoreSpeed speed;
    // A thread of its own: the affinity of the caller stays.
    std::jthread([&] {
        if (const int here = ::sched_getcpu(); here >= 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<unsigned>(here), &one);
            if (::sched_setaffinity(0, sizeof one, &one) == 0) speed.processor = here;
        }
        const double wall = monotonic_seconds(), processor = processor_s_of_thread();
        speed.matmul_flops = measure_matmul(kernels().front(), 1, seconds / 2).max;
        // Three arrays of the last cache, but no more than what is touched in a moment.
        Machine small = machine;
        small.sockets = 1;
        small.last_level_cache = Bytes(std::clamp(machine.last_level_cache.v, 16 * kMiB, 24 * kMiB));
        speed.triad_bytes = measure_triad(small, 1, seconds / 2).max;
        speed.share_of_core =
            std::min(1.0, (processor_s_of_thread() - processor) / std::max(1e-9, monotonic_seconds() - wall));
    }).join();
    return speed;
}

namespace machine_detail {

std::vector<std::string> kernels_here() {
    std::vector<std::string> names;
    for (const Kernel& kernel : kernels()) names.emplace_back(kernel.name);
    return names;
}

void multiply(const std::string& name, int rows, int columns, int depth, const float* a, const float* b, float* c) {
    const std::vector<Kernel> all = kernels();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Kernel& kernel) { return name == kernel.name; });
    CHECK(found != all.end());
    multiply_with(*found, rows, columns, depth, a, b, c);
}

}  // namespace machine_detail
}  // namespace stoker
