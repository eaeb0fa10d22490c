// A scale set of replicas whose number follows how busy its GPUs are, in the words of az, ARM (and Bicep) and
// Terraform. Azure's own measurements of a machine know its CPUs only, and a busy GPU shows on none: each machine sends
// how busy its GPUs are to the custom metrics of the set, once a minute, as an identity that may do nothing else.
#pragma once

#include <string>

#include "base/json.h"
#include "deploy/render/azure_shape.h"

namespace stoker {

// The identity that machines of the set have.
std::string metrics_identity(const AzureShape& shape);

// On each machine: the program that measures and sends, and the unit that runs it.
std::string gpu_load_script();
std::string gpu_load_unit();

std::string az_set_identity(const AzureShape& shape);  // before the set
std::string az_set_scaling(const AzureShape& shape);   // behind it
// Resources of ARM; the identity's own id as it writes it.
std::string set_identity_id(const AzureShape& shape);
void add_set_identity(const AzureShape& shape, Json& resources);
void add_set_scaling(const AzureShape& shape, Json& resources);
std::string terraform_set_identity(const AzureShape& shape);
std::string terraform_set_scaling(const AzureShape& shape);

}  // namespace stoker
