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
    run.timeout_s = deployment.walltime_s;
    run.prediction = deployment.prediction;
}

}  // namespace stoker
