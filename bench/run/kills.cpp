// kill -9 of the server at random writes of the journal, in a scenario of 50 runs: what is lost, run twice, left
// behind?
//   bench_kills [POINTS=1000] [SEED=1]
// Each point is a simulation of its own, killed once there; half of the kills come before the commit, half after it and
// before anything left the process. The final states must be those of the same scenario without a kill.
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "scenarios.h"
#include "simulation.h"

using namespace stoker;
using namespace stoker::sim;

int main(int argc, char** argv) {
    const auto points = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    const auto seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    const auto scenario = mixed_runs(seed, 50, 1800, 400);
    const auto began = std::chrono::steady_clock::now();
    const auto play = [&](std::set<std::uint64_t> kill_at) {
        auto sim = std::make_unique<Simulation>(SimulationOptions{
            .seed = seed, .faults = Faults::common(), .kill_at = std::move(kill_at), .snapshot_every = 200});
        for (const Planned& run : scenario) sim->submit_at(run.at_s, run.spec);
        if (!sim->run_until_done(60 * 86400.0)) fmt::print("not done\n");
        return sim;
    };
    const auto whole = play({});
    const auto outcomes = whole->outcomes();
    for (const std::string& problem : whole->problems()) fmt::print("without a kill: {}\n", problem);
    const std::uint64_t commits = whole->commits();
    SplitMix random(SplitMix::mix(seed));
    std::uint64_t kills = 0, other = 0, broken = 0;
    for (std::uint64_t i = 0; i < points; ++i) {
        const std::uint64_t at = 2 + random.below(commits - 2);
        const auto sim = play({at});
        kills += sim->kills();
        if (sim->outcomes() != outcomes) {
            ++other;
            fmt::print("kill at commit {}: other final states\n", at);
        }
        for (const std::string& problem : sim->problems()) {
            ++broken;
            fmt::print("kill at commit {}: {}\n", at, problem);
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    fmt::print(
        "{} runs, {} commits, {} kills at random commits: {} with other final states, {} problems (lost, twice "
        "at once, left behind, journal unequal to state); {:.1f} s\n",
        outcomes.size(), commits, kills, other, broken, seconds);
    return other + broken == 0 ? 0 : 1;
}
