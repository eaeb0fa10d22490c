// Which engine a server drives, and on what terms: as its configuration says it. What an engine has no use for, it
// refuses when it is made.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stoker {

// Where pods and the server see the same files.
struct FolderOfPods {
    std::string path, claim;
    friend bool operator==(const FolderOfPods&, const FolderOfPods&) = default;
};
// What only Kubernetes has a use for.
struct KubernetesChoice {
    std::string context, space, image, queue, service_account, priority_class;
    std::vector<std::string> pull_secrets, tolerate;
    std::map<std::string, std::string> node_selector;
    std::vector<FolderOfPods> shared;
    bool measures = true;  // a container beside the ranks of each pod tells what they use
    double gang_wait_s = 180;
    friend bool operator==(const KubernetesChoice&, const KubernetesChoice&) = default;
};

// A cluster's own REST server, asked instead of its commands; an empty url: there is none.
struct RestChoice {
    std::string url, user, token_file, ca_file;
    friend bool operator==(const RestChoice&, const RestChoice&) = default;
};

struct EngineChoice {
    std::string kind;  // a name of engines.h; empty: the usual one
    std::string name;  // of one of several; empty: as its kind
    // Of an engine that has a queue of its own; empty: what that takes by itself.
    std::string partition, account, qos, reservation, constraint;
    std::string config;    // file of the cluster: slurm.conf, kubeconfig
    std::string commands;  // folder of its commands
    RestChoice rest;
    std::string program;  // this program, by the name that the nodes know; empty: the same as here
    std::map<std::string, std::string> gpu_models;  // the cluster's name of a GPU -> the catalogue's
    // Folders that the containers of a cluster see by the same name as the server; where files are shared anyway.
    std::vector<std::string> mounts;
    std::string runs_as;           // of this machine: deploy/local/run_user.h
    bool isolate_network = false;  // the same: work reaches nothing but itself
    KubernetesChoice kubernetes;
    int notice_s = 60;  // before a time limit or a preemption
    friend bool operator==(const EngineChoice&, const EngineChoice&) = default;
};

}  // namespace stoker
