// Replicas of a real server on this machine: how long from nothing to the first that answers, to several, back after
// kill -9, and to nothing again.
//
//     bench_replicas FOLDER MODEL N -- COMMAND... with {port}
//     bench_replicas /tmp/pool stoker-tiny 3 -- V/bin/python examples/serve-tiny/serve_gguf.py tiny.gguf {port}
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/enum_words.h"
#include "io/clock.h"
#include "serve/replicas/pool.h"

namespace stoker {
namespace {

int ready(const PoolPicture& picture) {
    int n = 0;
    for (const PoolReplica& r : picture.replicas)
        n += r.state == ReplicaState::ready || r.state == ReplicaState::slow_start ? 1 : 0;
    return n;
}

// Seconds until it holds; ends the program after two minutes.
template <class Condition>
double seconds_until(const ReplicaPool& pool, const char* what, Condition condition) {
    const double from_s = monotonic_seconds();
    while (!condition(pool.picture())) {
        if (monotonic_seconds() - from_s > 120) {
            fmt::print("not within 2 min: {}; {}\n", what, pool.picture().last_failure);
            std::exit(1);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const double took_s = monotonic_seconds() - from_s;
    fmt::print("{:<44} {:.3f} s\n", what, took_s);
    return took_s;
}

int run(int argc, char** argv) {
    if (argc < 6 || std::strcmp(argv[4], "--") != 0) {
        fmt::print(stderr, "usage: bench_replicas FOLDER MODEL N -- COMMAND... with {{port}}\n");
        return 2;
    }
    const int n = std::max(2, std::atoi(argv[3]));
    auto pool = ReplicaPool::start({.name = argv[2],
                                    .folder = argv[1],
                                    .command = {argv + 5, argv + argc},
                                    .model = argv[2],
                                    .scale = {.least = 0, .most = n},
                                    .scales_itself = false});
    if (!pool) {
        fmt::print(stderr, "{}\n", pool.error().text());
        return 2;
    }
    ReplicaPool& p = **pool;
    p.set_level(1);
    seconds_until(p, "0 -> 1: the first is ready", [](const PoolPicture& now) { return ready(now) == 1; });
    p.set_level(n);
    seconds_until(p, fmt::format("1 -> {}: all are ready", n).c_str(),
                  [n](const PoolPicture& now) { return ready(now) == n; });
    std::vector<std::unique_ptr<ReplicaPool::Use>> uses;
    for (int i = 0; i < 12 * n; ++i) uses.push_back(p.take({.prompt_tokens = 100, .output_tokens = 50}));
    for (const PoolReplica& r : p.picture().replicas)
        fmt::print("  {} {} weight {:.2f}: {} of {} in flight\n", r.url, enum_word(r.state), r.weight, r.in_flight,
                   uses.size());
    uses.clear();
    ::kill(p.picture().replicas.front().pid, SIGKILL);
    const double killed_s = monotonic_seconds();
    seconds_until(p, "kill -9: seen", [](const PoolPicture& now) { return now.exits == 1; });
    seconds_until(p, "kill -9: all are ready again", [n](const PoolPicture& now) { return ready(now) == n; });
    fmt::print("{:<44} {:.3f} s\n", "kill -9 until all are ready", monotonic_seconds() - killed_s);
    auto stream = p.take({.prompt_tokens = 100});
    const std::uint64_t streams = stream->replica();
    p.set_level(0);
    seconds_until(
        p, fmt::format("{} -> 0: only the one with a stream is left", n).c_str(),
        [streams](const PoolPicture& now) { return now.replicas.size() == 1 && now.replicas.front().id == streams; });
    stream->ended(ReplicaOutcome::ok);
    seconds_until(p, "its stream has ended: none is left", [](const PoolPicture& now) { return now.replicas.empty(); });
    const PoolPicture end = p.picture();
    fmt::print("{} starts, {} unasked exits, a start is expected to take {:.2f} s\n", end.starts, end.exits,
               end.cold_start_s);
    return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
    return stoker::run(argc, argv);
}
