// The name of this installation: five characters that mark everything it starts, so that two installations on one
// machine, or a restored copy and its original, can be told apart.
#pragma once

#include <string>

#include "base/result.h"
#include "io/journal.h"
#include "run/engine/engine.h"

namespace stoker {

std::string draw_site();
// The one that FOLDER/site names (a restored backup has it), else the journal's, else a fresh one.
Result<std::string> site_of(Journal& journal, const std::string& folder);

// Holds the journal against its own head, the folders of runs and what the engine has of us. Nothing: they agree.
// Refused, unless the loss is accepted: then what is lost, with `site` drawn anew, so that no number of a lost record
// names anything again; what still runs under the old name stays ours, and is ended as everything that no run owns.
Result<std::optional<JournalLost>> look_for_loss(const Journal& journal, Driver& driver, const State& state,
                                                 const EngineOptions& options, std::string& site);

}  // namespace stoker
