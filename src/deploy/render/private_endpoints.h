// What guarded work reaches of Azure's own services by an address in its network, so that its name is answered with
// that one: the registry of its image; with the az script also a Key Vault that its owner names.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "deploy/render/azure_shape.h"

namespace stoker {

std::string az_private_endpoints(const AzureShape& shape);  // behind the network
// Resources of ARM, of machines and scale sets; the parameter registryId is the registry's id.
void add_private_endpoints(const AzureShape& shape, Json& resources);
std::string terraform_private_endpoints(const AzureShape& shape);
// Whether these files ask for the registry's id. A cluster of ARM or Terraform has the network that AKS makes for it,
// and nothing of one's own can be put there.
bool asks_for_registry(const AzureShape& shape);
inline constexpr std::string_view kRegistryIdMeans = "Id of the registry that the image is in, of the tier Premium";

}  // namespace stoker
