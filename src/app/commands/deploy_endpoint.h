// stoker deploy FILE --endpoint: a plan becomes an endpoint.
#pragma once

#include <optional>

#include "app/args.h"
#include "app/session.h"
#include "deploy/deployment.h"

namespace stoker {

struct EndpointOwner {
    std::string project, user;  // of Endpoint
};
// usd_per_hour: of all machines of the deployment; 0: no price is known.
Result<CommandOutput> deploy_endpoint(Session& session, const Args& args, Deployment deployment, double usd_per_hour,
                                      const EndpointOwner& owner = {});
// Of a file that is planned for it, with the options of stoker deploy.
Result<CommandOutput> deploy_endpoint_file(Session& session, const Args& args, const EndpointOwner& owner);
const std::vector<OptionSpec>& endpoint_options();  // of the above, beside planning

// --idle TIME; nothing where it is not said.
Result<std::optional<double>> idle_option(const Args& args);

// Where endpoints of a state folder are.
Result<std::string> endpoints_path(const Args& args);

}  // namespace stoker
