// Several engines as one driver (deploy/driver.h), which keeps the contract of each. A launch goes to the engine that
// it names, and everything about that operation to the same one. An engine that does not answer holds up nobody: what
// is asked of it is `unknown`, its nodes are not listed, its name is in OursListing::silent, and the others go on.
//
// Nodes are named node@engine, those of the first engine as they are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "deploy/driver.h"

namespace stoker {

struct OneOfSeveral {
    std::string name, kind;
    // Tried again while it fails, since an engine may be away when the server starts.
    std::function<Result<std::unique_ptr<Driver>>()> make;
};

// capabilities() are those of the first; engines() has those of each. The first has to be there; another one may come
// later, unless what it was told is wrong.
Result<std::unique_ptr<Driver>> make_several(std::vector<OneOfSeveral> engines);

}  // namespace stoker
