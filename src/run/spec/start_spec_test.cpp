// A run that goes through its Deployment is the run that the file meant: not one bit of it changes but the prediction.

#include "run/spec/start_spec.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(StartSpec, ThereAndBackIsTheSameRun) {
    RunSpec run;
    run.name = "tiny";
    run.command = {"python3", "train.py"};
    run.environment = {{"SEED", "7"}};
    run.folder = "/work";
    run.image = "docker.io/library/python:3.12";
    run.ranks = 2, run.nodes = 1;
    run.per_rank = {.cpu_milli = 1500, .memory_bytes = std::int64_t{1} << 30};
    run.checkpoint = {.folder = "checkpoints", .interval_s = 600, .keep = 2};
    run.lease = {.stop_after_s = 3600, .hard_max_s = 7200};
    run.timeout_s = 1800;
    run.max_restarts = 3;
    run.max_attempts = 5, run.grace_s = 60, run.transient_exit_codes = {75, 143};
    run.topology = TopologyWish::require, run.queue_timeout_s = 7200;
    run.run_class = RunClass::spot, run.priority = 7;
    run.labels = {{"team", "vision"}};
    run.observe = ObserveSpec{.heartbeat = "beat", .step_pattern = "step {step}"};
    run.prerequisites = PrerequisitesSpec{.commands = {"ffmpeg"}, .disk_bytes = 1 << 20};
    const StartSpec start = start_of(run);
    Deployment deployment{.environment = start.environment, .command = start.command, .folder = start.folder};
    deployment.image = start.image;
    deployment.ranks = {.count = start.ranks, .per_node = start.ranks, .each = start.per_rank};
    deployment.checkpoint = start.checkpoint;
    deployment.lease = start.lease;
    deployment.policy = start.policy;
    deployment.prerequisites = start.prerequisites;
    deployment.walltime_s = start.timeout_s;
    const std::string before = digest(run);
    RunSpec after = run;  // what is taken is lost first, so that nothing is there by itself
    after.max_restarts = after.priority = 0, after.max_attempts = 1, after.grace_s = 0,
    after.transient_exit_codes.clear();
    after.topology.reset(), after.queue_timeout_s.reset(), after.labels.clear(), after.observe.reset(),
        after.prerequisites.reset();
    after.run_class = RunClass::guaranteed;
    take_deployment(deployment, after);
    ASSERT_TRUE(after.prediction);
    after.prediction.reset();
    EXPECT_EQ(digest(after), before);
}

}  // namespace
}  // namespace stoker
