// A month of a fleet in simulated time: 10,000 runs, evictions, node losses, faults of every call, restarts.
//   bench_month [RUNS=10000] [NODES=24] [SEED=1]
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "run/state/rules.h"
#include "scenarios.h"
#include "simulation.h"

using namespace stoker;
using namespace stoker::sim;

int main(int argc, char** argv) {
    const int runs = argc > 1 ? std::atoi(argv[1]) : 10000;
    const int nodes = argc > 2 ? std::atoi(argv[2]) : 24;
    const auto seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    const double month = 30 * 86400.0;
    Faults faults = Faults::common();
    faults.node_lost_per_hour = faults.notice_per_hour = 0.01;
    SimulationOptions options{.seed = seed, .faults = faults, .nodes = make_nodes(nodes, 8), .check_each_turn = false};
    SplitMix random(SplitMix::mix(seed));
    for (int i = 0; i < 30; ++i) options.kill_at.insert(2 + random.below(static_cast<std::uint64_t>(runs) * 8));
    const auto began = std::chrono::steady_clock::now();
    Simulation sim(options);
    const auto scenario = mixed_runs(seed, runs, month * 0.95, 7200);
    std::map<std::string, std::string> expected;
    for (const Planned& run : scenario) {
        sim.submit_at(run.at_s, run.spec);
        expected.insert(run.outcomes.begin(), run.outcomes.end());
    }
    const bool done = sim.run_until_done(2 * month);
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    const double simulated = elapsed();
    std::map<std::string_view, int> causes;
    double used = 0;
    for (const auto& [id, run] : sim.state().runs) {
        used += static_cast<double>(run.used_us) / 3.6e9 * run.spec.ranks * run.spec.per_rank.gpus *
                run.spec.per_rank.gpu_milli / 1000;
        for (const Attempt& attempt : run.attempts) ++causes[to_string(attempt.cause)];
    }
    const bool same = sim.outcomes() == expected;
    const auto problems = sim.problems();
    for (const std::string& problem : problems) fmt::print("{}\n", problem);
    std::string list;
    for (const auto& [cause, count] : causes) list += fmt::format(" {} {}", cause, count);
    const double span = static_cast<double>(sim.now_us() - kStartUs) / 1e6;
    fmt::print("{} runs on {} nodes of 8 GPUs, {:.1f} days: {} in {:.1f} s (with the checks at the end {:.1f} s)\n",
               sim.state().runs.size(), nodes, span / 86400, done ? "done" : "NOT DONE", simulated, elapsed());
    fmt::print("{} records, {} commits, {} kills, {} launches; GPU use {:.0f} %; attempts ended:{}\n", sim.records(),
               sim.commits(), sim.kills(), sim.driver().launches(), used / (span / 3600 * nodes * 8) * 100, list);
    fmt::print("final states {}, {} problems\n", same ? "as they must be" : "DIFFER", problems.size());
    return done && same && problems.empty() ? 0 : 1;
}
