// How the steps of a run went, with the causes marked where they were: for a terminal, and as a page of its own.
#pragma once

#include <string>

#include "base/style.h"
#include "server/views_observe.h"

namespace stoker {

// Two lines and one for each cause that has a time; empty where no steps were seen.
std::string timeline_text(const api::ExplanationView& view, int width);
// A self-contained page: the timeline as a picture (SVG), then what explanation_text says.
std::string explanation_html(const api::ExplanationView& view);

}  // namespace stoker
