// stoker usage --against BILL: what a cloud billed for the machines, beside what was charged here for holding them.
#pragma once

#include <string>

#include "app/args.h"
#include "app/client/client.h"
#include "app/session.h"

namespace stoker {

// By its first line: a file of costs, and no output of sacct.
bool is_cloud_bill(std::string_view text);
Result<CommandOutput> compare_with_bill(Session& session, Client& client, const Args& args, const std::string& text);

}  // namespace stoker
