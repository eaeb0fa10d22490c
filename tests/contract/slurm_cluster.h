// A real Slurm of its own for tests: munged, slurmctld and some slurmd of the installed packages in a folder, on free
// ports, as whatever user this is. It can be killed, made to forget, and made to hold its queue.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deploy/slurm/slurm_options.h"

namespace stoker::contract {

class SlurmCluster {
public:
    // Why there is none here: "slurmctld is not installed (apt-get install ...)"; empty: it can be made.
    static std::string why_not();
    // `more`: lines of slurm.conf.
    explicit SlurmCluster(int nodes, const std::string& more = "");
    ~SlurmCluster();
    SlurmCluster(const SlurmCluster&) = delete;
    SlurmCluster& operator=(const SlurmCluster&) = delete;

    std::string folder() const { return folder_; }
    std::string config() const { return folder_ + "/slurm.conf"; }
    bool ready() const;  // all nodes are there

    // What a command says on stdout; empty where it fails.
    std::string say(const std::vector<std::string>& words) const;
    void kill_controller(int signal_number);
    void start_controller(bool forgets = false);
    // As after a crash between two saves, and with numbers from 1 on.
    void forget_all();
    void kill_node(int node, int signal_number);
    void start_node(int node);
    void hold_queue() const;
    void let_start() const;
    // Why there is no slurmrestd here; empty: there is.
    static std::string why_no_rest();
    // One of this user's on a socket, which is its url; one for each version, made by the first who asks.
    std::string rest_url(const std::string& version = "v0.0.38") const;
    void stop_rest(int signal_number, const std::string& version = "v0.0.38") const;
    // No job is pending, running or completing.
    bool quiet() const;

private:
    void write_config(int nodes, const std::string& more);
    void run(const std::vector<std::string>& words) const;
    std::string folder_;
    int nodes_;
};

}  // namespace stoker::contract
