#include "serve/endpoints/keeper.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace stoker {
namespace {

// Replicas of a world in which time is a number: each takes so long to be given a place, and so long to load.
class FakeHost final : public ReplicaHost {
public:
    struct Run {
        ReplicaFact fact;
        double asked_s = 0;
        bool sick = false;
        std::string model = "m";
    };
    double now_s = 0, queue_s = 0, load_s = 20;
    std::string model = "m";
    bool answers = true, dies_at_once = false;
    std::map<std::string, Run> runs;  // by run
    std::map<std::string, std::string> by_key;
    int started = 0;
    std::size_t most_alive = 0;

    Result<std::string> start(const Endpoint&, const EndpointRevision& revision, const std::string& name,
                              const std::string& key) override {
        if (!answers) return Error(ErrorKind::unavailable, "no server is running");
        if (by_key.contains(key)) return by_key[key];
        const std::string run = fmt::format("r-{}", ++started);
        by_key[key] = run;
        runs[run] = {{.name = name, .revision = revision.number, .run = run}, now_s, false, model};
        most_alive = std::max(most_alive, runs.size());
        return run;
    }
    Status end(const std::string& run) override {
        runs.erase(run);
        return done();
    }
    Result<std::vector<ReplicaFact>> list(const Endpoint&) override {
        if (!answers) return Error(ErrorKind::unavailable, "no server is running");
        std::vector<ReplicaFact> out;
        for (auto& [id, run] : runs) {
            if (dies_at_once && now_s - run.asked_s > 1) run.fact.phase = ReplicaPhase::ended;
            if (run.fact.phase == ReplicaPhase::ended) continue;
            if (now_s - run.asked_s >= queue_s) {
                run.fact.phase = ReplicaPhase::running;
                run.fact.url = "http://127.0.0.1:1";
            }
            out.push_back(run.fact);
            out.back().url = run.fact.phase == ReplicaPhase::running ? "http://" + id : "";
        }
        return out;
    }
    ReplicaFact last_of(const std::string& run) override {
        ReplicaFact fact{.run = run, .phase = ReplicaPhase::ended, .why = "failed: exit code 1"};
        runs.erase(run);
        return fact;
    }
    Result<ReplicaAddress> address(const std::string& url) override {
        ReplicaAddress out{.authority = url.substr(7)};
        reinterpret_cast<sockaddr_in*>(&out.address)->sin_family = AF_INET;
        out.size = sizeof(sockaddr_in);
        return out;
    }
    ReplicaProbe probe(const ServingTemplate&, const std::string& url) override {
        const auto run = runs.find(url.substr(7));
        if (run == runs.end()) return {.problem = "nobody listens"};
        const bool up = now_s - run->second.asked_s >= queue_s + load_s && !run->second.sick;
        return {.well = up, .connect_s = 1e-4, .models = {run->second.model}, .problem = up ? "" : "503"};
    }
    std::optional<EngineSignals> signals(const ServingTemplate&, const std::string&, const std::string&) override {
        return std::nullopt;
    }
    Processors processors(const std::vector<std::string>&) override { return {}; }
};

EndpointRevision revision(int number) {
    return {.number = number,
            .engine = "llama.cpp",
            .spec = "{}",
            .model = "m",
            .prefill_tokens_per_s = 2000,
            .decode_tokens_per_s = 200};
}

struct World {
    FakeHost host;
    Endpoint endpoint{.name = "chat", .current = 1, .least = 0, .most = 4, .revisions = {revision(1)}};
    std::unique_ptr<EndpointKeeper> keeper = std::make_unique<EndpointKeeper>(endpoint, host, 1);

    void set() { keeper->set(endpoint); }
    void until(double to_s, const std::function<void()>& each = {}) {
        for (; host.now_s < to_s; host.now_s += 0.1) {
            keeper->tick(host.now_s);
            if (each) each();
        }
    }
    EndpointStatus status() const { return keeper->status(host.now_s); }
    std::shared_ptr<const BoardView> view() const { return keeper->board()->view(); }
    std::set<int> serving() const {
        std::set<int> out;
        for (const BoardReplica& each : view()->replicas)
            if (each.state == ReplicaState::ready || each.state == ReplicaState::slow_start) out.insert(each.revision);
        return out;
    }
};

// Whoever pays for replicas: an endpoint that nobody asks has none, a thousand requests at once start one, not a
// thousand, and when the last is answered and some minutes have passed, there is none again.
TEST(EndpointKeeper, GoesFromNothingToOneAndBack) {
    World world;
    world.until(5);
    EXPECT_EQ(world.host.started, 0);
    EXPECT_EQ(world.status().state, "idle");
    EXPECT_GT(world.view()->hold_s, 20);
    EXPECT_GT(world.view()->ready_in_s, 0);

    for (int i = 0; i < 1000; ++i) world.keeper->board()->arrived(5, 0.5, 0.05);
    world.keeper->board()->held(5, 1000, 1000);
    world.until(6);
    EXPECT_EQ(world.host.started, 1);
    world.until(24.5);
    EXPECT_TRUE(world.serving().empty());
    world.until(26);
    EXPECT_EQ(world.serving(), std::set<int>{1});
    EXPECT_EQ(world.view()->ready_in_s, 0);
    EXPECT_EQ(world.host.started, 1) << "one start is one start";
    EXPECT_NEAR(world.status().cold_start_s, 20, 1.5) << "what a start takes is learnt";

    world.keeper->board()->held(26, -1000, -1000);
    for (int i = 0; i < 1000; ++i)
        world.keeper->board()->ended({.at_s = 27, .replica = 1, .revision = 1, .prompt_tokens = 1, .output_tokens = 1});
    world.until(300);
    EXPECT_EQ(world.serving(), std::set<int>{1}) << "within idle_s it stays";
    world.until(400);
    EXPECT_TRUE(world.keeper->empty());
    EXPECT_TRUE(world.host.runs.empty());
}

// Whoever waits longest: held requests are what a service is scaled by, and a place that is not given yet is no reason
// to ask for another one.
TEST(EndpointKeeper, WaitsForAPlaceWithoutAskingTwice) {
    World world;
    world.host.queue_s = 600;
    world.until(1);
    world.keeper->board()->arrived(1, 100, 10);
    world.keeper->board()->held(1, 1, 100);
    world.until(300);
    EXPECT_EQ(world.host.started, 1);
    EXPECT_EQ(world.status().state, "starting");
    EXPECT_EQ(world.status().replicas.at(0).state, "queued");
    EXPECT_EQ(world.status().failures, 0);
}

// A deployment of another revision: the one that serves goes on until the new one can, and requests under way end.
TEST(EndpointKeeper, ARevisionTakesOverWhenItIsReady) {
    World world;
    world.endpoint.least = 2;
    world.set();
    world.until(30);
    ASSERT_EQ(world.serving(), std::set<int>{1});
    const auto busy = world.view()->replicas.at(0);
    ++busy.load->outstanding;
    world.endpoint.revisions.push_back(revision(2));
    world.endpoint.current = 2;
    world.set();
    world.until(45, [&] { EXPECT_EQ(world.serving(), std::set<int>{1}); });
    world.until(60);
    EXPECT_EQ(world.serving(), std::set<int>{2});
    EXPECT_EQ(world.host.runs.size(), 3u) << "the one with a request under way is still there";
    --busy.load->outstanding;
    world.until(65);
    EXPECT_EQ(world.host.runs.size(), 2u);

    // One that never becomes ready changes nothing for those who ask.
    world.host.model = "another";
    world.endpoint.revisions.push_back(revision(3));
    world.endpoint.current = 3;
    world.set();
    world.until(400, [&] { EXPECT_EQ(world.serving(), std::set<int>{2}); });
    EXPECT_NE(world.status().last_failure.find("not ready"), std::string::npos) << world.status().last_failure;
    world.endpoint.current = 2;  // and is taken back
    world.set();
    world.until(420);
    EXPECT_EQ(world.serving(), std::set<int>{2});
    EXPECT_EQ(world.host.runs.size(), 2u);
}

// Shares among revisions: both have replicas, and both get requests.
TEST(EndpointKeeper, DividesAmongRevisions) {
    World world;
    world.endpoint.least = world.endpoint.most = 4;
    world.endpoint.revisions.push_back(revision(2));
    world.endpoint.split = {{"1", 3}, {"2", 1}};
    world.set();
    world.until(30);
    EXPECT_EQ(world.serving(), (std::set<int>{1, 2}));
    EXPECT_EQ(world.view()->shares.size(), 2u);
    int first = 0;
    for (const BoardReplica& each : world.view()->replicas) first += each.revision == 1 ? 1 : 0;
    EXPECT_EQ(first, 3);
    EXPECT_EQ(world.view()->replicas.size(), 4u);
}

// A program that dies at once is not started a hundred times a minute.
TEST(EndpointKeeper, StartsWhatDiesLessAndLessOften) {
    World world;
    world.endpoint.least = 1;
    world.host.dies_at_once = true;
    world.set();
    world.until(300);
    EXPECT_GE(world.host.started, 5);
    EXPECT_LE(world.host.started, 20);
    EXPECT_EQ(world.status().state, "failing");
    EXPECT_NE(world.status().last_failure.find("exit code 1"), std::string::npos);
}

// A gateway that was killed: the next one finds the replicas that run and starts no others, and they are warm.
TEST(EndpointKeeper, FindsWhatRuns) {
    World world;
    world.endpoint.least = 2;
    world.set();
    world.until(30);
    ASSERT_EQ(world.host.started, 2);
    world.endpoint.least = 0;  // they are not fewer because nobody has asked this one yet
    world.keeper = std::make_unique<EndpointKeeper>(world.endpoint, world.host, 2);
    world.until(32);
    EXPECT_EQ(world.host.started, 2);
    EXPECT_EQ(world.view()->replicas.size(), 2u);
    EXPECT_EQ(world.view()->replicas.at(0).weight, 1);
    // Of an older revision as well: it serves until the current one can.
    world.endpoint.revisions.push_back(revision(2));
    world.endpoint.current = 2;
    world.keeper = std::make_unique<EndpointKeeper>(world.endpoint, world.host, 3);
    world.until(40, [&] {
        if (world.host.now_s > 33) {
            EXPECT_EQ(world.serving(), std::set<int>{1});
        }
    });
    world.until(60);
    EXPECT_EQ(world.serving(), std::set<int>{2});
}

// A server that is away: what serves goes on, and nothing is started or ended by guessing.
TEST(EndpointKeeper, GoesOnWithoutTheServer) {
    World world;
    world.endpoint.least = 1;
    world.set();
    world.until(30);
    world.host.answers = false;
    world.until(100);
    EXPECT_EQ(world.serving(), std::set<int>{1});
    EXPECT_EQ(world.status().last_failure, "no server is running");
    world.host.answers = true;
    world.until(110);
    EXPECT_EQ(world.host.started, 1);
    EXPECT_TRUE(world.status().last_failure.empty()) << world.status().last_failure;
}

// One that stops answering its probe gets nothing new; when it is well again, it does.
TEST(EndpointKeeper, TakesASickReplicaOut) {
    World world;
    world.endpoint.least = 2;
    world.set();
    world.until(30);
    world.host.runs.begin()->second.sick = true;
    world.until(50);
    EXPECT_EQ(world.status().ready, 1);
    world.host.runs.begin()->second.sick = false;
    world.until(60);
    EXPECT_EQ(world.status().ready, 2);
    EXPECT_EQ(world.host.started, 2);
}

// Started again on its address with other weights, it gets nothing until it is what it was; what it answers meanwhile
// says so at once, and not only the next probe.
TEST(EndpointKeeper, TakesAReplicaOutThatServesAnotherModel) {
    World world;
    world.endpoint.least = 2;
    world.set();
    world.until(30);
    std::string& model = world.host.runs.begin()->second.model;
    model = "other";
    world.until(40);
    EXPECT_EQ(world.status().ready, 1);
    model = "m";
    world.until(50);
    EXPECT_EQ(world.status().ready, 2);
    const auto load = world.view()->replicas.at(0).load;
    EXPECT_TRUE(load->answers_as(0, "m"));
    EXPECT_TRUE(load->answers_as(1, "m of embeddings"));
    EXPECT_TRUE(load->answers_as(0, ""));
    EXPECT_FALSE(load->doubted());
    model = "other";
    EXPECT_FALSE(load->answers_as(0, "other"));
    world.until(50.3);
    EXPECT_EQ(world.status().ready, 1);
    model = "m";
    world.until(60);
    EXPECT_EQ(world.status().ready, 2);
    EXPECT_TRUE(load->answers_as(0, "m, by a name that it has now"));
    EXPECT_EQ(world.host.started, 2);
}

// Stopped: requests are refused and not held, what is under way ends, and the endpoint comes back.
TEST(EndpointKeeper, StopsAndStarts) {
    World world;
    world.endpoint.least = 1;
    world.set();
    world.until(30);
    const auto load = world.view()->replicas.at(0).load;
    ++load->outstanding;
    world.endpoint.stopped = true;
    world.set();
    world.until(35);
    EXPECT_FALSE(world.view()->open);
    EXPECT_EQ(world.host.runs.size(), 1u);
    EXPECT_EQ(world.status().state, "stopping");
    --load->outstanding;
    world.until(40);
    EXPECT_TRUE(world.host.runs.empty());
    EXPECT_EQ(world.status().state, "stopped");
    world.endpoint.stopped = false;
    world.set();
    world.until(65);
    EXPECT_EQ(world.serving(), std::set<int>{1});
}

}  // namespace
}  // namespace stoker
