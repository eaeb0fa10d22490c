// stoker usage --against: what was held by Slurm's accounting, beside what is known here.
#pragma once

#include "app/args.h"
#include "app/client/client.h"
#include "app/session.h"

namespace stoker {

Result<CommandOutput> compare_with_sacct(Session& session, Client& client, const Args& args);

}  // namespace stoker
