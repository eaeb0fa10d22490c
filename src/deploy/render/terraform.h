// What the Terraform of all clouds has in common, and the part of Azure.
#pragma once

#include <string>
#include <string_view>

#include "deploy/deployment.h"

namespace stoker {

// `keyed`: machines that are reached by SSH.
std::string terraform_variables(std::string_view location, bool keyed);
std::string azure_terraform(const Deployment& deployment);

}  // namespace stoker
