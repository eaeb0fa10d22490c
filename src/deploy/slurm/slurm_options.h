// What a Slurm engine is told: where the work goes, and on what terms. Read from server.yaml (engines.h).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stoker {

// A slurmrestd that is asked instead of the commands; an empty url: there is none.
struct SlurmRest {
    std::string url;         // unix:/run/slurmrestd.sock, https://login1:6820
    std::string user;        // whose jobs they are; empty: of the socket's owner
    std::string token_file;  // of that user (scontrol token), read again and again; empty: a socket that needs none
    std::string ca_file;     // whom to trust for https; empty: the system's authorities
    friend bool operator==(const SlurmRest&, const SlurmRest&) = default;
};

struct SlurmOptions {
    std::string folder;                                            // of the engine; the nodes see it by the same name
    std::string partition, account, qos, reservation, constraint;  // empty: what the cluster takes by itself
    std::string config;                                            // SLURM_CONF; empty: the usual one
    SlurmRest rest;
    std::string commands;  // where sbatch, squeue, scancel and scontrol are; empty: in PATH
    // What begins ranks on the nodes: this program, by a name that they know, and words before ours.
    std::vector<std::string> program;
    std::map<std::string, std::string> gpu_models;  // gres type -> name in the catalogue: a100 -> A100-SXM4-80GB
    std::vector<std::string> mounts;  // what containers see of the shared folders, beside those of the run
    int notice_s = 60;                // before the time limit, or a preemption that tells jobs: USR1 to the ranks
    double poll_s = 1;                // between two looks at the queue while something is live
    double idle_poll_s = 10;
    double settle_s = 6;  // the controller saves its state every 5 s: what it forgets, it forgets by then
};

}  // namespace stoker
