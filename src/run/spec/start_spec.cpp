#include "run/spec/start_spec.h"

namespace stoker {

StartSpec start_of(const RunSpec& run) {
    return {.command = run.command,
            .environment = run.environment,
            .folder = run.folder,
            .image = run.image,
            .ranks = run.ranks,
            .nodes = run.nodes,
            .per_rank = run.per_rank,
            .checkpoint = run.checkpoint,
            .lease = run.lease,
            .policy = {.restarts = run.max_restarts,
                       .attempts = run.max_attempts,
                       .grace_s = run.grace_s,
                       .transient_exit_codes = run.transient_exit_codes,
                       .topology = run.topology,
                       .queue_timeout_s = run.queue_timeout_s,
                       .run_class = run.run_class,
                       .priority = run.priority,
                       .labels = run.labels,
                       .observe = run.observe},
            .prerequisites = run.prerequisites,
            .timeout_s = run.timeout_s};
}

void take_deployment(const Deployment& deployment, RunSpec& run) {
    run.command = deployment.command;
    run.environment = deployment.environment;
    run.folder = deployment.folder;
    run.image = deployment.image;
    run.ranks = deployment.ranks.count;
    run.per_rank = deployment.ranks.each;
    run.checkpoint = deployment.checkpoint;
    run.lease = deployment.lease;
    run.max_restarts = deployment.policy.restarts;
    run.max_attempts = deployment.policy.attempts;
    run.grace_s = deployment.policy.grace_s;
    run.transient_exit_codes = deployment.policy.transient_exit_codes;
    run.topology = deployment.policy.topology;
    run.queue_timeout_s = deployment.policy.queue_timeout_s;
    run.run_class = deployment.policy.run_class;
    run.priority = deployment.policy.priority;
    run.labels = deployment.policy.labels;
    run.observe = deployment.policy.observe;
    run.prerequisites = deployment.prerequisites;
    run.timeout_s = deployment.walltime_s;
    run.prediction = deployment.prediction;
}

}  // namespace stoker
