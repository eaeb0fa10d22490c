// The desk of a server (server/desk.h): what pages ask of planner and deployment, by the commands themselves.
#pragma once

#include <memory>
#include <string>

#include "server/desk.h"

namespace stoker {

// `folder`: of the server's state, where its endpoints are. `catalog_dir`: of Session.
std::shared_ptr<Desk> make_desk(std::string folder, std::string catalog_dir);

}  // namespace stoker
