// The first minute of a gang, from the driver's side: is the order sound, its folder, its keeper, and the keeper's word
// that the ranks run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/driver.h"
#include "deploy/local/gang_files.h"

namespace stoker {

Outcome confirmed(std::string_view detail = {});
Outcome rejected(Cause cause, std::string_view detail);
Outcome unknown(std::string_view detail);

// rejected when the gang cannot run on these nodes, whatever else happens.
Outcome check_gang(const OperationId& operation, const GangSpec& gang, const std::vector<NodeInfo>& nodes,
                   TreeKind tree);

// Makes `folder`, starts a keeper in it with the program `keeper` (empty: this one), and waits for its word. A folder
// that is there already is the same launch made before: its outcome is told, and nothing is started.
Outcome launch_gang(const std::string& folder, LaunchOrder order, const std::vector<std::string>& keeper,
                    Deadline deadline);

bool path_exists(const std::string& path);
std::string absolute_path(const std::string& path);
// Renamed first, so that nobody takes a half for a whole; names that begin with kGone are what a crash left of that.
inline constexpr std::string_view kGone = ".gone-";
bool remove_gang_folder(const std::string& folder);

}  // namespace stoker
