// The endpoints of a folder, kept by the gateway that serves them: a thread that reads their files, keeps their
// replicas and says in a second file how they are.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "app/client/replica_runs.h"
#include "serve/endpoints/endpoint.h"
#include "serve/fleet/board.h"

namespace stoker {

class EndpointService {
public:
    using Boards = std::map<std::string, std::shared_ptr<ReplicaBoard>>;
    // `here`: the server runs on this machine.
    EndpointService(std::string folder, ConnectToServer connect, bool here);
    ~EndpointService();  // replicas go on: they are runs, and the next gateway finds them
    EndpointService(const EndpointService&) = delete;
    EndpointService& operator=(const EndpointService&) = delete;

    Boards boards() const;             // of those that there are now
    void listens_at(std::string url);  // what requests are sent to, once that is known
    std::uint64_t version() const;     // another one when an endpoint has come or gone
    // Its file is there, whoever keeps it: one just made, or kept by a gateway that is about to end. Any thread.
    bool there(const std::string& name) const;

private:
    struct State;
    const std::unique_ptr<State> state_;
};

}  // namespace stoker
