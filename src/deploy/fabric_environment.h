// What the ranks of a training need in their environment to talk over the network that the plan counts on.
#pragma once

#include <string>
#include <vector>

namespace stoker {

struct Deployment;

struct FabricSetting {
    std::string name, value, reason, source;
};

// By the nodes and ranks of the Deployment only. Nothing for one rank, or for CPU cores.
std::vector<FabricSetting> fabric_environment(const Deployment& deployment);

}  // namespace stoker
