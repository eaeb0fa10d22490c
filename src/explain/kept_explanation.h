// An explanation as it is kept beside the series of its run, whose seconds are gone an hour later. Texts of years ago
// are read too: what they name and nobody knows any more is told as it was.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "explain/explained.h"

namespace stoker {

// kMostKeptText (observe/series.h) bytes at most: what is least needed goes first.
std::string kept_form(ExplainedRun explained);
Result<ExplainedRun> read_kept(const std::string& text);

// Of a run that has ended: judged again while what it was judged from is still there as fine as then, by the rules of
// today; else as it was kept.
ExplainedRun kept_or_now(std::optional<ExplainedRun> kept, ExplainedRun now);

}  // namespace stoker
