// What the ledger of a gateway says, and the file that names it.
#pragma once

#include <string>

#include "app/args.h"
#include "app/session.h"
#include "serve/gateway/config.h"

namespace stoker {

Result<gateway::GatewayConfig> read_gateway_file(Session& session, const std::string& path,
                                                 const gateway::EndpointBoards& endpoints);
std::string gateway_file_path(const Args& args);  // --config
// What it keeps, by its file; no endpoint is started for that.
Result<gateway::GatewayOptions> gateway_options(Session& session, const Args& args);

Result<CommandOutput> show_account(Session& session, const Args& args);
Result<CommandOutput> verify_ledger(Session& session, const Args& args);
Result<CommandOutput> show_objectives(Session& session, const Args& args);

}  // namespace stoker
