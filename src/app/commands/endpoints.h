// What stoker endpoints and stoker explain say of an endpoint.
#pragma once

#include <optional>
#include <string>

#include "app/session.h"
#include "serve/endpoints/endpoint.h"

namespace stoker {

// How a gateway said it is; nothing where none has said so lately.
std::optional<EndpointStatus> fresh_status(const EndpointFolder& folder, const std::string& name);

Result<CommandOutput> explain_endpoint(Session& session, const EndpointFolder& folder, const Endpoint& endpoint);

}  // namespace stoker
