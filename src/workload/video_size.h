// Videos of another size than the one the catalogue counts a model for.
#pragma once

#include <string>

#include "catalog/catalog.h"

namespace stoker {

// The shorter edge of the videos that the work of a model is counted for, as people say 720p; 0: it makes none.
double video_edge(const ModelSpec& model);
// Counts it for videos of this edge. What that changes, in words; empty: nothing.
std::string scale_video(ModelSpec& model, double edge);

}  // namespace stoker
