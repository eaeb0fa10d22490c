// OCI bundles as images of ranks: a folder with config.json (OCI runtime specification) and a root file system. Of the
// bundle's configuration count the root, the user and the environment; what it may do on this machine, and what of the
// machine it sees, is Stoker's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "deploy/local/gang_files.h"

namespace stoker {

struct Bundle {
    std::string folder, root;              // absolute
    std::vector<std::string> environment;  // "KEY=value"
    std::int64_t uid = 0, gid = 0;
    std::vector<std::int64_t> groups;
};
Result<Bundle> read_bundle(const std::string& folder);

// Names the content: the same bundle elsewhere has the same digest. "sha256:..." over configuration and all files, or
// "sha256-listing:..." over names, modes, sizes and times when the files are more than `max_bytes` together.
Result<std::string> bundle_digest(const Bundle& bundle, std::int64_t max_bytes = std::int64_t{512} << 20);

// What runc is told about one rank. `root`: a writable view of the bundle's root.
Json runc_config(const Bundle& bundle, const LaunchOrder& order, std::size_t rank,
                 const std::map<std::string, std::string>& environment, const std::string& root, const std::string& id);
// The folders of the machine that a rank sees under their own names: where it works, its checkpoints and what else its
// environment tells it to write to. None lies in another one.
std::vector<std::string> folders_of_rank(const std::string& work,
                                         const std::map<std::string, std::string>& environment);

}  // namespace stoker
