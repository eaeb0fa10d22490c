// stoker doctor cloud: what a cloud's lists have that nobody seems to want any more.
#pragma once

#include "app/session.h"

namespace stoker {

Result<CommandOutput> find_forgotten_things(Session& session, const Args& args);

}  // namespace stoker
