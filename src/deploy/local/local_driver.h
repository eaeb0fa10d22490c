// The embedded engine: this machine, without a daemon. Gangs are kept by keepers (keeper.h), which outlive the server;
// everything that is known about them lies in FOLDER/run/OPERATION, so that another driver on the same folder goes on
// where this one ended. One driver at a time per folder; its functions may be called from several threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/local/gang_files.h"
#include "deploy/local/node_check.h"
#include "deploy/node_offer.h"

namespace stoker {

struct LocalOptions {
    std::string folder;                  // made when missing
    std::vector<NodeInfo> nodes;         // several virtual ones, or none for what this machine is
    std::shared_ptr<NodeOffer> offer;    // in place of `nodes`: may change while the driver runs
    std::vector<std::string> keeper;     // program and arguments before the folder; empty: this program, "keeper"
    std::optional<TreeKind> tree;        // how trees are ended; none: the best that works here
    std::int64_t max_processes = 16384;  // of a rank, where that can be limited; 0: any number
    bool isolate_devices = true;         // where control groups can
    double status_retry_s = 600;         // of the keeper on a full disk
    std::string runs_as;                 // run_user.h; empty: the server's own user
    bool isolate_network = false;        // each gang has a loopback of its own, and no way out
    NodeCheckFunction check{};           // none: nothing can be told of a node's health
};

Result<std::unique_ptr<Driver>> make_local_driver(LocalOptions options);

// As an offer means them: none is this machine, and all are of this boot that say nothing else.
std::vector<NodeInfo> complete_nodes(std::vector<NodeInfo> offered);

// This machine as a node: its name, what this process may use, and the NVIDIA GPUs that the kernel module lists.
NodeInfo discover_local_node(const std::string& root = "/");

}  // namespace stoker
