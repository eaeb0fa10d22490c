// Real processes: a replica that dies is back, one that drains ends no stream, and nothing is left running.
#include "serve/replicas/pool.h"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace {

// A model server as far as a pool sees one. argv: port, seconds until it is healthy, name of its model.
constexpr std::string_view kServer = R"(
import http.server, sys, time
ready = time.monotonic() + float(sys.argv[2])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        well = time.monotonic() >= ready
        body = {'/health': b'ok', '/v1/models': b'{"data":[{"id":"%s"}]}' % sys.argv[3].encode(),
                '/metrics': b'llamacpp:requests_processing 2\nllamacpp:prompt_tokens_total 5\n'}.get(self.path, b'')
        self.send_response(200 if well and body else 503)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
)";

class Pools : public testing::Test {
protected:
    Pools() : folder_(ScratchFolder::make("pool").value()) { std::ofstream(folder_.path() + "/server.py") << kServer; }
    PoolOptions options(const std::string& delay = "0", const std::string& model = "tiny") {
        return {.name = "tiny@1",
                .folder = folder_.path() + "/logs",
                .command = {"python3", folder_.path() + "/server.py", "{port}", delay, model},
                .model = "tiny",
                .scale = {.least = 0, .most = 4},
                .scales_itself = false,
                .probe_every_s = 0.2,
                .kill_after_s = 2,
                .restart_after_s = 0.05};
    }
    static int ready(const PoolPicture& picture) {
        int n = 0;
        for (const PoolReplica& r : picture.replicas)
            n += r.state == ReplicaState::slow_start || r.state == ReplicaState::ready ? 1 : 0;
        return n;
    }
    template <class Condition>
    static bool within(double seconds, Condition condition) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (!condition()) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return true;
    }
    ScratchFolder folder_;
};

// 0, 1, 3, 0; each ready one takes requests, and at the end no process is left.
TEST_F(Pools, FollowTheirLevelAndLeaveNothing) {
    auto pool = ReplicaPool::start(options());
    ASSERT_TRUE(pool) << pool.error().text();
    RouteDecision why;
    EXPECT_EQ((*pool)->take({.prompt_tokens = 1}, &why), nullptr);
    EXPECT_EQ(why.reason, RouteReason::no_replica);
    (*pool)->set_level(1);
    ASSERT_TRUE(within(30, [&] { return ready((*pool)->picture()) == 1; })) << (*pool)->picture().last_failure;
    EXPECT_GT((*pool)->picture().cold_start_s, 0);
    EXPECT_LT((*pool)->picture().cold_start_s, 60);  // learnt
    (*pool)->set_level(3);
    ASSERT_TRUE(within(30, [&] { return ready((*pool)->picture()) == 3; }));
    std::vector<std::unique_ptr<ReplicaPool::Use>> uses;
    for (int i = 0; i < 30; ++i) {
        uses.push_back((*pool)->take({.prompt_tokens = 100, .output_tokens = 50}));
        ASSERT_TRUE(uses.back());
    }
    std::uint32_t most = 0;
    for (const PoolReplica& r : (*pool)->picture().replicas) most = std::max(most, r.in_flight);
    EXPECT_LE(most, 20u);
    uses.clear();
    for (const PoolReplica& r : (*pool)->picture().replicas) EXPECT_EQ(r.in_flight, 0u);
    (*pool)->set_level(0);
    EXPECT_TRUE(within(30, [&] { return (*pool)->picture().replicas.empty(); }));
    EXPECT_EQ((*pool)->picture().starts, 3u);
    EXPECT_EQ((*pool)->picture().exits, 0u);
    EXPECT_TRUE(processes_with("STOKER_REPLICAS=" + folder_.path() + "/logs:tiny@1").empty());
}

// kill -9: back as another replica, whose cache nobody believes in; the use of the old one ends without harm.
TEST_F(Pools, RestartWhatDies) {
    PoolOptions asked = options();
    asked.level_at_first = 1;
    auto pool = ReplicaPool::start(std::move(asked));
    ASSERT_TRUE(pool);
    ASSERT_TRUE(within(30, [&] { return ready((*pool)->picture()) == 1; }));
    const PoolReplica before = (*pool)->picture().replicas.front();
    auto use = (*pool)->take({.prompt_tokens = 100});
    ASSERT_TRUE(use);
    ::kill(before.pid, SIGKILL);
    ASSERT_TRUE(within(30, [&] { return (*pool)->picture().exits == 1 && ready((*pool)->picture()) == 1; }));
    const PoolReplica after = (*pool)->picture().replicas.front();
    EXPECT_NE(after.id, before.id);
    use->ended(ReplicaOutcome::broke);
    EXPECT_EQ((*pool)->picture().replicas.front().in_flight, 0u);
    EXPECT_NE((*pool)->picture().last_failure.find("SIGKILL"), std::string::npos);
}

// A stream that runs keeps its process until it ends; then that goes.
TEST_F(Pools, DrainBeforeTheyEnd) {
    PoolOptions asked = options();
    asked.level_at_first = 1;
    auto pool = ReplicaPool::start(std::move(asked));
    ASSERT_TRUE(pool);
    ASSERT_TRUE(within(30, [&] { return ready((*pool)->picture()) == 1; }));
    auto use = (*pool)->take({.prompt_tokens = 100});
    (*pool)->set_level(0);
    ASSERT_TRUE(within(30, [&] { return (*pool)->picture().replicas.front().state == ReplicaState::draining; }));
    EXPECT_EQ((*pool)->take({.prompt_tokens = 100}), nullptr);
    const int pid = (*pool)->picture().replicas.front().pid;
    EXPECT_TRUE(start_ticks(pid));
    use->ended(ReplicaOutcome::ok);
    EXPECT_TRUE(within(30, [&] { return (*pool)->picture().replicas.empty(); }));
}

// From zero by itself: the first request starts one, and a thousand more start no other.
TEST_F(Pools, StartOneForTheFirstRequest) {
    PoolOptions asked = options("0.3");
    asked.scales_itself = true;
    auto pool = ReplicaPool::start(std::move(asked));
    ASSERT_TRUE(pool);
    for (int i = 1; i <= 100; ++i) {
        (*pool)->arrived(1, 1);
        (*pool)->waiting(i, i);
    }
    EXPECT_TRUE(within(5, [&] { return (*pool)->picture().level == 1; }));
    ASSERT_TRUE(within(30, [&] { return ready((*pool)->picture()) == 1; }));
    EXPECT_EQ((*pool)->picture().starts, 1u);
    EXPECT_TRUE(within(30, [&] {
        const auto signals = (*pool)->picture().replicas.front().signals;
        return signals && signals->running == 2;
    }));
}

// A stranger on its port answers for another model: never taken. A program that is not there is told, and tried again.
TEST_F(Pools, NeverTakeAnotherModelOrAProgramThatIsMissing) {
    PoolOptions asked = options("0", "other");
    asked.level_at_first = 1;
    auto wrong = ReplicaPool::start(std::move(asked));
    ASSERT_TRUE(wrong);
    EXPECT_TRUE(within(30, [&] { return (*wrong)->picture().exits >= 1; }));
    EXPECT_EQ(ready((*wrong)->picture()), 0);
    wrong->reset();

    PoolOptions missing = options();
    missing.command[0] = "no-such-program-here";
    missing.level_at_first = 1;
    auto none = ReplicaPool::start(std::move(missing));
    ASSERT_TRUE(none);
    EXPECT_TRUE(
        within(5, [&] { return (*none)->picture().last_failure.find("no-such-program-here") != std::string::npos; }));
    RouteDecision why;
    EXPECT_EQ((*none)->take({.prompt_tokens = 1}, &why), nullptr);
    EXPECT_EQ(why.reason, RouteReason::starting);

    PoolOptions portless = options();
    portless.command = {"true"};
    EXPECT_FALSE(ReplicaPool::start(std::move(portless)));
}

// What an earlier one left when it was killed does not answer in the place of the new.
TEST_F(Pools, EndWhatAKilledOneLeft) {
    const std::string mark = "STOKER_REPLICAS=" + folder_.path() + "/logs:tiny@1";
    const DetachedProgram left{
        .path = "/bin/sleep", .arguments = {"sleep", "300"}, .environment = {mark}, .error_file = "/dev/null"};
    const auto pid = start_detached(left);
    ASSERT_TRUE(pid);
    // Until it is that program, and no longer ours on the way there, nobody can know it by its environment.
    const auto marked = [&] {
        std::ifstream environment("/proc/" + std::to_string(*pid) + "/environ");
        return std::string(std::istreambuf_iterator<char>(environment), {}).find(mark) != std::string::npos;
    };
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!marked() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(marked());
    auto pool = ReplicaPool::start(options());
    ASSERT_TRUE(pool);
    const auto status = reap(*pid, std::chrono::steady_clock::now() + std::chrono::seconds(10));
    EXPECT_TRUE(status);
}

}  // namespace
}  // namespace stoker
