#include "deploy/slurm/queue.h"

#include <gmock/gmock.h>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Jobs of other people, and others of ours, are not taken for runs; a reason with bars in it stays whole.
TEST(SlurmQueue, TakesOnlyJobsThatCarryOurMark) {
    const auto jobs = read_queue(
        "12|stoker-k3x7q-2224jz|PENDING|1790000000|1790000600||4294901747|Resources\n"
        "13|my-job|RUNNING|1790000000|1790000001|n1|5|None\n"
        "14|stoker-dev|PENDING|1790000000|N/A||5|Priority\n"
        "15|stoker-k3x7q-2224k2|CANCELLED by 1000|1790000000|N/A|n[1-2]|5|odd|words\n");
    ASSERT_EQ(jobs.size(), 2U);
    EXPECT_EQ(jobs[0].operation.text(), "k3x7q-2224jz");
    EXPECT_EQ(jobs[0].phase, JobPhase::pending);
    EXPECT_EQ(jobs[0].starts_s, 1790000600);
    EXPECT_EQ(jobs[0].priority, 4294901747);
    EXPECT_EQ(jobs[1].phase, JobPhase::over);
    EXPECT_EQ(jobs[1].starts_s, 0);
    const auto behind_no_limit = read_queue("16|stoker-k3x7q-2224k2|PENDING|1790000000|1821536000||5|Resources\n");
    EXPECT_EQ(behind_no_limit.at(0).starts_s, 0) << "a year is what Slurm says where a job has no time limit";
    EXPECT_EQ(jobs[1].reason, "odd|words");
}

// Whoever waits for a run that is over waits for ever, and one that is taken for over is started twice.
TEST(SlurmQueue, KnowsWhichStatesAreEnds) {
    for (const char* state : {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
        EXPECT_EQ(phase_of(state), JobPhase::pending) << state;
    for (const char* state : {"RUNNING", "SUSPENDED", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"})
        EXPECT_EQ(phase_of(state), JobPhase::running) << state;
    EXPECT_EQ(phase_of("COMPLETING"), JobPhase::completing);
    const std::pair<const char*, Cause> ends[] = {
        {"COMPLETED", Cause::ok},         {"FAILED", Cause::user_error},   {"OUT_OF_MEMORY", Cause::oom},
        {"TIMEOUT", Cause::timeout},      {"DEADLINE", Cause::timeout},    {"NODE_FAIL", Cause::node_lost},
        {"BOOT_FAIL", Cause::node_lost},  {"PREEMPTED", Cause::preempted}, {"CANCELLED by 0", Cause::cancelled},
        {"CANCELLED+", Cause::cancelled}, {"REVOKED", Cause::platform}};
    for (const auto& [state, cause] : ends) {
        EXPECT_EQ(phase_of(state), JobPhase::over) << state;
        EXPECT_EQ(cause_of_state(state), cause) << state;
    }
}

// A person who asks why a run waits gets one of our causes for each reason that this release of Slurm has, and is told
// when waiting alone does not help.
TEST(SlurmReasons, EachOfThisReleaseHasACause) {
    const auto names = Tsv::read(embedded_bytes("engines/slurm_reason_names.tsv"), "names");
    ASSERT_TRUE(names.ok()) << names.error().text();
    ASSERT_GT(names->rows(), 170U);
    for (std::size_t i = 0; i < names->rows(); ++i)
        EXPECT_NE(read_reason(names->at(i, 0)).meaning, "") << names->at(i, 0);
    EXPECT_EQ(read_reason("Resources").cause, Cause::capacity_busy);
    EXPECT_EQ(read_reason("Priority").cause, Cause::order_behind);
    EXPECT_EQ(read_reason("AssocGrpGRES").cause, Cause::quota);
    EXPECT_FALSE(read_reason("AssocGrpGRES").never);
    EXPECT_TRUE(read_reason("QOSMaxGRESPerJob").never);
    EXPECT_TRUE(read_reason("PartitionTimeLimit").never);
    EXPECT_EQ(read_reason("Dependency").cause, Cause::dependency_waiting);
    EXPECT_EQ(read_reason("DependencyNeverSatisfied").cause, Cause::dependency);
    EXPECT_EQ(read_reason("JobHeldAdmin").cause, Cause::held);
    EXPECT_EQ(read_reason("ReqNodeNotAvail, UnavailableNodes:n[3-4]").cause, Cause::node_unhealthy);
    EXPECT_EQ(read_reason("job requeued in held state").cause, Cause::held);
    // One of a later release: its own words, and no guess.
    EXPECT_EQ(read_reason("SomethingNew").cause, Cause::engine_queue);
    EXPECT_EQ(read_reason("SomethingNew").meaning, "");
}

// Each row of the table is one that can be reached, with a cause that there is.
TEST(SlurmReasons, TheTableIsSound) {
    const auto table = Tsv::read(embedded_bytes("engines/slurm_reasons.tsv"), "reasons");
    ASSERT_TRUE(table.ok()) << table.error().text();
    for (std::size_t i = 0; i < table->rows(); ++i) {
        EXPECT_TRUE(parse_cause(table->at(i, 1))) << table->at(i, 0);
        EXPECT_TRUE(table->at(i, 2) == "yes" || table->at(i, 2) == "no") << table->at(i, 0);
        EXPECT_NE(table->at(i, 3), "") << table->at(i, 0);
    }
}

TEST(SlurmReasons, AreToldInSlurmsWordsAndOurs) {
    Job job{.number = "12", .operation = {}, .reason = "Resources"};
    EXPECT_EQ(detail_of(job), "job 12: Resources (nothing that is large enough is free)");
    EXPECT_EQ(detail_of(job, "3 of 16 GPUs are free"),
              "job 12: Resources (nothing that is large enough is free; 3 of 16 GPUs are free)");
    job.reason = "SomethingNew";
    EXPECT_EQ(detail_of(job), "job 12: SomethingNew");
    EXPECT_EQ(detail_of({.number = "12", .operation = {}, .state = "CONFIGURING", .reason = "None", .nodes = "c[1-2]"}),
              "job 12: CONFIGURING (its nodes are being started: c[1-2])");
}

// Lines of scontrol show node -o of Slurm 22.05.8, as it printed them on 2026-11-23; the states are changed.
constexpr const char* kNodes =
    "NodeName=n1 Arch=x86_64 CoresPerSocket=8  CPUAlloc=0 CPUEfctv=14 CPUTot=16 CPULoad=12.15 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:a100:2(S:0-1),shard:8 NodeAddr=127.0.0.1 "
    "NodeHostName=vm Port=27801 Version=22.05.8 OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=16000 "
    "AllocMem=0 FreeMem=15732 Sockets=2 Boards=1 MemSpecLimit=1000 State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 "
    "Owner=N/A MCS_label=N/A Partitions=spot,prod  BootTime=2026-11-23T07:02:35 "
    "SlurmdStartTime=2026-11-23T07:22:35 CfgTRES=cpu=16,mem=16000M,billing=16 AllocTRES= CapWatts=n/a\n"
    "NodeName=n2 CPUTot=16 RealMemory=16000 State=IDLE+DRAIN Partitions=spot BootTime=None "
    "Reason=bad cable [root@2026-11-23T07:02:35]\n"
    "NodeName=n3 CPUTot=16 RealMemory=16000 State=IDLE*\n"
    "NodeName=n4 CPUTot=16 RealMemory=16000 State=IDLE+CLOUD+POWERED_DOWN\n"
    "NodeName=n5 CPUTot=16 RealMemory=16000 State=MIXED+PLANNED\n";

// A node that is drained or does not answer gets no work; one that sleeps is woken by it.
TEST(SlurmNodes, SayWhatTheyHaveAndWhetherTheyTakeWork) {
    const auto nodes = read_nodes(kNodes, {{"a100", "A100-SXM4-80GB"}});
    ASSERT_EQ(nodes.size(), 5U);
    EXPECT_EQ(nodes[0].info.cpu_milli, 14000);
    EXPECT_EQ(nodes[0].info.memory_bytes, std::int64_t{15000} << 20);
    ASSERT_EQ(nodes[0].info.devices.size(), 2U);
    EXPECT_EQ(nodes[0].info.devices[1].id, "1");
    EXPECT_EQ(nodes[0].info.devices[1].model, "A100-SXM4-80GB");
    EXPECT_THAT(nodes[0].partitions, ElementsAre("spot", "prod"));
    EXPECT_EQ(nodes[0].info.boot_id, "") << "BootTime moves while the node runs, and every run on it would be lost";
    EXPECT_THAT(nodes[1].reason, StartsWith("bad cable"));
    std::vector<bool> usable;
    for (const SlurmNode& node : nodes) usable.push_back(node.usable);
    EXPECT_THAT(usable, ElementsAre(true, false, false, true, true));
}

TEST(SlurmNodes, GpusAreReadInEachOfTheirForms) {
    EXPECT_EQ(read_gres("gpu:4").at(0).count, 4);
    EXPECT_EQ(read_gres("gpu:4").at(0).type, "");
    EXPECT_EQ(read_gres("gpu:a100").at(0).type, "a100");
    EXPECT_EQ(read_gres("gpu:a100:8(S:0-1),gpu:t4:2,nic:1").at(1).count, 2);
    EXPECT_TRUE(read_gres("").empty());
    EXPECT_TRUE(read_gres("gpu:0").empty());
}

TEST(SlurmNodes, ListsOfHostsAreWrittenOut) {
    EXPECT_THAT(expand_hosts("n[1-3,7],gpu-a,r[08-10]-x"),
                ElementsAre("n1", "n2", "n3", "n7", "gpu-a", "r08-x", "r09-x", "r10-x"));
    EXPECT_THAT(expand_hosts("a[1-2]b[1-2]"), ElementsAre("a1b1", "a1b2", "a2b1", "a2b2"));
    EXPECT_TRUE(expand_hosts("").empty());
    EXPECT_THAT(expand_hosts("n[1"), ElementsAre("n[1"));
}

// Which nodes hang on one switch decides where a gang may go.
TEST(SlurmNodes, SwitchesAreToldFromTheOutermost) {
    const auto places = read_topology(
        "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2] \n"
        "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n3 \n"
        "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=leaf[1-2] \n");
    EXPECT_EQ(places.at("n2"), "spine/leaf1");
    EXPECT_EQ(places.at("n3"), "spine/leaf2");
}

TEST(SlurmSettings, AreReadAsTheyAre) {
    const auto settings =
        read_settings("MinJobAge               = 300 sec\nTaskPlugin = task/none\n\nCgroup Support:\n");
    EXPECT_EQ(settings.at("MinJobAge"), "300 sec");
    EXPECT_EQ(settings.at("TaskPlugin"), "task/none");
}

}  // namespace
}  // namespace stoker::slurm
