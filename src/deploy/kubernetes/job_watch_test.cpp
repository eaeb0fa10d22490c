#include "deploy/kubernetes/job_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/text.h"

namespace stoker::kubernetes {
namespace {

const OperationId kWatched{.site = "k3x7q", .seq = 1};

JobView job(int pods) {
    GangSpec gang{.attempt = {{1}, 1}, .epoch = 1, .log_folder = "/logs"};
    gang.ranks.resize(static_cast<std::size_t>(pods));
    return {.operation = kWatched, .gang = kept_gang(gang), .epoch = 1};
}
PodView pod(int index, ContainerPhase phase, int code = 0, std::int64_t at_us = 1) {
    PodView made{.operation = kWatched,
                 .name = "p" + std::to_string(index),
                 .uid = fmt::format("{:08}-of-{}", index, index),
                 .node = "n1",
                 .index = index};
    made.scheduled = true;
    made.phase = phase == ContainerPhase::waiting   ? "Pending"
                 : phase == ContainerPhase::running ? "Running"
                 : code == 0                        ? "Succeeded"
                                                    : "Failed";
    made.containers["rank-0"] = {.phase = phase, .exit_code = code, .started_us = 1, .ended_us = at_us};
    return made;
}
// Its pods were told to begin.
JobView begun(int pods) {
    JobView made = job(pods);
    made.begun = true;
    for (int i = 0; i < pods; ++i) made.may_begin.insert(mark_of(pod(i, ContainerPhase::waiting)));
    return made;
}
// As the controller makes one a second time.
PodView made_again(PodView pod) {
    pod.name += "-again";
    pod.uid = "9" + pod.uid;
    return pod;
}
std::vector<Fact> told(JobWatch& watch) {
    return watch.facts_after(0, 100, std::chrono::steady_clock::now());
}
bool has(const std::vector<Chore>& chores, ChoreKind kind) {
    return std::any_of(chores.begin(), chores.end(), [&](const Chore& each) { return each.kind == kind; });
}

// A gang of which a part runs has not begun: its programs wait, and nobody is told that ranks started.
TEST(KubeJobWatch, AGangBeginsWhenAllOfItsPodsAreThere) {
    JobWatch watch(60);
    watch.see(job(2));
    watch.see(pod(0, ContainerPhase::running));
    EXPECT_TRUE(told(watch).empty());
    EXPECT_FALSE(has(watch.chores(), ChoreKind::begin));
    watch.see(pod(1, ContainerPhase::running));
    EXPECT_TRUE(has(watch.chores(), ChoreKind::begin));
    watch.see(begun(2));
    EXPECT_EQ(told(watch).size(), 2U);
    EXPECT_TRUE(has(watch.chores(), ChoreKind::go)) << "also after a crash between the two";
}

// An end that only this process knew would be lost with it: it is told when its Job keeps it. The rank that failed is
// blamed, and not those that were ended because of it.
TEST(KubeJobWatch, AnEndIsToldWhenTheJobKeepsIt) {
    JobWatch watch(60);
    watch.see(begun(2));
    PodView victim = pod(0, ContainerPhase::ended, 143, 5);
    victim.deleting = true;
    watch.see(victim);
    watch.see(pod(1, ContainerPhase::ended, 3, 5));
    // What the server does when it hears of it changes no cause.
    JobView called_off = begun(2);
    called_off.called_off = called_off.is_suspended = true;
    watch.see(called_off);
    EXPECT_TRUE(has(watch.chores(), ChoreKind::finish_logs));
    watch.logs_are_done(kWatched);
    const auto chores = watch.chores();
    ASSERT_TRUE(has(chores, ChoreKind::keep_end));
    EXPECT_FALSE(watch.is_over(kWatched));
    watch.end_is_kept(kWatched, chores.front().end);
    EXPECT_TRUE(watch.is_over(kWatched));
    EXPECT_EQ(told(watch).back().cause, Cause::user_error);
    EXPECT_EQ(told(watch).back().detail, "rank 1: exit code 3");

    // And the next one tells it from the Job alone.
    JobWatch next(60);
    JobView ended = begun(2);
    ended.end = chores.front().end;
    next.see(ended);
    EXPECT_EQ(told(next).size(), 5U);
    EXPECT_EQ(told(next).back().detail, "rank 1: exit code 3");
}

// As on every engine: KILL from outside is worth another try, and what we stopped is nobody's mistake.
TEST(KubeJobWatch, ASignalIsBlamedOnWhoSentIt) {
    const auto end_of = [](const JobView& job, const PodView& pod) {
        JobWatch watch(60);
        watch.see(begun(1));
        watch.see(job);
        watch.see(pod);
        Fact found;
        for (const Fact& fact : told(watch))
            if (fact.kind == FactKind::rank_ended) found = fact;
        return found;
    };
    EXPECT_EQ(end_of(begun(1), pod(0, ContainerPhase::ended, 137)).cause, Cause::platform);
    EXPECT_EQ(end_of(begun(1), pod(0, ContainerPhase::ended, 139)).cause, Cause::user_error);
    JobView called_off = begun(1);
    called_off.called_off = true;
    PodView stopped = pod(0, ContainerPhase::ended, 143);
    EXPECT_EQ(end_of(called_off, stopped).cause, Cause::user_error) << "it ended before its pod was told to go";
    stopped.deleting = true;
    EXPECT_EQ(end_of(called_off, stopped).cause, Cause::cancelled);
}

// A pod that is evicted ends its run as evicted, with the time that it has as a notice.
TEST(KubeJobWatch, AnEvictionIsNoFailure) {
    JobWatch watch(60);
    watch.see(begun(1));
    watch.see(pod(0, ContainerPhase::running));
    PodView evicted = pod(0, ContainerPhase::running);
    evicted.deleting = true;
    evicted.grace_s = 30;
    evicted.disruption = "EvictionByEvictionAPI";
    watch.see(evicted);
    ASSERT_EQ(told(watch).back().kind, FactKind::notice);
    EXPECT_EQ(told(watch).back().seconds, 30);
    evicted.phase = "Failed";
    evicted.containers["rank-0"] = {.phase = ContainerPhase::ended, .exit_code = 143, .ended_us = 9};
    watch.see(evicted);
    // The notice was the pod's: its node is not drained for ever.
    const auto facts = told(watch);
    EXPECT_TRUE(std::any_of(facts.begin(), facts.end(),
                            [](const Fact& fact) { return fact.kind == FactKind::notice && fact.seconds < 0; }));
    watch.logs_are_done(kWatched);
    watch.end_is_kept(kWatched, "x");
    EXPECT_EQ(told(watch).back().cause, Cause::evicted);
}

// What the cluster lost before it began is not there; what it lost after is told to be over.
TEST(KubeJobWatch, ALostJobIsLostOrOver) {
    JobWatch watch(60);
    watch.see(job(1));
    watch.lost_job(kWatched);
    EXPECT_TRUE(watch.known("").empty());
    watch.see(begun(1));
    watch.see(pod(0, ContainerPhase::running));
    watch.lost_job(kWatched);
    EXPECT_FALSE(watch.is_over(kWatched)) << "its pod runs";
    watch.see(pod(0, ContainerPhase::running), true);
    watch.logs_are_done(kWatched);
    EXPECT_TRUE(watch.is_over(kWatched));
    EXPECT_EQ(told(watch).back().cause, Cause::cancelled);
}

const Chore* find(const std::vector<Chore>& chores, ChoreKind kind) {
    for (const Chore& each : chores)
        if (each.kind == kind) return &each;
    return nullptr;
}

// The controller of Jobs makes a pod a second time when the answer to its making was lost, as when the API server is
// started again: one of the two begins, whichever comes first, and the other one's log is nobody's.
TEST(KubeJobWatch, OfAPodThatWasMadeTwiceOneBegins) {
    JobWatch watch(60);
    watch.see(job(1));
    EXPECT_FALSE(has(watch.chores(), ChoreKind::begin)) << "there is none yet";
    watch.see(pod(0, ContainerPhase::waiting));
    const auto first = watch.chores();
    ASSERT_TRUE(has(first, ChoreKind::begin)) << "before it runs: it begins also while no server is there";
    EXPECT_EQ(find(first, ChoreKind::begin)->pods.size(), 1U);
    watch.see(begun(1));
    watch.see(made_again(pod(0, ContainerPhase::running)));
    const auto chores = watch.chores();
    EXPECT_FALSE(has(chores, ChoreKind::begin));
    ASSERT_TRUE(has(chores, ChoreKind::go));
    ASSERT_EQ(find(chores, ChoreKind::go)->pods.size(), 1U);
    EXPECT_EQ(find(chores, ChoreKind::go)->pods[0].name, "p0");
    EXPECT_TRUE(told(watch).empty()) << "the other one's container is no start";
    EXPECT_TRUE(watch.logs_to_copy().empty());
    watch.see(pod(0, ContainerPhase::running));
    EXPECT_EQ(told(watch).size(), 1U);
    ASSERT_EQ(watch.logs_to_copy().size(), 1U);
    EXPECT_EQ(watch.logs_to_copy()[0].pod, "p0");
    // Its end is the gang's, and the other one, which waits, neither holds it up nor is blamed.
    watch.see(pod(0, ContainerPhase::ended, 3));
    watch.logs_are_done(kWatched);
    ASSERT_TRUE(has(watch.chores(), ChoreKind::keep_end));
    watch.end_is_kept(kWatched, "x");
    EXPECT_EQ(told(watch).back().cause, Cause::user_error);
}

// The same of a gang, whose pods are named when all of them run.
TEST(KubeJobWatch, AGangNamesOnePodForEachIndex) {
    JobWatch watch(60);
    watch.see(job(2));
    for (const int index : {0, 1}) watch.see(pod(index, ContainerPhase::running));
    watch.see(made_again(pod(1, ContainerPhase::running)));
    const auto chores = watch.chores();
    ASSERT_TRUE(has(chores, ChoreKind::begin));
    EXPECT_EQ(find(chores, ChoreKind::begin)->pods.size(), 2U);
    watch.see(begun(2));
    ASSERT_TRUE(has(watch.chores(), ChoreKind::go));
    const auto go = watch.chores();
    for (const PodView& each : find(go, ChoreKind::go)->pods) EXPECT_EQ(each.name.find("again"), std::string::npos);
    // Before cancel is confirmed none of them is there, the one too many neither.
    JobView called_off = begun(2);
    called_off.called_off = called_off.is_suspended = true;
    watch.see(called_off);
    for (const int index : {0, 1}) watch.see(pod(index, ContainerPhase::ended, 143));
    watch.logs_are_done(kWatched);
    EXPECT_FALSE(has(watch.chores(), ChoreKind::keep_end));
    watch.see(made_again(pod(1, ContainerPhase::ended, 143)), true);
    watch.logs_are_done(kWatched);
    EXPECT_TRUE(has(watch.chores(), ChoreKind::keep_end));
}

// The controller takes away the one that was named, before it ran: then the other one begins. Had it run, none would.
TEST(KubeJobWatch, APodThatWentBeforeItRanIsChosenAnew) {
    for (const bool ran : {false, true}) {
        JobWatch watch(60);
        watch.see(begun(1));
        watch.see(pod(0, ran ? ContainerPhase::ended : ContainerPhase::waiting), true);
        watch.see(made_again(pod(0, ContainerPhase::waiting)));
        EXPECT_EQ(has(watch.chores(), ChoreKind::begin), !ran);
    }
    // A pod that nobody here ever saw may have run: only a queue's Job goes on without it.
    for (const bool queued : {false, true}) {
        JobWatch watch(60);
        JobView seen = begun(1);
        seen.queued = queued;
        watch.see(seen);
        watch.see(made_again(pod(0, ContainerPhase::waiting)));
        EXPECT_EQ(has(watch.chores(), ChoreKind::begin), queued);
    }
}

// A Job that an earlier server made of one pod began by itself, and is known by its container.
TEST(KubeJobWatch, AnEarlierServersPodBeganByItself) {
    JobWatch watch(60);
    JobView old = job(1);
    old.gang = replace_all(old.gang, ",\"told\":true", "");
    ASSERT_NE(old.gang, job(1).gang);
    watch.see(old);
    watch.see(pod(0, ContainerPhase::running));
    EXPECT_EQ(told(watch).size(), 1U);
    EXPECT_FALSE(has(watch.chores(), ChoreKind::begin));
}

// A gang of two pods that each want a whole node of eight GPUs.
OperationId gang_id(std::uint64_t seq) {
    return {.site = "k3x7q", .seq = seq};
}
JobView suspended_gang(std::uint64_t seq) {
    JobView made = job(2);
    made.operation = gang_id(seq);
    made.suspended = true;
    made.pod = std::make_shared<const KubePod>(KubePod{.requests = {{"nvidia.com/gpu", 8}}});
    return made;
}
JobView admitted_gang(std::uint64_t seq) {
    JobView made = suspended_gang(seq);
    made.suspended = false;
    return made;
}
PodView pod_of_gang(std::uint64_t seq, int index, ContainerPhase phase) {
    PodView made = pod(index, phase);
    made.operation = gang_id(seq);
    made.name = fmt::format("gang-{}-{}", seq, index);
    made.uid = fmt::format("{:04}{:04}-{}", seq, index, made.name);
    return made;
}
KubeRoom free_nodes(int count) {
    KubeState state;
    for (int i = 0; i < count; ++i)
        state.nodes.push_back({.name = fmt::format("n{}", i), .allocatable = {{"nvidia.com/gpu", 8}}});
    return KubeRoom(state, "default");
}
std::vector<std::uint64_t> chosen(const std::vector<Chore>& chores, ChoreKind kind) {
    std::vector<std::uint64_t> found;
    for (const Chore& each : chores)
        if (each.kind == kind) found.push_back(each.operation.seq);
    return found;
}
using Seqs = std::vector<std::uint64_t>;

// A fleet with room for a hundred gangs that fills one gang after the other stands idle for most of an hour. Those that
// there is room for are admitted together, and none that would have to share nodes with them.
TEST(KubeJobWatch, AsManyGangsAreAdmittedAsThereIsRoomFor) {
    JobWatch watch(60);
    for (const std::uint64_t seq : {1, 2, 3, 4}) watch.see(suspended_gang(seq));
    EXPECT_TRUE(watch.wants_room());
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::admit), Seqs{1}) << "what is free is not known";
    watch.take_room(free_nodes(7));
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::admit), (Seqs{1, 2, 3}));
    for (const std::uint64_t seq : {1, 2, 3}) watch.see(admitted_gang(seq));
    EXPECT_THAT(chosen(watch.chores(), ChoreKind::admit), ::testing::IsEmpty());
    // What was read before they got their nodes does not offer those again.
    watch.take_room(free_nodes(7));
    EXPECT_THAT(chosen(watch.chores(), ChoreKind::admit), ::testing::IsEmpty());
    watch.take_room(free_nodes(8));
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::admit), Seqs{4});
}

// Where there seems to be no room one is admitted all the same: its pods bring the nodes of an autoscaler. The next has
// to wait until it is placed.
TEST(KubeJobWatch, WithoutRoomOneGangAtATimeIsAdmitted) {
    JobWatch watch(60);
    for (const std::uint64_t seq : {1, 2}) watch.see(suspended_gang(seq));
    watch.take_room(free_nodes(1));
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::admit), Seqs{1});
    watch.see(admitted_gang(1));
    watch.see(pod_of_gang(1, 0, ContainerPhase::running));
    watch.take_room(free_nodes(0));
    EXPECT_THAT(chosen(watch.chores(), ChoreKind::admit), ::testing::IsEmpty());
    watch.see(pod_of_gang(1, 1, ContainerPhase::running));
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::admit), Seqs{2});
}

// Somebody else took nodes meanwhile, and two gangs hold a part each: without one that gives back neither ever began.
TEST(KubeJobWatch, OfGangsThatWaitForEachOtherOneGivesBack) {
    JobWatch watch(60, 0);
    for (const std::uint64_t seq : {1, 2, 3}) watch.see(suspended_gang(seq));
    watch.take_room(free_nodes(6));
    for (const std::uint64_t seq : {1, 2}) watch.see(admitted_gang(seq));
    for (const std::uint64_t seq : {1, 2}) watch.see(pod_of_gang(seq, 0, ContainerPhase::running));
    (void)watch.chores();
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::back_out), Seqs{2});
    // It comes back when no other holds a part, and alone.
    watch.see(suspended_gang(2));
    watch.see(pod_of_gang(2, 0, ContainerPhase::running), true);
    watch.see(pod_of_gang(1, 1, ContainerPhase::running));
    watch.see(suspended_gang(4));
    watch.take_room(free_nodes(6));
    EXPECT_EQ(chosen(watch.chores(), ChoreKind::admit), Seqs{2});
}

}  // namespace
}  // namespace stoker::kubernetes
