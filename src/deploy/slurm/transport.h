// What the driver asks of a cluster, whoever carries it there: Slurm's own commands, or slurmrestd. Each call ends by
// its deadline, and an answer that did not come is an error, never an empty list. Called from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/slurm/queue.h"
#include "deploy/slurm/slurm_options.h"
#include "deploy/slurm/submit.h"

namespace stoker::slurm {

struct ClusterFacts {
    Capabilities can;
    bool accounts = false;  // what has ended can be asked of its accounting
    std::string no_images;  // why runs with an image are refused; empty: they are not
};

// A look at the jobs. `looked_through`: how many the cluster told of, also those of others; what it costs the other
// side grows with them. `processor_s`: what programs used that were called for it.
struct Listing {
    std::vector<Job> ours;  // also those that have ended and are remembered
    std::size_t looked_through = 0;
    double processor_s = 0;
};

class Transport {
public:
    virtual ~Transport() = default;
    // What cannot be told now is said in the detail.
    virtual ClusterFacts facts(Deadline deadline) = 0;
    // confirmed, with the job's number as detail; rejected; or unknown: it may have got through. `script`: where
    // job_script of this request lies.
    virtual Outcome submit(const JobRequest& request, const std::string& script, Deadline deadline) = 0;
    virtual Result<Listing> jobs(Deadline deadline) = 0;
    // By its name, so that a number that came back as another's is not touched. Nothing there is no error.
    virtual Status cancel(const OperationId& operation, Deadline deadline) = 0;
    // All, or the one of this name.
    virtual Result<std::vector<SlurmNode>> nodes(const std::string& name, Deadline deadline) = 0;
    // Node -> "spine/leaf"; empty: nothing is known of it.
    virtual std::map<std::string, std::string> places(Deadline deadline) = 0;
    virtual Result<std::vector<std::string>> default_partitions(Deadline deadline) = 0;
    // Priorities of what is pending in these partitions, of all users; of all where none is named.
    virtual Result<std::vector<std::int64_t>> waiting(const std::vector<std::string>& partitions,
                                                      Deadline deadline) = 0;
    // How the newest job of this name ended, by the accounting; empty: it does not know, or there is none.
    virtual std::string accounted_state(const OperationId& operation, Deadline deadline) = 0;
};

std::unique_ptr<Transport> make_command_transport(const SlurmOptions& options);
// invalid: the address, or what is to be shown and trusted, cannot be used; or it speaks no version that is known here.
// One that does not answer now is asked later.
Result<std::unique_ptr<Transport>> make_rest_transport(const SlurmOptions& options);

// The variables of this process that Slurm's commands and jobs get: what a person set for these commands
// (SQUEUE_FORMAT, SBATCH_PARTITION), and the job that a server itself runs in, would change what is asked and answered.
std::vector<std::string> handed_on_environment(const SlurmOptions& options);

}  // namespace stoker::slurm
