// Which engine a server drives, and on what terms: as its configuration says it. What an engine has no use for, it
// refuses when it is made.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stoker {

struct EngineChoice {
    std::string kind;  // a name of engines.h; empty: the usual one
    // Of an engine that has a queue of its own; empty: what that takes by itself.
    std::string partition, account, qos, reservation, constraint;
    std::string config;    // file of the cluster: slurm.conf
    std::string commands;  // folder of its commands
    std::string program;   // this program, by the name that the nodes know; empty: the same as here
    std::map<std::string, std::string> gpu_models;  // the cluster's name of a GPU -> the catalogue's
    int notice_s = 60;                              // before a time limit or a preemption
    friend bool operator==(const EngineChoice&, const EngineChoice&) = default;
};

}  // namespace stoker
