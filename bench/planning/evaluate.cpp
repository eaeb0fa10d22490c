// Speed of one full evaluation of a training layout (memory and every term of a step) on one core, over the layouts
// that a search visits: Llama 3 8B and a Mixtral-like MoE on 8-GPU nodes, all divisors of 64 nodes. Five repeats; one
// JSON line at the end.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "sizing/training.h"

namespace {

using namespace stoker;

TrainingSetup make_setup(bool moe) {
    TrainingSetup s;
    s.device.devices_per_node = 8;
    s.device.scale_up_domain = 8;
    s.device.peak_flops.fill(989e12);
    s.device.matmul_flops.fill(794e12);
    s.device.memory_bytes = 85e9;
    s.device.memory_bytes_per_s = 3.35e12;
    s.device.sm_count = 132;
    s.device.inside = {460e9, 6.7e-6, 17e6};
    s.device.across = {47.5e9, 5e-6, 1e6};
    s.device.across_shared_by_node = false;
    s.layers = 32;
    s.hidden = 4096;
    s.heads = 32;
    s.kv_heads = 8;
    s.head_dim = 128;
    s.ffn = 14336;
    s.vocabulary = 128256;
    s.sequence = 8192;
    s.attention_params = 2.5 * 4096 * 4096;
    s.norm_params = 2 * 4096;
    s.embedding_params = 128256.0 * 4096;
    const double feed_forward = 3.0 * 4096 * 14336;
    if (moe) {
        s.experts = 8;
        s.active_experts = 2;
        s.expert_ffn = 14336;
        s.expert_params = feed_forward;
        s.shared_params = 4096 * 8;
    } else {
        s.mlp_params = feed_forward;
    }
    s.total_params = 32 * (s.attention_params + s.norm_params + (moe ? 8 : 1) * feed_forward) + 2 * s.embedding_params;
    s.active_params = s.trainable_params = s.total_params;
    fill_gemm_table(s);
    return s;
}

std::vector<ParallelLayout> make_layouts(bool moe) {
    std::vector<ParallelLayout> layouts;
    constexpr int kGpus = 512, kBatch = 2048;
    for (const int t : {1, 2, 4, 8}) {
        for (const int p : {1, 2, 4, 8, 16, 32}) {
            for (const int c : {1, 2}) {
                for (const int b : {1, 2, 4, 8}) {
                    for (const int e : {1, 8}) {
                        for (const std::uint8_t zero : {0, 1, 2, 3}) {
                            for (const Recompute recompute : {Recompute::none, Recompute::full}) {
                                const int d = kGpus / (t * p * c);
                                if (d < 1 || kBatch % (d * b) != 0 || (e > 1 && (!moe || d < e))) continue;
                                layouts.push_back({.tensor = t,
                                                   .pipeline = p,
                                                   .context = c,
                                                   .expert = e,
                                                   .data = d,
                                                   .micro_batch = b,
                                                   .micro_batches = kBatch / (d * b),
                                                   .zero = zero,
                                                   .recompute = recompute,
                                                   .sequence_parallel = t > 1});
                            }
                        }
                    }
                }
            }
        }
    }
    return layouts;
}

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "unknown";
}

struct Spread {
    double low = 0, mid = 0, high = 0;
};

template <typename Run>
Spread measure(int rounds, double per_round, const Run& run) {
    std::array<double, 5> rates{};
    for (double& rate : rates) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < rounds; ++i) run();
        rate = rounds * per_round / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    std::sort(rates.begin(), rates.end());
    return {rates.front(), rates[2], rates.back()};
}

}  // namespace

int main() {
    std::string json;
    double sum = 0;
    for (const bool moe : {false, true}) {
        const TrainingSetup setup = make_setup(moe);
        const std::vector<ParallelLayout> layouts = make_layouts(moe);
        TrainingEstimate out;
        const Spread full = measure(400, static_cast<double>(layouts.size()), [&] {
            for (const ParallelLayout& layout : layouts) {
                evaluate(setup, layout, 64, out);
                sum += out.step_s;
            }
        });
        const Spread memory = measure(400, static_cast<double>(layouts.size()), [&] {
            for (const ParallelLayout& layout : layouts) {
                evaluate_memory(setup, layout, 64, out);
                sum += out.memory_bytes;
            }
        });
        const Spread table = measure(20, 1, [&] { sum += make_setup(moe).total_params; });
        const char* name = moe ? "moe" : "dense";
        fmt::print("{:<6} {} layouts: evaluate {:.2f} M/s ({:.2f}..{:.2f}), memory only {:.2f} M/s, setup {:.2f} ms\n",
                   name, layouts.size(), full.mid * 1e-6, full.low * 1e-6, full.high * 1e-6, memory.mid * 1e-6,
                   1e3 / table.mid);
        json += fmt::format(
            "{}\"{}\":{{\"evals_per_s_per_core\":{:.0f},\"low\":{:.0f},\"high\":{:.0f},\"memory_evals_per_s_per_core\":"
            "{:.0f},\"setup_ms\":{:.3f}}}",
            json.empty() ? "" : ",", name, full.mid, full.low, full.high, memory.mid, 1e3 / table.mid);
        if (!moe) {
            json = fmt::format("\"evals_per_s_per_core\":{:.0f},\"low\":{:.0f},\"high\":{:.0f},{}", full.mid, full.low,
                               full.high, json);
        }
    }
#ifdef STOKER_COMMIT
    const char* commit = STOKER_COMMIT;
#else
    const char* commit = "unknown";
#endif
    // The sum keeps the compiler from leaving the work out.
    fmt::print("{{\"bench\":\"evaluate\",\"machine\":\"{}\",\"commit\":\"{}\",\"repeats\":5,{},\"check\":{:.6e}}}\n",
               cpu_name(), commit, json, sum);
    return 0;
}
