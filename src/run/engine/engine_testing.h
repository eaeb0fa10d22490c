// An engine with the real local driver in a folder of its own, for tests: real processes, real disk. The test program
// is the keeper (main() of engine_test.cpp).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/text.h"
#include "deploy/local/local_driver.h"
#include "io/process.h"
#include "run/engine/engine.h"

namespace stoker::engine_testing {

inline constexpr double kAmple = 60;  // for what takes milliseconds on a quiet machine

inline bool eventually(const std::function<bool()>& condition, double limit_s = kAmple) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    return true;
}

inline std::string content(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::vector<NodeInfo> two_nodes() {
    std::vector<NodeInfo> nodes;
    for (const char* name : {"alpha", "beta"})
        nodes.push_back({.name = name, .cpu_milli = 64'000, .memory_bytes = std::int64_t{64} << 30});
    return nodes;
}

inline EngineOptions local_options(const std::string& folder) {
    return {.folder = folder, .make_driver = [](const std::string& where) {
                return make_local_driver({.folder = where, .nodes = two_nodes()});
            }};
}

class Rig {
public:
    Rig() {
        std::string name = std::filesystem::temp_directory_path() / "stoker-engine-XXXXXX";
        root = ::mkdtemp(name.data());
        mark = std::filesystem::path(root).filename().string();
        options = local_options(root + "/engine");
    }
    ~Rig() {
        if (engine) engine->stop();
        engine.reset();
        EXPECT_TRUE(eventually([&] { return processes_with("TEST_MARK=" + mark).empty(); }))
            << processes_with("TEST_MARK=" + mark).size() << " processes were left";
        std::error_code ignored;
        std::filesystem::remove_all(root, ignored);
    }
    void open() {
        auto opened = Engine::open(options);
        ASSERT_TRUE(opened.ok()) << opened.error().text();
        engine = std::move(*opened);
    }
    RunSpec script(const std::string& text) const {
        RunSpec spec;
        spec.name = "test";
        spec.command = {"sh", "-c", text};
        spec.environment = {{"TEST_MARK", mark}};
        spec.per_rank.cpu_milli = 100;
        spec.grace_s = 5;
        return spec;
    }
    Result<Ack> ask(Command command) { return call(*engine, std::move(command), kAmple); }
    RunId submit(const RunSpec& spec, const std::string& key = {}) {
        const auto ack = ask({.what = Submit{.spec = spec, .key = key}});
        EXPECT_TRUE(ack.ok()) << ack.error().text();
        return ack ? ack->run : RunId{};
    }
    // A copy; empty (no id) when there is none.
    Run run(RunId id) {
        Run copy;
        const Status seen = engine->read([&](const EngineView& view) {
            if (const Run* found = view.state.find(id)) copy = *found;
        });
        EXPECT_TRUE(seen.ok()) << seen.error().text();
        return copy;
    }
    bool reaches(RunId id, RunState state, double limit_s = kAmple) {
        const bool there = eventually([&] { return run(id).state == state || is_terminal(run(id).state); }, limit_s);
        const Run last = run(id);
        if (last.state != state)
            ADD_FAILURE() << id.text() << " is " << to_string(last.state) << ", cause " << to_string(last.cause) << ": "
                          << last.detail << "\n"
                          << log(id);
        return there && last.state == state;
    }
    // Nothing outside remembers the run's attempts, and no call is open.
    bool settles() {
        return eventually([&] {
            bool calm = false;
            (void)engine->read(
                [&](const EngineView& view) { calm = view.state.operations.empty() && view.state.launches.empty(); });
            return calm;
        });
    }
    RunFolder folder(RunId id) const { return run_folder(engine->folder(), id); }
    std::string log(RunId id, std::uint32_t attempt = 1, int rank = 0) const {
        return content(folder(id).log({id, attempt}, rank));
    }
    bool says(RunId id, const std::string& text, std::uint32_t attempt = 1) const {
        return eventually([&] { return log(id, attempt).find(text) != std::string::npos; });
    }

    std::string root, mark;
    EngineOptions options;
    std::unique_ptr<Engine> engine;
};

}  // namespace stoker::engine_testing
