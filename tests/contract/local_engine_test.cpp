// What the local engine keeps beyond the contract: it survives the death of its server, its keeper, its ranks and its
// disk, and tells the truth about each.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "base/text.h"
#include "contract/driver_contract.h"
#include "contract/local_harness.h"
#include "deploy/local/box.h"
#include "io/files.h"
#include "io/machine/cgroup.h"
#include "io/machine/namespaces.h"

namespace stoker::contract {
namespace {

// The three ways to end a tree; those that are not possible here are skipped.
class LocalEngine : public ::testing::TestWithParam<TreeKind> {
protected:
    void SetUp() override {
        static const bool groups = discover_cgroups().kills(), namespaces = pid_namespaces_work();
        if (GetParam() == TreeKind::cgroup && !groups) GTEST_SKIP() << "no control groups here";
        if (GetParam() == TreeKind::pid_namespace && !namespaces) GTEST_SKIP() << "no pid namespaces here";
        options.tree = GetParam();
        driver = Harness::make(options);
    }
    using Harness = LocalHarness<TreeKind::process_group>;  // the kind comes from the parameter

    GangSpec gang(const std::string& script, std::size_t ranks = 1) {
        GangSpec spec{.attempt = {{7}, 2}, .epoch = 1, .folder = harness.scratch(), .log_folder = harness.scratch()};
        for (std::size_t i = 0; i < ranks; ++i)
            spec.ranks.push_back({.node = i % 2 == 0 ? "alpha" : "beta", .arguments = {"sh", "-c", script}});
        return spec;
    }
    OperationId launched(const GangSpec& spec) {
        const OperationId id = harness.next();
        const Outcome outcome = driver->launch(id, spec, Harness::soon());
        EXPECT_EQ(outcome.certainty, Certainty::confirmed) << outcome.detail;
        return id;
    }
    std::string log(int rank = 0) const { return harness.scratch() + "/rank-" + std::to_string(rank) + ".out"; }
    Fact end_of(const OperationId& id) {
        Facts facts;
        const Fact* end = facts.wait(*driver, id, FactKind::gang_ended, Harness::soon());
        EXPECT_NE(end, nullptr);
        return end ? *end : Fact{};
    }
    void release(const OperationId& id) {
        const Outcome outcome = driver->release(id, Harness::soon());
        EXPECT_EQ(outcome.certainty, Certainty::confirmed) << outcome.detail;
    }

    Harness harness;
    LocalOptions options = harness.options();
    std::unique_ptr<Driver> driver;
};

// A rank finds what torchrun, Slurm and Open MPI would have told it; the user's own keys win, but not over ours.
TEST_P(LocalEngine, RanksKnowTheirPlace) {
    GangSpec spec = gang("env | sort; cat $STOKER_HOSTFILE", 3);
    spec.ranks[1].devices = {"GPU-b0"};
    spec.ranks[1].environment = {{"SLURM_PROCID", "mine"}, {"STOKER_RUN", "stolen"}, {"OMP_NUM_THREADS", "4"}};
    const OperationId id = launched(spec);
    EXPECT_EQ(end_of(id).cause, Cause::ok);
    std::map<std::string, std::string> found[3];
    for (int rank = 0; rank < 3; ++rank) {
        const std::string text = content(log(rank));
        for (const std::string_view line : split_lines(text))
            if (const std::size_t equals = line.find('='); equals != std::string_view::npos)
                found[rank].emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    EXPECT_EQ(found[2]["RANK"] + found[2]["WORLD_SIZE"] + found[2]["LOCAL_RANK"] + found[2]["LOCAL_WORLD_SIZE"],
              "2312");
    EXPECT_EQ(found[1]["NODE_RANK"] + found[1]["GROUP_RANK"] + found[1]["SLURM_NODEID"], "111");
    EXPECT_EQ(found[0]["SLURM_JOB_NODELIST"], "alpha,beta");
    EXPECT_EQ(found[0]["MASTER_ADDR"], "127.0.0.1");
    EXPECT_EQ(found[0]["MASTER_PORT"], found[2]["MASTER_PORT"]);
    EXPECT_GT(std::atoi(found[0]["MASTER_PORT"].c_str()), 1023);
    EXPECT_EQ(found[0]["OMPI_COMM_WORLD_SIZE"], "3");
    EXPECT_EQ(found[1]["CUDA_VISIBLE_DEVICES"], "GPU-b0");
    EXPECT_EQ(found[0].count("CUDA_VISIBLE_DEVICES"), 1u);
    EXPECT_EQ(found[0]["CUDA_VISIBLE_DEVICES"], "");
    EXPECT_EQ(found[1]["SLURM_PROCID"], "mine");
    EXPECT_EQ(found[1]["OMP_NUM_THREADS"] + found[0]["OMP_NUM_THREADS"], "41");
    EXPECT_EQ(found[1]["STOKER_RUN"], "r-7");
    EXPECT_EQ(found[1]["STOKER_ATTEMPT"], "2");
    EXPECT_EQ(found[1]["STOKER_OP"], id.text());
    EXPECT_NE(content(log(0)).find("localhost slots=2\nlocalhost slots=1\n"), std::string::npos);
    release(id);
}

// kill -9 of the keeper: the ranks end with it, what they started too, and the gang is said to be lost by our fault.
TEST_P(LocalEngine, KilledKeeperIsSeenAndNothingSurvives) {
    const OperationId id = launched(gang("setsid sh -c '(sleep 1000 & echo $! > stray)'; echo up; sleep 1000", 2));
    ASSERT_TRUE(shows(log(0), "up", Harness::soon()));
    ASSERT_EQ(::kill(harness.keeper_of(id), SIGKILL), 0);
    const Fact end = end_of(id);
    EXPECT_EQ(end.cause, Cause::platform);
    EXPECT_NE(end.detail.find("keeper was killed"), std::string::npos) << end.detail;
    EXPECT_TRUE(processes_with("STOKER_OP=" + id.text()).empty());
    EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
    release(id);
}

// kill -9 of one rank by a stranger: the others are ended without anybody asking, although they ignore TERM.
TEST_P(LocalEngine, KilledRankEndsTheGang) {
    const OperationId id = launched(gang("trap '' TERM; echo up; while :; do sleep 0.01; done", 3));
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(shows(log(rank), "up", Harness::soon()));
    Facts facts;
    facts.wait(*driver, id, FactKind::rank_started, Harness::soon());
    ASSERT_EQ(::kill(static_cast<pid_t>(facts.find(id, FactKind::rank_started, 1)->pid), SIGKILL), 0);
    const Fact* end = facts.wait(*driver, id, FactKind::gang_ended, Harness::soon());
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::platform);
    EXPECT_NE(end->detail.find("rank 1: ended by SIGKILL, which Stoker did not send"), std::string::npos)
        << end->detail;
    EXPECT_EQ(facts.find(id, FactKind::rank_ended, 1)->signal, SIGKILL);
    EXPECT_EQ(facts.find(id, FactKind::rank_ended, 0)->cause, Cause::platform);
    release(id);
}

// kill -9 of the server: what runs goes on, and the next server adopts it and learns what ended meanwhile.
TEST_P(LocalEngine, NextServerAdoptsWhatRuns) {
    const OperationId stays = harness.next(), ends = harness.next();
    driver.reset();
    const pid_t server = ::fork();
    if (server == 0) {
        auto own = Harness::make(options);
        (void)own->launch(stays, gang("echo up; while [ ! -e finish ]; do sleep 0.01; done; exit 4"), Harness::soon());
        (void)own->launch(ends, gang("exit 5"), Harness::soon());
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(server, &status, 0), server);
    ASSERT_TRUE(WIFSIGNALED(status));
    const pid_t keeper = harness.keeper_of(stays);
    driver = Harness::make(options);
    auto listing = driver->list_ours(stays.site, Harness::soon());
    ASSERT_TRUE(listing.ok());
    ASSERT_EQ(listing->items.size(), 2u);
    EXPECT_TRUE(listing->complete);
    EXPECT_FALSE(listing->items[0].ended);
    EXPECT_EQ(harness.keeper_of(stays), keeper);
    Facts facts;
    const Fact* end = facts.wait(*driver, ends, FactKind::gang_ended, Harness::soon());
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->cause, Cause::user_error);
    EXPECT_EQ(facts.find(ends, FactKind::rank_ended)->exit_code, 5);
    EXPECT_NE(facts.find(stays, FactKind::rank_started), nullptr);
    EXPECT_EQ(facts.find(stays, FactKind::gang_ended), nullptr);
    // The adopted one still tells how it ended, and obeys.
    ASSERT_TRUE(write_file_atomic(harness.scratch() + "/finish", ""));
    ASSERT_NE(facts.wait(*driver, stays, FactKind::gang_ended, Harness::soon()), nullptr);
    EXPECT_EQ(facts.find(stays, FactKind::rank_ended)->exit_code, 4);
    release(stays);
    release(ends);
}

// kill -9 of the server at several moments while it launches: whatever it had begun, the next server may send the same
// launches again, and each gang has started at most once; all can be ended, and nothing is left.
TEST_P(LocalEngine, ServerKilledAtAnyMomentStartsNothingTwice) {
    driver.reset();
    // How long a server takes that is not killed.
    const auto began = Clock::now();
    driver = Harness::make(options);
    const std::vector<OperationId> whole = {launched(gang("exit 0", 2)), launched(gang("exit 0", 2)),
                                            launched(gang("exit 0", 2))};
    const auto duration = Clock::now() - began;
    for (const OperationId& id : whole) {
        EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
        release(id);
    }
    driver.reset();
    int launched_before = 0;
    const int moments = GetParam() == TreeKind::cgroup ? 8 : 3;
    for (int moment = 0; moment < moments; ++moment) {
        const std::vector<OperationId> ids = {harness.next(), harness.next(), harness.next()};
        const GangSpec spec = gang("echo $STOKER_OP >> started; exec sleep 1000", 2);
        const pid_t server = ::fork();
        if (server == 0) {
            auto own = Harness::make(options);
            for (const OperationId& id : ids) (void)own->launch(id, spec, Harness::soon());
            ::pause();
        }
        std::this_thread::sleep_for(
            std::chrono::milliseconds(80 * moment / moments));  // the moment, not a wait for something
        ::kill(server, SIGKILL);
        ASSERT_TRUE(reap(server, Harness::soon()).has_value());
        auto next = Harness::make(options);
        for (const OperationId& id : ids) {
            const Outcome outcome = next->launch(id, spec, Harness::soon());
            EXPECT_NE(outcome.certainty, Certainty::unknown) << outcome.detail;
            launched_before += outcome.detail == "it was launched before";
        }
        auto listing = next->list_ours(ids[0].site, Harness::soon());
        ASSERT_TRUE(listing.ok());
        EXPECT_EQ(listing->items.size(), 3u);
        for (const OperationId& id : ids) {
            EXPECT_EQ(next->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
            EXPECT_EQ(next->release(id, Harness::soon()).certainty, Certainty::confirmed);
            const std::string started = content(harness.scratch() + "/started");
            int times = 0;
            for (const std::string_view line : split_lines(started)) times += line == id.text();
            EXPECT_LE(times, 2) << id.text() << " has two ranks, each of which started more than once";
        }
    }
    RecordProperty("launched_before", launched_before);
}

// A server that died between its intent and the start of the keeper leaves a folder. Nothing ran: the next one does not
// list it, which would count it as launched for ever, and launches it when it is told again, once.
TEST_P(LocalEngine, FolderWithoutKeeperIsNoLaunch) {
    const OperationId bare = harness.next(), ordered = harness.next();
    driver.reset();
    fs::create_directories(harness.folder_of(bare));
    fs::create_directories(harness.folder_of(ordered));
    LaunchOrder order{.operation = ordered, .gang = gang("echo old >> ran"), .tree = GetParam()};
    ASSERT_TRUE(replace_file(harness.folder_of(ordered) + "/launch.json", to_json(order).dump(), true));
    driver = Harness::make(options);
    const auto listing = driver->list_ours("", Harness::soon());
    ASSERT_TRUE(listing.ok());
    EXPECT_TRUE(listing->complete);
    EXPECT_TRUE(listing->items.empty());
    for (const OperationId& id : {bare, ordered}) {
        const Outcome again = driver->launch(id, gang("echo new >> ran"), Harness::soon());
        EXPECT_EQ(again.certainty, Certainty::confirmed) << again.detail;
        EXPECT_EQ(end_of(id).cause, Cause::ok);
        release(id);
    }
    EXPECT_EQ(content(harness.scratch() + "/ran"), "new\nnew\n");
}

// A keeper that had begun and was killed before it ran anything is an end, told as a fact.
TEST_P(LocalEngine, KeeperThatDiedEarlyIsAnEnd) {
    const OperationId id = harness.next();
    driver.reset();
    fs::create_directories(harness.folder_of(id));
    LaunchOrder order{.operation = id, .gang = gang("echo no > ran"), .tree = GetParam()};
    ASSERT_TRUE(replace_file(harness.folder_of(id) + "/launch.json", to_json(order).dump(), true));
    const KeeperId gone{.pid = ::getpid(), .start_ticks = 1, .boot_id = boot_id()};
    ASSERT_TRUE(replace_file(harness.folder_of(id) + "/keeper.json", to_json(gone).dump(), true));
    driver = Harness::make(options);
    EXPECT_EQ(end_of(id).cause, Cause::platform);
    const Outcome again = driver->launch(id, gang("echo no > ran"), Harness::soon());
    EXPECT_EQ(again.certainty, Certainty::rejected);
    release(id);
    EXPECT_FALSE(fs::exists(harness.scratch() + "/ran"));
}

// Twenty gangs of two ranks, launched by twenty threads at once, all run and all end.
TEST_P(LocalEngine, TwentyGangsAtOnce) {
    std::vector<OperationId> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(harness.next());
    std::vector<std::thread> threads;
    std::vector<Outcome> outcomes(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
        threads.emplace_back([&, i] {
            GangSpec spec = gang("exit 0", 2);
            spec.log_folder = harness.scratch() + "/" + std::to_string(i);  // made for it
            outcomes[i] = driver->launch(ids[i], spec, Harness::soon());
        });
    for (std::thread& thread : threads) thread.join();
    Facts facts;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(outcomes[i].certainty, Certainty::confirmed) << outcomes[i].detail;
        const Fact* end = facts.wait(*driver, ids[i], FactKind::gang_ended, Harness::soon());
        ASSERT_NE(end, nullptr);
        EXPECT_EQ(end->cause, Cause::ok);
        release(ids[i]);
    }
    // Each fact once: twenty gangs, forty ranks.
    EXPECT_EQ(facts.all.size(), 20u + 2 * 40);
}

// Two threads that launch the same operation start one gang.
TEST_P(LocalEngine, SameOperationFromTwoThreadsIsOneGang) {
    const OperationId id = harness.next();
    const GangSpec spec = gang("echo here >> started; sleep 60");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { (void)driver->launch(id, spec, Harness::soon()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(shows(harness.scratch() + "/started", "here\n", Harness::soon()));
    EXPECT_EQ(content(harness.scratch() + "/started"), "here\n");
    EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
    release(id);
}

// A status file that is damaged does no harm while the keeper lives, and is said when it is the last thing there is.
TEST_P(LocalEngine, DamagedStatusIsAskedForOrSaid) {
    const OperationId asked = launched(gang("echo up; sleep 1000")),
                      said = launched(gang("echo up >> both; sleep 1000"));
    ASSERT_TRUE(shows(harness.scratch() + "/both", "up", Harness::soon()));
    // Their keepers have written that they run, and write nothing more by themselves.
    for (const OperationId& id : {asked, said}) {
        Facts facts;
        ASSERT_NE(facts.wait(*driver, id, FactKind::rank_started, Harness::soon()), nullptr);
    }
    driver.reset();
    for (const OperationId& id : {asked, said})
        ASSERT_TRUE(replace_file(harness.folder_of(id) + "/status.json", R"({"state": "run)", false));
    ASSERT_EQ(::kill(harness.keeper_of(said), SIGKILL), 0);
    driver = Harness::make(options);
    const Fact end = end_of(said);
    EXPECT_EQ(end.cause, Cause::platform);
    EXPECT_NE(end.detail.find("status.json"), std::string::npos) << end.detail;
    Facts facts;
    EXPECT_NE(facts.wait(*driver, asked, FactKind::rank_started, Harness::soon()), nullptr);
    EXPECT_EQ(facts.find(asked, FactKind::gang_ended), nullptr);
    EXPECT_EQ(driver->cancel(asked, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
    release(asked);
    release(said);
}

// A keeper that does not answer is suspect: unknown by the deadline, not a wait; it goes on when it can.
TEST_P(LocalEngine, StoppedKeeperGivesUnknown) {
    const OperationId id = launched(gang("sleep 1000"));
    ASSERT_EQ(::kill(harness.keeper_of(id), SIGSTOP), 0);
    const Deadline ample = Harness::soon();
    const Outcome outcome = driver->cancel(id, 1, 0, in(0.3));
    EXPECT_EQ(outcome.certainty, Certainty::unknown);
    // Its user reads what it is and how it goes on, not merely that something is wrong.
    EXPECT_NE(outcome.detail.find(fmt::format("kill -CONT {}", harness.keeper_of(id))), std::string::npos)
        << outcome.detail;
    EXPECT_EQ(driver->notify(id, 1, SIGUSR1, in(0.2)).certainty, Certainty::unknown);
    EXPECT_LT(Clock::now(), ample) << "it waited for the keeper";
    EXPECT_FALSE(driver->list_ours(id.site, Harness::soon())->items[0].ended);
    ASSERT_EQ(::kill(harness.keeper_of(id), SIGCONT), 0);
    EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
    release(id);
}

// A process that cannot be killed (here: frozen; elsewhere: waiting for a dead file server) is reported and not waited
// for; once it can end, so does the gang.
TEST_P(LocalEngine, WhatCannotBeKilledIsReported) {
    const CgroupHost host = GetParam() == TreeKind::cgroup ? discover_cgroups() : CgroupHost{};
    if (host.unified.empty() || !host.v1.contains("freezer")) GTEST_SKIP() << "needs a freezer that we do not use";
    const OperationId id = launched(gang("exec sleep 1000"));
    const std::string state = host.v1.at("freezer") + "/stoker/" + id.text() + "/freezer.state";
    const auto write_state = [&](const char* word) { std::ofstream(state) << word << std::flush; };
    write_state("FROZEN");
    ASSERT_TRUE(shows(state, "FROZEN", Harness::soon()));
    EXPECT_EQ(driver->cancel(id, 1, 0, in(0.2)).certainty, Certainty::unknown);
    Outcome outcome;
    EXPECT_TRUE(eventually(
        [&] {
            outcome = driver->cancel(id, 1, 0, in(0.2));
            return outcome.detail.find("killed, and does not end") != std::string::npos;
        },
        Harness::soon()))
        << outcome.detail;
    EXPECT_EQ(outcome.certainty, Certainty::unknown);
    EXPECT_EQ(driver->release(id, Harness::soon()).certainty, Certainty::rejected);
    write_state("THAWED");
    EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
    EXPECT_EQ(end_of(id).cause, Cause::cancelled);
    release(id);
}

// A limit that is too low to run anything at all is said to be that.
TEST_P(LocalEngine, TinyMemoryLimitIsSaid) {
    if (!driver->capabilities().limits_memory) GTEST_SKIP() << "no limits here";
    GangSpec spec = gang("true");
    spec.ranks[0].memory_bytes = 4096;
    const OperationId id = harness.next();
    const Outcome outcome = driver->launch(id, spec, Harness::soon());
    if (outcome.certainty == Certainty::rejected) {
        EXPECT_EQ(outcome.cause, Cause::oom) << outcome.detail;
    } else {
        EXPECT_EQ(end_of(id).cause, Cause::oom);  // it got as far as its program
    }
    release(id);
}

// Out of room for its order, the engine says a definite no and leaves nothing behind.
TEST_P(LocalEngine, NoRoomForTheOrderIsANo) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, before.rlim_max};
    const OperationId id = harness.next();
    ::setrlimit(RLIMIT_FSIZE, &none);
    const Outcome outcome = driver->launch(id, gang("true"), Harness::soon());
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    EXPECT_EQ(outcome.certainty, Certainty::rejected);
    EXPECT_EQ(outcome.cause, Cause::platform);
    EXPECT_FALSE(fs::exists(harness.folder_of(id)));
    EXPECT_TRUE(driver->list_ours(id.site, Harness::soon())->items.empty());
}

// A disk that is full when a gang ends: the keeper has kept room to say so. If even that is gone, the end is told as
// soon as there is room, and not lost.
TEST_P(LocalEngine, FullDiskLosesNoEnd) {
    options.folder = harness.root() + "/small";
    fs::create_directories(options.folder);
    if (::mount("none", options.folder.c_str(), "tmpfs", 0, "size=256k") != 0) GTEST_SKIP() << "mounting needs root";
    driver = Harness::make(options);
    const std::string ballast = options.folder + "/ballast", finish = harness.scratch() + "/finish";
    for (const bool reserved : {true, false}) {
        fs::remove(finish);
        const OperationId id = launched(gang("while [ ! -e finish ]; do sleep 0.01; done; exit 6"));
        if (!reserved) fs::remove(options.folder + "/run/" + id.text() + "/reserve");
        std::FILE* file = std::fopen(ballast.c_str(), "w");
        const std::string block(4096, 'x');
        while (file && std::fwrite(block.data(), 1, block.size(), file) == block.size() && std::fflush(file) == 0) {
        }
        if (file) std::fclose(file);
        ASSERT_TRUE(write_file_atomic(finish, ""));
        Facts facts;
        if (!reserved) {
            ASSERT_TRUE(eventually([&] { return processes_with("STOKER_OP=" + id.text()).empty(); }, Harness::soon()));
            facts.wait(*driver, id, FactKind::gang_ended, in(0.3));
            EXPECT_EQ(facts.find(id, FactKind::gang_ended), nullptr);
            ASSERT_TRUE(fs::remove(ballast));
        }
        ASSERT_NE(facts.wait(*driver, id, FactKind::gang_ended, Harness::soon()), nullptr);
        EXPECT_EQ(facts.find(id, FactKind::rank_ended)->exit_code, 6);
        if (reserved) {
            ASSERT_TRUE(fs::remove(ballast));
        }
        release(id);
    }
    driver.reset();
    EXPECT_TRUE(eventually([&] { return ::umount(options.folder.c_str()) == 0; }, Harness::soon()));
}

// A rank that writes without end keeps its newest lines and a bounded file.
TEST_P(LocalEngine, LogsAreBounded) {
    GangSpec spec = gang(
        "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo line number $i of a flood; done; "
        "echo flood over; while [ ! -e finish ]; do sleep 0.01; done; echo last words");
    spec.max_log_bytes = 256 << 10;
    const OperationId id = launched(spec);
    const auto size = [&](const char* suffix) {
        std::error_code code;
        const auto bytes = fs::file_size(log() + suffix, code);
        return code ? std::uintmax_t{0} : bytes;
    };
    const auto newest = [&] { return content(log() + ".1") + content(log()); };
    ASSERT_TRUE(eventually([&] { return newest().find("flood over") != std::string::npos; }, Harness::soon()));
    ASSERT_TRUE(eventually([&] { return size("") <= 128 << 10 && size(".1") > 0; }, Harness::soon()));
    EXPECT_LE(size("") + size(".1"), 512u << 10);
    ASSERT_TRUE(write_file_atomic(harness.scratch() + "/finish", ""));
    EXPECT_EQ(end_of(id).cause, Cause::ok);
    EXPECT_TRUE(newest().ends_with("last words\n"));
    EXPECT_NE(newest().find("line number 60000 of a flood\nflood over\n"), std::string::npos);
    release(id);
}

// What a rank leaves running when it ends well is ended too, without spoiling the result.
TEST_P(LocalEngine, LeftoversAreEnded) {
    const OperationId id = launched(gang("setsid sleep 1000 & exit 0"));
    const Fact end = end_of(id);
    EXPECT_EQ(end.cause, Cause::ok) << end.detail;
    EXPECT_TRUE(processes_with("STOKER_OP=" + id.text()).empty());
    release(id);
}

// A notice reaches those who handle it and harms nobody else; when nobody handles it, that is said.
TEST_P(LocalEngine, NoticeReachesHandlersOnly) {
    const OperationId id =
        launched(gang("sleep 1000 & trap 'echo checkpoint; ' USR1; echo up; while :; do wait; done"));
    ASSERT_TRUE(shows(log(), "up", Harness::soon()));
    const Outcome outcome = driver->notify(id, 1, SIGUSR1, Harness::soon());
    EXPECT_EQ(outcome.certainty, Certainty::confirmed) << outcome.detail;
    EXPECT_TRUE(shows(log(), "checkpoint", Harness::soon()));
    const Outcome nobody = driver->notify(id, 1, SIGUSR2, Harness::soon());
    EXPECT_EQ(nobody.certainty, Certainty::rejected);
    EXPECT_NE(nobody.detail.find("no process of the gang handles SIGUSR2"), std::string::npos) << nobody.detail;
    EXPECT_EQ(driver->notify(id, 1, SIGKILL, Harness::soon()).certainty, Certainty::rejected);
    Facts facts;
    facts.wait(*driver, id, FactKind::gang_ended, in(0.05));
    EXPECT_EQ(facts.find(id, FactKind::gang_ended), nullptr);
    EXPECT_EQ(driver->cancel(id, 1, 0, Harness::soon()).certainty, Certainty::confirmed);
    release(id);
}

// What cannot start is said in words that help, with the user's fault told from ours.
TEST_P(LocalEngine, RefusalsSayWhatToDo) {
    std::vector<std::pair<GangSpec, std::string>> cases;
    GangSpec wrong = gang("true");
    wrong.ranks[0].arguments = {"pyhton3"};
    cases.emplace_back(wrong, "no program named pyhton3 in PATH");
    wrong = gang("true");
    wrong.folder = harness.scratch() + "/missing";
    cases.emplace_back(wrong, "cannot work in the folder");
    ASSERT_TRUE(write_file_atomic(harness.scratch() + "/plain.txt", "hello\n"));
    wrong = gang("true");
    wrong.ranks[0].arguments = {"./plain.txt"};
    cases.emplace_back(wrong, "is not executable (chmod +x makes it so)");
    ASSERT_TRUE(write_file_atomic(harness.scratch() + "/empty.sh", "echo no first line\n"));
    ASSERT_EQ(::chmod((harness.scratch() + "/empty.sh").c_str(), 0755), 0);
    wrong = gang("sleep 100", 3);
    wrong.ranks[2].arguments = {"./empty.sh"};
    cases.emplace_back(wrong, "a script begins with a line like #!/bin/sh");
    wrong = gang("true");
    wrong.image = "docker.io/library/alpine";
    cases.emplace_back(wrong, why_no_images(GetParam()).empty() ? "is no OCI bundle" : "images need");
    wrong = gang("true");
    wrong.ranks[0].environment = {{"BAD=KEY", "1"}};
    cases.emplace_back(wrong, "no name of an environment variable");
    wrong = gang("true");
    wrong.ranks[0].arguments.push_back("\xff\xfe");
    cases.emplace_back(wrong, "is not UTF-8");
    for (const auto& [spec, words] : cases) {
        const OperationId id = harness.next();
        const Outcome outcome = driver->launch(id, spec, Harness::soon());
        EXPECT_EQ(outcome.certainty, Certainty::rejected) << words;
        EXPECT_EQ(outcome.cause, Cause::user_error) << words;
        EXPECT_NE(outcome.detail.find(words), std::string::npos) << outcome.detail;
        release(id);
    }
    GangSpec greedy = gang("true");
    greedy.ranks[0].devices = {"GPU-b0"};  // beta's
    const Outcome outcome = driver->launch(harness.next(), greedy, Harness::soon());
    EXPECT_EQ(outcome.cause, Cause::no_capacity);
    EXPECT_NE(outcome.detail.find("node alpha has no device GPU-b0"), std::string::npos) << outcome.detail;
}

// What starting a gang and hearing of its end costs is printed and recorded; how long it may take is for the deadlines.
TEST_P(LocalEngine, CostIsTold) {
    constexpr int kTimes = 7;
    std::vector<double> starts, launches, ends;
    std::string memory;
    const auto ms = [](auto duration) { return std::chrono::duration<double, std::milli>(duration).count(); };
    for (int i = 0; i < kTimes; ++i) {
        const OperationId id = harness.next();
        GangSpec spec = gang("exec sleep 1000");
        Facts facts;
        const std::int64_t wall = wall_clock_us();
        const auto began = Clock::now();
        ASSERT_EQ(driver->launch(id, spec, Harness::soon()).certainty, Certainty::confirmed);
        launches.push_back(ms(Clock::now() - began));
        const Fact* start = facts.wait(*driver, id, FactKind::rank_started, Harness::soon());
        ASSERT_NE(start, nullptr);
        starts.push_back(static_cast<double>(start->at_us - wall) / 1000);
        memory = content("/proc/" + std::to_string(harness.keeper_of(id)) + "/smaps_rollup");
        const auto killed = Clock::now();
        ::kill(static_cast<pid_t>(start->pid), SIGKILL);
        ASSERT_NE(facts.wait(*driver, id, FactKind::gang_ended, Harness::soon()), nullptr);
        ends.push_back(ms(Clock::now() - killed));
        release(id);
    }
    const auto median = [](std::vector<double>& values) {
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    };
    std::string sizes;
    for (const std::string_view line : split_lines(memory))
        for (const char* key : {"Rss:", "Pss:", "Anonymous:"})
            if (line.starts_with(key))
                sizes += " " + std::string(key) + " " + std::string(split_words(line)[1]) + " kB";
    std::printf(
        "%s: launch() %.1f ms, until rank_started %.1f ms, death of a rank until gang_ended %.1f ms (medians of %d); "
        "keeper%s\n",
        std::string(to_string(GetParam())).c_str(), median(launches), median(starts), median(ends), kTimes,
        sizes.c_str());
    RecordProperty("launch_ms", fmt::format("{:.1f}", median(launches)));
    RecordProperty("end_ms", fmt::format("{:.1f}", median(ends)));
}

INSTANTIATE_TEST_SUITE_P(Cgroup, LocalEngine, ::testing::Values(TreeKind::cgroup));
INSTANTIATE_TEST_SUITE_P(PidNamespace, LocalEngine, ::testing::Values(TreeKind::pid_namespace));
INSTANTIATE_TEST_SUITE_P(ProcessGroup, LocalEngine, ::testing::Values(TreeKind::process_group));

// The cloud takes the machine: those above learn it from the engine, of each node that goes with it, and that it stays.
TEST(LocalNotices, ANoticeToTheMachineIsAFactOfEachOfItsNodes) {
    LocalHarness<TreeKind::process_group> harness;
    LocalOptions options = harness.options();
    options.offer = std::make_shared<NodeOffer>(options.nodes);
    const auto driver = LocalHarness<TreeKind::process_group>::make(options);
    options.offer->notice(30, "Preempt of vm-1", 1'000'000);
    auto facts = driver->observe(0, in(10));
    ASSERT_TRUE(facts.ok());
    ASSERT_EQ(facts->size(), 2U);
    for (const Fact& fact : *facts) {
        EXPECT_EQ(fact.kind, FactKind::notice);
        EXPECT_EQ(fact.seconds, 30);
        EXPECT_EQ(fact.detail, "Preempt of vm-1");
    }
    EXPECT_EQ(facts->at(0).node + facts->at(1).node, "alphabeta");
    const std::uint64_t cursor = facts->back().cursor;
    options.offer->notice(-1, "it stays", 2'000'000);
    facts = driver->observe(cursor, in(10));
    ASSERT_EQ(facts->size(), 2U);
    EXPECT_EQ(facts->front().seconds, -1);
}

}  // namespace
}  // namespace stoker::contract
