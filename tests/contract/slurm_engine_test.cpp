// What only the Slurm engine has to keep, shown on a real cluster: what the controller forgets, what others do to its
// jobs, and what was missed while nobody looked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "contract/slurm_harness.h"

namespace stoker::contract {
namespace {

class SlurmEngine : public ::testing::Test {
protected:
    GangSpec gang(const std::string& script, std::size_t ranks = 1) const {
        GangSpec spec{.attempt = {{1}, 1}, .epoch = 1, .folder = harness.scratch(), .log_folder = harness.scratch()};
        for (std::size_t i = 0; i < ranks; ++i) spec.ranks.push_back({.arguments = {"sh", "-c", script}});
        return spec;
    }
    static Deadline soon() { return SlurmHarness::soon(); }
    static SlurmCluster& cluster() { return *SlurmHarness::cluster(); }
    void expect_launched(const OperationId& id, const GangSpec& spec) {
        const Outcome outcome = driver->launch(id, spec, soon());
        ASSERT_EQ(outcome.certainty, Certainty::accepted) << outcome.detail;
    }
    const Fact* end_of(const OperationId& id) { return facts.wait(*driver, id, FactKind::gang_ended, soon()); }
    void expect_over(const OperationId& id) {
        EXPECT_EQ(driver->cancel(id, 1, 0, soon()).certainty, Certainty::confirmed);
        EXPECT_EQ(driver->release(id, soon()).certainty, Certainty::confirmed);
    }
    // What Slurm takes for running though it has ended is ended by the driver: as the core does, it is asked on.
    void TearDown() override {
        EXPECT_TRUE(eventually(
            [&] {
                if (cluster().quiet()) return true;
                (void)driver->observe(0, in(5)).ok();
                return false;
            },
            soon()))
            << cluster().say({"squeue"});
    }
    void wait_until_up() {
        ASSERT_TRUE(eventually([] { return cluster().ready(); }, soon()));
    }

    SlurmHarness harness;
    std::unique_ptr<Driver> driver = harness.make();
    Facts facts;
};

// The controller answers, and dies before it has saved its state: what it then does not know, it is given again, and it
// runs once, whatever it remembers.
TEST_F(SlurmEngine, AControllerKilledRightAfterASubmissionCostsNoRunAndDoublesNone) {
    // STOKER_CONTROLLER_KILLS: more of them, by hand.
    const char* asked = std::getenv("STOKER_CONTROLLER_KILLS");
    const int times = asked == nullptr ? 5 : std::atoi(asked);
    // What ended before this test is saved: an end that is forgotten would be of a job that nobody here knows.
    cluster().kill_controller(SIGTERM);
    cluster().start_controller();
    wait_until_up();
    std::vector<OperationId> all;
    for (int i = 0; i < times; ++i) {
        const OperationId id = harness.next();
        all.push_back(id);
        const GangSpec spec = gang("echo " + id.text() + " >> ran", 2);
        expect_launched(id, spec);
        std::this_thread::sleep_for(std::chrono::milliseconds(i * 73 % 3000));  // all of them before it saves
        cluster().kill_controller(SIGKILL);
        cluster().start_controller();
        // As the core does: what a full listing has not is sent again.
        OursListing listing;
        ASSERT_TRUE(eventually(
            [&] {
                auto got = driver->list_ours(id.site, soon());
                if (got && got->complete) listing = *got;
                return got && got->complete;
            },
            soon()));
        const bool known = std::any_of(listing.items.begin(), listing.items.end(),
                                       [&](const Ours& each) { return each.operation == id; });
        if (!known) expect_launched(id, spec);
    }
    for (const OperationId& id : all) {
        const Fact* end = end_of(id);
        ASSERT_NE(end, nullptr);
        const std::string ran = content(harness.scratch() + "/ran");
        std::size_t count = 0;
        for (std::size_t at = 0; (at = ran.find(id.text() + "\n", at)) != std::string::npos; ++at) ++count;
        // A job that the controller took for pending and its node for running is ended by Slurm; never run again by us.
        if (end->cause == Cause::ok) {
            EXPECT_EQ(count, 2U) << "each rank once";
        } else {
            EXPECT_LE(count, 2U);
            EXPECT_NE(end->cause, Cause::user_error) << end->detail;
        }
        expect_over(id);
    }
}

// Where Pyxis is, ranks begin in the image, with what they need of outside mounted; where it is not, none begins.
TEST_F(SlurmEngine, AnImageIsStartedByThePlugInOrNotAtAll) {
    GangSpec spec = gang("echo up >> up", 2);
    spec.image = "nvcr.io/nvidia/pytorch:25.10-py3";
    const Outcome refused = driver->launch(harness.next(), spec, soon());
    EXPECT_EQ(refused.certainty, Certainty::rejected);
    EXPECT_EQ(refused.cause, Cause::user_error);
    EXPECT_NE(refused.detail.find("--container-image"), std::string::npos) << refused.detail;
    harness.give_pyxis();
    driver = harness.make();
    EXPECT_TRUE(driver->capabilities().runs_images);
    const OperationId id = harness.next();
    expect_launched(id, spec);
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::ok) << end->detail;
    EXPECT_EQ(content(harness.scratch() + "/up"), "up\nup\n");
    const std::string told = harness.told_to_pyxis();
    for (const std::string& word : {std::string("--container-image=nvcr.io#nvidia/pytorch:25.10-py3\n"),
                                    "," + harness.scratch() + ":" + harness.scratch() + "\n"})
        EXPECT_NE(told.find(word), std::string::npos) << told;
    expect_over(id);
}

// A run that goes on while its controller restarts is neither ended nor told to be.
TEST_F(SlurmEngine, ARestartOfTheControllerDisturbsNothing) {
    const OperationId id = harness.next();
    expect_launched(id, gang("while [ ! -e go ]; do sleep 0.05; done", 2));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    cluster().kill_controller(SIGTERM);
    const auto listing = driver->list_ours(id.site, in(2));
    ASSERT_TRUE(listing.ok());
    EXPECT_FALSE(listing->complete) << "a controller that is down proves nothing";
    ASSERT_EQ(listing->items.size(), 1U);
    EXPECT_FALSE(listing->items[0].ended);
    // What waits for nobody's answer goes on: the host obeys without the controller.
    EXPECT_NE(driver->notify(id, 1, SIGUSR1, soon()).certainty, Certainty::unknown);
    EXPECT_EQ(driver->launch(harness.next(), gang("true"), in(2)).certainty, Certainty::unknown);
    cluster().start_controller();
    wait_until_up();
    EXPECT_TRUE(driver->observe(facts.cursor, in(1)).ok());
    EXPECT_EQ(facts.find(id, FactKind::gang_ended), nullptr);
    std::ofstream(harness.scratch() + "/go") << "\n";
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::ok) << end->detail;
    expect_over(id);
    // What was in doubt never came through, and is gone.
    expect_over({.site = id.site, .seq = id.seq + 1});
}

// A server that was away finds how it ended, also when Slurm has forgotten the job and its number is another's.
TEST_F(SlurmEngine, AnEndWhileNobodyLookedIsFound) {
    const OperationId id = harness.next();
    expect_launched(id, gang("echo done; exit 5"));
    driver.reset();
    ASSERT_TRUE(shows(harness.scratch() + "/rank-0.out", "done", soon()));
    harness.forget_what_ended();
    driver = harness.make();
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::user_error);
    EXPECT_NE(end->detail.find("exit code 5"), std::string::npos) << end->detail;
    expect_over(id);
}

// Somebody's scancel is not our user's error, and is said to be what it is.
TEST_F(SlurmEngine, AJobThatAPersonCancelsEndsAsCancelled) {
    const OperationId id = harness.next(), waiting = harness.next();
    expect_launched(id, gang("trap '' TERM; while :; do sleep 0.05; done", 2));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    cluster().hold_queue();
    expect_launched(waiting, gang("echo ran > ran"));
    cluster().say({"scancel", "--name=stoker-" + id.text()});
    cluster().say({"scancel", "--name=stoker-" + waiting.text()});
    for (const OperationId& each : {id, waiting}) {
        const Fact* end = end_of(each);
        ASSERT_NE(end, nullptr);
        EXPECT_EQ(end->cause, Cause::cancelled) << end->detail;
    }
    cluster().let_start();
    EXPECT_EQ(content(harness.scratch() + "/ran"), "");
    expect_over(id);
    expect_over(waiting);
}

// Work that goes first takes the nodes: the run is told to be preempted, which counts against nobody's tries.
TEST_F(SlurmEngine, APreemptedRunIsToldToBe) {
    const OperationId id = harness.next();
    GangSpec spec = gang("while :; do sleep 0.05; done", 2);
    spec.nodes = 2;
    for (RankSpec& rank : spec.ranks) rank.cpu_milli = 16000;
    expect_launched(id, spec);
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    cluster().say(
        {"sbatch", "-p", "urgent", "-N", "2", "--exclusive", "--chdir=/", "--output=/dev/null", "--wrap=sleep 1"});
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::preempted) << end->detail;
    expect_over(id);
}

// A node that is drained is not offered, and what needs it waits with that as the reason.
TEST_F(SlurmEngine, ADrainedNodeTakesNothingAndIsSaid) {
    EXPECT_EQ(driver->discover(soon())->size(), 2U);
    cluster().say({"scontrol", "update", "nodename=n2", "state=drain", "reason=test"});
    const auto nodes = driver->discover(soon());
    ASSERT_TRUE(nodes.ok());
    ASSERT_EQ(nodes->size(), 1U);
    EXPECT_EQ(nodes->front().name, "n1");
    EXPECT_EQ(nodes->front().devices.size(), 8U);
    const OperationId id = harness.next();
    GangSpec spec = gang("exit 0", 2);
    spec.nodes = 2;
    expect_launched(id, spec);
    const Fact* waits = facts.wait(*driver, id, FactKind::waits, soon());
    ASSERT_NE(waits, nullptr);
    EXPECT_TRUE(waits->cause == Cause::node_unhealthy || waits->cause == Cause::capacity_busy ||
                waits->cause == Cause::engine_queue || waits->cause == Cause::capacity_none)
        << waits->detail;
    cluster().say({"scontrol", "update", "nodename=n2", "state=resume"});
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::ok) << end->detail;
    expect_over(id);
}

// Each rank gets the GPUs that are its own, and knows its place and where to meet the others.
TEST_F(SlurmEngine, RanksGetTheirGpusAndTheirPlace) {
    const OperationId id = harness.next();
    GangSpec spec = gang(
        "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK gpus=$CUDA_VISIBLE_DEVICES "
        "$MASTER_ADDR:${MASTER_PORT:+port} at=$SLURMD_NODENAME",
        4);
    spec.nodes = 2;
    for (RankSpec& rank : spec.ranks) {
        rank.gpus = 2;
        rank.gpu_model = "a100";
    }
    expect_launched(id, spec);
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::ok) << end->detail;
    const char* expected[] = {"0 4 0 2 0 gpus=0,1 127.0.0.1:port at=n1\n", "1 4 1 2 0 gpus=2,3 127.0.0.1:port at=n1\n",
                              "2 4 0 2 1 gpus=0,1 127.0.0.1:port at=n2\n", "3 4 1 2 1 gpus=2,3 127.0.0.1:port at=n2\n"};
    for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(content(harness.scratch() + "/rank-" + std::to_string(rank) + ".out"), expected[rank]);
    EXPECT_EQ(facts.find(id, FactKind::rank_started, 3)->node, "n2");
    expect_over(id);
}

// A wish that no node can meet waits with just that as its reason, where the cluster takes such jobs (EnforcePartLimits
// is NO, the default); what it does not take is refused at once, in Slurm's words.
TEST_F(SlurmEngine, WhatNeverFitsIsSaid) {
    GangSpec wide = gang("true");
    wide.ranks[0].cpu_milli = 64000;
    const OperationId never = harness.next();
    expect_launched(never, wide);
    const Fact* waits = facts.wait(*driver, never, FactKind::waits, soon());
    while (waits != nullptr && waits->cause == Cause::engine_queue) {  // the scheduler has not looked yet
        std::erase_if(facts.all, [](const Fact& fact) { return fact.kind == FactKind::waits; });
        waits = facts.wait(*driver, never, FactKind::waits, soon());
    }
    ASSERT_NE(waits, nullptr);
    EXPECT_EQ(waits->cause, Cause::capacity_none) << waits->detail;
    expect_over(never);
    GangSpec many = gang("true");
    many.ranks[0].gpus = 100;
    const Outcome large = driver->launch(harness.next(), many, soon());
    EXPECT_EQ(large.certainty, Certainty::rejected);
    EXPECT_EQ(large.cause, Cause::no_capacity) << large.detail;
    SlurmOptions other = harness.options();
    other.partition = "nowhere";
    auto wrong = SlurmHarness::make(other);
    const Outcome none = wrong->launch(harness.next(), gang("true"), soon());
    EXPECT_EQ(none.certainty, Certainty::rejected);
    EXPECT_NE(none.detail.find("partition"), std::string::npos) << none.detail;
}

// A gang whose host is killed leaves no word: Slurm says how its job ended, and nothing of it runs on.
TEST_F(SlurmEngine, AKilledHostIsNoEndlessRun) {
    const OperationId id = harness.next();
    expect_launched(id, gang("while :; do sleep 0.05; done", 2));
    ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon()), nullptr);
    for (const pid_t pid : processes_with("SLURM_JOB_NAME=stoker-" + id.text())) {
        const std::string line = content("/proc/" + std::to_string(pid) + "/cmdline");
        if (line.find("gang") != std::string::npos) ::kill(pid, SIGKILL);
    }
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::platform) << end->detail;
    expect_over(id);
}

// A gang that lost a rank is over: the others would wait for it until they give up by themselves, and hold their GPUs.
TEST_F(SlurmEngine, ALostRankEndsItsGang) {
    const OperationId id = harness.next();
    GangSpec spec = gang("while :; do sleep 0.05; done", 2);
    spec.nodes = 2;
    expect_launched(id, spec);
    for (const int rank : {0, 1}) ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, soon(), rank), nullptr);
    int killed = 0;
    for (const pid_t pid : processes_with("SLURM_JOB_NAME=stoker-" + id.text())) {
        const std::string at = "/proc/" + std::to_string(pid);
        const bool host = content(at + "/cmdline").find("slurm-step") != std::string::npos;
        if (host && content(at + "/environ").find("SLURM_PROCID=1") != std::string::npos)
            killed += ::kill(pid, SIGKILL) == 0 ? 1 : 0;
    }
    ASSERT_EQ(killed, 1);
    const Fact* end = end_of(id);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::platform) << end->detail;
    EXPECT_NE(end->detail.find("rank 1 on n2 left no word of its end"), std::string::npos) << end->detail;
    expect_over(id);
}

// A controller that was killed while a job ended may take it for running for minutes: it is ended there as well, or its
// GPUs are nobody's.
TEST_F(SlurmEngine, WhatSlurmTakesForRunningAfterItsEndIsEnded) {
    const OperationId id = harness.next();
    expect_launched(id, gang("true"));
    ASSERT_NE(end_of(id), nullptr);
    // One of its name that no host ends: as Slurm sees what it lost the end of.
    ASSERT_NE(cluster().say({"sbatch", "--job-name=stoker-" + id.text(), "--output=/dev/null", "--wrap=sleep 600"}),
              "");
    ASSERT_TRUE(eventually([&] { return cluster().say({"squeue", "-h", "-t", "running"}) != ""; }, soon()));
    expect_over(id);
    EXPECT_TRUE(driver->list_ours(id.site, soon())->items.empty()) << "it is no run that somebody has to look after";
}

// A job of ours without a folder, as after a disk was put back, is listed and can be ended.
TEST_F(SlurmEngine, AJobWithoutItsFolderIsOursAndCanBeEnded) {
    const OperationId id = harness.next();
    cluster().hold_queue();
    expect_launched(id, gang("echo ran > ran"));
    fs::remove_all(harness.folder_of(id));
    driver = harness.make();
    const auto listing = driver->list_ours(id.site, soon());
    ASSERT_EQ(listing->items.size(), 1U);
    EXPECT_TRUE(listing->items[0].waits);
    EXPECT_EQ(driver->cancel(id, 1, 0, soon()).certainty, Certainty::confirmed);
    EXPECT_TRUE(driver->list_ours(id.site, soon())->items.empty());
}

// Who mistypes the cluster's file is told at once, and not after Slurm's own commands have looked for it for a minute.
TEST_F(SlurmEngine, AMissingConfigurationIsSaidAtOnce) {
    SlurmOptions options = harness.options();
    options.config = "/nowhere/slurm.conf";
    const auto none = make_slurm_driver(options);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::invalid);
    EXPECT_NE(none.error().text().find("/nowhere/slurm.conf"), std::string::npos);
}

}  // namespace
}  // namespace stoker::contract
