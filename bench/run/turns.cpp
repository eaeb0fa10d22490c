// How long a turn of the core takes while a snapshot of many runs is written: whole, as before, and piece by piece.
//   bench_turns [FOLDER=.] [RUNS=100000]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "run/core/core.h"

using namespace stoker;

namespace {

template <class T>
T must(Result<T> result) {
    if (result) return std::move(*result);
    fmt::print(stderr, "{}\n", result.error().text());
    std::exit(3);
}

void measure(const std::string& folder, int runs, std::size_t piece_bytes, const char* what) {
    std::filesystem::remove_all(folder);
    const auto journal = must(Journal::open(folder, {}));
    std::int64_t now = 1'700'000'000'000'000;
    const auto core = must(Core::open(*journal,
                                      {.site = "bench",
                                       .log_root = folder,
                                       .snapshot_every = 1,
                                       .snapshot_piece_bytes = piece_bytes,
                                       .max_queued = std::size_t{1} << 30,
                                       .max_ended = std::size_t{1} << 30},
                                      now));
    RunSpec spec;
    spec.name = "job";
    spec.command = {"python", "train.py", "--config", "config.yaml"};
    std::vector<double> turns;
    const auto take = [&](const std::vector<Command>& commands) {
        now += 25'000;
        const auto began = std::chrono::steady_clock::now();
        (void)must(core->turn(commands, now));
        turns.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    };
    for (int made = 0; made < runs;) {
        std::vector<Command> batch;
        for (int i = 0; i < 200 && made < runs; ++i)
            batch.push_back({.what = Submit{.spec = spec, .key = std::to_string(++made)}});
        take(batch);
        batch.clear();
        for (std::uint64_t id = core->state().runs_made; id > core->state().runs_made - 200 && id > 0; --id)
            batch.push_back({.what = CancelRun{{id}}});
        take(batch);
    }
    // From here on every four times as many records as runs a snapshot comes due; one record a turn, until one is done.
    turns.clear();
    const RunId last = must(core->turn(std::vector<Command>{{.what = Submit{.spec = spec}}}, now)).acks[0]->run;
    const std::uint64_t before = must(journal->newest_snapshot()).value_or(Snapshot{}).seq;
    bool held = false;
    const std::uint64_t due = 4 * static_cast<std::uint64_t>(runs);
    for (std::uint64_t at = core->state().seq; core->state().seq < at + due + 400;) {
        std::vector<Command> batch;
        for (int i = 0; i < 400; ++i) batch.push_back({.what = HoldRun{last, held = !held}});
        take(batch);
    }
    for (int i = 0; i < 2000; ++i) take({{.what = HoldRun{last, held = !held}}});
    const std::uint64_t after = must(journal->newest_snapshot()).value_or(Snapshot{}).seq;
    std::sort(turns.begin(), turns.end());
    fmt::print("{:16} {} runs: longest turn {:.1f} ms, 99 % within {:.1f} ms; a snapshot was {}\n", what, runs,
               turns.back() * 1e3, turns[turns.size() * 99 / 100] * 1e3, after > before ? "written" : "NOT WRITTEN");
    std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string folder = std::string(argc > 1 ? argv[1] : ".") + "/bench-turns";
    const int runs = argc > 2 ? std::atoi(argv[2]) : 100'000;
    measure(folder, runs, std::size_t{1} << 40, "whole");
    measure(folder, runs, 256 << 10, "piece by piece");
    return 0;
}
