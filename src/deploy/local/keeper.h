// The keeper: one small process per gang, which outlives the server. It is the parent of the ranks, because only a
// parent learns how a process ended; it keeps status.json true, ends all ranks when one fails, obeys orders over a
// socket, and leaves when no process of the gang runs any more.
#pragma once

#include <string>

namespace stoker {

// `stoker keeper FOLDER`, with the folder of a gang that has a launch.json. Returns when it cannot begin, with the exit
// code of the command; otherwise the process ends at once and the keeper goes on in the background. It writes one line
// to stdout when the ranks run ("started") or cannot ("failed"), then closes it.
int run_keeper(const std::string& folder);

}  // namespace stoker
