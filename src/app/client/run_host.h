// Who carries a run of `stoker run`: the server of the folder when there is one, else a server of this process. When
// the one goes away, the other takes over; the run itself is under its keeper and notices nothing.
#pragma once

#include <memory>
#include <string>

#include "app/client/client.h"
#include "server/server.h"

namespace stoker {

class RunHost {
public:
    static Result<std::unique_ptr<RunHost>> open(Session& session, const Args& args);
    Client& client() { return *client_; }
    bool embedded() const { return server_ != nullptr; }
    // After the server went away: another one, or this process, within half a minute.
    Result<Client*> again();
    // Ends a server of this process; what still runs goes on without one.
    void close();

private:
    RunHost(Session& session, const Args& args) : session_(session), args_(args) {}
    Status find();

    Session& session_;
    const Args& args_;
    std::unique_ptr<Server> server_;
    std::unique_ptr<Client> client_;
};

}  // namespace stoker
