// Why a run failed: the limit or the machine that ended it, else its program's own words, read from the end of the logs
// of its ranks. Told as what stops it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "explain/explained.h"

namespace stoker {

// The last lines that a rank printed; an error where its log cannot be had.
using LogTail = std::function<Result<std::string>(int rank)>;

// None: it did not fail, or no rank that did said a word. Of several ranks the one that
// ended first counts, unless all that it says is that another did.
std::optional<ToldDiagnosis> end_in_words(const Run& run, const LogTail& tail);

}  // namespace stoker
