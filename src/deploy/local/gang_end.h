// What a driver can find out about a gang from its folder, and what it does when the keeper is gone.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/local/gang_files.h"
#include "io/process.h"

namespace stoker {

// The keeper of this folder, when it lives: pid, start and boot agree.
UniqueFd find_keeper(const std::string& folder);
// Why it does not answer, and what to do, where that can be seen; else empty.
std::string keeper_trouble(const std::string& folder);

// For a gang without a keeper: ends what is left of it, writes the last status and returns that. The status of a gang
// that has ended in order is returned as it is. conflict: somebody holds the folder, so the keeper lives after all;
// timed_out: something does not end.
Result<GangStatus> bury(const std::string& folder, const LaunchOrder& order, Deadline deadline);

// What a server left that died before its launch had a keeper: nothing of it ran and nothing will, since a keeper that
// comes later leaves. Then the folder goes, as if the launch had not been tried, and it can be made again.
bool remove_if_never_begun(const std::string& folder);

// The control groups of a gang, and with the last gang the common ones; false while something is in them.
bool remove_groups(const LaunchOrder& order);

// Which facts of a gang have been told.
struct Told {
    std::vector<bool> started, ended;
    bool gang = false;
};
// What `status` says that has not been told, in order: starts, ends in the order they came, the end of the gang.
// Cursors are left to the caller.
std::vector<Fact> untold_facts(const LaunchOrder& order, const GangStatus& status, Told& told);

}  // namespace stoker
