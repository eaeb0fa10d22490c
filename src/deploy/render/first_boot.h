// What a machine does when it starts for the first time, and the check that says whether it is what the plan counts on:
// one list, from which cloud-init, the recipe of machines of one's own and a custom image are made.
#pragma once

#include <string>
#include <vector>

#include "deploy/deployment.h"

namespace stoker {

// What stands in a rack: the plan's nodes, or the machines whose GPUs are cut into them.
struct Machines {
    int count = 1, gpus = 0, vcpus = 0;
    double memory_bytes = 0;
};
Machines machines_of(const Deployment& deployment);

// Ends with 1 and says what is missing: GPUs, ports of InfiniBand, memory; "node-check: as planned" where nothing is.
std::string node_check_script(const Deployment& deployment);
// The last line of a node that is what was planned.
inline constexpr std::string_view kAsPlanned = "node-check: as planned";

// Of machines of one's own: node-setup.sh, node-check.sh and its unit.
std::vector<FileToWrite> own_node_files(const Deployment& deployment);

// #cloud-config: data disk mounted, environment, the check, and on Azure a container of Blob as a folder when asked;
// on machines of one's own their whole recipe.
std::string cloud_config(const Deployment& deployment);
// Makes an image of Azure out of a machine that has done that.
std::string custom_image_script(const Deployment& deployment);

}  // namespace stoker
