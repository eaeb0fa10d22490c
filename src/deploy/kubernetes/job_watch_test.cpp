#include "deploy/kubernetes/job_watch.h"

#include <gmock/gmock.h>

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
                 .uid = "u" + std::to_string(index),
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
    JobView begun = job(2);
    begun.begun = true;
    watch.see(begun);
    EXPECT_EQ(told(watch).size(), 2U);
    EXPECT_TRUE(has(watch.chores(), ChoreKind::go)) << "also after a crash between the two";
}

// An end that only this process knew would be lost with it: it is told when its Job keeps it. The rank that failed is
// blamed, and not those that were ended because of it.
TEST(KubeJobWatch, AnEndIsToldWhenTheJobKeepsIt) {
    JobWatch watch(60);
    JobView begun = job(2);
    begun.begun = true;
    watch.see(begun);
    PodView victim = pod(0, ContainerPhase::ended, 143, 5);
    victim.deleting = true;
    watch.see(victim);
    watch.see(pod(1, ContainerPhase::ended, 3, 5));
    // What the server does when it hears of it changes no cause.
    JobView called_off = begun;
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
    JobView ended = begun;
    ended.end = chores.front().end;
    next.see(ended);
    EXPECT_EQ(told(next).size(), 5U);
    EXPECT_EQ(told(next).back().detail, "rank 1: exit code 3");
}

// A pod that is evicted ends its run as evicted, with the time that it has as a notice.
TEST(KubeJobWatch, AnEvictionIsNoFailure) {
    JobWatch watch(60);
    watch.see(job(1));
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
    watch.see(job(1));
    watch.see(pod(0, ContainerPhase::running));
    watch.lost_job(kWatched);
    EXPECT_FALSE(watch.is_over(kWatched)) << "its pod runs";
    watch.see(pod(0, ContainerPhase::running), true);
    watch.logs_are_done(kWatched);
    EXPECT_TRUE(watch.is_over(kWatched));
    EXPECT_EQ(told(watch).back().cause, Cause::cancelled);
}

}  // namespace
}  // namespace stoker::kubernetes
