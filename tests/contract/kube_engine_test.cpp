// What only the Kubernetes engine has to keep, shown on a real cluster: what others do to its pods, what the API server
// forgets, and what was missed while nobody looked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

#include "contract/kube_harness.h"
#include "deploy/kubernetes/api_client.h"
#include "deploy/kubernetes/cluster_watch.h"

namespace stoker::contract {
namespace {

class KubernetesEngine : public ::testing::Test {
protected:
    GangSpec gang(const std::string& script, std::size_t ranks = 1, int nodes = 0) const {
        GangSpec spec{.attempt = {{1}, 1},
                      .epoch = 1,
                      .folder = harness.scratch(),
                      .log_folder = harness.scratch(),
                      .nodes = nodes};
        for (std::size_t i = 0; i < ranks; ++i) spec.ranks.push_back({.arguments = {"sh", "-c", script}});
        return spec;
    }
    static Deadline soon() { return KubeHarness::soon(); }
    static KubeCluster& cluster() { return *KubeHarness::cluster(); }
    void expect_launched(const OperationId& id, const GangSpec& spec) {
        const Outcome outcome = driver->launch(id, spec, soon());
        ASSERT_EQ(outcome.certainty, Certainty::accepted) << outcome.detail;
    }
    const Fact* end_of(const OperationId& id) { return facts.wait(*driver, id, FactKind::gang_ended, soon()); }
    void expect_over(const OperationId& id) {
        EXPECT_EQ(driver->cancel(id, 1, 0, soon()).certainty, Certainty::confirmed);
        EXPECT_EQ(driver->release(id, soon()).certainty, Certainty::confirmed);
    }
    // The first wait of the operation whose words have this in them.
    const Fact* waits_with(const OperationId& id, const std::string& words) {
        const Deadline deadline = soon();
        const auto matches = [&](const Fact& fact) {
            return fact.operation == id && fact.kind == FactKind::waits && fact.detail.find(words) != std::string::npos;
        };
        for (;;) {
            const auto found = std::find_if(facts.all.begin(), facts.all.end(), matches);
            if (found != facts.all.end()) return &*found;
            if (Clock::now() >= deadline) return nullptr;
            auto more = driver->observe(facts.cursor, in(1));
            for (Fact& fact : *more) {
                facts.cursor = fact.cursor;
                facts.all.push_back(std::move(fact));
            }
        }
    }
    // Every word of a wait, for the message of a failure.
    std::string all_waits() const {
        std::string all;
        for (const Fact& fact : facts.all)
            if (fact.kind == FactKind::waits) all += std::string(to_string(fact.cause)) + ": " + fact.detail + "\n";
        return all;
    }

    KubeHarness harness;
    std::unique_ptr<Driver> driver = harness.make();
    Facts facts;
};

// Ranks know their place and where to meet the others, by node as they were asked for, with their own GPUs.
TEST_F(KubernetesEngine, RanksKnowTheirPlace) {
    const OperationId id = harness.next();
    GangSpec spec =
        gang("echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR:$MASTER_PORT", 4, 2);
    for (RankSpec& rank : spec.ranks) rank.gpus = 2;
    expect_launched(id, spec);
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::ok) << end->detail;
    for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(content(harness.scratch() + "/rank-" + std::to_string(rank) + ".out"),
                  std::to_string(rank) + " 4 " + std::to_string(rank % 2) + " 2 " + std::to_string(rank / 2) +
                      " stoker-" + id.text() + "-0.stoker-ranks:29500\n");
    expect_over(id);
}

// A drain is no failure of the work: the run is told to be evicted, has its notice, and may write a checkpoint.
TEST_F(KubernetesEngine, AnEvictionIsANoticeAndNoFailure) {
    const OperationId id = harness.next();
    expect_launched(id,
                    gang("trap 'echo saved > saved; exit 143' TERM; echo up > up; while :; do sleep 0.05; done", 2));
    ASSERT_TRUE(shows(harness.scratch() + "/up", "up", soon()));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    cluster().tell("evict");
    const Fact* notice = facts.wait(*driver, id, FactKind::notice, soon());
    ASSERT_NE(notice, nullptr);
    EXPECT_EQ(notice->seconds, 5);
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::evicted) << end->detail;
    EXPECT_EQ(content(harness.scratch() + "/saved"), "saved\n");
    expect_over(id);
}

// A node that is taken away is the node's fault and nobody else's.
TEST_F(KubernetesEngine, ALostNodeIsSaid) {
    const OperationId id = harness.next();
    expect_launched(id, gang("while :; do sleep 0.05; done", 1));
    const Fact* started = facts.wait(*driver, id, FactKind::rank_started, soon());
    ASSERT_NE(started, nullptr);
    const std::string node = started->node;
    cluster().tell("out-of-service " + node);
    const Fact* end = end_of(id);
    cluster().tell("in-service " + node);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::node_lost) << end->detail;
    expect_over(id);
}

// kubectl delete job is somebody's decision, and not our user's error; nothing of it runs on behind a Job that goes.
TEST_F(KubernetesEngine, AJobThatAPersonDeletesEndsAsCancelled) {
    const OperationId id = harness.next();
    expect_launched(id, gang("while :; do sleep 0.05; done", 2));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    cluster().tell("delete-jobs");
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::cancelled) << end->detail;
    expect_over(id);
}

// Runs in flight while the API server is killed, while the server itself is, and while nobody can be asked: each ends
// once, as it would have, and nothing is left.
TEST_F(KubernetesEngine, RestartsLoseNothingAndDoubleNothing) {
    std::vector<OperationId> all;
    const auto launch_some = [&](int count) {
        for (int i = 0; i < count; ++i) {
            const OperationId id = harness.next();
            all.push_back(id);
            const GangSpec spec =
                gang("echo " + id.text() + " >> ran; sleep 0.5; exit " + std::to_string(all.size() % 2 ? 0 : 3),
                     all.size() % 3 == 0 ? 2 : 1);
            // As the core does: what is doubtful is asked again, under the same name.
            ASSERT_TRUE(
                eventually([&] { return driver->launch(id, spec, in(10)).certainty == Certainty::accepted; }, soon()));
        }
    };
    launch_some(4);
    cluster().tell("restart");
    launch_some(4);
    driver = harness.make();
    cluster().tell("shut");
    EXPECT_EQ(driver->launch({.site = all[0].site, .seq = 9999}, gang("true"), in(1)).certainty, Certainty::unknown);
    const auto listing = driver->list_ours(all[0].site, in(1));
    ASSERT_TRUE(listing.ok());
    EXPECT_FALSE(listing->complete) << "a server that is away proves nothing";
    cluster().tell("open");
    launch_some(4);
    facts = {};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Fact* end = end_of(all[i]);
        ASSERT_NE(end, nullptr) << all[i].text();
        EXPECT_EQ(end->cause, (i + 1) % 2 ? Cause::ok : Cause::user_error) << all[i].text() << ": " << end->detail;
        const std::string ran = content(harness.scratch() + "/ran");
        std::size_t count = 0;
        for (std::size_t at = 0; (at = ran.find(all[i].text() + "\n", at)) != std::string::npos; ++at) ++count;
        EXPECT_EQ(count, (i + 1) % 3 == 0 ? 2U : 1U)
            << all[i].text() << cluster().tell("kubectl get pods,jobs,events --sort-by=.metadata.creationTimestamp");
        expect_over(all[i]);
    }
}

// How it ended while nobody looked is found, also when its pods are gone with the word of it only in the Job.
TEST_F(KubernetesEngine, AnEndWhileNobodyLookedIsFound) {
    const OperationId id = harness.next();
    expect_launched(id, gang("echo done; exit 5"));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    driver.reset();
    ASSERT_TRUE(
        eventually([] { return cluster().tell("kubectl get jobs").find("Failed") != std::string::npos; }, soon()));
    driver = harness.make();
    facts = {};
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::user_error);
    EXPECT_NE(end->detail.find("exit code 5"), std::string::npos) << end->detail;
    EXPECT_EQ(content(harness.scratch() + "/rank-0.out"), "done\n");
    expect_over(id);
}

// The server has forgotten the version that a watch went on from: 410, and then everything is listed again.
TEST_F(KubernetesEngine, AVersionThatIsGoneIsListedAnew) {
    auto config = kubernetes::find_kubeconfig(cluster().kubeconfig(), "");
    ASSERT_TRUE(config.ok());
    auto api = kubernetes::ApiClient::make(*config);
    ASSERT_TRUE(api.ok());
    const kubernetes::Paths paths("default");
    std::string version = "1";
    const auto ended = (*api)->watch(
        paths.pods(), "", version, [] { return false; }, [](std::string_view, const Node&) {});
    ASSERT_TRUE(ended.ok()) << ended.error().text();
    EXPECT_EQ(*ended, kubernetes::WatchEnd::gone);
}

// Two gangs that each hold a part of what both need would wait for ever: one is placed at a time, and gives back.
TEST_F(KubernetesEngine, AGangThatDoesNotFitGivesItsNodesBack) {
    KubernetesOptions options = harness.options();
    options.gang_wait_s = 3;
    driver = KubeHarness::make(options);
    const OperationId large = harness.next(), small = harness.next();
    GangSpec wide = gang("true", 3, 3);  // on two nodes
    for (RankSpec& rank : wide.ranks) rank.gpus = 8;
    expect_launched(large, wide);
    ASSERT_NE(waits_with(large, "gave those back"), nullptr) << all_waits();
    GangSpec fits = gang("exit 0", 2, 2);
    for (RankSpec& rank : fits.ranks) rank.gpus = 8;
    expect_launched(small, fits);
    const Fact* end = end_of(small);
    ASSERT_NE(end, nullptr) << all_waits();
    EXPECT_EQ(end->cause, Cause::ok) << end->detail;
    expect_over(large);
    expect_over(small);
}

// What people wait for without being told is what they leave for: each cause on the real scheduler and API server has
// our cause, words that name what is the matter, and what cures it.
struct Pending {
    const char* name;
    const char* before;  // orders to the cluster, one a line
    const char* after;
    std::function<void(KubernetesOptions&, GangSpec&)> with;
    Cause cause;
    const char* words;
};
const char* kGoneTaint = "out-of-service k1\nout-of-service k2";

const Pending kPending[] = {
    {"cordoned", "cordon", "uncordon", nullptr, Cause::node_unhealthy, "uncordon"},
    {"taint", kGoneTaint, "in-service k1\nin-service k2", nullptr, Cause::capacity_none, "stoker.test/gone"},
    {"taint of one and the rest cordoned", "out-of-service k1\nkubectl cordon k2", "in-service k1\nuncordon", nullptr,
     Cause::capacity_none, "engine.tolerate"},
    {"more GPUs than a node has", "", "", [](auto&, GangSpec& gang) { gang.ranks[0].gpus = 9; }, Cause::capacity_busy,
     "no node has more than 8"},
    {"label that no node has", "", "",
     [](KubernetesOptions& options, GangSpec&) {
         options.node_selector = {{"pool", "none"}};
     },
     Cause::capacity_none, "pool=none"},
    {"processors", "", "", [](auto&, GangSpec& gang) { gang.ranks[0].cpu_milli = 65'000; }, Cause::capacity_busy,
     "cpu"},
    {"memory", "", "", [](auto&, GangSpec& gang) { gang.ranks[0].memory_bytes = std::int64_t{300} << 30; },
     Cause::capacity_busy, "memory"},
    {"quota of pods",
     R"(create {"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"few"},"spec":{"hard":{"pods":"0"}}})",
     "remove /api/v1/namespaces/default/resourcequotas/few", nullptr, Cause::quota, "few"},
    {"quota of GPUs",
     R"(create {"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"gpus"},"spec":{"hard":{"requests.nvidia.com/gpu":"1"}}})",
     "remove /api/v1/namespaces/default/resourcequotas/gpus", [](auto&, GangSpec& gang) { gang.ranks[0].gpus = 2; },
     Cause::quota, "gpus"},
    {"limit range",
     R"(create {"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"small"},"spec":{"limits":[{"type":"Container","max":{"memory":"1Gi"}}]}})",
     "remove /api/v1/namespaces/default/limitranges/small",
     [](auto&, GangSpec& gang) { gang.ranks[0].memory_bytes = std::int64_t{2} << 30; }, Cause::engine_queue, "1Gi"},
    {"pod security", "kubectl label namespace default pod-security.kubernetes.io/enforce=restricted",
     "kubectl label namespace default pod-security.kubernetes.io/enforce-", nullptr, Cause::engine_queue,
     "PodSecurity"},
    {"priority class", "", "", [](KubernetesOptions& options, GangSpec&) { options.priority_class = "nosuch"; },
     Cause::engine_queue, "nosuch"},
    {"service account", "", "", [](KubernetesOptions& options, GangSpec&) { options.service_account = "nosuch"; },
     Cause::engine_queue, "nosuch"},
    {"claim that is missing", "", "",
     [](KubernetesOptions& options, GangSpec&) { options.shared.push_back({.path = "/data", .claim = "nosuch"}); },
     Cause::engine_queue, "nosuch"},
    {"claim that is unbound",
     R"(create {"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"unbound"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
     "remove /api/v1/namespaces/default/persistentvolumeclaims/unbound",
     [](KubernetesOptions& options, GangSpec&) { options.shared.push_back({.path = "/data", .claim = "unbound"}); },
     Cause::engine_queue, "claim"},
    {"image", "", "", [](auto&, GangSpec& gang) { gang.image = "missing/trainer:1"; }, Cause::image_pulling,
     "missing/trainer:1"},
    {"Kueue", "", "", [](KubernetesOptions& options, GangSpec&) { options.queue = "team"; }, Cause::engine_queue,
     "Kueue"},
    {"part of a gang", "", "",
     [](auto&, GangSpec& gang) {
         gang.ranks.resize(3, gang.ranks[0]);
         for (RankSpec& rank : gang.ranks) rank.gpus = 8;
     },
     Cause::capacity_busy, "2 of 3 pods have a node"},
    {"gang that gave back", "", "",
     [](KubernetesOptions& options, GangSpec& gang) {
         options.gang_wait_s = 1;
         gang.ranks.resize(3, gang.ranks[0]);
         for (RankSpec& rank : gang.ranks) rank.gpus = 8;
     },
     Cause::capacity_busy, "gave those back"},
    {"GPU products of another kind", "", "",
     [](KubernetesOptions& options, GangSpec& gang) {
         options.node_selector = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}};
         gang.ranks[0].gpus = 1;
     },
     Cause::capacity_none, "H100"},
};

TEST_F(KubernetesEngine, TwentyCausesOfPendingAreNamedWithTheirCure) {
    const auto tell_all = [&](const std::string& orders) {
        for (std::size_t at = 0; at < orders.size();) {
            const std::size_t end = std::min(orders.find('\n', at), orders.size());
            cluster().tell(orders.substr(at, end - at));
            at = end + 1;
        }
    };
    static_assert(std::size(kPending) >= 20);
    for (const Pending& each : kPending) {
        SCOPED_TRACE(each.name);
        tell_all(each.before);
        KubernetesOptions options = harness.options();
        GangSpec spec = gang("true");
        if (each.with) each.with(options, spec);
        driver = KubeHarness::make(options);
        facts = {};
        const OperationId id = harness.next();
        expect_launched(id, spec);
        const Fact* why = waits_with(id, each.words);
        EXPECT_NE(why, nullptr) << all_waits();
        if (why != nullptr) {
            std::printf("%-36s %-14s %s\n", each.name, std::string(to_string(why->cause)).c_str(), why->detail.c_str());
            EXPECT_EQ(why->cause, each.cause) << why->detail;
            EXPECT_NE(why->detail.find("; cure: "), std::string::npos) << why->detail;
        }
        expect_over(id);
        tell_all(each.after);
    }
}

}  // namespace
}  // namespace stoker::contract
