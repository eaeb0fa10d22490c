// Which links join the GPUs of a node and the nodes: measured rows of links.tsv where there is one, scaled from nominal
// rates elsewhere.
#pragma once

#include <optional>
#include <string_view>

#include "catalog/catalog.h"

namespace stoker {

// gpu_link as sizes.tsv spells it: none, pcie, nvlink, nvlink-pair, xgmi, neuronlink.
// Sets link_inside, link_pair, link_across and scale_up_pairs of `node`; adds the links it has to make up to the
// catalogue, once each.
void choose_links(NodeType& node, std::string_view gpu_link, Catalog& catalog);

// The gpu_link of a machine of one's own with these GPUs. scale_up: whether NVLink or the like joins them; where nobody
// says, as they are sold in such numbers. Sets scale_up_domain.
std::string_view own_gpu_link(NodeType& node, const Accelerator& gpu, std::optional<bool> scale_up = {});

}  // namespace stoker
