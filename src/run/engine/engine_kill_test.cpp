// The server dies, again and again, at any moment. Nothing that was acknowledged may be lost, nothing may run twice at
// once, and nothing may be left behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <charconv>
#include <map>
#include <set>

#include "base/random.h"
#include "run/engine/engine_testing.h"

namespace stoker {
namespace {

using engine_testing::content;
using engine_testing::eventually;
using engine_testing::kAmple;
using engine_testing::Rig;

constexpr int kRuns = 10, kKills = 20;

// Each life of the server: submits what is not yet acknowledged, and lives until it is killed.
[[noreturn]] void live(const Rig& rig, int acknowledgements) {
    auto engine = Engine::open(rig.options);
    if (!engine) {
        std::fprintf(stderr, "%s\n", engine.error().text().c_str());
        ::_exit(1);
    }
    for (int i = 0; i < kRuns; ++i) {
        // "start PID" and "end PID", each in one write under a lock.
        RunSpec spec = rig.script(
            "flock trace sh -c \"echo start $$ >> trace\"; sleep 0.$((RANK + 2)); flock trace sh -c \"echo end $$ >> "
            "trace\"");
        spec.name = "run-" + std::to_string(i);
        spec.ranks = 1 + i % 2;
        const auto ack = call(**engine, {.what = Submit{.spec = spec, .key = "key-" + std::to_string(i)}});
        if (!ack) {
            std::fprintf(stderr, "%s\n", ack.error().text().c_str());
            ::_exit(1);
        }
        const std::string line = std::to_string(i) + " " + ack->run.text() + "\n";
        if (::write(acknowledgements, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(1);
    }
    for (;;) ::pause();
}

// How many ran at once at most, and how many began and ended.
struct Trace {
    int begun = 0, ended = 0, most_at_once = 0;
};
Trace trace_of(const std::string& file) {
    Trace trace;
    int now = 0;
    const std::string text = content(file);
    for (const std::string_view line : split_lines(text)) {
        now += line.starts_with("start") ? 1 : -1;
        (line.starts_with("start") ? trace.begun : trace.ended) += 1;
        trace.most_at_once = std::max(trace.most_at_once, now);
    }
    return trace;
}

TEST(EngineKillTest, NothingIsLostAndNothingRunsTwice) {
    Rig rig;
    const char* given = std::getenv("STOKER_KILL_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    SplitMix random(SplitMix::mix(seed));
    std::map<int, std::set<std::string>> acknowledged;
    for (int kill = 0; kill < kKills; ++kill) {
        auto pipe = make_pipe();
        ASSERT_TRUE(pipe.ok());
        const pid_t child = ::fork();
        if (child == 0) live(rig, pipe->write.get());
        pipe->write.reset();
        std::this_thread::sleep_for(std::chrono::microseconds(5000 + random.below(250'000)));
        // On a busy machine no life may have come as far as an answer: the last one does.
        pollfd answer{.fd = pipe->read.get(), .events = POLLIN, .revents = 0};
        if (kill == kKills - 1 && acknowledged.empty()) ::poll(&answer, 1, 30'000);
        ::kill(child, SIGKILL);
        const auto status = reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(20));
        ASSERT_TRUE(status && WIFSIGNALED(*status)) << "life " << kill << " ended by itself";
        std::string told;
        char block[4096];
        for (ssize_t got = 0; (got = ::read(pipe->read.get(), block, sizeof block)) > 0;)
            told.append(block, static_cast<std::size_t>(got));
        for (const std::string_view line : split_lines(told)) {
            const auto words = split_words(line);
            if (words.size() == 2) acknowledged[std::atoi(std::string(words[0]).c_str())].emplace(words[1]);
        }
    }
    rig.open();
    for (const auto& [number, runs] : acknowledged) {
        ASSERT_EQ(runs.size(), 1u) << "key-" << number << " is several runs";
        const auto id = RunId::parse(*runs.begin());
        ASSERT_TRUE(id && rig.run(*id).id == *id) << *runs.begin() << " was acknowledged and is lost";
        EXPECT_EQ(rig.run(*id).spec.name, "run-" + std::to_string(number));
    }
    EXPECT_GE(acknowledged.size(), 1u);
    std::vector<stoker::Run> runs;
    ASSERT_TRUE(rig.engine
                    ->read([&](const EngineView& view) {
                        for (const auto& [id, run] : view.state.runs) runs.push_back(run);
                    })
                    .ok());
    EXPECT_LE(runs.size(), static_cast<std::size_t>(kRuns));
    for (const stoker::Run& run : runs) {
        EXPECT_TRUE(rig.reaches(run.id, RunState::succeeded));
        const Trace trace = trace_of(rig.folder(run.id).path + "/trace");
        EXPECT_LE(trace.most_at_once, run.spec.ranks) << run.id.text() << " ran twice at once";
        EXPECT_GE(trace.ended, run.spec.ranks);
        // Work that the server left running went on: it was not begun anew.
        EXPECT_EQ(trace.begun, run.spec.ranks)
            << run.id.text() << " took " << rig.run(run.id).attempts.size() << " attempts";
    }
    EXPECT_TRUE(rig.settles());
    rig.engine->stop();
    std::error_code code;
    const std::filesystem::directory_iterator left(rig.root + "/engine/run", code);
    EXPECT_EQ(left, std::filesystem::directory_iterator()) << left->path() << " was left";
}

}  // namespace
}  // namespace stoker
