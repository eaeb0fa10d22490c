// Speed of the serving simulator on one core: engine steps simulated per second, decisions per second (steps between
// two events are taken together and count as one decision), and the time of a search for the sustained rate. One JSON
// line.
#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sizing/serving.h"

namespace {

using namespace stoker;

// Llama-3 8B in BF16 on an H100; figures of the model card and the data sheet.
ServingSetup setup(SchedulerPolicy policy) {
    ServingSetup s;
    s.device.memory_bytes = 79.1 * kGiB;
    s.device.memory_bytes_per_s = 3.35e12;
    s.device.peak_flops[static_cast<std::size_t>(Precision::bf16)] = 989e12;
    s.layers = s.dense_layers = 32;
    s.hidden = 4096;
    s.heads = 32;
    s.kv_heads = 8;
    s.head_dim = 128;
    s.ffn = 14336;
    s.vocabulary = 128256;
    s.attention_params = 42e6;
    s.mlp_params = 176e6;
    s.head_params = 525e6;
    s.embedding_params = 1050e6;
    s.total_params = s.active_params = 8.03e9;
    s.weight_bytes = 16.06e9;
    s.kv_bytes_per_token = 131072;
    s.decode_attention_flops = s.prompt_attention_flops = 4 * 32 * 4096;
    s.framework_bytes = kGiB;
    s.policy = policy;
    s.prompt_tokens = 1500;
    s.output_tokens = 300;
    s.prompt_cv = s.output_cv = 0.6;
    return s;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Spread {
    double low = 0, mid = 0, high = 0;
};
Spread spread(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return {v.front(), v[v.size() / 2], v.back()};
}

struct Case {
    std::string name;
    ServingSetup setup;
    ServingLoad load;
};

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    utsname name{};
    return uname(&name) == 0 ? name.machine : "unknown";
}

}  // namespace

int main() {
    const std::vector<Case> cases{
        {"chunked open 8/s", setup(SchedulerPolicy::chunked), {.requests_per_second = 8, .requests = 5000}},
        {"chunked open 1/s", setup(SchedulerPolicy::chunked), {.requests_per_second = 1, .requests = 5000}},
        {"prefill_first open 8/s", setup(SchedulerPolicy::prefill_first), {.requests_per_second = 8, .requests = 5000}},
        {"in_flight closed 128", setup(SchedulerPolicy::in_flight), {.concurrency = 128, .requests = 5000}},
    };
    constexpr int kRuns = 15;
    std::string json;
    for (const Case& c : cases) {
        std::vector<double> steps, decisions;
        for (int run = 0; run < kRuns; ++run) {
            ServingLoad load = c.load;
            load.seed = static_cast<std::uint64_t>(run) + 1;
            const auto start = std::chrono::steady_clock::now();
            const ServingOutcome o = simulate_serving(c.setup, {1, 1}, load);
            const double s = seconds_since(start);
            steps.push_back(static_cast<double>(o.steps) / s);
            decisions.push_back(static_cast<double>(o.decisions) / s);
        }
        const Spread a = spread(steps), b = spread(decisions);
        fmt::print("{:<24} {:6.2f} M steps/s ({:.2f}..{:.2f})   {:6.2f} M decisions/s ({:.2f}..{:.2f})\n", c.name,
                   a.mid * 1e-6, a.low * 1e-6, a.high * 1e-6, b.mid * 1e-6, b.low * 1e-6, b.high * 1e-6);
        json += fmt::format(
            "{}{{\"case\":\"{}\",\"steps_per_s\":[{:.0f},{:.0f},{:.0f}],\"decisions_per_s\":[{:.0f},{:.0f},{:.0f}]}}",
            json.empty() ? "" : ",", c.name, a.low, a.mid, a.high, b.low, b.mid, b.high);
    }
    LatencySpec latency;
    latency.ttft_p95 = Seconds(0.8);
    latency.tpot_p95 = Seconds(0.05);
    std::vector<double> searches;
    for (int run = 0; run < 5; ++run) {
        const auto start = std::chrono::steady_clock::now();
        const double rate = sustained_rate(setup(SchedulerPolicy::chunked), {1, 1}, latency);
        searches.push_back(seconds_since(start) + (rate > 0 ? 0 : 1e9));
    }
    const Spread s = spread(searches);
    fmt::print("sustained_rate           {:6.1f} ms ({:.1f}..{:.1f})\n", s.mid * 1e3, s.low * 1e3, s.high * 1e3);
#ifdef STOKER_COMMIT
    const char* commit = STOKER_COMMIT;
#else
    const char* commit = "unknown";
#endif
    fmt::print(
        "{{\"bench\":\"serving\",\"machine\":\"{}\",\"cores\":{},\"commit\":\"{}\",\"runs\":{},\"cases\":[{}],"
        "\"sustained_rate_s\":[{:.4f},{:.4f},{:.4f}]}}\n",
        cpu_name(), std::thread::hardware_concurrency(), commit, kRuns, json, s.low, s.mid, s.high);
    return 0;
}
