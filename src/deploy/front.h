// Of a service: what stands before its model and needs no GPU, how many of it, and on which machines.
#pragma once

#include <optional>
#include <string>

#include "catalog/catalog.h"
#include "deploy/deployment.h"
#include "workload/workload.h"

namespace stoker {

// None: the file says none, or it is no service. `cloud`, `region`: where the machines of the model are.
std::optional<FrontWork> front_of(const Workload& workload, const Catalog& catalog, const std::string& cloud,
                                  const std::string& region, double requests_per_s);

}  // namespace stoker
