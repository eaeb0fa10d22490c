// Replicas of an endpoint as runs of the platform: each is a run with labels that say whose it is, started, listed and
// cancelled through the API, so that every engine whose nodes can be reached has them. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "app/client/client.h"
#include "serve/endpoints/replica_host.h"

namespace stoker {

using ConnectToServer = std::function<Result<std::unique_ptr<Client>>()>;
// Connects when first needed, and again after the server has gone. `here`: that server runs on this machine.
std::unique_ptr<ReplicaHost> make_replica_runs(ConnectToServer connect, bool here);

// The spec of one replica: {port}, {host} and {name} in words of its command and environment are what they are, and the
// variables of its engine say the same.
Result<RunSpec> replica_spec(const Endpoint& endpoint, const EndpointRevision& revision, const std::string& name,
                             const std::string& host, int port);
std::string replica_run_name(const std::string& endpoint);  // of all its runs

}  // namespace stoker
