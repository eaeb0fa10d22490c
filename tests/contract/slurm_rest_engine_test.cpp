// What only the Slurm engine over slurmrestd has to keep, on a real one: that it asks for the same jobs as the commands
// do, and what becomes of runs while the daemon is away, is another, or cannot do what is asked.
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "contract/slurm_rest_harness.h"
#include "deploy/slurm/queue.h"

namespace stoker::contract {
namespace {

class SlurmRestEngine : public ::testing::Test {
protected:
    GangSpec gang(const std::string& script, std::size_t ranks = 1) const {
        GangSpec spec{.attempt = {{1}, 1}, .epoch = 1, .folder = harness.scratch(), .log_folder = harness.scratch()};
        for (std::size_t i = 0; i < ranks; ++i) spec.ranks.push_back({.arguments = {"sh", "-c", script}});
        return spec;
    }
    static Deadline soon() { return SlurmHarness::soon(); }
    static SlurmCluster& cluster() { return *SlurmHarness::cluster(); }
    void expect_launched(Driver& by, const OperationId& id, const GangSpec& spec) {
        const Outcome outcome = by.launch(id, spec, soon());
        ASSERT_EQ(outcome.certainty, Certainty::accepted) << outcome.detail;
    }
    void expect_over(const OperationId& id) {
        EXPECT_EQ(driver->cancel(id, 1, 0, soon()).certainty, Certainty::confirmed);
        EXPECT_EQ(driver->release(id, soon()).certainty, Certainty::confirmed);
    }

    SlurmRestHarness harness;
    std::unique_ptr<Driver> driver = harness.make();
    Facts facts;
};

// Whoever lets the engine ask slurmrestd gets the nodes, cores, memory, GPUs and time that sbatch would have got.
TEST_F(SlurmRestEngine, AJobIsAskedForAsSbatchDoes) {
    cluster().hold_queue();
    GangSpec spread = gang("true", 4), loose = gang("true", 3);
    spread.nodes = 2;
    spread.longest_s = 3601;
    loose.avoid = {"n1"};
    for (GangSpec* spec : {&spread, &loose})
        for (RankSpec& rank : spec->ranks) {
            rank.cpu_milli = 2500;
            rank.memory_bytes = 1LL << 30;
            rank.gpus = 1;
            rank.gpu_model = "a100";
        }
    const auto by_commands = SlurmHarness::make(static_cast<const SlurmHarness&>(harness).options());
    for (const GangSpec* spec : {&spread, &loose}) {
        std::map<std::string, std::string> seen[2];
        const OperationId ids[] = {harness.next(), harness.next()};
        for (int i = 0; i < 2; ++i) {
            expect_launched(i == 0 ? *by_commands : *driver, ids[i], *spec);
            ASSERT_FALSE(HasFailure());
            const std::string number = cluster().say({"squeue", "-h", "-o", "%A", "--name=stoker-" + ids[i].text()});
            seen[i] = slurm::read_fields(cluster().say({"scontrol", "show", "job", "-o", number}));
            ASSERT_FALSE(seen[i]["JobId"].empty());
        }
        for (const char* key : {"Partition", "NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "TRES", "MinMemoryNode",
                                "MinMemoryCPU", "TresPerNode", "TresPerTask", "TimeLimit", "ExcNodeList", "Requeue",
                                "UserId", "Account", "QOS", "KillOInInvalidDependent", "Features", "OverSubscribe"})
            EXPECT_EQ(seen[1][key], seen[0][key]) << key;
        EXPECT_NE(seen[1]["TRES"], "");
        for (const OperationId& id : ids) expect_over(id);
    }
    cluster().let_start();
}

// Nothing is lost with the daemon: what runs goes on, what is asked meanwhile is in doubt and not refused, and nobody
// turns to the commands instead.
TEST_F(SlurmRestEngine, ADaemonThatIsAwayCostsNoRun) {
    const OperationId id = harness.next(), other = harness.next();
    expect_launched(*driver, id, gang("while [ ! -e go ]; do sleep 0.05; done", 2));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    cluster().stop_rest(SIGKILL);
    EXPECT_EQ(driver->launch(other, gang("echo other >> ran"), in(2)).certainty, Certainty::unknown);
    EXPECT_EQ(cluster().say({"squeue", "-h", "--name=stoker-" + other.text()}), "");
    const auto listing = driver->list_ours(id.site, in(2));
    ASSERT_TRUE(listing.ok());
    EXPECT_FALSE(listing->complete);
    EXPECT_FALSE(driver->discover(in(2)).ok());
    const auto again = harness.make();
    ASSERT_NE(again, nullptr) << "a server that starts meanwhile waits for it";
    EXPECT_NE(again->capabilities().detail.find("has not answered"), std::string::npos);
    (void)cluster().rest_url();
    expect_launched(*driver, other, gang("echo other >> ran"));
    std::ofstream(harness.scratch() + "/go") << "\n";
    for (const OperationId& each : {id, other}) {
        const Fact* end = facts.wait(*driver, each, FactKind::gang_ended, soon());
        ASSERT_NE(end, nullptr);
        EXPECT_EQ(end->cause, Cause::ok) << end->detail;
        expect_over(each);
    }
    EXPECT_EQ(content(harness.scratch() + "/ran"), "other\n");
}

// What is not known of a cluster over REST is refused with what to do about it, before anything starts.
TEST_F(SlurmRestEngine, WhatItCannotBeAskedForIsSaid) {
    GangSpec close = gang("true", 2);
    close.nodes = 2;
    close.one_switch = true;
    const Outcome switches = driver->launch(harness.next(), close, soon());
    EXPECT_EQ(switches.certainty, Certainty::rejected);
    EXPECT_NE(switches.detail.find("--switches"), std::string::npos) << switches.detail;
    GangSpec image = gang("true");
    image.image = "nvcr.io/nvidia/pytorch:25.10-py3";
    const Outcome pyxis = driver->launch(harness.next(), image, soon());
    EXPECT_EQ(pyxis.certainty, Certainty::rejected);
    EXPECT_NE(pyxis.detail.find("slurmrestd"), std::string::npos) << pyxis.detail;
    EXPECT_TRUE(driver->capabilities().preempts) << driver->capabilities().detail;
    EXPECT_NE(driver->capabilities().detail.find("slurmrestd v0.0.38"), std::string::npos);
}

// One that speaks another version, or is none at all, is told when the server starts, with what it does speak.
TEST_F(SlurmRestEngine, AnotherVersionIsSaidAtOnce) {
    const std::string url = cluster().rest_url("v0.0.37");
    SlurmOptions options = harness.options();
    options.rest.url = url;
    const auto none = make_slurm_driver(options);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::invalid);
    EXPECT_NE(none.error().text().find("v0.0.37"), std::string::npos) << none.error().text();
    EXPECT_NE(none.error().text().find("openapi/v0.0.38"), std::string::npos) << none.error().text();
    std::ofstream(harness.scratch() + "/plain") << "\n";
    options.rest.url = "unix:" + harness.scratch() + "/plain";
    EXPECT_NE(make_slurm_driver(options).error().text().find("is no socket"), std::string::npos);
}

}  // namespace
}  // namespace stoker::contract
