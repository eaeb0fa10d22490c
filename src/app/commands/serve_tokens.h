// stoker serve tokens: what a gateway counts of a text.
#pragma once

#include "app/args.h"
#include "app/session.h"

namespace stoker {

Result<CommandOutput> count_tokens(Session& session, const Args& args);

}  // namespace stoker
