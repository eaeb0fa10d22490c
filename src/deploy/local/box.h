// Ranks inside an image: runc makes a container, here called a box, whose first process becomes a child of the keeper
// as any other rank is. Each has a writable layer of its own over the bundle, which stays as it is. Without root the
// box is in a user namespace, where root inside is the user outside.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "deploy/local/gang_files.h"

namespace stoker {

// Why images cannot be run with trees of this kind on this machine, and what to do about it; empty: they can.
std::string why_no_images(TreeKind tree);

std::string box_id(const LaunchOrder& order, std::size_t rank);

// For a process that was forked for this and has one thread: takes mounts of its own, makes the box and returns the pid
// of its first process, which waits for start_box(). Output goes where ours does.
Result<pid_t> create_box(const std::string& run_folder, const LaunchOrder& order, std::size_t rank,
                         const std::map<std::string, std::string>& environment);
Status start_box(const std::string& run_folder, const LaunchOrder& order, std::size_t rank);
// What runc keeps about the boxes of a gang, their control groups, and whatever still runs in them. Fine when there are
// none.
void remove_boxes(const std::string& run_folder, const LaunchOrder& order);
// The control groups alone that runc made, in all trees; false while one of them is in use.
bool remove_box_groups(const LaunchOrder& order);

// The device files of a rank's devices, with those that every NVIDIA program opens.
std::vector<std::string> files_of_devices(const std::vector<NodeInfo>& nodes, const RankSpec& rank);

}  // namespace stoker
