// The nodes that a server offers: this machine, parts of it, or what a file of on-premises nodes declares.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "base/table.h"
#include "catalog/catalog.h"
#include "deploy/driver.h"

namespace stoker {

// The entries of a list. What is wrong is added with its place.
std::vector<NodeInfo> read_nodes(const Node& list, Catalog& catalog, Problems& problems);
// What an entry holds, for schemas and reference pages; read by add_on_prem_node() and read_nodes().
std::shared_ptr<const RecordInfo> node_entry_record();
// Each entry `count` times, as NAME or NAME-1, NAME-2, ...; `price_per_hour` goes to the price book of the caller;
// `topology` says where they hang, `devices` which files their GPUs are on this machine.
Result<std::vector<NodeInfo>> read_node_file(const Document& document, Catalog& catalog);
// A machine in so many equal parts, each with its share of processors, memory and GPUs.
Result<std::vector<NodeInfo>> split_node(const NodeInfo& machine, int parts);

}  // namespace stoker
