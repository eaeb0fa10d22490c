// This machine as a node type of the catalogue, from what stoker bench cpu measured and kept.
#pragma once

#include <string>

#include "base/document.h"
#include "base/json.h"
#include "base/result.h"
#include "catalog/catalog.h"
#include "io/machine/machine.h"
#include "workload/workload.h"

namespace stoker {

// $XDG_CACHE_HOME/stoker/this-machine.json, or the same below ~/.cache.
Result<std::string> this_machine_path();
std::string machine_key(const Machine& machine);  // what a measurement belongs to: model, cores, architecture

Json speed_json(const MachineSpeed& speed);
// One file holds the measurements of all machines that share this cache folder, each in named parts. not_found: there
// is no file.
Result<Document> read_measurements(const std::string& path);
Status save_measurement(const std::string& path, const std::string& machine, const std::string& part, Json measured);
Status save_speed(const std::string& path, const Machine& machine, const MachineSpeed& speed, const std::string& day);
// The kept measurement of this machine; not_found when there is none.
Result<MachineSpeed> load_speed(const std::string& path, const Machine& machine);

// What is kept, else measured in 2 seconds and kept.
MachineSpeed known_speed(const Machine& machine, const std::string& day);

// Adds the node type "this-machine" with the measured matmul rate and memory bandwidth; once.
int add_this_machine(const Machine& machine, const MachineSpeed& speed, Catalog& catalog);
// Does that when the workload's `where` names this machine, measuring quickly when nothing is kept. Call before
// read_workload.
Status add_this_machine_if_named(const Document& workload, Catalog& catalog, const std::string& day);
bool names_this_machine_only(const Workload& workload);

}  // namespace stoker
