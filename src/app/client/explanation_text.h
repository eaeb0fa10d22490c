// A run against its plan, as people read it.
#pragma once

#include <string>
#include <string_view>

#include "base/style.h"
#include "server/views_observe.h"

namespace stoker {

// Every term, then the causes with evidence, gain and fix, or what was ruled out and what could not be known.
std::string explanation_text(const api::ExplanationView& view, const Style& style);
// The same in short for the end of `stoker run`: nothing where all is inside and nothing was found.
// A measured value in the words of the terms: "107 ms", "0.4 GiB", "$1.20".
std::string measured_text(double value, std::string_view unit);
std::string explanation_summary(const api::ExplanationView& view);

}  // namespace stoker
