// The engines that there are: the one list. Whoever needs one asks here by its name, and knows it by the contract
// (driver.h) alone. Another engine is a folder beside local/, and a line in engines.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/engines/engine_choice.h"
#include "deploy/node_offer.h"

namespace stoker {

// What a server has for its engine.
struct EngineSetup {
    std::string folder;                // of the server
    std::shared_ptr<NodeOffer> offer;  // none: as an empty one
    NodeCheckFunction check;           // none: nothing can be told of a node's health
    EngineChoice choice;
};

struct EngineKind {
    std::string_view name;
    std::string_view what;  // in a line
    Result<std::unique_ptr<Driver>> (*make)(const EngineSetup&);
    // Only its answers, without a lock and without changing anything: for looking at what an engine has left.
    std::unique_ptr<Questions> (*look)(const std::string& folder);
    bool here;  // it is this machine, of which there is one
};

// The first is the one that is meant when none is named.
std::span<const EngineKind> engines();
// not_found: with the list. The empty name is the first.
Result<const EngineKind*> find_engine(std::string_view name);
Result<std::unique_ptr<Driver>> make_engine(std::string_view name, const EngineSetup& setup);
// The one of the setup with others beside it (several.h), each with a folder of its own. `left`: names that are not in
// the configuration any more and still have work, which is not given up for that.
Result<std::unique_ptr<Driver>> make_engines(const EngineSetup& setup, const std::vector<EngineChoice>& beside,
                                             const std::vector<std::string>& left);
// What is wrong with it as it is written; where it leads is not looked at.
Status check_rest(const RestChoice& rest);
std::string name_of_engine(const EngineChoice& choice);

// This machine as one node: of the local engine, and of whatever is said about where this program runs.
NodeInfo this_node();

}  // namespace stoker
