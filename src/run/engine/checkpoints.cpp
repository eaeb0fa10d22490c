#include "run/engine/checkpoints.h"

#include <algorithm>

namespace stoker {

CheckpointView view_of_checkpoints(const Checkpoints& checkpoints) {
    CheckpointView view{.newest = {}, .done = checkpoints.done};
    const auto& all = checkpoints.items;
    const auto newest = std::find_if(all.begin(), all.end(), [](const Checkpoint& each) { return each.complete; });
    if (newest == all.end()) return view;
    view.newest = newest->folder;
    view.step = newest->step;
    return view;
}

std::vector<std::string> checkpoints_to_prune(const std::vector<Checkpoint>& checkpoints, int keep) {
    std::vector<std::string> prune;
    int kept = 0, older = 0;
    for (const Checkpoint& checkpoint : checkpoints) {
        // A torn one below a complete one will not be finished any more.
        if (!checkpoint.complete) {
            if (kept > 0) prune.push_back(checkpoint.folder);
        } else if (kept < std::max(keep, 1)) {
            ++kept;
        } else if (++older % 10 != 0) {
            prune.push_back(checkpoint.folder);
        }
    }
    return prune;
}

}  // namespace stoker
