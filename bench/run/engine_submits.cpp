// Durable submissions through the engine from 8 threads, beside bare SQLite rows of the same bytes on the same disk;
// the time from an empty folder to the first process of a run; what an engine costs that has nothing to do; and what a
// hundred thousand ended runs cost in memory and at the next start.
//   bench_engine_submits [FOLDER=.] [SUBMITS=20000] [ENDED=100000]
#include <sys/resource.h>
#include <unistd.h>

#include <malloc.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "deploy/local/keeper.h"
#include "deploy/local/local_driver.h"
#include "io/process.h"
#include "io/sqlite.h"
#include "must.h"
#include "run/engine/engine.h"
#include "run/state/load_state.h"
#include "run/state/rules.h"

using namespace stoker;

namespace {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double rss_mb() {
    std::ifstream file("/proc/self/statm");
    double total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

double cpu_s() {
    rusage use{};
    ::getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

EngineOptions options_of(const std::string& folder) {
    return {.folder = folder,
            .make_driver = [](const std::string& where) { return make_local_driver({.folder = where}); }};
}

RunSpec spec_of(const std::string& script) {
    RunSpec spec;
    spec.name = "bench";
    spec.command = {"sh", "-c", script};
    spec.per_rank.cpu_milli = 100;
    return spec;
}

void measure_start(const std::string& folder) {
    const double began = now_s();
    auto engine = must(Engine::open(options_of(folder)));
    const double open_s = now_s() - began;
    std::atomic<double> started = 0, ended = 0;
    auto watch = engine->watch([&](std::span<const Record> records) {
        for (const Record& record : records)
            if (const auto* fact = std::get_if<FactSeen>(&record.body)) {
                if (fact->fact.kind == FactKind::rank_started) started = now_s() - began;
                if (fact->fact.kind == FactKind::gang_ended) ended = now_s() - began;
            }
    });
    must(call(*engine, {.what = Submit{.spec = spec_of("true")}}));
    while (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fmt::print(
        "an empty folder: open after {:.0f} ms, first rank started after {:.0f} ms, its gang ended after {:.0f} ms\n",
        open_s * 1e3, started * 1e3, ended * 1e3);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const double cpu = cpu_s();
    std::this_thread::sleep_for(std::chrono::seconds(5));
    fmt::print("idle: {:.1f} MB resident, {:.2f} % of a core over 5 s\n", rss_mb(), (cpu_s() - cpu) / 5 * 100);
    engine->stop();
}

double bare_rows_per_s(const std::string& file, int rows, int group, const std::string& body) {
    auto database = must(Database::open(file, {}));
    CHECK(database->execute("CREATE TABLE t(seq INTEGER PRIMARY KEY, body BLOB) STRICT").ok());
    auto insert = must(database->prepare("INSERT INTO t(body) VALUES(?)"));
    const double began = now_s();
    for (int i = 0; i < rows;) {
        auto transaction = must(Transaction::begin(*database));
        for (int k = 0; k < group && i < rows; ++k, ++i) {
            insert.bind_blob(1, body);
            CHECK(insert.run().ok());
        }
        CHECK(transaction.commit().ok());
    }
    return rows / (now_s() - began);
}

// `window` submissions of each thread wait for their answers at a time: 1 is a caller that waits for each.
void measure_submits(const std::string& folder, int submits, int window) {
    EngineOptions options = options_of(fmt::format("{}/submits-{}", folder, window));
    options.snapshot_every = 1'000'000'000;
    auto engine = must(Engine::open(options));
    // Nothing starts: what is measured is the way of a submission to the disk.
    RunSpec spec = spec_of("true");
    spec.per_rank.gpus = 1;
    spec.per_rank.gpu_model = "none";
    constexpr int kThreads = 8;
    std::atomic<int> answered = 0;
    const double began = now_s();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            std::atomic<int> open = 0;
            for (int i = 0; i < submits / kThreads; ++i) {
                for (int n; (n = open.load()) >= window;) open.wait(n);
                ++open;
                CHECK(engine
                          ->post({.what = Submit{.spec = spec, .key = fmt::format("key-{}-{}", t, i)}},
                                 [&](const Result<Ack>& ack) {
                                     CHECK(ack.ok());
                                     ++answered;
                                     --open;
                                     open.notify_one();
                                 })
                          .ok());
            }
            for (int n; (n = open.load()) > 0;) open.wait(n);
        });
    for (std::thread& thread : threads) thread.join();
    const double seconds = now_s() - began;
    const EngineStats stats = engine->stats();
    const int group = std::max(1, static_cast<int>(static_cast<double>(stats.commands) /
                                                   static_cast<double>(std::max<std::uint64_t>(stats.turns, 1))));
    engine->stop();
    const std::string body =
        encode_body(RunSubmitted{.run = {1}, .spec = spec, .key = "key-1-1000", .parent = {}, .step = ""});
    const double bare = bare_rows_per_s(fmt::format("{}/bare-{}.db", folder, window), answered, group, body);
    fmt::print(
        "8 threads, {} open each: {:.0f} durable submissions/s, commits p50 {:.1f} ms, p99 {:.1f} ms, {} a "
        "commit; bare SQLite with as many a commit: {:.0f} rows/s of {} bytes (ratio {:.2f})\n",
        window, answered / seconds, stats.commit_p50_s * 1e3, stats.commit_p99_s * 1e3, group, bare, body.size(),
        answered / seconds / bare);
}

// A journal as `count` runs leave it that started, ran and ended.
void write_history(const std::string& folder, int count) {
    std::filesystem::create_directories(folder);
    auto journal = must(Journal::open(folder, {}));
    auto core = must(Core::open(*journal, {.site = "bench", .log_root = folder, .snapshot_every = 100'000}, 1));
    std::int64_t now = wall_clock_us();
    std::vector<NodeInfo> nodes;
    for (int i = 0; i < 4; ++i)
        nodes.push_back({.name = fmt::format("n{}", i), .cpu_milli = 64'000, .memory_bytes = std::int64_t{1} << 36});
    std::vector<Command> commands;
    commands.push_back({.what = SawNodes{nodes}});
    commands.push_back({.what = Listed{{.asked_seq = 1'000'000'000}}});
    int ended = 0, submitted = 0;
    std::uint64_t cursor = 0;
    while (ended < count) {
        for (int i = 0; i < 200 && submitted < count; ++i, ++submitted)
            commands.push_back({.what = Submit{.spec = spec_of("true"), .key = fmt::format("key-{}", submitted)}});
        const Turn turn = must(core->turn(commands, now += 10'000));
        commands.clear();
        for (const Effect& effect : turn.effects) {
            commands.push_back({.what = Answered{effect.operation, {.certainty = Certainty::confirmed}}});
            if (effect.verb == Verb::release) ++ended;
            if (effect.verb != Verb::launch) continue;
            Fact fact{.operation = effect.operation, .epoch = effect.epoch, .at_us = now, .rank = 0};
            for (const FactKind kind : {FactKind::rank_started, FactKind::rank_ended, FactKind::gang_ended}) {
                fact.cursor = ++cursor;
                fact.kind = kind;
                fact.pid = 1000 + static_cast<std::int64_t>(cursor % 30000);
                if (kind == FactKind::rank_ended) fact.exit_code = 0;
                fact.cause = kind == FactKind::rank_started ? Cause::none : Cause::ok;
                commands.push_back({.what = SawFact{fact}});
            }
        }
    }
    must(core->turn(commands, now += 10'000));
    fmt::print("{} ended runs are {} records, {:.0f} MB\n", count, journal->head().seq,
               static_cast<double>(std::filesystem::file_size(folder + "/stoker.db")) / 1e6);
}

void measure_history(const std::string& folder, int count) {
    write_history(folder, count);
    ::malloc_trim(0);
    const double before = rss_mb();
    const double began = now_s();
    double cpu = cpu_s();
    auto engine = must(Engine::open(options_of(folder)));
    const double open_s = now_s() - began, open_cpu_s = cpu_s() - cpu;
    ::malloc_trim(0);
    const double with = rss_mb();
    fmt::print("the next start takes {:.2f} s ({:.2f} s of a core); {:.0f} MB resident, {:.2f} KB a run\n", open_s,
               open_cpu_s, with, (with - before) * 1e3 / count);
    double read_s = 0;
    must(engine->read([&](const EngineView& view) {
        const double at = cpu_s();
        const std::string text = encode_state(view.state);
        read_s = cpu_s() - at;
        fmt::print("a snapshot of it: {:.0f} MB, made in {:.2f} s of a core\n", static_cast<double>(text.size()) / 1e6,
                   read_s);
    }));
    engine->stop();
    engine.reset();
    cpu = cpu_s();
    {
        auto journal = must(Journal::open_read_only(folder));
        State state;
        std::uint64_t records = 0;
        must(journal->read(0, [&](const JournalRecord& entry) -> Result<bool> {
            TRY(RecordBody body, decode_body(entry.kind, entry.format, entry.body, entry.seq));
            TRY_VOID(
                state.apply({.seq = entry.seq, .at_us = entry.at_us, .epoch = entry.epoch, .body = std::move(body)}));
            ++records;
            return true;
        }));
        const double seconds = cpu_s() - cpu;
        fmt::print("a replay of all {} records: {:.2f} s of a core, {:.2f} s a million\n", records, seconds,
                   seconds * 1e6 / static_cast<double>(records));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "keeper") == 0) return run_keeper(argv[2]);
    if (argc == 4 && std::strcmp(argv[1], "history") == 0) {
        write_history(argv[2], std::atoi(argv[3]));
        return 0;
    }
    const std::string folder = std::string(argc > 1 ? argv[1] : ".") + "/bench_engine.tmp";
    const int submits = argc > 2 ? std::atoi(argv[2]) : 20000;
    const int ended = argc > 3 ? std::atoi(argv[3]) : 100'000;
    ::setvbuf(stdout, nullptr, _IOLBF, 0);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    measure_start(folder + "/first");
    for (const int window : {1, 128}) measure_submits(folder, window == 1 ? submits / 4 : submits, window);
    if (ended > 0) measure_history(folder + "/history", ended);
    std::filesystem::remove_all(folder);
    return 0;
}
