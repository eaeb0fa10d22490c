// An earlier run's spec, submitted anew: the way back to a workload as it was.
#pragma once

#include <string>

#include "app/client/client.h"
#include "app/run_file.h"
#include "app/session.h"

namespace stoker {

// The label that names the run it was taken from.
inline constexpr const char* kAgainLabel = "stoker/again_from";

// --again RUN with what may stand beside it; a problem names what may not.
Status check_again(const Args& args, std::string_view command);
// The spec as it is stored, under --name when that is given, with the source as it is today. What differs from then,
// and what would bring it back, goes to stderr: code is not kept, and never brought back by itself.
Result<LoadedRun> load_again(Session& session, Client& client, const Args& args);

// What there is to say about the source of a run then and now, in lines; none when it is the same.
std::vector<std::string> source_notes(const std::string& run, const std::string& folder, const SourceSpec& then,
                                      const SourceSpec& now);

}  // namespace stoker
