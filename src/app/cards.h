// Cards: every fact of one GPU, VM size, model, image or region, with its source. Used by catalog and compare.
#pragma once

#include <string>
#include <string_view>

#include "app/listing.h"

namespace stoker {

std::string gpu_count_text(double count, const std::string& name);  // "8 x A10", "1/6 of one A10"
Card gpu_card(const Catalog& catalog, int accelerator);
Card size_card(const Catalog& catalog, int node_type, std::string_view region, std::string_view today);
Card model_card(const ModelSpec& model);
Card image_card(const Image& image);
Card disk_card(const DiskTier& disk);
Card retirement_card(const Retirement& retirement, std::string_view today);
// "! often quoted as 1.80 $/h; right: ..." for each correction of this size.
std::string correction_notes(std::string_view size, const Style& style);
Json correction_json(std::string_view size);

}  // namespace stoker
