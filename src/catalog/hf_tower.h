// The encoder of images or sound in front of a language model.
#pragma once

#include "base/document.h"

namespace stoker {

// Parameters of the tower that a vision_config or audio_config describes, with the projection into the language
// model's hidden size; 0 when the block does not give width and depth. Within a tenth of the tower, so within a percent
// of the model.
double tower_parameters(const Node& block, int text_hidden);

}  // namespace stoker
