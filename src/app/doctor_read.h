// stoker doctor --read: what tools printed, read from files.
#pragma once

#include "app/session.h"

namespace stoker {

Result<CommandOutput> read_tools(Session& session, const Args& args);

}  // namespace stoker
