// Durable submissions through the core with group commit, beside bare SQLite inserts of the same bytes in the same
// folder, and the time of one pass of the scheduler over a long queue.
//   bench_submits [FOLDER=.] [RUNS=10000]
// With STOKER_JOURNAL=postgresql://... also with that empty database as the journal's second home.
//   bench_submits bare FILE ROWS GROUP BYTES     only bare rows of so many bytes, so many a commit: rows a second
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "io/postgres/postgres_journal.h"
#include "must.h"
#include "run/state/records.h"
#include "scenarios.h"
#include "simulation.h"

using namespace stoker;
using namespace stoker::sim;

namespace {

double seconds_of(const std::function<void()>& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// One row per transaction, or `group` rows.
double bare_rows_per_s(const std::string& file, int rows, int group, const std::string& body) {
    std::filesystem::remove(file);
    auto database = must(Database::open(file, {}));
    CHECK(database->execute("CREATE TABLE t(seq INTEGER PRIMARY KEY, body BLOB) STRICT").ok());
    auto insert = must(database->prepare("INSERT INTO t(body) VALUES(?)"));
    const double seconds = seconds_of([&] {
        for (int i = 0; i < rows;) {
            auto transaction = must(Transaction::begin(*database));
            for (int k = 0; k < group && i < rows; ++k, ++i) {
                insert.bind_blob(1, body);
                CHECK(insert.run().ok());
            }
            CHECK(transaction.commit().ok());
        }
    });
    return rows / seconds;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 6 && std::string_view(argv[1]) == "bare") {
        const std::string row(static_cast<std::size_t>(std::atoi(argv[5])), 'x');
        fmt::print("{:.1f}\n", bare_rows_per_s(argv[2], std::atoi(argv[3]), std::atoi(argv[4]), row));
        return 0;
    }
    const std::string folder = std::string(argc > 1 ? argv[1] : ".") + "/bench_submits.tmp";
    const int runs = argc > 2 ? std::atoi(argv[2]) : 10000;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const RunSpec spec = simple_run("bench", 3600);
    const std::string body = encode_body(RunSubmitted{.run = {1}, .spec = spec, .key = "k", .parent = {}, .step = ""});
    const char* const url = std::getenv("STOKER_JOURNAL");
    for (const bool with_home : {false, true}) {
        if (with_home && !url) continue;
        std::unique_ptr<PostgresJournal> home;
        if (with_home) {
            home = must(PostgresJournal::open({.url = url, .name = "the database", .holder = "bench"}));
            CHECK(home->lead([](double) { return false; }, [](const std::string&) {}).ok());
        }
        auto journal = must(Journal::open(fmt::format("{}/core{}", folder, with_home), {.home = home.get()}));
        auto core = must(Core::open(*journal, {.site = "bench", .snapshot_every = 1'000'000}, kStartUs));
        std::int64_t now = kStartUs;
        for (const int group : {1, 64}) {
            const int count = group == 1 ? runs / 10 : runs;
            std::vector<Command> commands;
            const double core_s = seconds_of([&] {
                for (int i = 0; i < count;) {
                    commands.clear();
                    for (int k = 0; k < group && i < count; ++k, ++i)
                        commands.push_back({.what = Submit{.spec = spec, .key = fmt::format("{}-{}", group, i)}});
                    const auto turn = core->turn(commands, now += 1000);
                    CHECK(turn.ok() && turn->acks.front().ok());
                }
            });
            const double bare = bare_rows_per_s(fmt::format("{}/bare{}.db", folder, group), count, group, body);
            fmt::print(
                "{} a commit{}: {:.0f} durable submissions/s through the core, {:.0f} bare rows/s of {} bytes "
                "(synchronous=FULL)\n",
                group, with_home ? ", PostgreSQL too" : "", count / core_s, bare, body.size());
        }
    }
    // A queue of `runs`, on a fleet that is full.
    const std::string where = folder + "/queue";
    auto journal = must(Journal::open(where, {}));
    auto core = must(Core::open(*journal, {.site = "bench", .snapshot_every = 1'000'000}, kStartUs));
    std::vector<Command> commands;
    commands.push_back({.what = SawNodes{make_nodes(100, 8)}});
    commands.push_back({.what = Listed{{.asked_seq = 1'000'000}}});
    const auto mixed = mixed_runs(1, runs, 1, 3600);
    std::int64_t now = kStartUs;
    for (const Planned& run : mixed) commands.push_back({.what = Submit{.spec = run.spec}});
    CHECK(core->turn(commands, now += 1000).ok());
    const State& state = core->state();
    std::vector<double> passes;
    std::size_t waiting = 0, admitted = 0;
    for (int i = 0; i < 21; ++i)
        passes.push_back(seconds_of([&] {
            const Decisions decisions = schedule(state, now);
            waiting = decisions.waiting.size();
            admitted = decisions.admit.size();
        }));
    std::sort(passes.begin(), passes.end());
    fmt::print(
        "a pass over {} queued with {} attempts live on 100 nodes of 8 GPUs: median {:.1f} ms, worst {:.1f} ms "
        "({} could start, {} wait)\n",
        state.queue.size(), state.live.size(), passes[10] * 1e3, passes.back() * 1e3, admitted, waiting);
    std::string text;
    const double encode_s = seconds_of([&] { text = encode_state(state); });
    const double decode_s = seconds_of([&] { CHECK(decode_state(text).ok()); });
    fmt::print("a snapshot of {} runs: {:.1f} MB, written in {:.0f} ms, read in {:.0f} ms\n", state.runs.size(),
               static_cast<double>(text.size()) / 1e6, encode_s * 1e3, decode_s * 1e3);
    std::filesystem::remove_all(folder);
    return 0;
}
