// The layers of a transformer: their shape, and what those that see images keep and move.
#pragma once

#include "sizing/framework.h"
#include "sizing/training.h"

namespace stoker {

// Whatever the layers read: words, recordings or patches.
void set_layers(const ModelSpec& model, TrainingSetup& setup);

// An encoder of images whose layers are known. Its arithmetic is counted by the image, as that of a CNN is.
bool is_vision_transformer(const ModelSpec& model);
// What its layers keep and move, as they would for words: by the image too, since its length is the model's own. Called
// once for each setup, when the code base's habits are in.
void set_image_layers(const Workload& workload, const FrameworkFamily& family, TrainingSetup& setup);

}  // namespace stoker
