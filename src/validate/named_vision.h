// Networks for images, by names that say more than the catalogue has: patches, and the side of the image that goes in.
#pragma once

#include <optional>
#include <string_view>

#include "catalog/catalog.h"

namespace stoker::validate {

// A vision transformer of the usual sizes: "vit_base_patch32_384", "ViT-B/32", "vit-l-14-336",
// "deit-small-patch16-224". Nothing where the name is none, or does not tell its patches: those of another would be
// wrong fourfold.
std::optional<ModelSpec> named_vision_transformer(std::string_view printed);

// The side in pixels of the images that the FLOP of the catalogue are of; 0: not known.
double nominal_side(const ModelSpec& model);
// What stands as a side behind a name: "resnet50_320", "stable-diffusion-2 256x256", "vit-l-14@336px"; 0: nothing.
double printed_side(std::string_view printed);
// The same network on images of another side: convolutions in proportion to the pixels, attention to their square.
ModelSpec at_side(const ModelSpec& model, double side);

}  // namespace stoker::validate
