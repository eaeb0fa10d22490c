// What a describe of a queued run costs beside the copy of the state: why it waits, what would start it, and when it
// will start, at several places of a queue of 10,000, on a fleet of 16 nodes of 8 GPUs with earlier runs to learn from.
//   bench_describe [QUEUED=10000]
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "base/random.h"
#include "run/decide/testing.h"
#include "run/decide/why.h"

using namespace stoker;

namespace {

RunSpec draw(SplitMix& random, bool mixed) {
    RunSpec spec = run_testing::World::spec(1, 1);
    if (!mixed) return spec;
    // Many shapes, so that little can be left out of a pass.
    spec.ranks = static_cast<int>(1 + random.below(8));
    spec.per_rank.gpus = static_cast<int>(1 + random.below(8));
    spec.per_rank.cpu_milli = static_cast<std::int64_t>(500 + 500 * random.below(16));
    spec.per_rank.memory_bytes = static_cast<std::int64_t>(1 + random.below(64)) << 30;
    spec.name = fmt::format("job-{}", random.below(20));
    return spec;
}

double ms_of(const auto& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

void measure(bool mixed, std::size_t queued) {
    run_testing::World world;
    SplitMix random(7);
    for (int i = 0; i < 16; ++i) world.node(fmt::format("n{}", i), 8);
    for (int i = 0; i < 400; ++i) {
        const RunId id = world.submit(draw(random, mixed));
        world.pass();
        world.now_us += static_cast<std::int64_t>(60 + random.below(3600)) * kSecondUs;
        world.end(id);
    }
    std::vector<RunId> runs;
    for (int i = 0; i < 200; ++i) world.submit(draw(random, mixed));
    world.pass();
    for (std::size_t i = 0; i < queued; ++i) runs.push_back(world.submit(draw(random, mixed)));
    double worst = 0;
    std::int64_t most = 0;
    for (const std::size_t place : {std::size_t{0}, queued / 100, queued / 25, queued / 20, queued / 2, queued - 1}) {
        Why reason;
        Eta estimate;
        const double why_ms = ms_of([&] { reason = why(world.state, runs[place], world.now_us); });
        const double eta_ms = ms_of([&] { estimate = eta(world.state, runs[place], world.now_us); });
        worst = std::max(worst, why_ms + eta_ms);
        most = std::max(most, estimate.steps);
        fmt::print("  place {:5}: why {:6.1f} ms, ETA {:6.1f} ms, {:7} steps; p50 {:.0f} s, p90 {:.0f} s {}\n", place,
                   why_ms, eta_ms, estimate.steps, estimate.p50_s.value_or(-1), estimate.p90_s.value_or(-1),
                   estimate.text);
    }
    fmt::print("{} queued, {}: worst {:.1f} ms, bar 200; {} of at most {} steps\n", queued,
               mixed ? "shapes of all kinds" : "all alike", worst, most, kMostEtaSteps);
    fmt::print("{{\"figure\":\"why and ETA, {}\",\"queued\":{},\"worst_ms\":{:.1f},\"steps\":{}}}\n",
               mixed ? "mixed" : "alike", queued, worst, most);
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t queued = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
    if (queued < 100) {
        fmt::print(stderr, "usage: bench_describe [QUEUED >= 100]\n");
        return 2;
    }
    measure(false, queued);
    measure(true, queued);
    return 0;
}
